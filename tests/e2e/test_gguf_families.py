"""GGUF files of each architecture that has a mapping: the model that its checkpoint gives."""

import numpy as np
import pytest

import helpers

gguf = pytest.importorskip("gguf")

FAMILIES = {
    "llama": ("Llama", {}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
}


def interleaved(rows, heads):
    """Rows of queries or keys as files of the architecture llama have them: pairs of channels beside each other."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def write_gguf(model, family, path, kind):
    """`model` as a GGUF file whose matrices are stored as `kind`; without a tokenizer."""
    config = model.config
    architecture = getattr(gguf.MODEL_ARCH, family.upper())
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, family)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(helpers.head_dim(config))
    writer.add_value_length(helpers.head_dim(config))
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if family == "llama" and f".{part}." in name:
                values = interleaved(values, heads)
        stem, suffix = name.rsplit(".", 1)
        stored = f"{names.get_name(stem)}.{suffix}"
        if values.ndim == 2:
            data = gguf.quants.quantize(np.ascontiguousarray(values), kind)
            writer.add_tensor(stored, data, raw_dtype=kind)
            decoded = gguf.quants.dequantize(data, kind)
            for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
                if family == "llama" and f".{part}." in name:
                    decoded = decoded.reshape(heads, -1, 2, decoded.shape[1]).swapaxes(1, 2).reshape(decoded.shape)
            tensor.copy_(tensor.new_tensor(np.ascontiguousarray(decoded)))
        else:
            writer.add_tensor(stored, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_0"])
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_its_checkpoint(decant, tmp_path, family, kind):
    import torch

    prefix, settings = FAMILIES[family]
    model = helpers.tiny_model(prefix, seed=5, intermediate_size=96, **settings)
    with torch.no_grad():
        write_gguf(model, family, tmp_path / "model.gguf", getattr(gguf.GGMLQuantizationType, kind))  # rounds the model too
        prompt = helpers.random_ids(3, 1, 9)
        expected = model(torch.from_numpy(prompt)).logits.numpy()
    helpers.run_decant(["export", tmp_path / "model.gguf", "-o", tmp_path / "onnx", "--format", "onnx", "--cache", "none"])
    feeds = {"input_ids": prompt, "attention_mask": np.ones_like(prompt), "position_ids": np.arange(9)[None]}
    logits = helpers.forward(tmp_path / "onnx", feeds)["logits"]
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    ids = helpers.generate_ids(tmp_path / "model.gguf", prompt[0], 8)
    assert helpers.eager_agrees(model, prompt[0].tolist(), ids) is None
