"""Writes the ONNX backend test out as files, from the installed onnx package.

    onnx_suite_cases.py FOLDER

Node cases exist only as Python in the package; the others are files in it. Each case becomes FOLDER/KIND/NAME with
model.onnx, test_data_set_*/{input,output}_*.pb and, where its tolerance is not the usual one, data.json. FOLDER/cases.tsv
lists them: folder, operator (of the case that an expanded one was made from; "model" for whole models). Does nothing
when FOLDER was written by the same onnx version.
"""

import json
import pathlib
import re
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper

FORMAT = "3"  # of what this script writes; another one makes existing folders stale
USUAL = (1e-3, 1e-7)
# Where zeros are expected the files hold NumPy's own rounding, 2e-7.
TOLERANCES = {"test_dft_inverse": (1e-3, 1e-6), "test_dft_inverse_opset19": (1e-3, 1e-6)}


def proto(value, declared):
    if isinstance(value, onnx.TensorProto):
        return value
    kind = declared.type.WhichOneof("value")
    convert = {
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
        "map_type": numpy_helper.from_dict,
    }.get(kind, numpy_helper.from_array)
    if convert is numpy_helper.from_array:
        value = np.asarray(value)
    return convert(value, declared.name)


def write_values(folder, role, values, declared):
    folder.mkdir(parents=True, exist_ok=True)
    for i, value in enumerate(values):
        (folder / f"{role}_{i}.pb").write_bytes(proto(value, declared[i]).SerializeToString())


def write_tolerance(folder, rtol, atol):
    if (rtol, atol) != USUAL:
        (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}))


def write_made(root, cases):
    """Cases that exist as Python objects."""
    for case in cases:
        if case.model is None:
            continue
        folder = root / case.kind / case.name
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        write_tolerance(folder, *TOLERANCES.get(case.name, (case.rtol, case.atol)))
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = folder / f"test_data_set_{i}"
            write_values(data, "input", inputs, case.model.graph.input)
            write_values(data, "output", outputs, case.model.graph.output)


def write_light(source, target, light):
    """A real model's structure with made-up weights: its input is i / n, and the output is stored beside the model."""
    data = json.loads((source / "data.json").read_text())
    path = light / pathlib.Path(data["url"]).name
    model = onnx.load(path)
    target.mkdir(parents=True)
    shutil.copy(path, target / "model.onnx")
    write_tolerance(target, data["rtol"], data["atol"])
    stored = {i.name for i in model.graph.initializer}
    inputs = []
    for value in model.graph.input:
        if value.name in stored:
            continue
        shape = [d.dim_value if d.HasField("dim_value") else 1 for d in value.type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
    write_values(target / "test_data_set_0", "input", inputs, model.graph.input)
    for i in range(len(model.graph.output)):
        shutil.copy(f"{path.with_suffix('')}_output_{i}.pb", target / "test_data_set_0" / f"output_{i}.pb")


def write_stored(root):
    """Cases that are files in the package."""
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    for source in sorted(data.glob("*/test_*")):
        target = root / source.parent.name / source.name
        if target.exists():
            continue
        if (source / "model.onnx").exists():
            shutil.copytree(source, target)
        elif (source / "data.json").exists() and source.parent.name == "real":
            write_light(source, target, data / "light")


def operator_of(folder):
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    ops = [n for n in model.graph.node if n.op_type != "Constant"] or model.graph.node
    names = {(n.domain + "." if n.domain not in ("", "ai.onnx") else "") + n.op_type for n in ops}
    return names.pop() if len(names) == 1 else "model"


def write_list(root):
    operators, rows = {}, []
    folders = sorted(f for f in root.glob("*/test_*") if (f / "model.onnx").exists())
    for folder in folders:
        if folder.parent.name == "node":
            base = re.sub(r"(_expanded.*|_ver\d+_expanded.*)$", "", folder.name)
            if base == folder.name:
                operators[base] = operator_of(folder)
    for folder in folders:
        group = folder.parent.name
        if group == "node":
            base = re.sub(r"(_expanded.*|_ver\d+_expanded.*)$", "", folder.name)
            group = operators.get(base) or operators.get(base.removesuffix("_CPU")) or operator_of(folder)
        rows.append(f"{folder.relative_to(root)}\t{group}\n")
    (root / "cases.tsv").write_text("".join(rows))


def main():
    root = pathlib.Path(sys.argv[1])
    stamp = root / "version"
    version = f"{onnx.__version__} {FORMAT}"
    if stamp.exists() and stamp.read_text() == version:
        return 0
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    np.random.seed(0)
    from onnx.backend.test.case import model as models
    from onnx.backend.test.case import node as nodes

    write_made(root, nodes.collect_testcases())
    write_made(root, models.collect_testcases())
    write_stored(root)
    write_list(root)
    stamp.write_text(version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
