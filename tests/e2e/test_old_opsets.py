"""Nodes of old opsets, whose operators have changed since, against ONNX Runtime or the operators' own definition."""

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers import forward
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(0)
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def model(tmp_path, opset, op, inputs, output_types=(FLOAT,), symbolic=True, **attributes):
    """One node. `inputs`: arrays; an array in a tuple becomes an initializer. Returns the path and the feeds."""
    names, declared, stored, feeds = [], [], [], {}
    for i, value in enumerate(inputs):
        name = f"x{i}"
        names.append(name)
        if isinstance(value, tuple):
            stored.append(numpy_helper.from_array(value[0], name))
            continue
        shape = [f"d{i}_{k}" for k in range(value.ndim)] if symbolic else value.shape
        declared.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape))
        feeds[name] = value
    outputs = [helper.make_tensor_value_info(f"y{i}", t, None) for i, t in enumerate(output_types)]
    node = helper.make_node(op, names, [o.name for o in outputs], name="node", **attributes)
    graph = helper.make_graph([node], "old", declared, outputs, stored)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7), path)
    return path, feeds


def check(path, feeds, want, rtol=1e-5, atol=1e-5):
    for backend in ([], ["--backend", "reference"]):
        got = forward(path, feeds, *backend)
        for i, expected in enumerate(want):
            np.testing.assert_allclose(got[f"y{i}"], expected, rtol=rtol, atol=atol)
            assert got[f"y{i}"].dtype == expected.dtype


X = normal(2, 6, 5)
CASES = {
    "hardmax as a matrix": (11, "Hardmax", [X], {}, {}),
    "softmax as a matrix": (11, "Softmax", [X], {}, {"axis": 1}),
    "log softmax as a matrix": (9, "LogSoftmax", [X], {}, {"axis": 2}),
    "reductions with axes": (11, "ReduceLogSumExp", [X], {}, {"axes": [1, -1], "keepdims": 0}),
    "L1 with axes": (13, "ReduceL1", [X], {}, {"axes": [0]}),
    "logarithm of a sum": (11, "ReduceLogSum", [np.abs(X)], {}, {"axes": [1]}),
    "sum with axes": (11, "ReduceSum", [X], {}, {"axes": [-1], "keepdims": 0}),
    "clip with attributes": (7, "Clip", [X], {}, {"min": -0.5, "max": 0.25}),
    "pad with attributes": (7, "Pad", [X], {}, {"pads": [0, 1, 2, 0, 0, 1], "value": 2.5}),
    "pad by reflection": (10, "Pad", [X], {}, {"pads": [0, 3, 2, 0, 0, 1], "mode": "reflect"}),
    "pad with the edge": (11, "Pad", [X, (np.array([0, 3, 2, 0, 0, 7], np.int64),)], {}, {"mode": "edge"}),
    "slice with attributes": (9, "Slice", [X], {}, {"starts": [1, -3], "ends": [5, 9999], "axes": [1, 2]}),
    "top k with an attribute": (9, "TopK", [X], {"output_types": (FLOAT, INT64)}, {"k": 3, "axis": 1}),
    "split with an attribute": (11, "Split", [X], {"output_types": (FLOAT, FLOAT)}, {"split": [2, 4], "axis": 1}),
    "unsqueeze with axes": (11, "Unsqueeze", [X], {}, {"axes": [0, -1]}),
    "scatter": (10, "Scatter", [X, np.array([[[1, 0, 2, 5, 4]]]), normal(1, 1, 5)], {}, {"axis": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_against_onnx_runtime(tmp_path, name):
    opset, op, inputs, keywords, attributes = CASES[name]
    path, feeds = model(tmp_path, opset, op, inputs, **keywords, **attributes)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    check(path, feeds, session.run(None, feeds))


def test_group_normalization_of_groups(tmp_path):
    """Opset 18: scale and bias by group."""
    scale, bias = normal(3), normal(3)
    path, feeds = model(tmp_path, 18, "GroupNormalization", [X, scale, bias], num_groups=3)
    grouped = X.astype(np.float64).reshape(2, 3, -1)
    mean, variance = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    want = (grouped - mean) / np.sqrt(variance + 1e-5) * scale[None, :, None] + bias[None, :, None]
    check(path, feeds, [want.reshape(X.shape).astype(np.float32)])


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_opset_6_broadcasts_from_an_axis(tmp_path, op):
    y = np.abs(normal(6)) + 1
    path, feeds = model(tmp_path, 6, op, [X, y], axis=1, broadcast=1)
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}[op]
    check(path, feeds, [function(X, y[None, :, None])])


def test_opset_6_slopes_by_channel(tmp_path):
    slope = normal(6)
    path, feeds = model(tmp_path, 6, "PRelu", [X, slope], symbolic=False)
    check(path, feeds, [np.where(X < 0, X * slope[None, :, None], X)])
