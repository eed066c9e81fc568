"""Exports of the architectures scoreboard: made with the installed Transformers, kept in the repository, restored.

What an exporter writes is in the graph: operators, shape arithmetic, small constants. Weights and inputs are drawn by
name from a generator whose stream NumPy has frozen, so a kept export is its graph, with every weight replaced by the
name of the parameter it comes from, and a sample of what PyTorch eager gave for each output.
"""

import contextlib
import hashlib
import io
import json
import lzma
import pathlib
import sys
import tarfile
import zlib

import numpy as np
import safetensors.numpy

from architecture_cases import CASES, VOCABULARY

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "testdata/architectures"
TABLE = KEPT / "exports.tsv"
SAMPLES = 96  # elements of each output that are kept
SMALL = 16  # tensors of fewer elements stay in the graph

sys.path.insert(0, str(ROOT / "tests/e2e"))


def weight(name, dims):
    """Matrices spread around 0 and vectors around 1, by 0.1; the variances of batch norms are positive."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(dims) * 0.1
    if name.endswith("running_var"):
        drawn = 1 + np.abs(drawn)
    elif len(dims) < 2 and not name.endswith("running_mean"):
        drawn = 1 + drawn
    return np.asarray(drawn, np.float32)


def draw(case, shape):
    """Inputs of the case as numpy arrays; `shape` 0 is the traced one. Rows of text differ in length."""
    random = np.random.RandomState(shape + 1)
    batch, length = [(2, 9), (3, 13), (1, 5)][shape]

    def ids(columns):
        return random.randint(3, VOCABULARY, (batch, columns)).astype(np.int64)

    def floats(*dims):
        return random.standard_normal((batch, *dims)).astype(np.float32)

    mask = np.ones((batch, length), np.int64)
    mask[0, length - 2:] = 0
    kind = case.inputs
    if kind == "ids":
        return {"input_ids": ids(length)}
    if kind == "text":
        return {"input_ids": ids(length), "attention_mask": mask}
    if kind == "layout":
        low = random.randint(0, 10, (batch, length, 2))
        box = np.concatenate([low, low + random.randint(1, 10, (batch, length, 2))], 2).astype(np.int64)
        return {"input_ids": ids(length), "bbox": box, "attention_mask": mask}
    if kind == "seq2seq":
        return {"input_ids": ids(length), "attention_mask": mask, "decoder_input_ids": ids(length - 3)}
    if kind == "speech2seq":
        return {"input_features": floats(8, 32), "decoder_input_ids": ids(6)}
    if kind == "features2seq":
        return {"input_features": floats(32, 8), "decoder_input_ids": ids(6)}
    if kind == "wave2seq":
        return {"input_values": floats(1600), "decoder_input_ids": ids(6)}
    if kind in ("image", "image64"):
        side = 64 if kind == "image64" else 32
        return {"pixel_values": floats(3, side, side)}
    if kind == "video":
        return {"pixel_values": floats(4, 3, 32, 32)}
    if kind == "image-text":
        return {"input_ids": ids(length), "pixel_values": floats(3, 32, 32), "attention_mask": mask}
    if kind == "image-tokens":  # tokens 1 .. 4 of the text are the patches of a 16 x 16 image
        tokens = ids(length) % (VOCABULARY - 8) + 3
        tokens[:, 1:5] = VOCABULARY - 1
        return {"input_ids": tokens, "pixel_values": floats(3, 16, 16), "attention_mask": np.ones_like(mask)}
    if kind == "sam":
        return {"pixel_values": floats(3, 64, 64), "input_points": floats(1, 2, 2) * 10 + 30,
                "input_labels": np.ones((batch, 1, 2), np.int64)}
    if kind == "wave":
        return {"input_values": floats(1600)}
    if kind == "channel-wave":
        return {"input_values": floats(1, 1600)}
    if kind == "features":
        return {"input_features": floats(32, 16)}
    if kind == "spectrogram":
        return {"input_values": floats(32, 16)}
    if kind == "series":
        return {"past_values": floats(32, 3)}
    raise ValueError(kind)


def torch_inputs(case, shape):
    import torch

    return {name: torch.from_numpy(value) for name, value in draw(case, shape).items()}


def build(case):
    """The case's model in eval mode, weights drawn."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, case.config or f"{case.prefix}Config")(**case.settings)
    model = getattr(transformers, case.prefix + case.head)(config)
    with torch.no_grad():
        for name, tensor in known_tensors(model):
            tensor.copy_(torch.from_numpy(weight(name, tuple(tensor.shape))))
        for module in model.modules():  # padding rows are zero in real models, and eager may rely on it
            if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx].zero_()
    return model.eval()


