"""Named tensors in and out: what ONNX Runtime and PyTorch give, without copies, and without the interpreter lock."""

from __future__ import annotations

import gc
import threading

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import decant
from conftest import save


@pytest.fixture(scope="module")
def model(affine):
    return decant.load(affine[0], threads=1)


X = np.random.default_rng(2).standard_normal((5, 3), np.float32)


def test_says_what_goes_in_and_out(model):
    (x,), (y,) = model.inputs, model.outputs
    assert (x.name, x.dtype, x.shape) == ("x", "float32", ("n", 3))
    assert (y.name, y.dtype, y.shape) == ("y", "float32", ("n", 4))
    assert str(x) == "x: float32[n, 3]"
    assert model.layout == "single onnx file"


def test_equals_onnx_runtime(affine, model):
    session = onnxruntime.InferenceSession(str(affine[0]), providers=["CPUExecutionProvider"])
    for rows in (0, 1, 5):
        x = X[:rows]
        np.testing.assert_allclose(model.run({"x": x})["y"], session.run(None, {"x": x})[0], rtol=1e-6, atol=1e-6)


def forms_of(x):
    wide = np.zeros((5, 6), np.float32)
    wide[:, ::2] = x
    shifted = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "contiguous": x,
        "read-only": frozen,
        "strided": wide[:, ::2],
        "reversed": x[::-1].copy()[::-1],
        "fortran": np.asfortranarray(x),
        "unaligned": shifted,
        "big-endian": x.astype(">f4"),
        "lists": x.tolist(),
        "tuples": tuple(map(tuple, x.tolist())),
    }


@pytest.mark.parametrize("form", list(forms_of(X)))
def test_forms_of_arrays(model, form):
    np.testing.assert_array_equal(model.run({"x": forms_of(X)[form]})["y"], model.run({"x": X})["y"])


def test_tensors_of_pytorch(model):
    torch = pytest.importorskip("torch")
    expected = model.run({"x": X})["y"]
    x = torch.from_numpy(X.copy())
    for form in (x, x.clone().requires_grad_(), torch.nn.Parameter(x), x.t().contiguous().t(), x.flip(0).flip(0)):
        np.testing.assert_array_equal(model.run({"x": form})["y"], expected)
    y = torch.from_dlpack(model.run({"x": x}, as_numpy=False)["y"])
    np.testing.assert_array_equal(y.numpy(), expected)
    with pytest.raises(decant.InvalidArgumentError, match="'x'"):
        model.run({"x": x.to("meta")})


def test_numbers_take_the_dtype_of_the_input(tmp_path):
    nodes = [helper.make_node("Mul", ["a", "b"], ["y"])]
    values = [("a", TensorProto.INT32, ["n"]), ("b", TensorProto.INT32, [])]
    model = decant.load(save(tmp_path / "m.onnx", nodes, values, [("y", TensorProto.INT32, ["n"])]), threads=1)
    assert model.run({"a": [1, 2, 3], "b": 4})["y"].tolist() == [4, 8, 12]
    assert model.run({"a": [1.0, 2.0], "b": np.int32(4)}.copy() | {"a": [1, 2]})["y"].tolist() == [4, 8]
    for wrong in ([1.5], [2**40], ["1"], [[1], [2, 3]], [None]):
        with pytest.raises(decant.InvalidArgumentError, match="'a'"):
            model.run({"a": wrong, "b": 4})
    assert model.run({"a": [], "b": 4})["y"].shape == (0,)


DTYPES = {
    TensorProto.FLOAT16: np.float16,
    TensorProto.DOUBLE: np.float64,
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.INT8: np.int8,
    TensorProto.INT16: np.int16,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
    TensorProto.UINT8: np.uint8,
    TensorProto.UINT16: np.uint16,
    TensorProto.UINT32: np.uint32,
    TensorProto.UINT64: np.uint64,
    TensorProto.BOOL: np.bool_,
}


@pytest.mark.parametrize("element_type", DTYPES)
def test_dtypes(identity, element_type):
    x = np.array([[0, 1, 2], [3, 100, 127]]).astype(DTYPES[element_type])
    model = decant.load(identity(element_type), threads=1)
    y = model.run({"x": x})["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)
    assert model.run({"x": x[:0]})["y"].shape == (0, 3)


def test_bfloat16_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"])]
    value = ("x", TensorProto.BFLOAT16, ["n", "n"])
    model = decant.load(save(tmp_path / "m.onnx", nodes, [value], [("y", *value[1:])], opset=22), threads=1)
    x = torch.randn(6, 6, generator=torch.Generator().manual_seed(1)).bfloat16()
    expected = (x.float() @ x.float()).bfloat16().float()
    y = torch.from_dlpack(model.run({"x": x}, as_numpy=False)["y"])
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), expected, rtol=1e-2, atol=1e-2)
    array = model.run({"x": x})["y"]
    assert array.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(array.astype(np.float32), y.float().numpy())


