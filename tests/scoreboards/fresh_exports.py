"""Exports by the installed Transformers' own exporter, compared with PyTorch eager: outputs and greedy ids."""

import copy
import warnings

import helpers
import safetensors.numpy

DECODERS = {
    "llama": ("Llama", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "gemma3": ("Gemma3", {"head_dim": 16, "sliding_window": 16, "query_pre_attn_scalar": 16,
                          "layer_types": ["sliding_attention", "full_attention"]}),
    "gpt2": ("GPT2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256}),
    "phi3": ("Phi3", {}),
}


def text(seed, batch, length):
    import torch

    ids = torch.from_numpy(helpers.random_ids(seed, batch, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def decoder(name):
    import transformers

    prefix, settings = DECODERS[name]
    if prefix != "Gemma3":
        return helpers.tiny_model(prefix, seed=3, **settings)
    config = transformers.Gemma3TextConfig(**{**helpers.TINY, **settings})
    config._attn_implementation = "eager"
    return helpers.sharpen(transformers.Gemma3ForCausalLM(config), 3)


def t5():
    import transformers

    config = transformers.T5Config(
        vocab_size=320, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_decoder_layers=2, num_heads=4,
        decoder_start_token_id=0, eos_token_id=2, pad_token_id=0)
    return helpers.sharpen(transformers.T5ForConditionalGeneration(config), 3)


def whisper():
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=320, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, num_mel_bins=8, max_source_positions=24,
        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None)
    return helpers.sharpen(transformers.WhisperForConditionalGeneration(config), 3)


def bert():
    import transformers

    config = transformers.BertConfig(
        vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=128, num_labels=3)
    return helpers.sharpen(transformers.BertForSequenceClassification(config), 3)


def features(seed, batch):
    import torch

    return torch.randn(batch, 8, 48, generator=torch.Generator().manual_seed(seed))


def example(name, seed, batch, length):
    inputs = text(seed, batch, length)
    if name == "bert":
        import torch

        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    if name == "t5":
        inputs["decoder_input_ids"] = text(seed + 1, batch, length - 2)["input_ids"]
    if name == "whisper":
        inputs = {"input_features": features(seed, batch), "decoder_input_ids": inputs["input_ids"]}
    return inputs


def flat(tree):
    from transformers.exporters.utils import get_leaf_tensors

    return {name: value.detach().float().numpy() if value.is_floating_point() else value.detach().numpy()
            for name, value in get_leaf_tensors(tree).items()}


def export_plain(model, name, folder, dtype):
    from transformers.exporters import OnnxConfig, OnnxExporter

    inputs = cast(example(name, 21, 2, 7), dtype)
    OnnxExporter().export(copy.deepcopy(model).to(dtype), inputs, OnnxConfig(dynamic=True)).save_pretrained(folder)
    model.config.save_pretrained(folder)
    if model.can_generate():
        model.generation_config.save_pretrained(folder)


def cast(inputs, dtype):
    return {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}


def export_generation(model, folder, static):
    import transformers
    from transformers.exporters import OnnxConfig, OnnxExporter

    settings = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    if static:
        settings.update(cache_implementation="static", max_cache_len=96)
    OnnxExporter().export_for_generation(
        copy.deepcopy(model), text(22, 2, 7), OnnxConfig(dynamic=True),
        generation_config=transformers.GenerationConfig(**settings), multi_token_decode=True).save_pretrained(folder)
    model.config.save_pretrained(folder)


def run(board, scratch):
    import torch

    import layouts

    try:
        import transformers.exporters  # noqa: F401
    except ImportError:
        board.add(("all", "transformers exporter"), "fresh", "unsupported", "this transformers has no exporters")
        return
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(False)
    makers = {**{name: (lambda name=name: decoder(name)) for name in DECODERS}, "t5": t5, "whisper": whisper, "bert": bert}
    for name, make in makers.items():
        model = make()
        for precision, dtype in (("fp32", torch.float32), ("fp16", torch.float16)):
            plain(board, layouts, scratch, model, name, precision, dtype)
        if name in DECODERS:
            for form in ("static", "growing"):
                generation(board, layouts, scratch, model, name, form)


def plain(board, layouts, scratch, model, name, precision, dtype):
    import torch

    case, group = f"fresh {name} {precision}", (name, "exporter single")
    if not board.wants(case):
        return
    folder = scratch / f"fresh_{name}_{precision}"
    try:
        export_plain(model, name, folder, dtype)
    except Exception as e:  # noqa: BLE001
        board.add(group, case, "unsupported", f"Transformers cannot export it: {type(e).__name__}: {e}")
        return
    names = list(layouts.ort.Graph(folder / "model.onnx").inputs)
    limit = layouts.tolerance(precision)
    for batch, length in ((2, 7), (1, 4), (3, 19)):
        inputs = example(name, 30 + length, batch, length)
        expected = flat(model(**inputs))
        fed = {n: cast(inputs, dtype)[n].numpy() for n in names}

        def outputs(fed=fed, expected=expected):
            wanted = {"logits": expected["logits"]}
            return layouts.compare_outputs(folder, fed, wanted, limit)

        board.check(group, f"{case} batch {batch} length {length}", outputs)
    if not model.can_generate():
        return
    prompt = helpers.random_ids(8, 9).tolist()
    args, start = [folder], prompt
    if name == "whisper":
        values = features(40, 1)
        safetensors.numpy.save_file({"input_features": values.numpy()}, folder / "features.safetensors")
        args += ["--inputs", folder / "features.safetensors"]
        start, given = [model.config.decoder_start_token_id], {"input_features": values}
    elif name == "t5":
        args += ["--ids", ",".join(map(str, prompt))]
        start, given = [model.config.decoder_start_token_id], {"input_ids": torch.tensor([prompt])}
    else:
        args += ["--ids", ",".join(map(str, prompt))]
        given = {}
    key = "decoder_input_ids" if given else "input_ids"

    def reference(ids):
        tokens = torch.tensor([start + ids[:-1]])
        return model(**given, **{key: tokens}).logits[0, len(start) - 1:].float().numpy()

    board.check(group, f"{case} greedy", lambda: layouts.compare_ids(args, reference, limit))


def generation(board, layouts, scratch, model, name, form):
    import torch

    case, group = f"fresh {name} {form} cache", (name, f"exporter {form}")
    if not board.wants(case):
        return
    folder = scratch / f"fresh_{name}_{form}"
    try:
        export_generation(model, folder, form == "static")
    except Exception as e:  # noqa: BLE001
        board.add(group, case, "unsupported", f"Transformers cannot export it: {type(e).__name__}: {e}")
        return
    prompt = helpers.random_ids(8, 9).tolist()

    def reference(ids):
        return model(torch.tensor([prompt + ids[:-1]])).logits[0, len(prompt) - 1:].float().numpy()

    args = [folder, "--ids", ",".join(map(str, prompt))]
    board.check(group, f"{case} greedy", lambda: layouts.compare_ids(args, reference, layouts.tolerance("fp32")))
