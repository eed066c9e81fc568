"""Scoreboard: tiny random models of many architectures, exported by Transformers' OnnxExporter, run by decant.

Every float output equals PyTorch eager's within 1e-4 (or the case's own bound) relative to outputs of magnitude 1.
Exports are kept below build/scoreboards/architectures and made again when a case or a version changes.

    architectures.py [--quick] [--only NAME,NAME] [--refresh] [--update] [TARGET.tsv]
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import safetensors.numpy

from architecture_cases import CASES, VOCABULARY

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "architectures"
CACHE = ROOT / "build/scoreboards" / NAME
KEPT = pathlib.Path(__file__).with_suffix(".txt")
QUICK = ["bert", "modernbert", "deberta", "llama", "gemma2", "t5"]

sys.path.insert(0, str(ROOT / "tests/e2e"))
import helpers  # noqa: E402


def draw(kind, shape):
    """Inputs of one kind as torch tensors; `shape` 0 is the traced one. Rows of text differ in length."""
    import torch

    random = np.random.default_rng(shape + 1)
    batch, length = [(2, 9), (3, 13), (1, 5)][shape]

    def ids(columns):
        return torch.from_numpy(random.integers(3, VOCABULARY, (batch, columns)))

    def floats(*dims):
        return torch.from_numpy(random.standard_normal((batch, *dims)).astype(np.float32))

    mask = torch.ones((batch, length), dtype=torch.int64)
    mask[0, length - 2:] = 0
    if kind == "ids":
        return {"input_ids": ids(length)}
    if kind == "text":
        return {"input_ids": ids(length), "attention_mask": mask}
    if kind == "layout":
        low = random.integers(0, 10, (batch, length, 2))
        box = np.concatenate([low, low + random.integers(1, 10, (batch, length, 2))], 2)
        return {"input_ids": ids(length), "bbox": torch.from_numpy(box), "attention_mask": mask}
    if kind == "seq2seq":
        return {"input_ids": ids(length), "attention_mask": mask, "decoder_input_ids": ids(length - 3)}
    if kind == "speech2seq":
        features = floats(8, 32) if shape == 0 else None
        return {"input_features": features, "decoder_input_ids": ids(6)}
    if kind in ("image", "image64"):
        side = 64 if kind == "image64" else 32
        return {"pixel_values": floats(3, side, side)}
    if kind == "image-text":
        return {"input_ids": ids(length), "pixel_values": floats(3, 32, 32), "attention_mask": mask}
    if kind == "sam":
        return {"pixel_values": floats(3, 64, 64), "input_points": floats(1, 2, 2) * 10 + 30,
                "input_labels": torch.ones((batch, 1, 2), dtype=torch.int64)}
    if kind == "wave":
        return {"input_values": floats(1600)}
    if kind == "spectrogram":
        return {"input_values": floats(32, 16)}
    raise ValueError(kind)


def inputs_of(case, shape):
    made = draw(case.inputs, shape)
    if case.name == "speech-to-text":
        made["input_features"] = made["input_features"].transpose(1, 2).contiguous()
    return made


def build(case):
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, case.config or f"{case.prefix}Config")(**case.settings)
    model = helpers.sharpen(getattr(transformers, case.prefix + case.head)(config), 1)
    with torch.no_grad():  # padding rows of tables are zero in real models, and eager may rely on it
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx].zero_()
    return model


def leaves(tree):
    from transformers.exporters.utils import get_leaf_tensors

    return {name: np.ascontiguousarray(value.detach().numpy()) for name, value in get_leaf_tensors(tree).items()}


def export(case, folder):
    """Writes model.onnx and one pair of input and output files for each shape; done when meta.json is there."""
    import torch
    from transformers.exporters import OnnxConfig, OnnxExporter

    model = build(case)
    shapes = (0, 1, 2) if case.dynamic else (0,)
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        for shape in shapes:
            inputs = inputs_of(case, shape)
            safetensors.numpy.save_file(leaves(inputs), folder / f"inputs{shape}.safetensors")
            try:
                outputs = leaves(model(**inputs_of(case, shape)))
            except Exception:
                if shape == 0:
                    raise
                (folder / f"inputs{shape}.safetensors").unlink()
                continue
            safetensors.numpy.save_file(outputs, folder / f"outputs{shape}.safetensors")
        made = OnnxExporter().export(model, inputs_of(case, 0), OnnxConfig(dynamic=case.dynamic))
        made.save_pretrained(folder)
    (folder / "meta.json").write_text(json.dumps({"case": case.name}))


def run_onnxruntime(model, inputs):
    """Whether ONNX Runtime runs these inputs: an export may hold for its traced shape only."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    wanted = {value.name for value in session.get_inputs()}
    return dict(zip(names, session.run(None, {k: v for k, v in inputs.items() if k in wanted})))


def graph_inputs(model):
    import onnx

    return [value.name for value in onnx.load(model, load_external_data=False).graph.input]


def worst(got, expected):
    """Largest difference over float outputs of one shape, its name, and how many outputs were compared."""
    difference, where, compared = 0.0, "", 0
    for name, value in got.items():
        reference = expected.get(name)
        if reference is None or reference.shape != value.shape:
            continue
        compared += 1
        if not value.size:
            continue
        if value.dtype.kind != "f":
            if not np.array_equal(value, reference):
                return np.inf, name, compared
            continue
        scale = max(1.0, float(np.abs(reference).max()))
        here = float(np.abs(value - reference).max()) / scale
        if not here <= difference:
            difference, where = here, name
    return difference, where, compared