def test_contiguous_memory_is_shared():
    x = X.copy()
    for array in (x, x[1:], x.reshape(-1)):
        assert np.shares_memory(decant.Tensor.from_array(array).numpy(), array)
    torch = pytest.importorskip("torch")
    t = torch.zeros(2, 3)
    assert decant.Tensor.from_array(t).numpy().ctypes.data == t.data_ptr()


def test_outputs_outlive_the_model(affine):
    model = decant.load(affine[0], threads=1)
    y, again = model.run({"x": X})["y"], model.run({"x": X}, as_numpy=False)["y"]
    expected = y.copy()
    assert y.flags.writeable
    view = np.from_dlpack(again)
    del model, again
    gc.collect()
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(view, expected)


def test_inputs_are_released(model):
    torch = pytest.importorskip("torch")
    import weakref

    x = torch.from_numpy(X.copy())
    model.run({"x": x})
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


FAULTS = {
    "missing": ({}, "'x'"),
    "unknown": ({"x": X, "z": X}, "'z'.*'x'"),
    "dtype": ({"x": X.astype(np.float64)}, "'x'.*float64.*float32"),
    "integers": ({"x": X.astype(np.int64)}, "'x'.*int64.*float32"),
    "rank": ({"x": X[None]}, "'x'"),
    "scalar": ({"x": np.float32(1)}, "'x'"),
    "dim": ({"x": X[:, :2]}, "'x'"),
    "text": ({"x": "numbers"}, "'x'.*str"),
    "nothing": ({"x": None}, "'x'.*NoneType"),
    "object": ({"x": object()}, "'x'.*object"),
    "objects": ({"x": np.array([[None] * 3])}, "'x'.*object"),
    "strings": ({"x": np.array([["a", "b", "c"]])}, "'x'"),
    "times": ({"x": np.zeros((1, 3), "M8[s]")}, "'x'"),
    "ragged": ({"x": [[1.0, 2.0], [3.0]]}, "'x'"),
    "names": ({1: X}, "int"),
    "mapping": ([X], "mapping"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_and_leave_the_model_usable(model, fault):
    inputs, message = FAULTS[fault]
    for runs in (model, model.compile()):
        expected = runs.run({"x": X})["y"]
        with pytest.raises(decant.InvalidArgumentError, match=message) as caught:
            runs.run(inputs)
        assert isinstance(caught.value, (decant.DecantError, ValueError))
        np.testing.assert_array_equal(runs.run({"x": X})["y"], expected)


def test_outputs_by_name(model):
    assert list(model.run({"x": X}, outputs=["y"])) == ["y"]
    assert model.run({"x": X}, outputs=[]) == {}
    with pytest.raises(decant.InvalidArgumentError, match=r"'z'.*'y'"):
        model.run({"x": X}, outputs=["z"])


def test_errors_of_loading(tmp_path, affine):
    with pytest.raises(decant.InvalidArgumentError, match="abacus"):
        decant.load(affine[0], isa="abacus")
    with pytest.raises(decant.NotFoundError, match="nowhere"):
        decant.load(tmp_path / "nowhere")
    (tmp_path / "broken.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(decant.InvalidModelError, match=r"broken\.onnx"):
        decant.load(tmp_path / "broken.onnx")
    node = helper.make_node("Frobnicate", ["x"], ["y"], domain="nowhere")
    values = [("x", TensorProto.FLOAT, [1])], [("y", TensorProto.FLOAT, [1])]
    with pytest.raises(decant.UnsupportedError, match="Frobnicate"):
        decant.load(save(tmp_path / "unknown.onnx", [node], *values))
    with pytest.raises(decant.DecantError):
        decant.load(tmp_path)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A loop of 10,000,000 trips."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["s", "one"], ["t"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, []),
        ],
    )
    loop = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    path = save(
        tmp_path_factory.mktemp("slow") / "m.onnx",
        [loop],
        [("x", TensorProto.FLOAT, []), ("trips", TensorProto.INT64, [])],
        [("y", TensorProto.FLOAT, [])],
        [("one", np.float32(1))],
    )
    return decant.load(path, threads=1)


def test_a_timeout_ends_a_run(slow):
    for runs in (slow, slow.compile()):
        with pytest.raises(decant.DeadlineError) as caught:
            runs.run({"x": 0.0, "trips": 10_000_000_000}, timeout=0.05)
        assert isinstance(caught.value, TimeoutError)
        assert runs.run({"x": 0.0, "trips": 5}, timeout=60)["y"] == 5
    for wrong in (-1.0, float("nan")):
        with pytest.raises(decant.InvalidArgumentError, match="timeout"):
            slow.run({"x": 0.0, "trips": 1}, timeout=wrong)


def test_the_interpreter_runs_on(slow):
    failure = []

    def work():
        try:
            slow.run({"x": 0.0, "trips": 10_000_000_000}, timeout=0.5)
        except decant.DeadlineError as error:
            failure.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    count = 0
    while thread.is_alive():
        count += 1
    thread.join()
    assert failure
    assert count > 10_000


def test_threads_share_a_model(model):
    expected = model.run({"x": X})["y"]
    wrong = []

    def work():
        wrong.extend(1 for _ in range(50) if not np.array_equal(model.run({"x": X})["y"], expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