def known_tensors(model):
    yield from ((name, p) for name, p in model.named_parameters() if p.dtype.is_floating_point)
    yield from ((name, b) for name, b in model.named_buffers() if name.endswith(("running_mean", "running_var")))


def leaves(tree):
    from transformers.exporters.utils import get_leaf_tensors

    return {name: np.ascontiguousarray(value.detach().numpy()) for name, value in get_leaf_tensors(tree).items()}


def worst(got, expected):
    """Largest difference of the float outputs, relative to outputs of magnitude 1, and its name.

    `expected` maps names to (dims, positions or None, values, largest magnitude). Caches of sliding windows may be
    longer than eager's, which drops what is out of reach; no other dims may differ.
    """
    difference, where, compared = 0.0, "", 0
    for name, (dims, positions, reference, scale) in expected.items():
        if name not in got:
            continue
        value = got[name]
        if value.shape != tuple(dims):
            if "past_key_values" in name or "cache" in name:
                continue
            return np.inf, f"{name} is {list(value.shape)} instead of {list(dims)} and", compared
        compared += 1
        if not value.size:
            continue
        value = value.reshape(-1) if positions is None else value.reshape(-1)[positions]
        if value.dtype.kind != "f":
            if not np.array_equal(value, reference):
                return np.inf, name, compared
            continue
        here = float(np.abs(value.astype(np.float64) - reference).max()) / max(1.0, scale)
        if not here <= difference:
            difference, where = here, name
    return (difference, where, compared) if compared else (np.inf, "no output", 0)


def whole(outputs):
    """Outputs as `worst` expects them, every element."""
    return {name: (v.shape, None, v.reshape(-1), float(np.abs(v).max()) if v.size and v.dtype.kind == "f" else 0.0)
            for name, v in outputs.items()}


def positions_of(name, count):
    return np.random.RandomState(zlib.crc32(name.encode())).randint(0, count, SAMPLES) if count > SAMPLES else None


def run_onnxruntime(model, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})))


def export(case, folder):
    """Writes model.onnx and a pair of input and output files for each shape; done when meta.json is there.

    An export may hold for its traced shape only: others count when ONNX Runtime gives eager's outputs there. One that
    gives other outputs in ONNX Runtime at the traced shape is the exporter's mistake.
    """
    import onnx
    import torch
    from transformers.exporters import OnnxConfig, OnnxExporter

    model = build(case)
    outputs, dropped = {}, {}
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        for shape in (0, 1, 2) if case.dynamic else (0,):
            try:
                outputs[shape] = leaves(model(**torch_inputs(case, shape)))
            except Exception as error:
                if shape == 0:
                    raise
                dropped[shape] = f"eager: {error}"[:200]
        made = OnnxExporter().export(model, torch_inputs(case, 0), OnnxConfig(dynamic=case.dynamic))
        made.save_pretrained(folder)
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    names = {value.name for value in graph.input}
    for shape, expected in outputs.items():
        inputs = {name: value for name, value in draw(case, shape).items() if name in names}
        try:
            difference, where, _ = worst(run_onnxruntime(folder / "model.onnx", inputs), whole(expected))
            if not difference <= case.atol:
                dropped[shape] = f"ONNX Runtime: {where} differs by {difference:.1e}"
        except Exception as error:
            if shape > 0:
                dropped[shape] = f"ONNX Runtime: {' '.join(str(error).split())}"[:200]
        if 0 in dropped:
            raise ValueError(f"the export is not the model, {dropped[0]}")
        if shape not in dropped:
            safetensors.numpy.save_file(inputs, folder / f"inputs{shape}.safetensors")
            safetensors.numpy.save_file(expected, folder / f"outputs{shape}.safetensors")
    (folder / "meta.json").write_text(json.dumps({"dropped": dropped}))


