"""A graph with packed weights as the same graph on float weights, in numpy: what products on packed weights equal."""

import numpy as np
import onnx
import onnx.reference
from onnx import TensorProto, helper, numpy_helper

# The values of 4-bit codes, as bitsandbytes defines them.
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], np.float64) / 12
NF4 = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0], np.float64)


def unpack(codes, bits):
    """Numbers of `bits` bits, the lowest of a byte first, along the last axis."""
    parts = [(codes >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(*codes.shape[:-1], -1).astype(np.float64)


def of_blocks(bits, block, codes, scales, zeros=None):
    """[rows, blocks * block] of codes [rows, ...], scales and zero points of each row's blocks."""
    rows = len(codes)
    scales = scales.reshape(rows, -1).astype(np.float64)
    blocks = scales.shape[1]
    numbers = unpack(codes.reshape(rows, -1), bits)[:, :blocks * block].reshape(rows, blocks, block)
    middle = np.full((rows, blocks), 2.0 ** (bits - 1))
    if zeros is not None:
        middle = unpack(zeros.reshape(rows, -1), bits)[:, :blocks] if zeros.dtype == np.uint8 else zeros.reshape(rows, blocks)
    return ((numbers - middle[..., None]) * scales[..., None]).reshape(rows, -1)


def of_bnb4(attributes, codes, largest):
    """[N, K] of a MatMulBnb4 node: the higher half of a byte first."""
    n, k, block = (attributes[name] for name in ("N", "K", "block_size"))
    table = np.concatenate([FP4, -FP4]) if attributes["quant_type"] == 0 else NF4
    numbers = np.stack([codes >> 4, codes & 15], axis=-1).reshape(-1)[:n * k]
    return (table[numbers] * np.repeat(largest, block)[:n * k]).reshape(n, k)


def dequantized(model, node, constants):
    """What a DequantizeLinear of constants gives, by ONNX's reference evaluator."""
    output = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "dequantize", [], [output], constants)
    alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
    return onnx.reference.ReferenceEvaluator(alone).run(None, {})[0].astype(np.float32)


def decoded(model):
    """(the same graph on float weights, {name of the codes: matrix}); matrices of products are [outputs, inputs].
    AssertionError when nothing in it is packed."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    reshaped = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Reshape"}
    matrices = {}

    def constants(names):
        return [numpy_helper.to_array(stored[name]) for name in names if name]

    def put(name, values, like):
        if name not in stored:
            tensor = numpy_helper.from_array(np.ascontiguousarray(values).astype(like), name)
            graph.initializer.append(tensor)
            stored[name] = tensor
        return name

    for node in list(graph.node):
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type in ("MatMulNBits", "MatMulBnb4"):
            codes, *rest = constants(node.input[1:4])
            if node.op_type == "MatMulNBits":
                weights = of_blocks(attributes["bits"], attributes["block_size"], codes, *rest)[:, :attributes["K"]]
            else:
                weights = of_bnb4(attributes, codes, *rest)
            matrices[node.input[1]] = weights
            name = put(node.input[1] + ".floats", weights.T, rest[0].dtype)
            node.CopyFrom(helper.make_node("MatMul", [node.input[0], name], list(node.output)))
        elif node.op_type == "GatherBlockQuantized":
            source = reshaped.get(node.input[0], node.input[0])
            codes, *rest = constants([source, *node.input[2:]])
            matrices[source] = of_blocks(attributes["bits"], attributes["block_size"], codes, *rest)
            name = put(source + ".table", matrices[source], rest[0].dtype)
            node.CopyFrom(helper.make_node("Gather", [name, node.input[1]], list(node.output)))
        elif node.op_type == "DequantizeLinear" and all(name in stored for name in node.input):
            matrices[node.input[0]] = dequantized(model, node, [stored[name] for name in node.input])
            put(node.output[0], matrices[node.input[0]], np.float32)
            graph.node.remove(node)
    assert matrices, "nothing is packed"
    return model, matrices
