"""Keeps the graphs of ONNX exports without their weights, and brings them back with other weights.

    keep_graphs.py keep FOLDER TARGET.tar.xz     FOLDER holds the exports, one sub-folder for each model
    keep_graphs.py restore SOURCE.tar.xz FOLDER

What an exporter writes is in the graph: names, layouts, operators, shape arithmetic, small constants. Its weights are
noise that any tool can run, so a kept graph has large tensors of noise replaced by their name, type and dims; restoring
draws them again from a generator that the name seeds. References are then computed on the restored file. Configuration
files are kept as they are.

graphs.tar.xz was made by `keep` from tiny random models (two layers, 64 channels) exported with optimum 1.13.2, optimum
1.24 (legacy=True for the split and merged decoders), optimum-onnx 0.1.0, transformers.js' conversion (onnxslim, then
ONNX Runtime's quantizers and the float16 converter) and onnxruntime-genai 0.18's model builder.
"""

import io
import json
import lzma
import pathlib
import sys
import tarfile
import zlib

import numpy as np
import onnx

CONFIGS = ("config.json", "generation_config.json", "genai_config.json")
LARGE = 128  # elements from which on a tensor of more than one dim counts as weights
FLOATS = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.FLOAT16: np.float16}
BYTES = {onnx.TensorProto.UINT8: np.uint8, onnx.TensorProto.INT8: np.int8}
NIBBLES = {onnx.TensorProto.INT4, onnx.TensorProto.UINT4}


def tensors(graph):
    for tensor in graph.initializer:
        yield tensor
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from tensors(attribute.g)


def count(tensor):
    return int(np.prod(list(tensor.dims))) if tensor.dims else 1


def is_scale(name):
    return "scale" in name or "absmax" in name


def is_weight(tensor):
    if count(tensor) < LARGE or not (tensor.data_type in FLOATS or tensor.data_type in BYTES | dict.fromkeys(NIBBLES)):
        return False
    if len(tensor.dims) == 1 and not is_scale(tensor.name) and tensor.data_type in FLOATS:
        return False
    values = onnx.numpy_helper.to_array(tensor).astype(np.float32)
    # Tables (positions, masks, constants of one value) are part of the graph.
    return len(np.unique(values)) > 2 and "cache" not in tensor.name and "inv_freq" not in tensor.name


def stripped(tensor):
    kept = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    values = onnx.numpy_helper.to_array(tensor)
    if tensor.data_type in FLOATS:
        # The spread of the weights, so that activations stay in the range they had.
        values = np.abs(values.astype(np.float32))
        kept.doc_string = json.dumps({"noise": float(f"{values.mean():.2g}")})
    else:
        kept.doc_string = json.dumps({"noise": 1})
    return kept


def filled(tensor):
    noise = json.loads(tensor.doc_string)["noise"]
    random = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    dims, n = list(tensor.dims), count(tensor)
    made = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=dims)
    if tensor.data_type in FLOATS:
        values = random.normal(0, noise * 1.2533, n)  # the mean of |x| is the noise
        if is_scale(tensor.name):
            values = random.uniform(0.5 * noise, 1.5 * noise, n)
        made.raw_data = values.astype(FLOATS[tensor.data_type]).tobytes()
    elif tensor.data_type in BYTES:
        made.raw_data = random.integers(0, 256, n, dtype=np.uint8).tobytes()
    else:
        made.raw_data = random.integers(0, 256, (n + 1) // 2, dtype=np.uint8).tobytes()
    return made


def keep(source, target):
    source = pathlib.Path(source)
    with lzma.open(target, "wb", preset=9 | lzma.PRESET_EXTREME) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        def add(path, data):
            entry = tarfile.TarInfo(str(path.relative_to(source)))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))

        for path in sorted(source.rglob("*"), key=lambda p: (p.suffix, p.name, p)):
            if path.name in CONFIGS:
                add(path, path.read_bytes())
            if path.suffix != ".onnx":
                continue
            model = onnx.load(path)
            for tensor in tensors(model.graph):
                if is_weight(tensor):
                    tensor.CopyFrom(stripped(tensor))
            add(path, model.SerializeToString())


def restore(source, folder):
    """Writes every kept file below `folder`, graphs with weights; tensors of 64 KiB and more become external data."""
    folder = pathlib.Path(folder)
    with tarfile.open(source) as tar:
        for entry in tar.getmembers():
            data = tar.extractfile(entry).read()
            path = folder / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix != ".onnx":
                path.write_bytes(data)
                continue
            model = onnx.load_from_string(data)
            for tensor in tensors(model.graph):
                if tensor.doc_string.startswith('{"noise"'):
                    tensor.CopyFrom(filled(tensor))
            if "genai" in path.parts:
                onnx.save(model, path, save_as_external_data=True, location=path.name + ".data", size_threshold=1024)
            else:
                onnx.save(model, path)


if __name__ == "__main__":
    {"keep": keep, "restore": restore}[sys.argv[1]](*sys.argv[2:4])
