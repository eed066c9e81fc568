"""Writes spellings/NAME.onnx: norms, activations, rotary embeddings, attention and cache writes of a few channels, in
the words of the exporters that people used: torch's TorchScript exporter at old opsets, and its newer one.

    make_spellings.py [NAME...]

Modules follow how Transformers wrote them at the time; each name says where the form is from. expected.tsv lists what
decant's passes find in each.
"""

import io
import math
import pathlib
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).parent / "spellings"
LOWEST = torch.finfo(torch.float32).min
BATCH, LENGTH, HEADS, SIZE, WIDTH = 2, 5, 4, 4, 8


class LayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, eps=1e-5)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(x)


class LlamaNorm(nn.Module):
    def __init__(self, form="llama"):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH))
        self.form = form

    def forward(self, x):
        kind = x.dtype
        y = x.to(torch.float32)
        if self.form == "gemma":
            y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
            return (y * (1.0 + self.weight.float())).type_as(x)
        if self.form == "plain":
            return y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-6)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        if self.form == "olmo":
            return (self.weight * y).to(kind)
        return self.weight * y.to(kind)


class Activation(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.form = form

    def forward(self, x):
        if self.form == "erf":
            return F.gelu(x)
        if self.form == "erf_bert":
            return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
        if self.form == "tanh":
            return F.gelu(x, approximate="tanh")
        if self.form == "new":
            return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
        if self.form == "fast":
            return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))
        if self.form == "quick":
            return x * torch.sigmoid(1.702 * x)
        if self.form == "not_gelu":
            return 0.5 * x * (1.0 + torch.erf(x / 1.5))
        return F.silu(x) * (x + 1)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


class Rotary(nn.Module):
    """`cached`: tables of Transformers 4.34; else computed from the positions."""

    def __init__(self, form):
        super().__init__()
        self.form = form
        dim = SIZE // 2 if "partial" in form else SIZE
        frequencies = 1.0 / (100.0 ** (torch.arange(0, dim, 2).float() / dim))
        self.dim = dim
        self.register_buffer("frequencies", frequencies)
        angles = torch.outer(torch.arange(16).float(), frequencies)
        if "uneven" in form:
            angles = torch.cat([angles, angles * 1.01], -1)
        else:
            angles = torch.cat([angles, angles], -1)
        self.register_buffer("cos", angles.cos()[None, None])
        self.register_buffer("sin", angles.sin()[None, None])

    def tables(self, positions, length):
        if "cached" in self.form:
            cos = self.cos[:, :, :length].squeeze(1).squeeze(0)[positions].unsqueeze(1)
            return cos, self.sin[:, :, :length].squeeze(1).squeeze(0)[positions].unsqueeze(1)
        angles = (self.frequencies[None, :, None].expand(positions.shape[0], -1, 1) @ positions[:, None, :].float())
        angles = angles.transpose(1, 2)
        if "interleaved" in self.form:
            axis = 2 if "gptj" in self.form else 1
            if self.form == "interleaved":
                return tuple(x.repeat_interleave(2, -1).unsqueeze(axis) for x in (angles.cos(), angles.sin()))
            return tuple(torch.stack((x, x), -1).flatten(-2).unsqueeze(axis) for x in (angles.cos(), angles.sin()))
        angles = torch.cat((angles, angles), -1)
        return angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)

    def forward(self, heads, position_ids):
        x = heads
        if "gptj" in self.form:
            x = x.transpose(1, 2)
        cos, sin = self.tables(position_ids, 16)
        turn = rotate_every_two if "interleaved" in self.form else rotate_half
        if "partial" in self.form:
            part, rest = x[..., : self.dim], x[..., self.dim:]
            return torch.cat((part * cos + turn(part) * sin, rest), -1)
        y = x * cos + turn(x) * sin
        return y.transpose(1, 2) if "gptj" in self.form else y


def repeat_kv(x, n):
    batch, heads, length, size = x.shape
    return x[:, :, None].expand(batch, heads, n, length, size).reshape(batch, heads * n, length, size)


