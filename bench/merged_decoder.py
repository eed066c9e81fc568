"""merged_decoder.py DECANT FOLDER [ROUNDS]: what a merged decoder costs against the single graph, paired.

FOLDER holds an export with a growing cache (model.onnx). Its graph is written a second time as both branches of an If
on use_cache_branch, the way optimum merges decoders; `decant bench` runs the two folders in turns.
"""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import onnx


def merge(source, target):
    """Writes the graph of `source` as decoder_model_merged.onnx into the folder `target`; weights stay beside `source`."""
    model = onnx.load(source, load_external_data=False)
    graph = model.graph
    flag = onnx.helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1])
    outputs = [o.name for o in graph.output]

    def branch(name, prefix):
        # Names inside a branch are its own, but for what it takes from outside.
        outer = {i.name for i in graph.input} | {t.name for t in graph.initializer} | {""}
        nodes = []
        for node in graph.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            for names in (copy.input, copy.output):
                for i, n in enumerate(names):
                    names[i] = n if n in outer else prefix + n
            nodes.append(copy)
        results = []
        for o in graph.output:
            info = onnx.ValueInfoProto()
            info.CopyFrom(o)
            info.name = prefix + o.name
            results.append(info)
        return onnx.helper.make_graph(nodes, name, [], results)

    chosen = onnx.helper.make_node(
        "If", ["use_cache_branch"], outputs, name="optimum::if", then_branch=branch("with_past", "then/"),
        else_branch=branch("no_past", "else/"))
    merged = onnx.helper.make_graph([chosen], "merged", [*graph.input, flag], list(graph.output), list(graph.initializer))
    made = onnx.helper.make_model(merged, opset_imports=model.opset_import, ir_version=model.ir_version)
    target = pathlib.Path(target)
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(made, target / "decoder_model_merged.onnx")
    for path in pathlib.Path(source).parent.iterdir():
        if path.is_file() and path.suffix not in (".onnx",) and path.name != "export.json":
            shutil.copy(path, target)
    return target


def measure(decant, folder):
    done = subprocess.run(
        [decant, "bench", folder, "--prompt-tokens", "64", "--new-tokens", "32", "--repeat", "1", "--json"],
        capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return {line["case"]: line["tokens_per_s"]["median"] for line in lines}


def main():
    decant, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    with tempfile.TemporaryDirectory() as made:
        merged = merge(folder / "model.onnx", pathlib.Path(made) / "merged")
        ratios = {}
        for i in range(rounds):
            pair = {"single": folder, "merged": merged}
            speeds = {name: measure(decant, pair[name]) for name in sorted(pair, reverse=i % 2 == 0)}
            for case, speed in speeds["merged"].items():
                ratios.setdefault(case, []).append(speed / speeds["single"][case])
        for case, values in ratios.items():
            print(f"{case}: merged / single {statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})")


if __name__ == "__main__":
    main()
