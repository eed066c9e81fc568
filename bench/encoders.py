"""Encoder throughput of decant and ONNX Runtime, paired: both run each case by turns, best and median of all rounds.

Usage: encoders.py DECANT FOLDER [--threads N] [--rounds N] [--seconds S] [--case SUBSTRING]. FOLDER holds the models of
encoder_models.py. Ends with one line for each case; exits 1 when decant is slower in one.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
import safetensors.numpy


def text(batch, length):
    ids = np.random.default_rng(0).integers(0, 30000, (batch, length))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def image(batch):
    return {"pixel_values": np.random.default_rng(0).standard_normal((batch, 3, 224, 224)).astype(np.float32)}


CASES = [
    ("ViT-B/16 batch 1", "vit_b16", lambda: image(1), 1, "images/s"),
    ("ViT-B/16 batch 8", "vit_b16", lambda: image(8), 8, "images/s"),
    ("MiniLM-L6 32 x 128", "minilm_l6", lambda: text(32, 128), 32 * 128, "tokens/s"),
]


class Decant:
    name = "decant"

    def __init__(self, binary, model, inputs, folder, threads):
        self.source, self.target = folder / "in.safetensors", folder / "out.safetensors"
        safetensors.numpy.save_file(inputs, self.source)
        self.command = [str(binary), "--json", "--threads", str(threads), "forward", str(model), "--inputs",
                        str(self.source), "--outputs", str(self.target)]

    def run(self, repeat):
        done = subprocess.run([*self.command, "--repeat", str(repeat + 1)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout.strip().splitlines()[-1])["seconds"][1:]

    def outputs(self):
        return safetensors.numpy.load_file(self.target)


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, model, inputs, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name: inputs[i.name] for i in self.session.get_inputs()}

    def run(self, repeat):
        seconds = []
        self.session.run(None, self.inputs)
        for _ in range(repeat):
            begin = time.perf_counter()
            self.session.run(None, self.inputs)
            seconds.append(time.perf_counter() - begin)
        return seconds

    def outputs(self):
        names = [o.name for o in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, self.inputs), strict=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each runtime in each round")
    parser.add_argument("--case", default="")
    args = parser.parse_args()
    slower = []
    print(f"{args.threads} threads; best (median) of {args.rounds} rounds by turns; ONNX Runtime {onnxruntime.__version__}")
    for name, model, make, items, unit in CASES:
        if args.case not in name:
            continue
        inputs = make()
        path = args.folder / model / "model.onnx"
        with tempfile.TemporaryDirectory() as folder:
            peer = OnnxRuntime(path, inputs, args.threads)
            runners = [Decant(args.binary, path, peer.inputs, pathlib.Path(folder), args.threads), peer]
            once = [min(r.run(1)) for r in runners]
            difference = max(float(np.abs(runners[0].outputs()[k] - v).max()) for k, v in runners[1].outputs().items())
            times = [[], []]
            for _ in range(args.rounds):
                for i, runner in enumerate(runners):
                    times[i] += runner.run(max(1, round(args.seconds / once[i])))
        best = [items / min(t) for t in times]
        median = [items / statistics.median(t) for t in times]
        print(f"{name:20} {unit:9}  decant {best[0]:9.1f} ({median[0]:.1f})  ONNX Runtime {best[1]:9.1f} ({median[1]:.1f})  "
              f"ratio {best[0] / best[1]:.2f}  largest difference {difference:.1e}", flush=True)
        if best[0] < best[1]:
            slower.append(name)
    if slower:
        sys.exit(f"slower than ONNX Runtime: {', '.join(slower)}")


if __name__ == "__main__":
    main()
