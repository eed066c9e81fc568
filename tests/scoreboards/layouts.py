"""Every layout of ONNX exports: outputs of each graph, and greedy ids, against a reference.

    layouts.py [--quick] [--only TEXT] [TARGET.tsv]

Two kinds of exports. Kept ones (testdata/layouts: optimum of three ages, transformers.js' conversion, onnxruntime-genai)
are compared with ONNX Runtime on the same file. Fresh ones, by the installed Transformers' exporter, are compared with
PyTorch eager. Tolerances, absolute, are in TOLERANCE; a greedy id counts as equal when the reference gives it the
highest logit, or one that is within the precision's margin of it (a tie that rounding decides). Case by case the
result goes to TARGET.tsv; the counts to beat are in layouts.txt.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import safetensors.numpy

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for folder in (HERE, ROOT / "tests/e2e", ROOT / "testdata/layouts"):
    sys.path.insert(0, str(folder))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import helpers  # noqa: E402
import keep_graphs  # noqa: E402
import ort_reference as ort  # noqa: E402
from scoreboard import Board, Unsupported, decant, forward, largest_difference, parser  # noqa: E402

NEW_IDS = 32
# Half precision is rounded differently by runtimes that fuse differently. Activations quantized at run time (int8 and
# relatives, accuracy level 4) step by a whole unit where sums differ in the last bit.
TOLERANCE = {"fp32": 1e-4, "fp16": 2e-2, "weights": 1e-3, "activations": 5e-2}
PRECISIONS = {
    "fp32": "fp32", "fp16": "fp16", "q4f16": "fp16", "int8": "activations", "uint8": "activations",
    "q8": "activations", "int8_pc": "activations", "q4_acc4": "activations",
}
QUICK = ("fp32", "fp16", "q8", "q4")


def tolerance(precision):
    return TOLERANCE[PRECISIONS.get(precision, "weights")]


def compare_outputs(path, inputs, expected, limit, *extra):
    """Largest difference of all outputs of one forward run."""
    worst, where = largest_difference(forward(path, inputs, *extra), expected)
    assert worst <= limit, f"{where} differs by {worst:.3g}, at most {limit:.0e} is allowed"
    return f"largest difference {worst:.2g}"


def compare_ids(args, reference, limit):
    """Runs `decant generate` and holds each id against `reference(ids)`: logits for every position."""
    ids = json.loads(decant(["generate", *args, "--max-new-tokens", NEW_IDS, "--ignore-eos", "--mode", "exact",
                             "--temperature", "0", "--json"]).strip().splitlines()[-1])["ids"]
    assert len(ids) == NEW_IDS, f"{len(ids)} ids"
    ties = 0
    for position, (row, token) in enumerate(zip(reference(ids), ids)):
        behind = float(row.max() - row[token])
        ties += behind > 0
        assert behind <= limit, f"id {position} is {token}, the reference prefers {int(row.argmax())} by {behind:.3g}"
    return f"{NEW_IDS} ids equal" + (f", {ties} of them at ties" if ties else "")


# Kept exports


def kept_model(path):
    """(model, layout, precision, folder) of one kept graph."""
    parts = path.parts
    source, folder = parts[0], parts[1]
    stem = path.stem
    if source == "genai":
        name, _, rest = folder.partition("_")
        return name, f"genai {rest}".strip(), rest.split("_")[0] if "fp" in rest.split("_")[0] else rest, stem
    graph, precision = stem, "fp32"
    for known in ("decoder_model_merged", "decoder_with_past_model", "decoder_model", "encoder_model", "model"):
        if stem == known or stem.startswith(known + "_"):
            graph, precision = known, stem[len(known) + 1:] or "fp32"
            break
    precision = {"quantized": "q8"}.get(precision, precision)
    layout = {"model": "single", "decoder_model": "split", "decoder_with_past_model": "split",
              "decoder_model_merged": "merged", "encoder_model": "encoder"}[graph]
    where = {"hub_onnx": "onnx/ "}.get(source, source.removesuffix("_split") + " ")
    model = folder.removesuffix("_merged").removesuffix("_mha").removesuffix("_nopast")
    layout = "no past" if folder.endswith("nopast") else layout
    return model, where + layout, precision, stem


def read_config(folder):
    config = {}
    for name, key in (("config.json", "config"), ("genai_config.json", "genai"), ("generation_config.json", "generation")):
        for at in (folder, folder.parent):
            if (at / name).is_file() and key not in config:
                config[key] = json.loads((at / name).read_text())
    return config


RANDOM_IDS = helpers.random_ids(11, 1, 7)
NEXT_ID = helpers.random_ids(12, 1, 1)


def encoder_values(graph, config, batch=1):
    """Random values for what an encoder would give, and for an encoder's own inputs."""
    random = np.random.default_rng(5)
    made = {}
    for name, i in graph.inputs.items():
        if name in ("encoder_hidden_states", "input_features", "audio_features"):
            dims = [d if isinstance(d, int) else batch if d == "batch_size" else 9 for d in i.shape]
            made[name] = random.normal(0, 1, dims).astype(np.float32)
    length = made["encoder_hidden_states"].shape[1] if "encoder_hidden_states" in made else 9
    made["encoder_attention_mask"] = np.ones((batch, length), np.int64)
    for name, i in graph.inputs.items():
        if ort.is_past(name) and (".encoder." in name or "cross" in name):
            dims = [d if isinstance(d, int) else batch if d == "batch_size" else length for d in i.shape]
            made[name] = random.normal(0, 0.5, dims).astype(np.float32)
    return made