def recipe(case):
    return hashlib.sha256(repr(case).encode()).hexdigest()[:12]


def versions():
    import torch
    import transformers

    return f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"


def exported(case, cache, refresh):
    """The case's folder below `cache`, exported when it is not there; a message when the exporter itself cannot."""
    key = hashlib.sha256((recipe(case) + versions()).encode()).hexdigest()[:12]
    folder = cache / f"{case.name}-{key}"
    failure = folder / "failure.txt"
    if failure.exists() and not refresh:
        return folder, failure.read_text()
    failure.unlink(missing_ok=True)
    if not (folder / "meta.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            export(case, folder)
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            failure.write_text(message.replace(str(pathlib.Path(sys.prefix)), ""))
            return folder, failure.read_text()
    return folder, None


def references(folder):
    """What `worst` expects, by shape, of a fresh or a restored export."""
    made = {}
    for path in sorted(folder.glob("outputs*.safetensors")):
        made[int(path.stem.removeprefix("outputs"))] = whole(safetensors.numpy.load_file(path))
    if (folder / "reference.json").exists():
        values = safetensors.numpy.load_file(folder / "reference.safetensors")
        for key, (dims, scale) in json.loads((folder / "reference.json").read_text()).items():
            shape, name = key.split("/", 1)
            sample = positions_of(name, int(np.prod(dims)))
            made.setdefault(int(shape), {})[name] = (dims, sample, values[key], scale)
    return made


# Keeping and restoring


def tensors(graph):
    for tensor in graph.initializer:
        yield tensor
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from tensors(attribute.g)


def variants(case):
    """Bytes of every weight, of its transpose, of the matrices of a stack, and how to make each."""
    found = {}
    for name, tensor in known_tensors(build(case)):
        actual = np.ascontiguousarray(tensor.detach().numpy())
        made = weight(name, actual.shape)
        if actual.ndim == 0:
            continue
        zero = [int(row) for row in np.flatnonzero((actual != made).reshape(len(actual), -1).any(1))]
        made[zero] = 0
        if not np.array_equal(actual, made):
            continue
        of = {"of": name, "dims": list(actual.shape), "zero": zero}
        parts = [(actual, of)]
        if 2 < actual.ndim and len(actual) <= 64:
            parts += [(part, {**of, "part": i}) for i, part in enumerate(actual)]
        for part, how in parts:
            if part.size < SMALL:
                continue
            found.setdefault(part.tobytes(), how)
            if part.ndim > 1:
                found.setdefault(np.ascontiguousarray(part.swapaxes(-1, -2)).tobytes(), {**how, "swap": True})
    return found


def remade(how, dims):
    value = weight(how["of"], tuple(how["dims"]))
    value[how["zero"]] = 0
    if "part" in how:
        value = value[how["part"]]
    return np.ascontiguousarray(value.swapaxes(-1, -2) if how.get("swap") else value).reshape(dims)


def without_metadata(graph):
    for values in (graph.input, graph.output, graph.value_info, graph.initializer, graph.node):
        for item in values:
            item.doc_string = ""
            del item.metadata_props[:]
    del graph.metadata_props[:]
    graph.doc_string = ""
    for node in graph.node:
        for attribute in node.attribute:
            attribute.doc_string = ""
            if attribute.HasField("g"):
                without_metadata(attribute.g)


def stripped(case, folder):
    """(files of the kept export, bytes of weights that no parameter explains)."""
    import onnx

    model = onnx.load(folder / "model.onnx")
    del model.metadata_props[:]
    without_metadata(model.graph)
    for function in model.functions:
        del function.metadata_props[:]
        for node in function.node:
            del node.metadata_props[:]
    known, unexplained = variants(case), 0
    for tensor in tensors(model.graph):
        if int(np.prod(tensor.dims)) < SMALL:
            continue
        value = onnx.numpy_helper.to_array(tensor)
        how = known.get(value.tobytes()) if value.dtype == np.float32 else None
        if how:
            tensor.CopyFrom(onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims,
                                             doc_string=json.dumps(how)))
        elif value.dtype.kind == "f" and len(np.unique(value)) > 2:
            unexplained += value.nbytes
    samples, scales = {}, {}
    for shape, outputs in references(folder).items():
        for name, (dims, _, values, scale) in outputs.items():
            sample = positions_of(name, values.size)
            samples[f"{shape}/{name}"] = values if sample is None else values[sample]
            scales[f"{shape}/{name}"] = (list(dims), scale)
    return {"model.onnx": model.SerializeToString(), "reference.json": json.dumps(scales).encode(),
            "reference.safetensors": safetensors.numpy.save(samples)}, unexplained


