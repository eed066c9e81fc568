"""What every peer's runner shares: the protocol of bench/bench.py.

A runner is called as `RUNNER MODEL --threads N --seed S --repeat R` and prints one JSON object as its last line:
load_ms, prefill128 / prefill512 / decode (lists of tokens per second), peak_rss_bytes. A peer is a class with
load(model, threads) and run(ids, count), which returns the time stamps of the first and of each of the `count` later
greedy tokens after the prompt `ids`.
"""

import argparse
import json
import random
import resource
import time

PROMPTS = (128, 512)
NEW_TOKENS = 64


def prompt(length, seed):
    """Random ids, new for every sample, so that a prefix cache never helps."""
    generator = random.Random(seed)
    return [generator.randrange(100, 40000) for _ in range(length)]


def main(peer):
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()

    start = time.perf_counter()
    peer.load(options.model, options.threads)
    report = {"load_ms": 1e3 * (time.perf_counter() - start)}
    peer.run(prompt(128, options.seed + 1), 4)
    for length in PROMPTS:
        report[f"prefill{length}"] = []
        for repeat in range(options.repeat):
            ids = prompt(length, options.seed + 100 * length + repeat)
            start = time.perf_counter()
            report[f"prefill{length}"].append(length / (peer.run(ids, 0)[0] - start))
    report["decode"] = []
    for repeat in range(options.repeat):
        stamps = peer.run(prompt(128, options.seed + 7000 + repeat), NEW_TOKENS)
        report["decode"].append(NEW_TOKENS / (stamps[-1] - stamps[0]))
    report["peak_rss_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(report), flush=True)
