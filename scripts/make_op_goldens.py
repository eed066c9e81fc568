#!/usr/bin/env python3
"""Writes testdata/ops/goldens.bin from the node cases of the ONNX backend test suite.

Needs the `onnx` package. Usage: scripts/make_op_goldens.py [OUTPUT]. Only cases with one node are kept, for the
operators that decant defines (read from the DECANT_OP lines of src/ir/ops), with the element types it has, and small.

Format, little-endian: "DGOLD1\\n", u32 number of cases; for each case: name, operator (u16 length + bytes each), u8
number of attributes (name, u8 kind, value), u8 number of inputs, u8 number of outputs (u8 present, then a tensor).
Kinds: 0 i64; 1 f32; 2 u16 + bytes; 3 u16 + i64s; 4 u16 + f32s; 5 tensor; 6 u16 + strings. A tensor: u8 ONNX type code, u8 rank, i64
dims, elements.
"""

import pathlib
import re
import struct
import sys

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}
MAX_CASE_BYTES = 12_000
MAX_ATTENTION_BYTES = 30_000
OLDEST_OPSET = 7


def known_ops():
    ops = set()
    for path in (ROOT / "src/ir/ops").glob("*.cc"):
        ops.update(re.findall(r"^DECANT_OP\((\w+)\)", path.read_text(), re.M))
    return ops


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<H", len(data)) + data


def tensor(array):
    proto = array if isinstance(array, onnx.TensorProto) else numpy_helper.from_array(np.asarray(array))
    if proto.data_type not in TYPES:
        raise ValueError(f"type {proto.data_type}")
    raw = np.ascontiguousarray(numpy_helper.to_array(proto)).tobytes()
    return struct.pack(f"<BB{len(proto.dims)}q", proto.data_type, len(proto.dims), *proto.dims) + raw


def attribute(a):
    kinds = onnx.AttributeProto
    head = text(a.name)
    if a.type == kinds.INT:
        return head + struct.pack("<Bq", 0, a.i)
    if a.type == kinds.FLOAT:
        return head + struct.pack("<Bf", 1, a.f)
    if a.type == kinds.STRING:
        return head + b"\x02" + text(a.s)
    if a.type == kinds.INTS:
        return head + struct.pack(f"<BH{len(a.ints)}q", 3, len(a.ints), *a.ints)
    if a.type == kinds.FLOATS:
        return head + struct.pack(f"<BH{len(a.floats)}f", 4, len(a.floats), *a.floats)
    if a.type == kinds.STRINGS:
        return head + struct.pack("<BH", 6, len(a.strings)) + b"".join(text(s) for s in a.strings)
    if a.type == kinds.TENSOR:
        return head + b"\x05" + tensor(a.t)
    raise ValueError(f"attribute {a.name}")


def slots(names, values):
    out = struct.pack("<B", len(names))
    for name in names:
        out += b"\x01" + tensor(values[name]) if name else b"\x00"
    return out


def encode(case):
    graph = case.model.graph
    node = graph.node[0]
    inputs, outputs = case.data_sets[0]
    values = {i.name: v for i, v in zip(graph.input, inputs)}
    values.update({o.name: v for o, v in zip(graph.output, outputs)})
    values.update({i.name: i for i in graph.initializer})
    out = text(case.name) + text(node.op_type)
    out += struct.pack("<B", len(node.attribute)) + b"".join(attribute(a) for a in node.attribute)
    return out + slots(node.input, values) + slots(node.output, values)


def main():
    np.random.seed(0)
    ops = known_ops()
    cases, skipped = [], {}
    for case in collect_testcases(None):
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].domain not in ("", "ai.onnx") or nodes[0].op_type not in ops:
            continue
        opset = max(o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx"))
        try:
            if opset < OLDEST_OPSET or case.name.endswith("_expanded"):
                raise ValueError(f"opset {opset}")
            known = onnx.defs.get_schema(nodes[0].op_type).attributes
            if any(a.name not in known for a in nodes[0].attribute):
                raise ValueError("an attribute that is an input by now")
            limit = MAX_ATTENTION_BYTES if nodes[0].op_type == "Attention" else MAX_CASE_BYTES
            data = encode(case)
            if len(data) > limit:
                raise ValueError("large")
            cases.append(data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            skipped[case.name] = str(error)[:60]
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "testdata/ops/goldens.bin"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"DGOLD1\n" + struct.pack("<I", len(cases)) + b"".join(cases))
    print(f"{len(cases)} cases, {target.stat().st_size} bytes, {len(skipped)} skipped")
    for name, why in sorted(skipped.items()):
        print(f"  {name}: {why}")


if __name__ == "__main__":
    main()