def archive(group):
    return KEPT / (group.replace(" ", "-") + ".tar.xz")


def read_archive(group):
    """{case: {file: bytes}}"""
    kept = {}
    if archive(group).exists():
        with tarfile.open(archive(group)) as tar:
            for entry in tar.getmembers():
                case, file = entry.name.split("/")
                kept.setdefault(case, {})[file] = tar.extractfile(entry).read()
    return kept


def read_table():
    """{case: (recipe, versions, why there is no export)}"""
    rows = TABLE.read_text().splitlines()[1:] if TABLE.exists() else []
    return {row.split("\t")[0]: row.split("\t")[1:] for row in rows}


def keep(fresh):
    """Keeps `fresh`, a list of (case, folder, failure); cases that are gone are dropped."""
    KEPT.mkdir(exist_ok=True)
    table = read_table()
    made = {}
    for case, folder, failure in fresh:
        table[case.name] = [recipe(case), versions(), failure or ""]
        files, unexplained = (None, 0) if failure else stripped(case, folder)
        made.setdefault(case.group, {})[case.name] = files
        if unexplained > 4096:
            print(f"  {case.name}: {unexplained} bytes of weights that are no parameter's")
    for group, cases in made.items():
        kept = {**read_archive(group), **cases}
        names = [case.name for case in CASES if case.group == group and kept.get(case.name)]
        with lzma.open(archive(group), "wb", preset=9 | lzma.PRESET_EXTREME) as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                for file in ("model.onnx", "reference.json", "reference.safetensors"):
                    for name in names:
                        entry = tarfile.TarInfo(f"{name}/{file}")
                        entry.size = len(kept[name][file])
                        tar.addfile(entry, io.BytesIO(kept[name][file]))
    rows = [[case.name, *table[case.name]] for case in CASES if case.name in table]
    TABLE.write_text("case\trecipe\texporter\tnot exported\n" + "".join("\t".join(row) + "\n" for row in rows))


def restore(cases, folder):
    """Writes the kept exports of `cases` below `folder`; returns (case, its folder, why there is none) of each."""
    import onnx

    table, archives, restored = read_table(), {}, []
    for case in cases:
        key, _, failure = table.get(case.name, ["", "", "not kept: run architectures.py --keep"])
        if case.group not in archives:
            archives[case.group] = read_archive(case.group)
        files = archives[case.group].get(case.name)
        if key and key != recipe(case):
            failure = "the kept export has other settings: run architectures.py --keep"
        elif files:
            where = folder / case.name
            where.mkdir(parents=True, exist_ok=True)
            model = onnx.load_from_string(files["model.onnx"])
            for tensor in tensors(model.graph):
                if tensor.doc_string.startswith('{"of"'):
                    value = remade(json.loads(tensor.doc_string), list(tensor.dims))
                    tensor.doc_string = ""
                    tensor.raw_data = value.tobytes()
            onnx.save(model, where / "model.onnx")
            for file in ("reference.json", "reference.safetensors"):
                (where / file).write_bytes(files[file])
            names = {value.name for value in model.graph.input}
            for shape in references(where):
                inputs = {name: value for name, value in draw(case, shape).items() if name in names}
                safetensors.numpy.save_file(inputs, where / f"inputs{shape}.safetensors")
        restored.append((case, folder / case.name, failure or None))
    return restored
