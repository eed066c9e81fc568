"""Plans for many runs, with arrays of the caller's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import decant
from conftest import save

X = np.random.default_rng(2).standard_normal((5, 3), np.float32)


def test_one_plan_for_all_sizes(affine):
    path, w, b = affine
    compiled = decant.load(path, threads=1).compile(example_shapes={"x": [5, 3]})
    for rows in (1, 5, 3, 5):
        np.testing.assert_allclose(compiled.run({"x": X[:rows]})["y"], X[:rows] @ w + b, rtol=1e-5, atol=1e-6)
    assert compiled.compile_count == 1
    assert [i.name for i in compiled.inputs] == ["x"]
    assert [o.name for o in compiled.outputs] == ["y"]


def test_static_inputs(tmp_path):
    def branch(name, op):
        node = helper.make_node(op, ["x", "x"], [name])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"])])

    choice = helper.make_node("If", ["use"], ["y"], then_branch=branch("a", "Add"), else_branch=branch("b", "Mul"))
    values = [("x", TensorProto.FLOAT, ["n"]), ("use", TensorProto.BOOL, [])]
    model = decant.load(save(tmp_path / "m.onnx", [choice], values, [("y", TensorProto.FLOAT, ["n"])]), threads=1)
    compiled = model.compile(static_inputs=["use"])
    for _ in range(2):
        assert compiled.run({"x": [3.0], "use": True})["y"].tolist() == [6]
        assert compiled.run({"x": [3.0], "use": False})["y"].tolist() == [9]
    assert compiled.compile_count == 2
    for wrong in ({"static_inputs": ["z"]}, {"example_shapes": {"x": [1], "use": [], "z": [1]}}):
        with pytest.raises(decant.InvalidArgumentError, match="'z'"):
            model.compile(**wrong)


def test_bound_arrays(affine):
    path, w, b = affine
    binding = decant.load(path, threads=1).compile().bind()
    x, y = X.copy(), np.empty((5, 4), np.float32)
    binding.set_input("x", x)
    binding.set_output("y", y)
    assert binding.run()["y"] is y
    np.testing.assert_allclose(y, x @ w + b, rtol=1e-5, atol=1e-6)
    x += 1
    binding.run()
    np.testing.assert_allclose(y, x @ w + b, rtol=1e-5, atol=1e-6)
    binding.clear_output("y")
    x += 1
    fresh = binding.run()["y"]
    np.testing.assert_allclose(fresh, x @ w + b, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(fresh, y)

    for name, array, message in (
        ("z", y, "'z'.*'y'"),
        ("y", y[:, ::2], "contiguous"),
        ("y", y.astype(">f4"), "native"),
        ("y", [[1.0]], "expected an array"),
        ("y", np.frombuffer(y.tobytes(), np.float32), "written"),
    ):
        with pytest.raises(decant.InvalidArgumentError, match=message):
            binding.set_output(name, array)
    binding.set_output("y", np.empty((4, 4), np.float32))
    with pytest.raises(decant.InvalidArgumentError, match="'y'"):
        binding.run()
    binding.set_output("y", y)
    np.testing.assert_array_equal(binding.run()["y"], fresh)


def test_outputs_go_to_tensors_of_pytorch(affine):
    torch = pytest.importorskip("torch")
    path, w, b = affine
    binding = decant.load(path, threads=1).compile().bind()
    x, y = torch.from_numpy(X.copy()), torch.empty(5, 4)
    binding.set_input("x", x)
    binding.set_output("y", y)
    binding.run()
    torch.testing.assert_close(y, x @ torch.from_numpy(w) + torch.from_numpy(b))


def test_a_static_cache_in_place(static_export, eager_ids):
    """The decode loop of a caller who owns the caches: they are written where they lie."""
    model = decant.load(static_export, threads=1)
    shapes = {i.name: [d if isinstance(d, int) else 1 for d in i.shape] for i in model.inputs}
    caches = {name: np.zeros(dims, np.float32) for name, dims in shapes.items() if name.startswith("past_key_values")}
    assert caches
    binding = model.compile().bind()
    for name, cache in caches.items():
        binding.set_input(name, cache)
        binding.set_output(name.replace("past_key_values", "present"), cache)
    prompt, ids, length = [1, 5, 9, 200, 33], [], 0
    fed = prompt
    while len(ids) < 8:
        for info in model.inputs:
            if info.name == "input_ids":
                binding.set_input(info.name, np.array([fed]))
            elif info.name == "position_ids":
                binding.set_input(info.name, np.arange(length, length + len(fed))[None])
            elif info.name == "attention_mask":
                width = shapes[info.name][-1] if isinstance(info.shape[-1], int) else 64
                mask = (np.arange(width) < length + len(fed)).astype(np.int64)[None]
                binding.set_input(info.name, mask)
            elif info.name not in caches:
                binding.set_input(info.name, np.array(length))
        logits = binding.run()["logits"]
        length += len(fed)
        fed = [int(logits[0, -1].argmax())]
        ids += fed
    assert all(binding.in_place(name.replace("past_key_values", "present")) for name in caches)
    assert ids == eager_ids(prompt, 8)