def run(case, folder):
    """(result, detail) of one exported case."""
    model = folder / "model.onnx"
    names = graph_inputs(model)
    done = []
    for shape in range(3):
        inputs_path = folder / f"inputs{shape}.safetensors"
        if not inputs_path.exists():
            continue
        inputs = safetensors.numpy.load_file(inputs_path)
        expected = safetensors.numpy.load_file(folder / f"outputs{shape}.safetensors")
        with tempfile.TemporaryDirectory() as scratch:
            source, target = f"{scratch}/in.safetensors", f"{scratch}/out.safetensors"
            safetensors.numpy.save_file({k: v for k, v in inputs.items() if k in names}, source)
            ran = subprocess.run(
                [str(helpers.find_binary()), "forward", str(folder), "--inputs", source, "--outputs", target],
                capture_output=True, text=True, timeout=120)
            got = safetensors.numpy.load_file(target) if ran.returncode == 0 else None
        if got is None:
            message = " ".join(ran.stderr.split())[-300:]
            if shape > 0:
                try:
                    run_onnxruntime(model, inputs)
                except Exception:
                    continue  # the export holds for its traced shape only
            missing = "unsupported" in message or "not supported" in message or "unknown op" in message.lower()
            return ("unsupported" if missing else "failed"), f"shape {shape}: {message}"
        difference, where, compared = worst(got, expected)
        if compared == 0 or not difference <= case.atol:
            if shape > 0:
                try:  # what eager gives at another shape may not be what was exported
                    peer, _, _ = worst(run_onnxruntime(model, inputs), expected)
                except Exception:
                    continue
                if not peer <= case.atol and worst(got, run_onnxruntime(model, inputs))[0] <= case.atol:
                    continue
            return "failed", f"shape {shape}: {where or 'no output'} differs by {difference:.2g}"
        done.append(f"{difference:.1e}")
    return "passed", f"{len(done)} shapes, largest difference " + " ".join(done)


def key_of(case):
    import onnx
    import torch
    import transformers

    recipe = json.dumps([repr(case), transformers.__version__, torch.__version__, onnx.__version__, 3])
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def exported(case, refresh):
    """The case's folder, exported when it is not there; a message when the exporter itself cannot."""
    folder = CACHE / f"{case.name}-{key_of(case)}"
    if refresh and (folder / "failure.txt").exists():
        (folder / "failure.txt").unlink()
    if (folder / "meta.json").exists():
        return folder, None
    if (folder / "failure.txt").exists():
        return folder, (folder / "failure.txt").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        export(case, folder)
    except Exception as error:
        (folder / "failure.txt").write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:400]}")
        return folder, (folder / "failure.txt").read_text()
    return folder, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target", nargs="?", default=str(ROOT / "build/scoreboards" / f"{NAME}.tsv"))
    parser.add_argument("--quick", action="store_true", help="a few cases of each task")
    parser.add_argument("--only", default="", help="comma-separated case names; counts are not held against the file")
    parser.add_argument("--update", action="store_true", help=f"write the count reached to {NAME}.txt")
    parser.add_argument("--refresh", action="store_true", help="try again what did not export")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import logging

    logging.disable(logging.WARNING)
    only = options.only.split(",") if options.only else QUICK if options.quick else None
    rows, groups = [], {}
    for case in CASES:
        if only and case.name not in only:
            continue
        folder, failure = exported(case, options.refresh)
        # What the exporter cannot do says nothing about decant: it is listed, and counted as unsupported.
        result, detail = ("unsupported", "not exported: " + failure) if failure else run(case, folder)
        rows.append((case.name, result, detail))
        groups.setdefault(case.group, []).append((case.name, result))
        if result != "passed":
            print(f"  {case.name}: {result}: {detail}", flush=True)
    path = pathlib.Path(options.target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("case\tresult\tdetail\n" + "".join("\t".join(row) + "\n" for row in rows))
    for group, results in groups.items():
        passed = sum(result == "passed" for _, result in results)
        print(f"{group:18} {passed:3} of {len(results):3}")
    count = {kind: sum(row[1] == kind for row in rows) for kind in ("passed", "failed", "unsupported")}
    held = True
    if not options.only:
        held = hold("quick" if options.quick else "full", count["passed"], options.update)
    print(f"{NAME}: {count['passed']} passed, {count['failed']} failed, {count['unsupported']} unsupported")
    return 0 if held else 1


def hold(part, passed, update):
    """Whether no fewer cases passed than the kept count says; with `update` that becomes the kept count."""
    kept = dict(line.split() for line in KEPT.read_text().splitlines()) if KEPT.exists() else {}
    before = int(kept.get(part, 0))
    if update:
        kept[part] = str(passed)
        KEPT.write_text("".join(f"{name} {number}\n" for name, number in sorted(kept.items())))
    elif passed < before:
        print(f"{NAME}: {before} passed before")
    return update or passed >= before


if __name__ == "__main__":
    sys.exit(main())