def forward_cases(graph, config):
    """(name, inputs, outputs) of one graph by ONNX Runtime: prompt, step, and a left-padded batch where it goes."""
    names = graph.inputs
    if "input_ids" not in names and "decoder_input_ids" not in names:
        inputs = {n: v.astype(ort.TYPES[names[n].type]) for n, v in encoder_values(graph, config).items() if n in names}
        yield "run", inputs, graph.run(inputs)
        return
    width = names["input_ids"].shape[1]
    has_past = any(ort.is_past(n) for n in names)
    constants = encoder_values(graph, config)
    crossed = any(n.startswith("encoder_") or ".encoder." in n or "cross" in n for n in names)
    past = ort.empty_past(graph, config)
    past.update({n: v for n, v in constants.items() if n in past and "use_cache_branch" not in names})
    needs_past = crossed and "encoder_hidden_states" not in names and not any("cross" in n for n in names)
    constants = {n: v for n, v in constants.items() if n not in past}
    if isinstance(width, int):
        inputs = ort.feeds(graph, NEXT_ID, 0, past, constants)
        yield "step", inputs, graph.run(inputs)
        return
    inputs = ort.feeds(graph, RANDOM_IDS, 0, past, constants)
    outputs = graph.run(inputs)
    if not needs_past:
        yield "prompt", inputs, outputs
    if has_past:
        inputs = ort.feeds(graph, NEXT_ID, RANDOM_IDS.shape[1], ort.next_past(past, outputs), constants)
        yield "step", inputs, graph.run(inputs)
    if not crossed and "attention_mask" in names and "logits" in outputs and "genai" not in config:
        ids, mask, positions = helpers.left_padded([RANDOM_IDS[0, :4], RANDOM_IDS[0]])
        inputs = ort.feeds(graph, ids, 0, ort.empty_past(graph, config, 2), {}, mask, positions)
        outputs = graph.run(inputs)
        # Rows of padding attend to nothing and mean nothing.
        outputs = {"logits": np.where(mask[..., None] == 1, outputs["logits"], 0)}
        yield "padded", inputs, outputs


