"""Malformed and hostile ONNX models, written field by field: each case attacks one rule that a reader must hold to.

`CASES` maps a name to a Case; `build(name, folder)` writes model.onnx (and what it refers to) and returns its path.
A file outside the model's folder, which no case may reach, is beside it: ../outside.bin.
"""

import dataclasses
import os
import pathlib
import typing

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PAYLOAD = np.arange(16, dtype=np.float32).tobytes()
MAX64, MIN64 = 2**63 - 1, -(2**63)


@dataclasses.dataclass
class Case:
    rows: tuple  # what classes of attack, as docs/hostile.md numbers them
    write: typing.Callable
    outcome: str = "rejected"  # or "runs": the values are then `expected`
    expected: object = None
    inputs: typing.Callable = lambda: {"x": np.ones((1, 4), np.float32)}
    args: tuple = ()


CASES = {}


def case(name, *rows, **options):
    def register(write):
        CASES[name] = Case(rows, write, **options)
        return write

    return register


def no_inputs():
    return {}


def build(name, folder):
    folder = pathlib.Path(folder)
    model_folder = folder / name
    model_folder.mkdir(parents=True)
    (folder / "outside.bin").write_bytes(PAYLOAD)
    written = CASES[name].write(model_folder)
    path = model_folder / "model.onnx"
    path.write_bytes(written if isinstance(written, bytes) else written.SerializeToString())
    return path


# --- pieces ---


def weight(dims=(4, 4), name="w", dtype=TensorProto.FLOAT, raw=None, external=None):
    """A tensor with exactly the fields given, consistent or not."""
    tensor = TensorProto(name=name, data_type=dtype, dims=dims)
    if raw is not None:
        tensor.raw_data = raw
    if external is not None:
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in external.items():
            tensor.external_data.add(key=key, value=str(value))
    return tensor


def constant(values, dtype=np.int64, name="c"):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def model(nodes, initializers=(), inputs=(("x", 1, [1, 4]),), output=("y", 1, None), domains=(("", 20),), functions=(),
          ir_version=10):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(*output)],
        list(initializers),
    )
    opsets = [helper.make_opsetid(*d) for d in domains]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=ir_version)


def product(tensor, **options):
    """y = x @ w"""
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor] if tensor is not None else [], **options)


def external(folder, location, offset=0, length=64, dims=(4, 4)):
    (folder / "weights.bin").write_bytes(PAYLOAD)
    return product(weight(dims, external={"location": location, "offset": offset, "length": length}))


ONES_PRODUCT = np.ones((1, 4), np.float32) @ np.arange(16, dtype=np.float32).reshape(4, 4)


# --- files that a model names ---


@case("location_parent", "A01")
def _(folder):
    return external(folder, "../outside.bin")


@case("location_parent_inside", "A02")
def _(folder):
    (folder / "sub").mkdir()
    return external(folder, "sub/../../outside.bin")


@case("location_absolute", "A03")
def _(folder):
    return external(folder, str((folder.parent / "outside.bin").resolve()))


@case("location_empty", "A03")
def _(folder):
    return external(folder, "")


@case("location_with_nul", "A03")
def _(folder):
    return external(folder, "weights.bin\0.txt")


@case("location_link", "A04")
def _(folder):
    os.symlink((folder.parent / "outside.bin").resolve(), folder / "link.bin")
    return external(folder, "link.bin")


@case("location_link_relative", "A04")
def _(folder):
    os.symlink("../outside.bin", folder / "link.bin")
    return external(folder, "link.bin")


@case("location_linked_folder", "A04")
def _(folder):
    os.symlink(folder.parent.resolve(), folder / "dir")
    return external(folder, "dir/outside.bin")


@case("location_hard_link", "A05")
def _(folder):
    os.link(folder.parent / "outside.bin", folder / "hard.bin")
    return external(folder, "hard.bin")


@case("location_pipe", "A09")
def _(folder):
    os.mkfifo(folder / "pipe")
    return external(folder, "pipe")


@case("location_folder", "A09")
def _(folder):
    (folder / "sub").mkdir()
    return external(folder, "sub")


@case("location_missing", "A09")
def _(folder):
    return external(folder, "nowhere.bin")


@case("constant_value_outside", "A08")
def _(folder):
    value = weight(name="v", external={"location": "../outside.bin", "offset": 0, "length": 64})
    return model([helper.make_node("Constant", [], ["w"], value=value), helper.make_node("MatMul", ["x", "w"], ["y"])])