class Attention(nn.Module):
    """q [batch, heads, length, size], k and v perhaps of fewer heads, mask [batch, keys] of zeros and ones."""

    def __init__(self, form):
        super().__init__()
        self.form = form
        self.sinks = nn.Parameter(torch.randn(HEADS))
        self.register_buffer("tril", torch.tril(torch.ones(16, 16, dtype=torch.bool))[None, None])

    def bools(self, q, k, mask):
        rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None, :]
        seen = columns <= rows
        if "window" in self.form:
            seen = seen & (columns > rows - 3)
        return seen[None, None] & mask.bool()[:, None, None, :]

    def floats(self, q, k, mask):
        """Older masks: a causal triangle of lowest numbers, then padding written over it."""
        length, keys = q.shape[2], k.shape[2]
        causal = torch.full((length, keys), LOWEST)
        causal = torch.triu(causal, diagonal=1)[None, None].expand(q.shape[0], 1, -1, -1)
        if "scatter" in self.form:
            causal = causal.clone()
            padding = causal[:, :, :, :keys] + mask[:, None, None, :].float()
            causal[:, :, :, :keys] = causal[:, :, :, :keys].masked_fill(padding == 0, LOWEST)
            return causal
        padding = (1.0 - mask[:, None, None, :].float()) * LOWEST
        return causal + padding

    def forward(self, q, k, v, mask):
        scale = q.shape[-1] ** -0.5
        if "gqa" in self.form:
            k, v = repeat_kv(k, 2), repeat_kv(v, 2)
        if "sdpa_causal" in self.form:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if "sdpa_none" in self.form:
            return F.scaled_dot_product_attention(q, k, v)
        if "sdpa_bool" in self.form:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=self.bools(q, k, mask))
        if "sdpa_float" in self.form:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=self.floats(q, k, mask))
        if "bmm" in self.form:  # BART, OPT, Whisper until 4.4x
            batch, heads, length, size = q.shape
            keys = k.shape[2]
            q3, k3, v3 = (x.reshape(batch * heads, -1, size) for x in (q * scale, k, v))
            scores = torch.bmm(q3, k3.transpose(1, 2))
            if "masked" in self.form:
                scores = scores.view(batch, heads, length, keys) + self.floats(q, k, mask)
                scores = scores.view(batch * heads, length, keys)
            out = torch.bmm(torch.softmax(scores, -1), v3)
            return out.view(batch, heads, length, size)
        scores = q @ k.transpose(2, 3)
        if "t5" in self.form:
            rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None, :]
            bias = ((columns - rows).abs().float() * -0.25)[None, None]
            scores = scores + (bias + (1.0 - mask[:, None, None, :].float()) * LOWEST)
            return torch.softmax(scores.float(), -1).type_as(scores) @ v
        scores = scores * scale if "div" not in self.form else scores / math.sqrt(q.shape[-1])
        if "softcap" in self.form:
            scores = torch.tanh(scores / 3.0) * 3.0
        if "gpt2" in self.form:  # the score is replaced, then padding is added
            seen = self.tril[:, :, k.shape[2] - q.shape[2]: k.shape[2], : k.shape[2]]
            scores = torch.where(seen, scores, torch.full([], LOWEST))
            scores = scores + (1.0 - mask[:, None, None, :].float()) * LOWEST
        elif "infinite" in self.form:  # no guard: rows without a key are NaN
            scores = scores.masked_fill(~self.bools(q, k, mask), float("-inf"))
        elif "replaced_small" in self.form:
            scores = torch.where(self.bools(q, k, mask), scores, -1e4)
        elif "small" in self.form:  # what half precision made of the lowest number
            scores = scores + torch.where(self.bools(q, k, mask), 0.0, -1e4)
        else:
            scores = scores + self.floats(q, k, mask)
        if "sinks" in self.form:  # GPT-OSS
            sinks = self.sinks.reshape(1, -1, 1, 1).expand(q.shape[0], -1, q.shape[-2], -1)
            scores = torch.cat([scores, sinks], dim=-1)
            scores = scores - scores.max(dim=-1, keepdim=True).values
            return torch.softmax(scores, -1, dtype=scores.dtype)[..., :-1].to(q.dtype) @ v
        return torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v


class CacheWrite(nn.Module):
    """A static cache of Transformers: new entries at consecutive positions from a counter."""

    def forward(self, past, fresh, start):
        positions = torch.arange(fresh.shape[2]) + start
        past = past.clone()
        past.index_copy_(2, positions, fresh)
        return past


def qkv(heads=HEADS):
    torch.manual_seed(1)
    make = lambda n: torch.randn(BATCH, n, LENGTH, SIZE)  # noqa: E731
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[0, 3:] = 0
    return {"q": make(HEADS), "k": make(heads), "v": make(heads), "mask": mask}


