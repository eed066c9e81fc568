"""Exports written by other tools run with equal outputs: Transformers' OnnxExporter, and optimum."""

import copy
import os
import pathlib
import subprocess
import sys

import helpers
import numpy as np
import pytest

ATOL = 1e-4


def flat(tree):
    from transformers.exporters.utils import get_leaf_tensors

    return {name: value.detach().numpy() for name, value in get_leaf_tensors(tree).items()}


def graph_names(path):
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name not in weights], [value.name for value in graph.output]


def compare(model_path, component, inputs, expected):
    """Feeds `inputs` by name (dead ones left out, states as `input.NAME`), compares every expected output."""
    names, outputs = graph_names(model_path / f"{component}.onnx")
    feed = {name: inputs[name.removeprefix("input.")] for name in names}
    got = helpers.forward(model_path, feed, "--component", component, "--mode", "exact")
    assert set(got) == set(outputs)
    compared = 0
    for name in outputs:
        reference = expected.get(name.removeprefix("output."))
        if reference is not None and reference.shape == got[name].shape:
            np.testing.assert_allclose(got[name], reference, atol=ATOL, rtol=1e-4, err_msg=name)
            compared += 1
    assert "logits" in got and compared >= len(outputs) // 2


@pytest.fixture(scope="module")
def exporters():
    return pytest.importorskip("transformers.exporters", reason="this transformers has no exporters")


@pytest.fixture(scope="module")
def plain_export(exporters, tiny_llama, tmp_path_factory):
    import torch

    model, _ = tiny_llama
    ids = torch.from_numpy(helpers.random_ids(5, 2, 7))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    folder = tmp_path_factory.mktemp("transformers") / "plain"
    with torch.no_grad():
        exporters.OnnxExporter().export(model, inputs, exporters.OnnxConfig(dynamic=True)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("batch, length", [(2, 7), (1, 1), (3, 29)])
def test_transformers_plain_export(plain_export, tiny_llama, batch, length):
    import torch

    model, _ = tiny_llama
    ids = torch.from_numpy(helpers.random_ids(batch + length, batch, length))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        expected = flat(model(**inputs))
    compare(plain_export, "model", {name: value.numpy() for name, value in inputs.items()}, expected)


@pytest.fixture(scope="module", params=["sdpa", "eager"])
def generation_export(request, exporters, tiny_llama, tmp_path_factory):
    """(folder, [(component, inputs, outputs)]): static cache, decode with several tokens.

    Transformers hands its sdpa attention a bool mask, its eager one a float mask to be added: both appear in exports.
    """
    import torch
    import transformers
    from transformers.exporters.utils import decompose_for_generation

    model, _ = tiny_llama
    ids = torch.from_numpy(helpers.random_ids(6, 2, 7))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    settings = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    config = transformers.GenerationConfig(cache_implementation="static", max_cache_len=48, **settings)
    arguments = {"generation_config": config, "multi_token_decode": True}
    folder = tmp_path_factory.mktemp("transformers") / "generation"
    model = copy.deepcopy(model)
    model.set_attn_implementation(request.param)
    with torch.no_grad():
        exporter = exporters.OnnxExporter()
        made = exporter.export_for_generation(
            model, copy.deepcopy(inputs), exporters.OnnxConfig(dynamic=True), **arguments
        )
        made.save_pretrained(folder)
        cases = []
        for name, (part, arrays) in decompose_for_generation(model, copy.deepcopy(inputs), **arguments).items():
            fed = flat(copy.deepcopy(arrays))
            cases.append((name, fed, flat(part(**copy.deepcopy(arrays)))))
    return folder, cases


@pytest.mark.parametrize("component", ["prefill", "decode"])
def test_transformers_generation_export(generation_export, component):
    folder, cases = generation_export
    inputs, expected = next((fed, made) for name, fed, made in cases if name == component)
    compare(folder, component, inputs, expected)


def test_transformers_generation_export_generates(generation_export, tiny_llama):
    folder, _ = generation_export
    ids = helpers.random_ids(8, 9).tolist()
    generated = helpers.generate_ids(folder, ids, 24)
    assert len(generated) == 24
    assert helpers.eager_agrees(tiny_llama[0], ids, generated) is None


OPTIMUM = """
import sys, torch
from optimum.exporters.onnx import main_export
main_export(sys.argv[1], sys.argv[2], task=sys.argv[3], do_validation=False, no_post_process=False)
"""


@pytest.fixture(scope="module")
def optimum_python(tmp_path_factory):
    """A module search path with optimum and the older transformers it wants (scripts/python_env.sh makes it)."""
    overlay = helpers.ROOT / "build/optimum"
    if not (overlay / ".complete").exists():
        pytest.skip("optimum-onnx is unavailable: build/optimum is not there (scripts/python_env.sh optimum)")
    return overlay


def optimum_export(overlay, checkpoint, folder, task):
    done = subprocess.run(
        [sys.executable, "-c", OPTIMUM, str(checkpoint), str(folder), task],
        env={**os.environ, "PYTHONPATH": str(overlay)}, capture_output=True, text=True, timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return pathlib.Path(folder)


@pytest.fixture(scope="module")
def optimum_checkpoint(tiny_llama, tmp_path_factory):
    """The tiny Llama with its configuration spelled as transformers 4 reads it too."""
    import json

    model, _ = tiny_llama
    folder = helpers.save_checkpoint(model, tmp_path_factory.mktemp("optimum") / "llama")
    config = json.loads((folder / "config.json").read_text())
    config["rope_theta"] = (config.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    config["torch_dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_optimum_export_with_past(optimum_python, optimum_checkpoint, tiny_llama, tmp_path):
    import torch

    model, _ = tiny_llama
    folder = optimum_export(optimum_python, optimum_checkpoint, tmp_path / "past", "text-generation-with-past")
    names, outputs = graph_names(folder / "model.onnx")
    ids, mask, positions = helpers.left_padded([helpers.random_ids(1, 6), helpers.random_ids(2, 9)])
    head = model.config.hidden_size // model.config.num_attention_heads
    empty = np.zeros((2, model.config.num_key_value_heads, 0, head), np.float32)
    values = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    got = helpers.forward(folder, {name: values.get(name, empty) for name in names}, "--mode", "exact")
    with torch.no_grad():
        expected = model(**{name: torch.from_numpy(value) for name, value in values.items()}).logits.numpy()
    real = mask.astype(bool)
    np.testing.assert_allclose(got["logits"][real], expected[real], atol=ATOL, rtol=1e-4)
    assert set(got) == set(outputs)
    ids = helpers.random_ids(8, 9).tolist()
    assert helpers.eager_agrees(model, ids, helpers.generate_ids(folder, ids, 16)) is None


def test_optimum_export_without_past(optimum_python, optimum_checkpoint, tiny_llama, tmp_path):
    import torch

    model, _ = tiny_llama
    folder = optimum_export(optimum_python, optimum_checkpoint, tmp_path / "plain", "text-generation")
    names, _ = graph_names(folder / "model.onnx")
    ids, mask, positions = helpers.left_padded([helpers.random_ids(4, 5), helpers.random_ids(5, 5)])
    values = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    got = helpers.forward(folder, {name: values[name] for name in names}, "--mode", "exact")
    with torch.no_grad():
        expected = model(torch.from_numpy(ids)).logits.numpy()
    np.testing.assert_allclose(got["logits"], expected, atol=ATOL, rtol=1e-4)