def forward_kept(board, root, path, precision, group):
    case = f"{path.relative_to(root)}"
    if not board.wants(case):
        return
    try:
        graph = ort.Graph(path)
        config = read_config(path.parent)
        cases = list(forward_cases(graph, config))
    except Exception as e:  # noqa: BLE001: no reference, whatever the reason
        board.add(group, f"{case} forward", "unsupported", f"ONNX Runtime gives no reference: {e}")
        return
    for name, inputs, outputs in cases:
        def run(inputs=inputs, outputs=outputs, name=name):
            if name == "padded":
                return compare_padded(path, inputs, outputs["logits"], tolerance(precision))
            return compare_outputs(path, inputs, outputs, tolerance(precision))

        board.check(group, f"{case} {name}", run)


def compare_padded(path, inputs, expected, limit):
    got = forward(path, inputs)["logits"]
    got = np.where(inputs["attention_mask"][..., None] == 1, got, 0)
    worst = float(np.abs(got.astype(np.float64) - expected.astype(np.float64)).max())
    assert worst <= limit, f"logits differ by {worst:.3g}, at most {limit:.0e} is allowed"
    return f"largest difference {worst:.2g}"


def pick(folder, *names):
    return next((folder / f"{n}.onnx" for n in names if (folder / f"{n}.onnx").is_file()), None)


def generate_kept(board, folder, graphs, suffix, case, group, precision, extra, scratch):
    """Greedy ids of one layout folder, found by decant as a user would give it."""
    if not board.wants(case):
        return

    def run():
        config = read_config(graphs)
        decoder = config.get("genai", {}).get("model", {}).get("decoder", {})
        step_path = pick(graphs, "decoder_model_merged" + suffix, "decoder_with_past_model" + suffix, "model" + suffix,
                         "decoder_model" + suffix, decoder.get("filename", "").removesuffix(".onnx"))
        try:
            step = ort.Graph(step_path)
            first_path = pick(graphs, "decoder_model" + suffix)
            split = first_path and first_path != step_path and "merged" not in step_path.name
            first = ort.Graph(first_path) if split else None
            encoder_path = pick(graphs, "encoder_model" + suffix, "encoder" + suffix)
            encoder = ort.Graph(encoder_path) if encoder_path else None
        except Exception as e:  # noqa: BLE001
            raise Unsupported(f"ONNX Runtime gives no reference: {e}") from e
        prompt = RANDOM_IDS[0].tolist()
        constants, start = {}, prompt
        args = [folder, *extra]
        if encoder:
            generation = {**config.get("config", {}), **config.get("generation", {})}
            start = [generation["decoder_start_token_id"]]
            if encoder.takes("input_ids"):
                inputs = {"input_ids": RANDOM_IDS, "attention_mask": np.ones_like(RANDOM_IDS)}
                args += ["--ids", ",".join(map(str, prompt))]
            else:
                inputs = encoder_values(encoder, config)
                features = next(v for n, v in inputs.items() if "features" in n)
                safetensors.numpy.save_file({"input_features": features}, scratch / "features.safetensors")
                args += ["--inputs", scratch / "features.safetensors"]
            constants = ort.encoder_constants(encoder, inputs)
        else:
            args += ["--ids", ",".join(map(str, prompt))]

        def reference(ids):
            # The reference's own logits along the ids that decant chose.
            return forced(step, config, start, ids, first, constants)

        return compare_ids(args, reference, tolerance(precision))

    board.check(group, f"{case} greedy", run)


def forced(step, config, start, ids, first, constants):
    """The reference's logits before each of `ids`."""
    scores, past, length, graph = [], None, 0, first or step
    past = ort.empty_past(graph, config)
    given = {name for name in constants if ort.is_past(name)}
    feed = np.array([start], np.int64)
    no_past = not any(ort.is_past(name) for name in step.inputs)
    for i in range(len(ids)):
        if no_past:
            feed, length = np.array([start + ids[:i]], np.int64), 0
        outputs = graph.run(ort.feeds(graph, feed, length, {k: v for k, v in past.items() if k not in given}, constants))
        past = ort.next_past(past, outputs)
        length += feed.shape[1]
        scores.append(outputs["logits"][0, -1].astype(np.float32))
        feed, graph = np.array([[ids[i]]], np.int64), step
    return scores


