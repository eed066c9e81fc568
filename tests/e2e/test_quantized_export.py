"""Exports with weights of few bits: what ONNX Runtime and decant make of them, and what is on disk.

The oracle of an export's numbers is a float graph with the same weights (float_weights.py).
"""

import os

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import helpers
from float_weights import decoded

MEGABYTE = 1 << 20
TIED = {"tie_word_embeddings": True}
MODELS = {
    "tied": TIED,
    "untied": {"attention_bias": True},
    "odd": {**TIED, "hidden_size": 72, "num_attention_heads": 9, "num_key_value_heads": 3},  # no multiple of a block
}


@pytest.fixture(scope="module", params=MODELS)
def model(request, tmp_path_factory):
    """(eager model, checkpoint folder)"""
    made = helpers.tiny_model("Llama", seed=3, **MODELS[request.param])
    return made, helpers.save_checkpoint(made, tmp_path_factory.mktemp(request.param) / "checkpoint")


def export(source, folder, precision, *args, cache="none"):
    """Runs `decant export --json`; the lines about weights, by name, and the last line."""
    options = ["--cache", cache, "--precision", precision, "--json", *args]
    run = helpers.run_decant(["export", source, "-o", folder, *options])
    *weights, summary = run.json_lines()
    return {line["weight"]: line for line in weights}, summary


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def feeds(length=9, vocab_size=320):
    ids = helpers.random_ids(5, 2, length, vocab_size=vocab_size)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids),
            "position_ids": np.tile(np.arange(length, dtype=np.int64), (2, 1))}


def close(a, b, tolerance):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    assert np.isfinite(a).all()
    np.testing.assert_allclose(a, b, atol=tolerance * max(1, np.abs(b).max()), rtol=0)


@pytest.mark.parametrize("precision, args", [
    ("q4", ()), ("q8", ()), ("q4", ("--block-size", "16")), ("q8", ("--block-size", "128")), ("q4f16", ()),
    ("q4", ("--bits-per-weight", "7")),
], ids=["q4", "q8", "q4-16", "q8-128", "q4f16", "mixed"])
def test_runtimes_agree(decant, model, tmp_path, precision, args):
    eager, checkpoint = model
    weights, summary = export(checkpoint, tmp_path / "out", precision, *args)
    path = tmp_path / "out" / "model.onnx"
    onnx.checker.check_model(str(path))
    run = session(str(path))
    inputs = feeds()
    logits = run.run(["logits"], inputs)[0]
    half = precision.endswith("f16")
    assert logits.dtype == (np.float16 if half else np.float32)
    # Half precision rounds activations wherever a runtime stores them.
    bound = 2e-2 if half else 1e-3
    close(helpers.forward(tmp_path / "out", inputs, "--mode", "exact")["logits"], logits, bound)
    dense, matrices = decoded(onnx.load(str(path)))
    close(session(dense.SerializeToString()).run(["logits"], inputs)[0], logits, bound)

    # What is reported is what the codes lost, and it is little.
    parameters = {name: p.detach().double().numpy() for name, p in eager.named_parameters()}
    assert len(weights) == 2 * 7 + (1 if eager.config.tie_word_embeddings else 2)
    for name, line in weights.items():
        wanted = parameters[name]
        found = next(w for codes, w in matrices.items() if codes.rsplit("_Q", 1)[0] == name)[:, :wanted.shape[1]]
        error = np.sqrt(((found - wanted) ** 2).sum() / (wanted ** 2).sum())
        assert line["shape"] == list(wanted.shape)
        assert abs(error - line["relative_error"]) < 2e-3 * line["relative_error"] + 1e-6
        assert error < (0.1 if line["bits"] == 4 else 0.007)
    elements = sum(parameters[name].size for name in weights)
    assert summary["weights"]["bytes_before"] == elements * (2 if half else 4)
    if "--bits-per-weight" in args:
        assert {4, 8} == {line["bits"] for line in weights.values()}
        assert summary["weights"]["bits_per_weight"] <= 7


