"""decant's own run of an export: greedy ids and logits equal PyTorch eager on the same weights."""

import json

import helpers
import numpy as np
import pytest

PROMPTS = [
    "The lighthouse keeper climbed the stairs every evening because",
    "def merge_sorted(left, right):\n    ",
    "Water boils at 100 degrees Celsius at sea level. On a mountain it boils at",
    "Ingredients: 250 g flour, 3 eggs, a pinch of salt.\nMethod:",
    "Q: Which planet has the most moons?\nA:",
    "In 1969, 1984 and 2001 three very different films",
    "La capitale de la France est",
    "1, 1, 2, 3, 5, 8, 13,",
    "Once upon a time, a small robot found a violin 🎻 and",
    "She said: \"I don't think we've met.\" He replied:",
]


@pytest.fixture(scope="session")
def prompt_ids(smollm2_static):
    lines = "".join(json.dumps({"text": prompt}) + "\n" for prompt in PROMPTS)
    return [line["ids"] for line in helpers.run_decant(["tokenize", smollm2_static], stdin=lines).json_lines()]


@pytest.mark.parametrize("index", range(len(PROMPTS)))
def test_128_greedy_ids_equal_eager(smollm2_static, smollm2_eager, prompt_ids, index):
    ids = helpers.generate_ids(smollm2_static, prompt_ids[index], 128)
    assert len(ids) == 128
    assert helpers.eager_agrees(smollm2_eager, prompt_ids[index], ids) is None


def test_greedy_ids_equal_the_generate_method(smollm2_static, smollm2_eager, prompt_ids):
    """The same comparison once more, with eager decoding token by token through its own cache."""
    expected = helpers.eager_greedy(smollm2_eager, prompt_ids[0], 32)
    assert helpers.generate_ids(smollm2_static, prompt_ids[0], 32) == expected


def test_text_prompt_streams_what_json_reports(smollm2_static):
    args = ["generate", smollm2_static, "--prompt", PROMPTS[6], "--max-new-tokens", "12", "--temperature", "0"]
    report = helpers.run_decant([*args, "--json"]).json()
    assert report["text"].strip() == helpers.run_decant(args).stdout.strip()
    assert len(report["ids"]) == 12 and report["finish"] == "length"
    for key in ("load_ms", "prefill_tokens_per_s", "decode_tokens_per_s", "peak_rss_bytes"):
        assert report[key] > 0, key


def test_chat_template_answers(smollm2_static, tmp_path):
    messages = tmp_path / "messages.json"
    messages.write_text(json.dumps([{"role": "user", "content": "What is the capital of France? Answer briefly."}]))
    args = ["generate", smollm2_static, "--messages", messages, "--max-new-tokens", "40", "--temperature", "0"]
    report = helpers.run_decant([*args, "--json"]).json()
    assert "Paris" in report["text"] and report["finish"] == "stop"


def test_forward_batch_with_left_padding(smollm2_dynamic, smollm2_eager, prompt_ids):
    import torch

    ids, mask, positions = helpers.left_padded([prompt_ids[7], prompt_ids[4], prompt_ids[6]])
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    config = smollm2_eager.config
    empty = np.zeros((3, config.num_key_value_heads, 0, config.hidden_size // config.num_attention_heads), np.float32)
    for layer in range(config.num_hidden_layers):
        inputs[f"past_key_values.{layer}.key"] = inputs[f"past_key_values.{layer}.value"] = empty
    outputs = helpers.forward(smollm2_dynamic, inputs, "--mode", "exact")
    with torch.no_grad():
        named = {name: torch.from_numpy(inputs[name]) for name in ("input_ids", "attention_mask", "position_ids")}
        expected = smollm2_eager(**named).logits.numpy()
    real = mask.astype(bool)
    np.testing.assert_allclose(outputs["logits"][real], expected[real], atol=1e-3, rtol=0)
    assert f"present.{config.num_hidden_layers - 1}.value" in outputs


@pytest.mark.parametrize("cache", ["static", "dynamic"])
def test_tiny_llama_greedy_ids(tiny_llama, tmp_path, cache):
    model, checkpoint = tiny_llama
    folder = tmp_path / cache
    helpers.run_decant(["export", checkpoint, "-o", folder, "--format", "onnx", "--cache", cache])
    for seed, length in ((1, 1), (2, 7), (3, 33)):
        ids = helpers.random_ids(seed, length).tolist()
        generated = helpers.generate_ids(folder, ids, 24)
        assert helpers.eager_agrees(model, ids, generated) is None


def test_prompt_over_the_capacity_says_how_to_raise_it(tiny_llama, tmp_path):
    _, checkpoint = tiny_llama
    folder = tmp_path / "short"
    helpers.run_decant(["export", checkpoint, "-o", folder, "--cache", "static", "--max-cache-len", "16"])
    ids = ",".join(str(token) for token in helpers.random_ids(0, 20))
    args = ["generate", folder, "--ids", ids, "--max-new-tokens", "4", "--max-cache-len", "16"]
    run = helpers.run_decant(args, check=False)
    assert run.returncode in (1, 2)
    assert "16" in run.stderr and "20" in run.stderr and "--max-cache-len" in run.stderr


def test_unknown_model_type_prints_the_supported_ones(tmp_path):
    import safetensors.numpy

    safetensors.numpy.save_file({"w": np.zeros((2, 2), np.float32)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "quokka", "architectures": ["QuokkaForCausalLM"]}))
    run = helpers.run_decant(["export", tmp_path, "-o", tmp_path / "out"], check=False)
    assert run.returncode == 1
    assert "quokka" in run.stderr and "llama" in run.stderr and "mistral" in run.stderr


def test_missing_and_unread_tensors_are_listed(tiny_llama, tmp_path):
    import safetensors.numpy

    model, _ = tiny_llama
    folder = helpers.save_checkpoint(model, tmp_path / "broken")
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    tensors["model.layers.1.surprise.weight"] = tensors.pop("model.layers.1.mlp.up_proj.weight")
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    run = helpers.run_decant(["export", folder, "-o", tmp_path / "out"], check=False)
    assert run.returncode == 1
    assert "model.layers.1.mlp.up_proj.weight" in run.stderr
    extra = "model.layers.1.surprise.weight"
    restored = {**tensors, "model.layers.1.mlp.up_proj.weight": tensors[extra]}
    safetensors.numpy.save_file(restored, folder / "model.safetensors")
    run = helpers.run_decant(["export", folder, "-o", tmp_path / "out"], check=False)
    assert run.returncode == 1 and extra in run.stderr


def test_wrong_usage_exits_with_2():
    assert helpers.run_decant(["generate"], check=False).returncode == 2
    assert helpers.run_decant(["no-such-command"], check=False).returncode == 2
