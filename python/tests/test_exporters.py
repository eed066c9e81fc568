"""Folders that Transformers' exporters wrote, run by decant, against the models that they came from."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from onnx import TensorProto, helper

import decant
from conftest import save
from decant.exporters import ExportedModel, ModelOutput

LEAF = '{"type": null, "context": null, "children_spec": []}'


def write_export(folder, components, **fields):
    """A manifest over graphs: {name: metadata}; the graph of a component adds its inputs a and c.k."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = {}
    for name, metadata in components.items():
        nodes = [helper.make_node("Add", ["a", "c.k"], ["sum"]), helper.make_node("Neg", ["a"], ["output.c.k"])]
        dims = [("a", TensorProto.FLOAT, ["n"]), ("c.k", TensorProto.FLOAT, ["n"])]
        outputs = [("sum", TensorProto.FLOAT, ["n"]), ("output.c.k", TensorProto.FLOAT, ["n"])]
        save(folder / f"{name}.onnx", nodes, dims, outputs)
        entries[name] = {"file": f"{name}.onnx", "metadata": metadata}
    manifest = {"schema_version": 1, "export_format": "onnx", "components": entries, **fields}
    (folder / "export.json").write_text(json.dumps(manifest))
    return folder


METADATA = {"architecture": "Adder", "export_dtype": "float32", "kwargs": {"a": {}, "c": {}}, "later": 1}
A, K = np.array([1.0, 2.0], np.float32), np.array([10.0, 20.0], np.float32)


class Cache:
    def __init__(self, k):
        self.k = k


@pytest.fixture
def adder(tmp_path):
    return write_export(tmp_path / "adder", {"model": METADATA})


def test_calls_with_nested_arguments(adder, caplog):
    exported = ExportedModel.from_pretrained(adder, threads=1)
    assert list(exported.components) == ["model"]
    assert exported.program == adder / "model.onnx"
    assert exported.components["model"].metadata.architecture == "Adder"
    assert str(exported.device) == "cpu"
    for nested in ({"k": K}, Cache(K)):
        out = exported(a=A, c=nested)
        assert isinstance(out, ModelOutput)
        np.testing.assert_array_equal(out.sum, A + K)
        np.testing.assert_array_equal(out["c.k"], -A)
    with caplog.at_level(logging.WARNING):
        exported(a=A, c={"k": K}, extra=1)
    assert "extra" in caplog.text
    with pytest.raises(AttributeError, match="no output"):
        _ = out.nothing


def test_faults_of_calls(adder):
    exported = ExportedModel.from_pretrained(adder, threads=1)
    for inputs, message in (
        ({"a": A}, r"c\.k: float32\[n\]"),
        ({"a": A, "c": {"q": K}}, r"c\.k"),
        ({"a": A, "c": {"k": K.astype(np.int64)}}, "int64"),
        ({"a": A, "c": {"k": K[None]}}, "c.k"),
        ({"a": A, "c": {"k": "text"}}, "str"),
    ):
        with pytest.raises(decant.InvalidArgumentError, match=message):
            exported(**inputs)
        np.testing.assert_array_equal(exported(a=A, c={"k": K}).sum, A + K)


def test_several_components(tmp_path):
    exported = ExportedModel.from_pretrained(
        write_export(tmp_path, {"prefill": METADATA, "decode": METADATA}), threads=1
    )
    np.testing.assert_array_equal(exported.runners["decode"](a=A, c={"k": K}).sum, A + K)
    with pytest.raises(ValueError, match="prefill"):
        exported(a=A, c={"k": K})
    with pytest.raises(ValueError, match="prefill"):
        _ = exported.program


def test_saves_what_it_loaded(adder, tmp_path):
    (adder / "config.json").write_text('{"model_type": "llama"}')
    ExportedModel.from_pretrained(adder).save_pretrained(tmp_path / "copy")
    again = ExportedModel.from_pretrained(tmp_path / "copy", threads=1)
    np.testing.assert_array_equal(again(a=A, c={"k": K}).sum, A + K)
    assert (tmp_path / "copy" / "config.json").exists()
    transformers = pytest.importorskip("transformers.exporters.metadata")
    manifest = json.loads((tmp_path / "copy" / "export.json").read_text())
    theirs = transformers.ExportMetadata.from_dict(manifest["components"]["model"]["metadata"])
    assert theirs.architecture == "Adder"


def test_faults_of_folders(tmp_path, adder):
    with pytest.raises(decant.UnsupportedError, match="openvino"):
        ExportedModel.from_pretrained(write_export(tmp_path / "ov", {"model": METADATA}, export_format="openvino"))
    with pytest.raises(decant.UnsupportedError, match="cuda"):
        ExportedModel.from_pretrained(adder, device="cuda")
    with pytest.raises(TypeError, match="providers"):
        ExportedModel.from_pretrained(adder, providers=[])
    for content in ("{", "[]", '{"components": {}}', '{"components": {"model": {"file": "../model.onnx"}}}'):
        (adder / "export.json").write_text(content)
        with pytest.raises(decant.InvalidModelError, match=r"export\.json"):
            ExportedModel.from_pretrained(adder)
    (adder / "export.json").unlink()
    with pytest.raises(decant.NotFoundError, match=r"export\.json"):
        ExportedModel.from_pretrained(adder)