def test_a_tied_table_is_stored_once(decant, tmp_path):
    model = helpers.tiny_model("Llama", seed=4, vocab_size=4096, **TIED)
    checkpoint = helpers.save_checkpoint(model, tmp_path / "checkpoint")
    weights, _ = export(checkpoint, tmp_path / "out", "q4")
    assert weights["model.embed_tokens.weight"]["shared"]
    total = sum(line["bytes_after"] for line in weights.values())
    assert (tmp_path / "out" / "model.onnx.data").stat().st_size < total + 40 * 4096
    graph = onnx.load(str(tmp_path / "out" / "model.onnx"), load_external_data=False).graph
    assert len([t.name for t in graph.initializer if t.name.startswith("model.embed_tokens")]) in (2, 3)


def test_accuracy_level_is_written(decant, model, tmp_path):
    export(model[1], tmp_path / "out", "q4", "--accuracy-level", "4")
    graph = onnx.load(str(tmp_path / "out" / "model.onnx"), load_external_data=False).graph
    products = [node for node in graph.node if node.op_type == "MatMulNBits"]
    levels = [a.i for node in products for a in node.attribute if a.name == "accuracy_level"]
    assert levels == [4] * len(products)
    logits = session(str(tmp_path / "out" / "model.onnx")).run(["logits"], feeds())[0]
    close(helpers.forward(tmp_path / "out", feeds())["logits"], logits, 0.05)  # ONNX Runtime rounds activations


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_no_number(decant, tmp_path, value):
    model = helpers.tiny_model("Llama", seed=5)
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[3, 7] = float(value)
    checkpoint = helpers.save_checkpoint(model, tmp_path / "checkpoint")
    for precision in ("q4", "q8"):
        run = helpers.run_decant(["export", checkpoint, "-o", tmp_path / "out", "--precision", precision], check=False)
        assert run.returncode == 1
        assert "model.layers.1.mlp.up_proj.weight: the weight in row 3, column 7 is" in run.stderr
        names = os.listdir(tmp_path / "out") if (tmp_path / "out").exists() else []
        assert not [name for name in names if ".onnx" in name or name == "export.json"]


def test_wrong_options(decant, model, tmp_path):
    for args, code in [(["--precision", "q3"], 2), (["--precision", "q4", "--block-size", "48"], 2),
                       (["--precision", "int8"], 1), (["--precision", "fp32", "--bits-per-weight", "5"], 1),
                       (["--precision", "fp32", "--accuracy-level", "4"], 1),
                       (["--precision", "q4", "--bits-per-weight", "4.2"], 1)]:
        run = helpers.run_decant(["export", model[1], "-o", tmp_path / "out", *args], check=False)
        assert run.returncode == code, run.stderr
        assert run.stderr


def test_a_quantized_source_keeps_its_codes(decant, smollm2_gguf, smollm2_dynamic, tmp_path):
    """Q4_1 and Q8_0 from the GGUF file, as MatMulNBits: the logits of the fp32 export, in a sixth of its size."""
    weights, summary = export(smollm2_gguf, tmp_path / "out", "source", cache="dynamic")
    assert all(line["kept"] for line in weights.values())
    assert summary["weights"]["bits_per_weight"] < 7
    ids = helpers.random_ids(9, 1, 6, vocab_size=49152)
    config = onnx.load(str(tmp_path / "out" / "model.onnx"), load_external_data=False).graph.input
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(6)[None]}
    for value in config:
        if value.name.startswith("past_key_values"):
            heads, size = (value.type.tensor_type.shape.dim[i].dim_value for i in (1, 3))
            inputs[value.name] = np.zeros((1, heads, 0, size), np.float32)
    wanted = session(str(smollm2_dynamic / "model.onnx")).run(["logits"], inputs)[0]
    close(session(str(tmp_path / "out" / "model.onnx")).run(["logits"], inputs)[0], wanted, 1e-4)
    close(helpers.forward(tmp_path / "out", inputs, "--mode", "exact")["logits"], wanted, 1e-3)


@pytest.mark.parametrize("precision", ["q4", "q8", "source"])
def test_memory_of_an_export(decant, smollm2_gguf, tmp_path, precision):
    run = helpers.run_decant(["export", smollm2_gguf, "-o", tmp_path / "out", "--precision", precision])
    assert run.peak_rss_bytes - smollm2_gguf.stat().st_size < 200 * MEGABYTE


def test_a_killed_export_leaves_no_whole_looking_file(decant, smollm2_gguf, tmp_path):
    helpers.killed_export([smollm2_gguf, "--precision", "q8", "--block-size", "16"], tmp_path)
