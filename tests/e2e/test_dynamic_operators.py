"""Operators whose output size depends on values or on free dims, several sizes through one file, against ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers import forward
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(1)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def integers(low, high, *shape):
    return RANDOM.integers(low, high, shape).astype(np.int64)


def boxes(batch, count):
    corner, size = RANDOM.random((batch, count, 2)), RANDOM.random((batch, count, 2)) * 0.5
    return np.concatenate([corner, corner + size], -1).astype(np.float32)


def scalar(value, dtype):
    return (np.array([value], dtype),)


CASES = {
    "Einsum attention": ("Einsum", 1, {"equation": "bhid,bhjd->bhij"},
                         lambda n: [normal(2, 3, n, 4), normal(2, 3, n + 1, 4)]),
    "Einsum ellipsis": ("Einsum", 1, {"equation": "...ij,jk->...ik"}, lambda n: [normal(2, n, 4), normal(4, n)]),
    "Einsum implicit": ("Einsum", 1, {"equation": "ba, cb"}, lambda n: [normal(n, 3), normal(2, n)]),
    "Einsum diagonal": ("Einsum", 1, {"equation": "ii->i"}, lambda n: [normal(n, n)]),
    "Einsum outer": ("Einsum", 1, {"equation": "i,j->ji"}, lambda n: [normal(n), normal(3)]),
    "Unique": ("Unique", 4, {}, lambda n: [integers(0, 4, n, 3)]),
    "Unique rows": ("Unique", 4, {"axis": 0, "sorted": 0}, lambda n: [integers(0, 2, 2 * n, 2)]),
    "Compress": ("Compress", 1, {"axis": 1}, lambda n: [normal(3, n), RANDOM.random(n) < 0.5]),
    "NonMaxSuppression": ("NonMaxSuppression", 1, {},
                          lambda n: [boxes(2, 4 * n), RANDOM.random((2, 3, 4 * n)).astype(np.float32),
                                     scalar(5, np.int64), scalar(0.4, np.float32), scalar(0.2, np.float32)]),
    "ReverseSequence": ("ReverseSequence", 1, {"batch_axis": 1, "time_axis": 0},
                        lambda n: [normal(n, 4, 2), integers(1, n + 1, 4)]),
    "CumSum": ("CumSum", 1, {"reverse": 1, "exclusive": 1}, lambda n: [normal(2, n), (np.array(-1, np.int64),)]),
    "LRN": ("LRN", 1, {"size": 5, "alpha": 0.5}, lambda n: [normal(1, n + 3, 4, 5)]),
    "MeanVarianceNormalization": ("MeanVarianceNormalization", 1, {"axes": [0, 2]}, lambda n: [normal(n, 3, 5)]),
    "LpNormalization": ("LpNormalization", 1, {"p": 1, "axis": 1}, lambda n: [normal(3, n)]),
    "Det": ("Det", 1, {}, lambda n: [normal(3, n, n)]),
    "EyeLike": ("EyeLike", 1, {"k": -1, "dtype": TensorProto.INT64}, lambda n: [normal(n, 5)]),
    "SoftmaxCrossEntropyLoss": ("SoftmaxCrossEntropyLoss", 2, {"ignore_index": 1},
                                lambda n: [normal(n, 4, 3), integers(0, 4, n, 3), np.abs(normal(4))]),
    "CenterCropPad": ("CenterCropPad", 1, {"axes": [0, 2]},
                      lambda n: [normal(n, 3, 6), (np.array([4, 9], np.int64),)]),
    "Pad wrap": ("Pad", 1, {"mode": "wrap"}, lambda n: [normal(n, 4), (np.array([2, 1, 1, 3], np.int64),)]),
}
OUTPUT_TYPES = {"Unique": [TensorProto.INT64] * 4, "NonMaxSuppression": [TensorProto.INT64],
                "EyeLike": [TensorProto.INT64]}


@pytest.mark.parametrize("name", CASES)
def test_sizes(tmp_path, name):
    op, output_count, attributes, inputs_of = CASES[name]
    path = tmp_path / "model.onnx"
    for n in (3, 5):
        inputs = inputs_of(n)
        feeds = {f"x{i}": x for i, x in enumerate(inputs) if not isinstance(x, tuple)}
        if n == 3:
            declared = [helper.make_tensor_value_info(
                k, helper.np_dtype_to_tensor_dtype(x.dtype), [f"{k}_{d}" for d in range(x.ndim)])
                for k, x in feeds.items()]
            stored = [numpy_helper.from_array(x[0], f"x{i}") for i, x in enumerate(inputs) if isinstance(x, tuple)]
            types = OUTPUT_TYPES.get(op, [TensorProto.FLOAT] * output_count)
            outputs = [helper.make_tensor_value_info(f"y{i}", t, None) for i, t in enumerate(types)]
            node = helper.make_node(op, [f"x{i}" for i in range(len(inputs))], [o.name for o in outputs], **attributes)
            graph = helper.make_graph([node], "dynamic", declared, outputs, stored)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
            onnx.save(model, path)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        want = session.run(None, feeds)
        for backend in ([], ["--backend", "reference"]):
            got = forward(path, feeds, *backend)
            for i, expected in enumerate(want):
                np.testing.assert_allclose(got[f"y{i}"], expected, rtol=1e-4, atol=1e-5)
                assert got[f"y{i}"].dtype == expected.dtype