def test_a_newer_schema_is_read_with_a_warning(tmp_path, caplog):
    folder = write_export(tmp_path / "new", {"model": METADATA}, schema_version=9)
    with caplog.at_level(logging.WARNING):
        exported = ExportedModel.from_pretrained(folder, threads=1)
    assert "schema 9" in caplog.text
    np.testing.assert_array_equal(exported(a=A, c={"k": K}).sum, A + K)


def test_output_specs_import_nothing_but_transformers(adder):
    pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    spec = f'[1, {{"type": "os.path.join", "context": "null", "children_spec": [{LEAF}, {LEAF}]}}]'
    write_export(adder, {"model": METADATA | {"out_spec": spec}})
    exported = ExportedModel.from_pretrained(adder, threads=1)
    with pytest.raises(decant.InvalidModelError, match=r"os\.path\.join"):
        exported(a=torch.from_numpy(A), c={"k": torch.from_numpy(K)})


@pytest.fixture(scope="module")
def traced(checkpoint, tmp_path_factory):
    """Exports of the tiny Llama by Transformers: in one graph, and for generation with a static cache."""
    torch = pytest.importorskip("torch")
    exporters = pytest.importorskip("transformers.exporters")
    pytest.importorskip("onnxscript")
    from transformers import GenerationConfig

    model, folder = checkpoint[0], tmp_path_factory.mktemp("traced")
    ids = torch.tensor([[1, 5, 9, 7, 3], [1, 8, 8, 2, 5]])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    exporter = exporters.OnnxExporter()
    with torch.no_grad():
        exporter.export(model, dict(inputs), exporters.OnnxConfig(dynamic=True)).save_pretrained(folder / "plain")
        config = GenerationConfig(cache_implementation="static", max_new_tokens=8, max_cache_len=32)
        exporter.export_for_generation(
            model, dict(inputs), exporters.OnnxConfig(dynamic=True), generation_config=config, multi_token_decode=True
        ).save_pretrained(folder / "generation")
    return folder


def test_gives_the_models_own_output(traced, checkpoint):
    torch = pytest.importorskip("torch")
    exported = ExportedModel.from_pretrained(traced / "plain", threads=1)
    ids = torch.tensor([[1, 5, 9, 7, 3, 11, 4], [1, 8, 8, 2, 5, 6, 9], [1, 3, 3, 3, 3, 3, 3]])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        expected = checkpoint[0](**inputs)
    out = exported(**inputs)
    assert type(out) is type(expected)
    torch.testing.assert_close(out.logits, expected.logits, rtol=1e-4, atol=1e-4)
    cache = out.past_key_values
    assert type(cache) is type(expected.past_key_values)
    torch.testing.assert_close(cache.layers[1].keys, expected.past_key_values.layers[1].keys, rtol=1e-4, atol=1e-4)
    arrays = exported(**{name: value.numpy() for name, value in inputs.items()})
    np.testing.assert_allclose(arrays.logits, expected.logits.numpy(), rtol=1e-4, atol=1e-4)
    assert "past_key_values.layers.1.keys" in arrays
    assert exported.dtype == torch.float32
    assert exported.config.model_type == "llama"


@pytest.mark.parametrize("kind", ["plain", "generation"])
def test_generates(traced, checkpoint, kind):
    torch = pytest.importorskip("torch")
    exported = ExportedModel.from_pretrained(traced / kind, threads=1)
    ids = torch.tensor([[1, 5, 9, 7, 3], [1, 8, 8, 2, 5]])
    with torch.no_grad():
        expected = checkpoint[0].generate(ids, max_new_tokens=10, do_sample=False, attention_mask=torch.ones_like(ids))
    got = exported.generate(ids, torch.ones_like(ids), max_new_tokens=10)
    assert got.dtype == torch.int64
    assert got.tolist() == expected.tolist()
    assert exported.generate(ids.numpy(), max_new_tokens=10).tolist() == expected.tolist()
    mask = torch.ones_like(ids)
    mask[1, :2] = 0
    alone = exported.generate(ids[1:, 2:], max_new_tokens=10)
    assert exported.generate(ids, mask, max_new_tokens=10)[1, 5:].tolist() == alone[0, 3:].tolist()
    for wrong in (ids[0], [[1.5]], "text", [[1], ["a"]], 7, None):
        with pytest.raises(decant.InvalidArgumentError):
            exported.generate(wrong, max_new_tokens=2)