def rows():
    return {"x": torch.randn(BATCH, LENGTH, WIDTH)}


def rotary_inputs():
    positions = torch.arange(LENGTH).repeat(BATCH, 1)
    return {"heads": torch.randn(BATCH, HEADS, LENGTH, SIZE), "position_ids": positions}


AXES = {
    "x": {0: "batch", 1: "length"}, "heads": {0: "batch", 2: "length"}, "q": {0: "batch", 2: "length"}, "k": {0: "batch", 2: "length"},
    "v": {0: "batch", 2: "length"}, "mask": {0: "batch", 1: "length"}, "position_ids": {0: "batch", 1: "length"},
    "past": {0: "batch"}, "fresh": {0: "batch", 2: "length"}, "start": {},
}


def cases():
    """name: (module, inputs, opset of the TorchScript exporter or 0 for the newer one)"""
    made = {}

    def both(name, module, inputs, opsets=(14, 17, 0)):
        for opset in opsets:
            made[f"{name}.{f'ts{opset}' if opset else 'dynamo'}"] = (module, inputs, opset)

    both("layer_norm", LayerNorm, rows, (11, 14, 17, 0))
    for form in ("llama", "gemma", "olmo", "plain"):
        both(f"rms_norm_{form}", lambda form=form: LlamaNorm(form), rows, (11, 18, 0))
    both("rms_norm_half", lambda: LlamaNorm("llama").half(), lambda: {"x": rows()["x"].half()}, (14, 0))
    both("rms_norm_half_gemma", lambda: LlamaNorm("gemma").half(), lambda: {"x": rows()["x"].half()}, (14,))
    for form in ("erf", "erf_bert", "tanh", "new", "fast", "quick", "not_gelu", "swiglu"):
        both(f"activation_{form}", lambda form=form: Activation(form), rows, (14, 0))
    for form in ("full", "cached", "uneven_cached", "partial", "interleaved", "interleaved_partial",
                 "interleaved_gptj"):
        both(f"rotary_{form}", lambda form=form: Rotary(form), rotary_inputs,
             (13,) if "cached" in form else (0,) if form == "interleaved" else (14, 0))
    for form in ("eager", "eager_scatter", "sdpa_bool", "sdpa_bool_window", "sdpa_bool_gqa", "sdpa_float", "sdpa_causal",
                 "sdpa_none", "bmm", "bmm_masked", "t5", "softcap", "gpt2_div", "infinite", "small", "replaced_small",
                 "eager_gqa", "sinks"):
        inputs = (lambda: qkv(2)) if "gqa" in form else qkv
        both(f"attention_{form}", lambda form=form: Attention(form), inputs, (14,) if form == "sinks" else (14, 17, 0))
    both("cache_write", CacheWrite, lambda: {
        "past": torch.randn(BATCH, 2, 16, SIZE), "fresh": torch.randn(BATCH, 2, LENGTH, SIZE),
        "start": torch.tensor(3)}, (0,))
    return made


def strip(model):
    """Drops what only people read."""
    model.graph.ClearField("value_info")
    del model.graph.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        del value.metadata_props[:]
    return model


def write(name, module, inputs, opset):
    import onnx

    torch.manual_seed(0)
    module, inputs = module().eval(), inputs()
    axes = {key: AXES[key] for key in inputs}
    if opset:
        buffer = io.BytesIO()
        torch.onnx.export(module, tuple(inputs.values()), buffer, input_names=list(inputs), output_names=["y"],
                          dynamic_axes=axes, opset_version=opset, dynamo=False)
        model = onnx.load_from_string(buffer.getvalue())
    else:
        dims = {key: {axis: torch.export.Dim.DYNAMIC for axis in value} for key, value in axes.items()}
        model = torch.onnx.export(module, (), kwargs=inputs, dynamic_shapes=dims, output_names=["y"], dynamo=True,
                                  opset_version=20, verbose=False).model_proto
    onnx.save(strip(model), FOLDER / f"{name}.onnx")


def main():
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    for name, (module, inputs, opset) in cases().items():
        if len(sys.argv) > 1 and name not in sys.argv[1:] and name.split(".")[0] not in sys.argv[1:]:
            continue
        try:
            write(name, module, inputs, opset)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")


if __name__ == "__main__":
    main()