def sparse(values, indices, dims=(4, 4)):
    tensor = onnx.SparseTensorProto(dims=dims)
    tensor.values.CopyFrom(values)
    tensor.indices.CopyFrom(constant(indices))
    return tensor


def outside_values():
    return weight((16,), name="w", external={"location": "../outside.bin", "offset": 0, "length": 64})


@case("sparse_constant_outside", "A08")
def _(folder):
    node = helper.make_node("Constant", [], ["w"], sparse_value=sparse(outside_values(), np.arange(16)))
    return model([node, helper.make_node("MatMul", ["x", "w"], ["y"])])


@case("sparse_initializer_outside", "A08")
def _(folder):
    written = product(None)
    written.graph.sparse_initializer.append(sparse(outside_values(), np.arange(16)))
    return written


@case("function_constant_outside", "A08")
def _(folder):
    value = weight(name="v", external={"location": "../outside.bin", "offset": 0, "length": 64})
    nodes = [helper.make_node("Constant", [], ["w"], value=value), helper.make_node("MatMul", ["a", "w"], ["b"])]
    return model([call("f", "x", "y")], functions=[function("f", nodes)], domains=DOMAINS)


# --- offsets, lengths, sizes ---


@case("offset_past_end", "A11")
def _(folder):
    return external(folder, "weights.bin", offset=4096)


@case("offset_overflows", "A11")
def _(folder):
    return external(folder, "weights.bin", offset=2**63 - 8)


@case("offset_negative", "A11")
def _(folder):
    return external(folder, "weights.bin", offset=-8)


@case("offset_no_number", "A11")
def _(folder):
    return external(folder, "weights.bin", offset="abc")


@case("length_too_short", "A11")
def _(folder):
    return external(folder, "weights.bin", length=16)


@case("length_past_end", "A11")
def _(folder):
    return external(folder, "weights.bin", length=2**40, dims=(2**19, 2**19))


@case("offset_unaligned", "A12", outcome="runs", expected=ONES_PRODUCT)
def _(folder):
    (folder / "odd.bin").write_bytes(b"\0" + PAYLOAD)
    return external(folder, "odd.bin", offset=1)


@case("raw_too_short", "A13")
def _(folder):
    return product(weight(raw=PAYLOAD[:60]))


@case("raw_too_long", "A13")
def _(folder):
    return product(weight(raw=PAYLOAD * 2))


@case("typed_data_of_another_count", "A13")
def _(folder):
    tensor = weight()
    tensor.float_data.extend([1.0] * 15)
    return product(tensor)


@case("dims_overflow", "A14")
def _(folder):
    return product(weight((2**32, 2**32), raw=b""))


@case("dims_wrap_to_the_right_size", "A14")
def _(folder):
    return product(weight((2**62 + 4, 4), raw=PAYLOAD))


@case("dims_negative", "A14")
def _(folder):
    return product(weight((-4, -4), raw=PAYLOAD))


@case("dims_huge_without_data", "A15")
def _(folder):
    return product(weight((4, 2**40)))


@case("dtype_unknown", "A16")
def _(folder):
    return product(weight(dtype=99, raw=PAYLOAD))


@case("int4_too_short", "A16", inputs=no_inputs)
def _(folder):
    nodes = [helper.make_node("Cast", ["w"], ["c"], to=1), helper.make_node("ReduceSum", ["c"], ["y"])]
    return model(nodes, [weight((64, 64), dtype=TensorProto.INT4, raw=b"\1\2")], inputs=(), domains=(("", 21),))


@case("raw_and_typed_data", "A16")
def _(folder):
    tensor = weight(raw=PAYLOAD)
    tensor.float_data.extend([1.0] * 16)
    return product(tensor)


@case("sparse_index_out_of_range", "A17")
def _(folder):
    value = sparse(constant([1.0], np.float32), [10**12])
    node = helper.make_node("Constant", [], ["w"], sparse_value=value)
    return model([node, helper.make_node("MatMul", ["x", "w"], ["y"])])


# --- the wire format ---


def good():
    return product(weight(raw=PAYLOAD)).SerializeToString()


@case("empty_file", "A18")
def _(folder):
    return b""


