"""Pairs decant with other runtimes on SmolLM2-135M in one run, and prints ratios and shares of the machine's limits.

usage: bench.py DECANT GGUF WORK_FOLDER [--peers NAME...] [--threads N] [--rounds N] [--repeat N]

Every round runs decant and each peer once, in turning order, in processes of their own; a ratio is decant's median over
the peer's median of the same round. Peers that are not installed, or fail, are named and left out. The read loop and the
multiply-add peak are measured in every round too (limits.cc). Nothing here fails because something is slow.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
WEIGHT_BYTES = {"fp32": 4, "bf16": 2, "q4": 18 / 32}  # Q4_0: 16 bytes of codes and a scale for 32 weights
MEASURES = ("load_ms", "prefill128", "prefill512", "decode")
# decant's names here, and the mode in which each multiplies weights of few bits.
DECANT = {"decant": "exact", "decant-fast": "fast"}
PEERS = ("onnxruntime", "llama.cpp", "onnxruntime-genai", "openvino-genai")


def call(command, timeout=900):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip()[-300:] or f"exit {done.returncode}")
    return done.stdout


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def run_decant(options, model, mode):
    """decant's figures under the names of the peers' protocol (bench/peers/runner.py)."""
    base = ["--threads", options.threads, "--json", "--mode", mode]
    report = {"decode": []}
    cases = ["--prompt-tokens", "128,512", "--new-tokens", "64", "--context", "128", "--repeat", options.repeat]
    for line in call([options.decant, "bench", model, *cases, *base]).splitlines():
        case = json.loads(line)
        rate = case["tokens_per_s"]["median"]
        if case["case"] == "prefill":
            report[f"prefill{case['tokens']}"] = [rate]
        elif case["case"] == "decode":
            report["decode"].append(rate)
            report["read_share"] = case["bandwidth_share"]  # of a loop in its own process, sample by sample
    short = ["--ids", "504,3575,282", "--max-new-tokens", "1"]
    made = last_json(call([options.decant, "generate", model, *short, *base]))
    return {**report, "load_ms": made["load_ms"], "peak_rss_bytes": made["peak_rss_bytes"]}


def run_peer(options, peer, model, number):
    script = HERE / "peers" / f"run_{peer.replace('.', '_').replace('-', '_')}.py"
    arguments = ["--threads", options.threads, "--repeat", options.repeat, "--seed", 10_000 * number]
    return last_json(call([sys.executable, script, model, *arguments]))


class Models:
    """The files each runtime runs, made on first use below the work folder."""

    def __init__(self, options):
        self.options = options

    def made(self, name, command):
        target = self.options.work / name
        if not target.exists():
            partial = self.options.work / f"partial-{name}"
            call([*(partial if part is None else part for part in command)])
            partial.rename(target)
        return target

    def export(self, cache, precision):
        name = f"decant-{cache}-{precision}"
        arguments = ["--format", "onnx", "--cache", cache, "--precision", precision]
        return self.made(name, [self.options.decant, "export", self.options.gguf, "-o", None, *arguments])

    def gguf(self, kind):
        models = [sys.executable, HERE / "models.py", "gguf"]
        return self.made(f"smollm2-{kind}.gguf", [*models, self.options.gguf, None, kind])

    def genai(self, precision):
        models = [sys.executable, HERE / "models.py", "checkpoint"]
        checkpoint = self.made("checkpoint", [*models, self.options.gguf, None])
        builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", checkpoint, "-e", "cpu", "-p", precision]
        return self.made(f"genai-{precision}", [*builder, "-o", None, "-c", self.options.work / "genai-cache"])

    def of(self, runtime, precision):
        """The model of a runtime in a precision; None where that runtime has none."""
        makers = {
            ("decant", "fp32"): lambda: self.export("static", "fp32"),
            ("decant", "bf16"): lambda: self.export("static", "bf16"),
            ("onnxruntime", "fp32"): lambda: self.export("dynamic", "fp32"),
            ("llama.cpp", "fp32"): lambda: self.gguf("F32"),
            ("llama.cpp", "bf16"): lambda: self.gguf("BF16"),
            ("onnxruntime-genai", "fp32"): lambda: self.genai("fp32"),
            ("openvino-genai", "fp32"): lambda: self.gguf("F16"),
            ("onnxruntime-genai", "q4"): lambda: self.genai("int4"),
            **{(name, "q4"): lambda: self.gguf("Q4_0") for name in (*DECANT, "llama.cpp", "openvino-genai")},
        }
        make = makers.get((runtime, precision))
        return make() if make else None


def prepare(options, precision):
    """[(runtime, model path)] that can be run in this precision, decant first."""
    models, usable = Models(options), []
    for runtime in (*DECANT, *options.peers):
        try:
            model = models.of(runtime, precision)
        except Exception as fault:  # A peer that cannot be set up is reported, and the others go on.
            print(f"  {runtime} {precision}: unavailable: {str(fault).splitlines()[-1][:160]}")
            continue
        if model:
            usable.append((runtime, model))
    return usable


def measure(options, precision):
    """{runtime: [report of each round]} and the limits of each round."""
    usable, reports, limits = prepare(options, precision), {}, []
    for number in range(options.rounds):
        limits.append(last_json(call([options.limits, options.threads])))
        order = usable[:]
        random.Random(number).shuffle(order)
        for runtime, model in order:
            if runtime in reports and reports[runtime] is None:
                continue
            try:
                if runtime in DECANT:
                    report = run_decant(options, model, DECANT[runtime])
                else:
                    report = run_peer(options, runtime, model, number)
                reports.setdefault(runtime, []).append(report)
            except Exception as fault:
                print(f"  {runtime} {precision}: failed: {str(fault).splitlines()[-1][:160]}")
                reports[runtime] = None
    return {runtime: rounds for runtime, rounds in reports.items() if rounds}, limits


def value(report, measure_name):
    figure = report.get(measure_name)
    if isinstance(figure, list):
        return statistics.median(figure) if figure else None
    return figure


def median_over_rounds(rounds, name):
    figures = [value(report, name) for report in rounds]
    return statistics.median(figures) if all(figure is not None for figure in figures) else None


def model_costs(options, precision):
    """(bytes of weights read for one token, multiply-adds for one prompt token without the head)."""
    folder = Models(options).export("static", "fp32")
    config = json.loads((folder / "config.json").read_text())
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    kv, queries = config["num_key_value_heads"] * head, config["num_attention_heads"] * head
    body = layers * (hidden * (2 * queries + 2 * kv) + 3 * hidden * config["intermediate_size"])
    return (body + hidden * config["vocab_size"]) * WEIGHT_BYTES[precision], body


def ratios(own, other):
    cells = []
    for name in MEASURES:
        pairs = [(value(a, name), value(b, name)) for a, b in zip(own, other)]
        found = sorted(a / b for a, b in pairs if a and b)
        if found:
            cells.append(f"{name} {statistics.median(found):.2f} [{found[0]:.2f}, {found[-1]:.2f}]")
    return "  ".join(cells)


def show(options, precision, reports, limits):
    read = statistics.median(limit["read_gb_per_s"] for limit in limits)
    peak = statistics.median(limit["fma_gflop_per_s"] for limit in limits)
    weights, body = model_costs(options, precision)
    print(f"\n{precision}, {options.threads} threads: read loop {read:.1f} GB/s, fp32 multiply-add peak {peak:.0f} GFLOP/s")
    print(f"{'':20}{'load ms':>10}{'prompt 128':>12}{'prompt 512':>12}{'of peak':>9}{'decode':>9}{'of read':>9}{'RSS MB':>8}")
    for runtime, rounds in reports.items():
        load, short, long, decode = (median_over_rounds(rounds, name) for name in MEASURES)
        memory = median_over_rounds(rounds, "peak_rss_bytes") / 1e6
        shares = [
            a.get("read_share") or 1e-9 * weights * value(a, "decode") / b["read_gb_per_s"]
            for a, b in zip(rounds, limits)
        ]
        print(
            f"{runtime:20}{load:10.0f}{short:12.1f}{long:12.1f}{2e-9 * body * long / peak:9.0%}"
            f"{decode:9.1f}{statistics.median(shares):9.0%}{memory:8.0f}"
        )
    for own in (name for name in DECANT if name in reports):
        for runtime, rounds in reports.items():
            if runtime not in DECANT:
                print(f"{own} / {runtime}: {ratios(reports[own], rounds)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("decant", type=pathlib.Path)
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--limits", type=pathlib.Path, required=True)
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--precisions", nargs="*", default=list(WEIGHT_BYTES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for peer in options.peers:
        if peer not in PEERS:
            parser.error(f"unknown peer {peer}; known: {', '.join(PEERS)}")
    for precision in options.precisions:
        reports, limits = measure(options, precision)
        if reports:
            show(options, precision, reports, limits)
        with open(options.work / "results.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps({"precision": precision, "limits": limits, "reports": reports}) + "\n")


if __name__ == "__main__":
    main()
