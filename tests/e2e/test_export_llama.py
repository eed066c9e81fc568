"""The Llama family, exported to ONNX and run by ONNX Runtime, against PyTorch eager on the same weights.

Each case feeds a prompt, then one token, then three tokens through the cache, at batch 1 and at batch 3 with left
padding. Tiny models have a trained length of 32 and, for Mistral, a window of 8, so that the steps lie below, at and
above both.
"""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import helpers

TRAINED = 32
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}

ROPES = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 2.5},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "llama3": {**LLAMA3, "original_max_position_embeddings": 16},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    "yarn-tuned": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 16.0, "beta_slow": 2.0,
        "attention_factor": 1.3, "truncate": False,
    },
}

SHAPES = {
    "untied": {},
    "tied": {"tie_word_embeddings": True},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "head-dim": {"head_dim": 24},
    "no-groups": {"num_key_value_heads": 4},
    "smollm": {"hidden_size": 72, "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
    "one-kv-head": {"num_key_value_heads": 1, "num_hidden_layers": 3},
}


def tiny(architecture="Llama", rope="default", **config):
    settings = {"max_position_embeddings": TRAINED, "rope_parameters": {"rope_theta": 10000.0, **ROPES[rope]}, **config}
    return helpers.tiny_model(architecture, seed=7, **settings)


def open_session(folder):
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


class Exported:
    """An export's state between runs: caches, attention mask, and how much of the buffers is filled."""

    def __init__(self, session, batch, config, cache, capacity):
        self.session, self.cache, self.filled = session, cache, 0
        self.names = [output.name for output in session.get_outputs()]
        self.inputs = {value.name for value in session.get_inputs()}
        length = capacity if cache == "static" else 0
        shape = (batch, config.num_key_value_heads, length, helpers.head_dim(config))
        self.past = {name: np.zeros(shape, np.float32) for name in self.inputs if name.startswith("past_key_values.")}
        self.mask = np.zeros((batch, length), np.int64)

    def step(self, ids, mask, positions):
        count = ids.shape[1]
        feeds = {"input_ids": ids, "position_ids": positions, **self.past}
        if self.cache == "static":
            self.mask[:, self.filled:self.filled + count] = mask
            feeds["cache_length"] = np.array(self.filled, np.int64)
        else:
            self.mask = np.concatenate([self.mask, mask], axis=1)
        feeds["attention_mask"] = self.mask
        assert set(feeds) == self.inputs
        outputs = dict(zip(self.names, self.session.run(None, feeds)))
        self.past = {name: outputs[name.replace("past_key_values", "present")] for name in self.past}
        self.filled += count
        return outputs["logits"]


def batches(prompt, vocab_size):
    """(rows of the prompt, rows of the one-token step, rows of the three-token step) for batch 1 and a padded 3."""
    for lengths in ([prompt], [max(1, prompt - 4), prompt, max(1, prompt // 2)]):
        rows = [helpers.random_ids(10 + i, length, vocab_size=vocab_size).tolist() for i, length in enumerate(lengths)]
        steps = [helpers.random_ids(50 + n, len(lengths), n, vocab_size=vocab_size) for n in (1, 3)]
        yield rows, steps


def compare(model, session, cache, prompt, tolerance, capacity=64):
    config = model.config
    for rows, steps in batches(prompt, config.vocab_size):
        # Eager's dynamic rope keeps the frequencies of the longest text that the module has seen.
        model.model.rotary_emb = type(model.model.rotary_emb)(config)
        ids, mask, positions = helpers.left_padded(rows)
        exported = Exported(session, len(rows), config, cache, capacity)
        eager_cache, seen = None, np.zeros((len(rows), 0), np.int64)
        for step in [ids, *steps]:
            if step is not ids:
                mask, positions = np.ones_like(step), positions[:, -1:] + 1 + np.arange(step.shape[1])
            seen = np.concatenate([seen, mask], axis=1)
            with torch.no_grad():
                out = model(
                    torch.from_numpy(step), attention_mask=torch.from_numpy(seen), use_cache=True,
                    position_ids=torch.from_numpy(positions), past_key_values=eager_cache,
                )
            eager_cache = out.past_key_values
            logits = exported.step(step, mask, positions)
            assert logits.shape == tuple(out.logits.shape)
            assert np.isfinite(logits).all()
            difference = np.abs(logits - out.logits.numpy())[mask == 1].max()
            assert difference < tolerance, f"batch {len(rows)}, {step.shape[1]} tokens after {seen.shape[1]}"


def export(checkpoint, folder, cache, *args):
    helpers.run_decant(["export", checkpoint, "-o", folder, "--format", "onnx", "--cache", cache, *args])
    return folder


def check(model, tmp_path, lengths):
    checkpoint = helpers.save_checkpoint(model, tmp_path / "checkpoint")
    for cache in ("dynamic", "static"):
        session = open_session(export(checkpoint, tmp_path / cache, cache))
        for length in lengths:
            compare(model, session, cache, length, tolerance=1e-4)


@pytest.mark.parametrize("rope", ROPES)
def test_rope(decant, tmp_path, rope):
    check(tiny(rope=rope), tmp_path, lengths=(9, 16, 31, 32, 45))


@pytest.mark.parametrize("shape", SHAPES)
def test_shape(decant, tmp_path, shape):
    check(tiny(**SHAPES[shape]), tmp_path, lengths=(1, 10))


@pytest.mark.parametrize("window", [8, None])
def test_mistral_window(decant, tmp_path, window):
    check(tiny("Mistral", sliding_window=window), tmp_path, lengths=(4, 7, 8, 9, 20))


QWEN = {
    "Qwen2": {"tie_word_embeddings": True},
    "Qwen2 with a window": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0},
    "Qwen3": {"head_dim": 24},
    "Qwen3 with biases": {"head_dim": 16, "attention_bias": True, "tie_word_embeddings": True},
}


@pytest.mark.parametrize("name", QWEN)
def test_qwen(decant, tmp_path, name):
    check(tiny(name.split()[0], **QWEN[name]), tmp_path, lengths=(1, 7, 8, 9, 20))


def test_without_a_cache(decant, tmp_path):
    model = tiny()
    session = open_session(export(helpers.save_checkpoint(model, tmp_path / "checkpoint"), tmp_path / "none", "none"))
    ids, mask, positions = helpers.left_padded([row.tolist() for row in (helpers.random_ids(1, 9), helpers.random_ids(2, 4))])
    feeds = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    with torch.no_grad():
        expected = model(**{name: torch.from_numpy(value) for name, value in feeds.items()}).logits.numpy()
    (logits,) = session.run(None, feeds)
    assert np.abs(logits - expected)[mask == 1].max() < 1e-4


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_checks_and_keeps_its_dtype(decant, tmp_path, precision):
    checkpoint = helpers.save_checkpoint(tiny(), tmp_path / "checkpoint")
    folder = export(checkpoint, tmp_path / precision, "dynamic", "--precision", precision)
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    kind = {"fp16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16}[precision]
    assert {value.type.tensor_type.elem_type for value in graph.output} == {kind}


def test_fp16_is_near_eager(decant, tmp_path):
    model = tiny()
    checkpoint = helpers.save_checkpoint(model, tmp_path / "checkpoint")
    session = open_session(export(checkpoint, tmp_path / "fp16", "none", "--precision", "fp16"))
    ids, mask, positions = helpers.left_padded([helpers.random_ids(1, 9).tolist()])
    with torch.no_grad():
        expected = model(torch.from_numpy(ids)).logits.numpy()
    (logits,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "position_ids": positions})
    assert np.abs(logits.astype(np.float32) - expected).max() < 2e-2 * np.abs(expected).max()


def test_folder_is_what_transformers_reads(decant, tmp_path):
    import transformers

    model = tiny(tie_word_embeddings=True)
    folder = export(helpers.save_checkpoint(model, tmp_path / "checkpoint"), tmp_path / "out", "static", "--max-cache-len", "48")
    manifest = json.loads((folder / "export.json").read_text())
    metadata = manifest["components"]["model"]["metadata"]
    assert (manifest["schema_version"], manifest["export_format"]) == (1, "onnx")
    assert metadata["architecture"] == "LlamaForCausalLM"
    for key in ("in_spec", "out_spec"):
        torch.utils._pytree.treespec_loads(metadata[key])
    assert transformers.AutoConfig.from_pretrained(folder).hidden_size == model.config.hidden_size
    assert transformers.AutoTokenizer.from_pretrained(folder).eos_token == "</s>"
    transformers.GenerationConfig.from_pretrained(folder)
    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    cache = next(value for value in graph.input if value.name == "past_key_values.0.key")
    assert cache.type.tensor_type.shape.dim[2].dim_value == 48
    table = [t for t in graph.initializer if sorted(t.dims) == [model.config.hidden_size, model.config.vocab_size]]
    assert len(table) == 1  # the tied table is stored once


def test_transformers_runs_the_export(decant, tmp_path):
    exporters = pytest.importorskip("transformers.exporters")
    model = tiny()
    folder = export(helpers.save_checkpoint(model, tmp_path / "checkpoint"), tmp_path / "out", "static")
    ids, buffer = torch.from_numpy(helpers.random_ids(1, 1, 6)), (1, 2, 16, model.config.head_dim)
    mask = (torch.arange(16)[None] < 6).long()
    past = {str(i): {"key": torch.zeros(buffer), "value": torch.zeros(buffer)} for i in range(2)}
    outputs = exporters.ExportedModel.from_pretrained(folder)(
        input_ids=ids, attention_mask=mask, position_ids=torch.arange(6)[None], cache_length=torch.tensor(0),
        past_key_values=past,
    )
    with torch.no_grad():
        assert (outputs["logits"] - model(ids).logits).abs().max() < 1e-4
    assert tuple(outputs["present"]["1"]["value"].shape) == buffer


def edit_config(checkpoint, **changes):
    path = checkpoint / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def refused(checkpoint, folder):
    run = helpers.run_decant(["export", checkpoint, "-o", folder], check=False)
    assert run.returncode == 1
    assert not (folder / "export.json").exists()
    return run.stderr


def test_unknown_model_type_lists_the_supported_ones(decant, tmp_path):
    checkpoint = helpers.save_checkpoint(tiny(), tmp_path / "checkpoint")
    edit_config(checkpoint, model_type="perceptron")
    message = refused(checkpoint, tmp_path / "out")
    assert "perceptron" in message and "llama, mistral" in message


def test_missing_and_unread_tensors_are_listed(decant, tmp_path):
    checkpoint = helpers.save_checkpoint(tiny(num_hidden_layers=2), tmp_path / "checkpoint")
    edit_config(checkpoint, num_hidden_layers=1)
    assert "model.layers.1.mlp.up_proj.weight" in refused(checkpoint, tmp_path / "out")
    edit_config(checkpoint, num_hidden_layers=3)
    assert "model.layers.2.self_attn.q_proj.weight" in refused(checkpoint, tmp_path / "out")
    edit_config(checkpoint, num_hidden_layers=2, intermediate_size=80)
    assert "model.layers.0.mlp.down_proj.weight" in refused(checkpoint, tmp_path / "out")


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_smollm2(smollm2_eager, smollm2_dynamic, smollm2_static, cache):
    session = open_session({"dynamic": smollm2_dynamic, "static": smollm2_static}[cache])
    compare(smollm2_eager, session, cache, 12, tolerance=1e-3, capacity=512)