@case("truncated", "A18")
def _(folder):
    return good()[: len(good()) // 2]


@case("length_lies", "A18")
def _(folder):
    return b"\x3a\xff\xff\xff\xff\x07" + b"x" * 50


@case("varint_too_long", "A18")
def _(folder):
    return b"\x08" + b"\xff" * 11 + b"\x01" + good()


@case("random_bytes", "A18")
def _(folder):
    return np.random.default_rng(0).bytes(4096)


@case("groups_nested", "A19")
def _(folder):
    return b"\xa3\x06" * 100_000 + b"\xa4\x06" * 100_000 + good()


def field(number, payload):
    def varint(n):
        out = b""
        while True:
            low, n = n & 127, n >> 7
            out += bytes([low | (128 if n else 0)])
            if not n:
                return out

    return varint(number << 3 | 2) + varint(len(payload)) + payload


@case("millions_of_tiny_nodes", "A20")
def _(folder):
    graph = field(1, b"") * 3_000_000  # NodeProto without any field: two bytes each
    return b"\x08\x0a" + field(8, field(1, b"") + b"\x10\x14") + field(7, graph)


@case("millions_of_tiny_attributes", "A20")
def _(folder):
    node = field(1, b"x") + field(2, b"y") + field(4, b"Neg") + field(5, b"") * 3_000_000
    return b"\x08\x0a" + field(8, field(1, b"") + b"\x10\x14") + field(7, field(1, node))


@case("branches_nested", "A21")
def _(folder):
    body = b""
    for _ in range(3000):
        attribute = field(1, b"then_branch") + b"\xa0\x01\x05" + field(6, body)
        body = field(1, field(4, b"If") + field(5, attribute))
    return b"\x08\x0a" + field(8, field(1, b"") + b"\x10\x14") + field(7, body)


@case("types_nested", "A21")
def _(folder):
    kind = field(1, b"\x08\x01")  # a tensor type; then sequences of sequences of ...
    for _ in range(3000):
        kind = field(4, field(1, kind))
    graph = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Identity"))
    graph += field(11, field(1, b"x") + field(2, kind)) + field(12, field(1, b"y"))
    return b"\x08\x0a" + field(8, field(1, b"") + b"\x10\x14") + field(7, graph)


# --- functions ---

DOMAINS = (("", 20), ("local", 1))


def call(name, source, target):
    return helper.make_node(name, [source], [target], domain="local")


def function(name, nodes):
    return helper.make_function("local", name, ["a"], ["b"], nodes, [helper.make_opsetid(*d) for d in DOMAINS])


@case("function_calls_itself", "A22")
def _(folder):
    return model([call("f", "x", "y")], functions=[function("f", [call("f", "a", "b")])], domains=DOMAINS)


@case("functions_call_each_other", "A22")
def _(folder):
    functions = [function("f", [call("g", "a", "b")]), function("g", [call("f", "a", "b")])]
    return model([call("f", "x", "y")], functions=functions, domains=DOMAINS)


@case("functions_double", "A23")
def _(folder):
    depth = 28
    functions = [
        function(f"f{i}", [call(f"f{i + 1}", "a", "t"), call(f"f{i + 1}", "t", "b")]) for i in range(depth)
    ] + [function(f"f{depth}", [helper.make_node("Neg", ["a"], ["b"])])]
    return model([call("f0", "x", "y")], functions=functions, domains=DOMAINS)


@case("functions_multiply", "A23")
def _(folder):
    wide = 200  # 200 ** 5 nodes
    functions = []
    for level in range(5):
        calls = [call(f"f{level + 1}", "a" if i == 0 else f"t{i}", "b" if i == wide - 1 else f"t{i + 1}")
                 for i in range(wide)]
        functions.append(function(f"f{level}", calls))
    functions.append(function("f5", [helper.make_node("Neg", ["a"], ["b"])]))
    return model([call("f0", "x", "y")], functions=functions, domains=DOMAINS)


# --- graphs ---


@case("cycle", "A24")
def _(folder):
    return model([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"]),
                  helper.make_node("Neg", ["b"], ["y"])])


@case("output_written_twice", "A24")
def _(folder):
    return model([helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])])


@case("input_never_defined", "A24")
def _(folder):
    return model([helper.make_node("Add", ["x", "nope"], ["y"])])


@case("output_never_defined", "A24")
def _(folder):
    return model([helper.make_node("Neg", ["x"], ["z"])])


@case("operator_without_a_name", "A24")
def _(folder):
    return model([helper.make_node("", ["x"], ["y"])])


@case("no_opset", "A25")
def _(folder):
    written = product(weight(raw=PAYLOAD))
    written.ClearField("opset_import")
    return written


@case("opset_of_the_future", "A25")
def _(folder):
    written = product(weight(raw=PAYLOAD), domains=(("", 9999),))
    written.ir_version = 9999
    return written


