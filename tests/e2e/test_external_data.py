"""Weights in files of their own: large ones (sparse), several, behind the links of a hub cache; what loading costs."""

import json
import os
import pathlib
import subprocess

import helpers
import numpy as np
import pytest
from onnx import TensorProto, helper

MEGABYTE, GIGABYTE = 1 << 20, 1 << 30


def external(name, dims, location, offset, dtype=TensorProto.FLOAT):
    tensor = TensorProto(name=name, data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL)
    length = int(np.prod(dims)) * 4
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def save(path, nodes, tensors, inputs, output=("y", 1, None)):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*output)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def sparse_file(path, size, values=()):
    """A file of `size` bytes, zero but for (offset, float32 array) pairs."""
    with open(path, "wb") as file:
        file.truncate(size)
        for offset, array in values:
            file.seek(offset)
            file.write(np.asarray(array, np.float32).tobytes())


def stack_of_products(folder, layers=24, width=5120):
    """y = x w0 w1 ...: 2.4 GB of weights in one external file."""
    size = width * width * 4
    names = ["x"] + [f"h{i}" for i in range(layers - 1)] + ["y"]
    nodes = [helper.make_node("MatMul", [a, f"w{i}"], [b]) for i, (a, b) in enumerate(zip(names, names[1:]))]
    tensors = [external(f"w{i}", (width, width), "weights.data", i * size) for i in range(layers)]
    sparse_file(folder / "weights.data", layers * size)
    return save(folder / "model.onnx", nodes, tensors, [("x", 1, ["n", width])])


def test_loading_costs_little_before_the_first_run(tmp_path):
    program = helpers.find_binary().parent / "examples/load_cost"
    if not program.exists():
        pytest.skip("the examples are not built")
    path = stack_of_products(tmp_path)
    assert (tmp_path / "weights.data").stat().st_size > 2.4e9
    costs = [json.loads(subprocess.run([program, path], capture_output=True, check=True, text=True).stdout)
             for _ in range(3)]
    best = min(costs, key=lambda cost: cost["load_ms"] + cost["compile_ms"])
    print("loading 2.4 GB:", best)
    assert best["load_ms"] + best["compile_ms"] < 200
    assert best["private_bytes"] < 100 * MEGABYTE


@pytest.mark.parametrize("gigabytes", [2, 4, 5])
def test_offsets_beyond_32_bits(tmp_path, gigabytes):
    offset = gigabytes * GIGABYTE + 64
    sparse_file(tmp_path / "w.data", offset + 64, [(offset, np.arange(16))])
    path = save(tmp_path / "model.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])],
                [external("w", (4, 4), "w.data", offset)], [("x", 1, [1, 4])])
    out = helpers.forward(path, {"x": np.eye(4, dtype=np.float32)[2:3]})
    assert out["y"].tolist() == [[8, 9, 10, 11]]


@pytest.mark.parametrize("rows", [(5 << 29) // 64, (9 << 29) // 64])  # 2.5 and 4.5 GiB
def test_one_tensor_beyond_32_bits(tmp_path, rows):
    size = rows * 64
    sparse_file(tmp_path / "w.data", size, [(size - 64, np.arange(16))])
    path = save(tmp_path / "model.onnx", [helper.make_node("Gather", ["w", "i"], ["y"])],
                [external("w", (rows, 16), "w.data", 0)], [("i", 7, [2])])
    run_inputs = {"i": np.array([rows - 1, 0])}
    out = helpers.forward(path, run_inputs)
    assert out["y"].tolist() == [list(range(16)), [0] * 16]


def product_with(folder, *locations):
    """y = x w0 w1: the identity, then [[0 1 2 3] ...]."""
    tensors = [external(f"w{i}", (4, 4), location, 0) for i, location in enumerate(locations)]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h"]), helper.make_node("MatMul", ["h", "w1"], ["y"])]
    return save(folder / "model.onnx", nodes, tensors, [("x", 1, [1, 4])])


def check_product(path):
    out = helpers.forward(path, {"x": np.eye(4, dtype=np.float32)[1:2]})
    assert out["y"].tolist() == [[4, 5, 6, 7]]


def test_several_files_in_folders(tmp_path):
    (tmp_path / "parts").mkdir()
    sparse_file(tmp_path / "a.data", 64, [(0, np.eye(4).ravel())])
    sparse_file(tmp_path / "parts/b.data", 64, [(0, np.arange(16))])
    check_product(product_with(tmp_path, "a.data", "parts/b.data"))


def hub_cache(folder):
    """models--o--n/{blobs,refs,snapshots/REV}, as huggingface_hub lays it out; the snapshot's folder."""
    repository = folder / "models--o--n"
    snapshot = repository / "snapshots" / ("0" * 40)
    (repository / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    return repository, snapshot


@pytest.mark.parametrize("subfolder", ["", "onnx"])
@pytest.mark.parametrize("absolute", [False, True])
def test_links_into_the_blob_store(tmp_path, subfolder, absolute):
    repository, snapshot = hub_cache(tmp_path)
    folder = snapshot / subfolder
    folder.mkdir(exist_ok=True)
    product_with(folder, "a.data", "b.data")
    sparse_file(folder / "a.data", 64, [(0, np.eye(4).ravel())])
    sparse_file(folder / "b.data", 64, [(0, np.arange(16))])
    for i, name in enumerate(["model.onnx", "a.data", "b.data"]):
        blob = repository / "blobs" / (str(i) * 64)
        (folder / name).rename(blob)
        os.symlink(blob if absolute else os.path.relpath(blob, folder), folder / name)
    check_product(folder / "model.onnx")
    check_product(snapshot)
    relative = subprocess.run([helpers.find_binary(), "inspect", "model.onnx"], cwd=folder, capture_output=True)
    assert relative.returncode == 0


@pytest.mark.parametrize("target", ["beside the cache", "another repository", "a ref"])
def test_links_out_of_the_blob_store(tmp_path, target):
    repository, snapshot = hub_cache(tmp_path)
    place = {
        "beside the cache": tmp_path / "secret",
        "another repository": tmp_path / "models--o--other" / "blobs" / "secret",
        "a ref": repository / "refs" / "main",
    }[target]
    place.parent.mkdir(parents=True, exist_ok=True)
    sparse_file(place, 64, [(0, np.arange(16))])
    product_with(snapshot, "a.data", "a.data")
    os.symlink(os.path.relpath(place, snapshot), snapshot / "a.data")
    run = helpers.run_decant(["inspect", snapshot / "model.onnx"], check=False)
    assert run.returncode == 1
    assert "a.data is a link that leaves" in run.stderr


def test_a_copied_snapshot(tmp_path):
    copied = pathlib.Path(tmp_path / "copy")
    copied.mkdir()
    sparse_file(copied / "w.data", 128, [(0, np.eye(4).ravel()), (64, np.arange(16))])
    tensors = [external("w0", (4, 4), "w.data", 0), external("w1", (4, 4), "w.data", 64)]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h"]), helper.make_node("MatMul", ["h", "w1"], ["y"])]
    check_product(save(copied / "model.onnx", nodes, tensors, [("x", 1, [1, 4])]))