def add_encoder(root, folder, graphs):
    """Decoders kept without their encoder get the one of another age: every graph has weights of its own anyway."""
    model = folder.name.removesuffix("_merged")
    source = root / "kept/optimum010" / model / "encoder_model.onnx"
    if not source.is_file():
        return
    for path in list(graphs.glob("decoder_model*.onnx")):
        suffix = path.stem.removeprefix("decoder_model").removeprefix("_merged")
        if not (graphs / f"encoder_model{suffix}.onnx").is_file():
            shutil.copy(source, graphs / f"encoder_model{suffix}.onnx")


def layout_folders(root, folder):
    """(graphs folder, what is in it) of one kept model: folders that hold a split and a merged decoder become two."""
    graphs = folder / "onnx" if (folder / "onnx").is_dir() else folder
    stems = {p.stem for p in graphs.glob("*.onnx")}
    kinds = []
    if any(s.startswith("decoder_model_merged") for s in stems):
        kinds.append(("merged", lambda s: s.startswith(("decoder_model_merged", "encoder_model"))))
    if "decoder_with_past_model" in stems:
        kinds.append(("split", lambda s: not s.startswith("decoder_model_merged")))
    if not kinds:
        return [(folder, graphs, "")]
    made = []
    for kind, wanted in kinds:
        target = root / "picked" / kind / folder.parent.name / folder.name
        inside = target / "onnx" if graphs != folder else target
        inside.mkdir(parents=True)
        for path in graphs.iterdir():
            if path.suffix != ".onnx" and path.is_file() or path.suffix == ".onnx" and wanted(path.stem):
                shutil.copy(path, inside)
        for path in folder.iterdir():
            if path.is_file() and path.suffix == ".json":
                shutil.copy(path, target)
        add_encoder(root, folder, inside)
        made.append((target, inside, kind))
    return made


def kept(board, scratch, quick):
    root = scratch / "kept"
    keep_graphs.restore(ROOT / "testdata/layouts/graphs.tar.xz", root)
    folders = []
    for path in sorted(root.rglob("*.onnx")):
        model, layout, precision, _ = kept_model(path.relative_to(root))
        if quick and not precision.startswith(QUICK):
            continue
        forward_kept(board, root, path, precision, (model, layout))
        folder = path.parent.parent if path.parent.name == "onnx" else path.parent
        if folder not in folders:
            folders.append(folder)
    for folder in folders:
        for target, graphs, kind in layout_folders(scratch, folder):
            generate_folder(board, folder.relative_to(root), target, graphs, kind, scratch, quick)


def generate_folder(board, name, target, graphs, kind, scratch, quick):
    genai = (target / "genai_config.json").is_file()
    found = {}
    for path in sorted(graphs.glob("*.onnx")):
        if path.stem.startswith("encoder") and "decoder" not in path.stem:
            continue
        model, layout, precision, _ = kept_model(pathlib.Path(*name.parts, path.name))
        graph = next((g for g in ("decoder_model_merged", "decoder_with_past_model", "decoder_model", "model")
                      if path.stem == g or path.stem.startswith(g + "_")), path.stem)
        found.setdefault(path.stem[len(graph):], (model, layout, precision))
    for suffix, (model, layout, precision) in found.items():
        if quick and not precision.startswith(QUICK):
            continue
        extra = ["--dtype", suffix[1:]] if suffix and not genai else []
        case = f"{name}{' ' + kind if kind else ''}{' --dtype ' + suffix[1:] if extra else ''}"
        generate_kept(board, target, graphs, suffix, case, (model, layout), precision, extra, scratch)


# Counts


def main():
    options = parser("layouts", "the kept exports in the most usual precisions").parse_args()
    board = Board("layouts", options.only)
    with tempfile.TemporaryDirectory() as folder:
        kept(board, pathlib.Path(folder), options.quick)
        if not options.quick:
            import fresh_exports

            fresh_exports.run(board, pathlib.Path(folder))
    return board.finish(options)


if __name__ == "__main__":
    sys.exit(main())