@case("opset_twice", "A25")
def _(folder):
    return product(weight(raw=PAYLOAD), domains=(("", 20), ("", 13)))


@case("attribute_of_another_type", "A26")
def _(folder):
    return model([helper.make_node("Gemm", ["x", "w"], ["y"], alpha=1)], [weight(raw=PAYLOAD)])


@case("attribute_missing", "A26")
def _(folder):
    return model([helper.make_node("Cast", ["x"], ["y"])])


@case("attribute_with_value_and_reference", "A26")
def _(folder):
    written = model([helper.make_node("Gemm", ["x", "w"], ["y"], alpha=1.0)], [weight(raw=PAYLOAD)])
    written.graph.node[0].attribute[0].ref_attr_name = "other"
    return written


@case("too_many_inputs", "A26")
def _(folder):
    return model([helper.make_node("Neg", ["x", "x", "x"], ["y"])])


# --- shapes ---


@case("rank_of_a_billion", "A27")
def _(folder):
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["d"], value=constant([1])),
             helper.make_node("Reshape", ["x", "d"], ["y"])]
    return model(nodes, [constant([10**9], name="s")])


@case("rank_from_unsqueeze", "A27")
def _(folder):
    return model([helper.make_node("Unsqueeze", ["x", "a"], ["y"])], [constant([10**9], name="a")])


@case("permutation_out_of_range", "A28")
def _(folder):
    return model([helper.make_node("Transpose", ["x"], ["y"], perm=[0, 9])])


@case("ranks_do_not_fit", "A28")
def _(folder):
    nodes = [helper.make_node("Concat", ["x", "w"], ["y"], axis=3)]
    return model(nodes, [weight((4,), raw=PAYLOAD[:16])])


@case("split_into_nothing", "A28")
def _(folder):
    return model([helper.make_node("Split", ["x"], ["y"], num_outputs=0, axis=1)])


# --- memory and time ---


@case("bomb_constant_of_shape", "A29", inputs=no_inputs)
def _(folder):
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("ReduceSum", ["c"], ["y"])]
    return model(nodes, [constant([2**18, 2**18], name="s")], inputs=())


@case("bomb_expand", "A29", inputs=no_inputs)
def _(folder):
    nodes = [helper.make_node("Expand", ["o", "s"], ["c"]), helper.make_node("ReduceSum", ["c"], ["y"])]
    return model(nodes, [constant([2**18, 2**18], name="s"), constant(1, np.float32, "o")], inputs=())


@case("bomb_range", "A29", inputs=no_inputs)
def _(folder):
    bounds = [constant(0, name="a"), constant(10**12, name="b"), constant(1, name="c")]
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node("ReduceSum", ["r"], ["y"])]
    return model(nodes, bounds, inputs=(), output=("y", 7, None))


@case("bomb_tile", "A29")
def _(folder):
    nodes = [helper.make_node("Tile", ["x", "r"], ["t"]), helper.make_node("ReduceSum", ["t"], ["y"])]
    return model(nodes, [constant([2**18, 2**16], name="r")])


@case("bomb_pad", "A29")
def _(folder):
    nodes = [helper.make_node("Pad", ["x", "p"], ["t"]), helper.make_node("ReduceSum", ["t"], ["y"])]
    return model(nodes, [constant([0, 0, 2**18, 2**18], name="p")])


@case("bomb_one_hot", "A29")
def _(folder):
    nodes = [helper.make_node("OneHot", ["i", "d", "v"], ["t"]), helper.make_node("ReduceSum", ["t"], ["y"])]
    return model(nodes, [constant([0], name="i"), constant(2**38, name="d"), constant([0, 1], np.float32, "v")],
                 inputs=(("x", 1, [1, 4]),))


@case("bomb_eye_like", "A29")
def _(folder):
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("EyeLike", ["c"], ["e"]),
             helper.make_node("ReduceSum", ["e"], ["y"])]
    return model(nodes, [constant([2**18, 2**18], name="s")], inputs=(("x", 1, [1, 4]),))


@case("bomb_resize", "A29", inputs=lambda: {"x": np.ones((1, 1, 2, 2), np.float32)})
def _(folder):
    nodes = [helper.make_node("Resize", ["x", "", "", "s"], ["t"]), helper.make_node("ReduceSum", ["t"], ["y"])]
    return model(nodes, [constant([1, 1, 2**18, 2**18], name="s")], inputs=(("x", 1, [1, 1, 2, 2]),))


@case("bomb_powers_of_concat", "A29")
def _(folder):
    names = ["x"] + [f"t{i}" for i in range(40)]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in zip(names, names[1:])]
    return model([*nodes, helper.make_node("ReduceSum", [names[-1]], ["y"])])


@case("endless_loop", "A30", args=("--time-limit", "0.2"))
def _(folder):
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["co"]), helper.make_node("Neg", ["v"], ["vo"])], "body",
        [helper.make_tensor_value_info(*i) for i in (("i", 7, []), ("c", 9, []), ("v", 1, [1, 4]))],
        [helper.make_tensor_value_info(*o) for o in (("co", 9, []), ("vo", 1, [1, 4]))],
    )
    return model([helper.make_node("Loop", ["n", "t", "x"], ["y"], body=body)],
                 [constant(2**62, name="n"), constant(True, np.bool_, "t")])


# --- operands ---


@case("gather_constant_index", "A31", inputs=no_inputs)
def _(folder):
    return model([helper.make_node("Gather", ["w", "i"], ["y"])], [constant([10**9], name="i"), weight(raw=PAYLOAD)],
                 inputs=())


@case("gather_index_at_run", "A31", inputs=lambda: {"i": np.array([10**9])})
def _(folder):
    return model([helper.make_node("Gather", ["w", "i"], ["y"])], [weight(raw=PAYLOAD)], inputs=(("i", 7, [1]),))


@case("gather_index_beyond_32_bits", "A31", inputs=lambda: {"i": np.array([2**32])})
def _(folder):
    return model([helper.make_node("Gather", ["w", "i"], ["y"])], [weight(raw=PAYLOAD)], inputs=(("i", 7, [1]),))


@case("scatter_index_at_run", "A31", inputs=lambda: {"i": np.array([[10**9]])})
def _(folder):
    nodes = [helper.make_node("ScatterElements", ["w", "i", "u"], ["y"], axis=0)]
    return model(nodes, [weight(raw=PAYLOAD), constant([[1.0]], np.float32, "u")], inputs=(("i", 7, [1, 1]),))


@case("scatter_nd_index_at_run", "A31", inputs=lambda: {"i": np.array([[10**9, 0]])})
def _(folder):
    nodes = [helper.make_node("ScatterND", ["w", "i", "u"], ["y"])]
    return model(nodes, [weight(raw=PAYLOAD), constant([1.0], np.float32, "u")], inputs=(("i", 7, [1, 2]),))


@case("top_k_of_too_many", "A31", inputs=lambda: {"x": np.ones((1, 4), np.float32), "k": np.array([10**9])})
def _(folder):
    return model([helper.make_node("TopK", ["x", "k"], ["y", "i"])], inputs=(("x", 1, [1, 4]), ("k", 7, [1])))


@case("reshape_to_other_size", "A32")
def _(folder):
    return model([helper.make_node("Reshape", ["x", "s"], ["y"])], [constant([3, 7], name="s")])


@case("slice_with_extremes", "A32", outcome="runs", expected=np.ones((1, 1), np.float32))
def _(folder):
    parts = [constant([v], name=n) for n, v in (("a", MAX64), ("b", MIN64), ("ax", 1), ("st", MIN64))]
    return model([helper.make_node("Slice", ["x", "a", "b", "ax", "st"], ["y"])], parts)


@case("pad_past_the_axis", "A32")
def _(folder):
    return model([helper.make_node("Pad", ["x", "p"], ["y"])], [constant([0, -10, 0, 0], name="p")])


@case("conv_group_zero", "A33", inputs=lambda: {"x": np.ones((1, 1, 2, 2), np.float32)})
def _(folder):
    return model([helper.make_node("Conv", ["x", "w"], ["y"], group=0)], [weight((1, 1, 1, 1), raw=PAYLOAD[:4])],
                 inputs=(("x", 1, [1, 1, 2, 2]),))


@case("conv_stride_zero", "A33", inputs=lambda: {"x": np.ones((1, 1, 2, 2), np.float32)})
def _(folder):
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], strides=[0, 0])]
    return model(nodes, [weight((1, 1, 1, 1), raw=PAYLOAD[:4])], inputs=(("x", 1, [1, 1, 2, 2]),))


@case("axis_out_of_range", "A33")
def _(folder):
    return model([helper.make_node("Softmax", ["x"], ["y"], axis=7)])


MICROSOFT = (("", 20), ("com.microsoft", 1))


@case("packed_weights_too_short", "A34", inputs=lambda: {"x": np.ones((1, 4096), np.float32)})
def _(folder):
    nodes = [helper.make_node("MatMulNBits", ["x", "B", "S"], ["y"], domain="com.microsoft", K=4096, N=4096, bits=4,
                              block_size=32)]
    parts = [constant(np.zeros((1, 1, 16)), np.uint8, "B"), constant([1.0], np.float32, "S")]
    return model(nodes, parts, inputs=(("x", 1, [1, 4096]),), domains=MICROSOFT)


@case("packed_weights_block_zero", "A34", inputs=lambda: {"x": np.ones((1, 32), np.float32)})
def _(folder):
    nodes = [helper.make_node("MatMulNBits", ["x", "B", "S"], ["y"], domain="com.microsoft", K=32, N=1, bits=4,
                              block_size=0)]
    parts = [constant(np.zeros((1, 1, 16)), np.uint8, "B"), constant([1.0], np.float32, "S")]
    return model(nodes, parts, inputs=(("x", 1, [1, 32]),), domains=MICROSOFT)


def scatter_at(position):
    parts = [constant([position], name="i"), constant(np.zeros((1, 1, 8, 4)), np.float32, "c")]
    return model([helper.make_node("TensorScatter", ["c", "x", "i"], ["y"], axis=2)], parts,
                 inputs=(("x", 1, [1, 1, 1, 4]),), domains=(("", 24),))


def one_position():
    return {"x": np.ones((1, 1, 1, 4), np.float32)}


@case("cache_write_past_its_end", "A35", inputs=one_position)
def _(folder):
    return scatter_at(10**6)


@case("cache_write_before_its_start", "A35", inputs=one_position)
def _(folder):
    return scatter_at(-5)


def attention_over(valid):
    parts = [constant([valid], name="n"), constant(np.zeros((1, 1, 8, 4)), np.float32, "c")]
    nodes = [helper.make_node("Attention", ["x", "c", "c", "", "", "", "n"], ["y"], is_causal=1)]
    return model(nodes, parts, inputs=(("x", 1, [1, 1, 1, 4]),), domains=(("", 24),))


@case("attention_over_too_many", "A35", inputs=one_position)
def _(folder):
    return attention_over(10**6)


@case("attention_over_negative", "A35", inputs=one_position)
def _(folder):
    return attention_over(-3)


def grouped_query(lengths, total):
    parts = [constant([lengths], np.int32, "lengths"), constant(total, np.int32, "total"),
             constant(np.zeros((1, 1, 8, 16)), np.float32, "past")]
    nodes = [helper.make_node("GroupQueryAttention", ["x", "k", "k", "past", "past", "lengths", "total"],
                              ["y", "a", "b"], domain="com.microsoft", num_heads=1, kv_num_heads=1)]
    return model(nodes, parts, inputs=(("x", 1, [1, 1, 16]), ("k", 1, [1, 1, 16])), domains=MICROSOFT)


def grouped_inputs():
    return {"x": np.ones((1, 1, 16), np.float32), "k": np.ones((1, 1, 16), np.float32)}


@case("grouped_query_lengths_past_cache", "A35", inputs=grouped_inputs)
def _(folder):
    return grouped_query(10**6, 9)


# The lengths say all that is read; three zero keys, then k . q / 4 = 4.
@case("grouped_query_total_negative", "A35", outcome="runs", inputs=grouped_inputs,
      expected=np.full((1, 1, 16), np.exp(4) / (np.exp(4) + 3), np.float32))
def _(folder):
    return grouped_query(3, -1)


@case("quantize_by_zero", "A37", outcome="runs", expected=np.zeros((1, 4), np.float32))
def _(folder):
    parts = [constant(0.0, np.float32, "s"), constant(0, np.uint8, "z")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    return model(nodes, parts)


@case("attention_of_closed_row", "A37", outcome="runs", expected=np.zeros((1, 1, 1, 4), np.float32),
      inputs=one_position)
def _(folder):
    parts = [constant(np.zeros((1, 8)), np.bool_, "m"), constant(np.ones((1, 1, 8, 4)), np.float32, "c")]
    nodes = [helper.make_node("Attention", ["x", "c", "c", "m"], ["y"])]
    return model(nodes, parts, inputs=(("x", 1, [1, 1, 1, 4]),), domains=(("", 24),))


@case("unknown_external_keys", "A65", outcome="runs", expected=ONES_PRODUCT)
def _(folder):
    written = external(folder, "weights.bin")
    written.graph.initializer[0].external_data.add(key="__class__", value="x")
    written.graph.initializer[0].external_data.add(key="basepath", value="/")
    return written
