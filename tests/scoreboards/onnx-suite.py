"""The ONNX backend test, run by decant's own runner on the CPU backend and on the reference backend.

    onnx-suite.py [--quick] [--only TEXT] [--update] [TARGET.tsv]

A case counts as passed when both backends pass it, as failed when one fails, as unsupported when loading says that
something is missing. Case by case the result goes to TARGET.tsv; the counts to hold are in onnx-suite.txt.
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

from scoreboard import Board, parser

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Expected outputs are one draw of NumPy's generator, which no other generator repeats.
RANDOM = ("Bernoulli",)
# Whole models take seconds each: not in the quick part.
SLOW = ("real/",)
SECONDS, SLOW_SECONDS = 20, 120  # of processor time


def find_runner():
    places = [os.environ.get("DECANT_ONNX_SUITE_RUNNER", ""), ROOT / "build/release/onnx_suite_runner"]
    for place in places:
        if place and pathlib.Path(place).is_file():
            return str(place)
    sys.exit("no onnx_suite_runner: build it (make release) or set DECANT_ONNX_SUITE_RUNNER")


def worst(results):
    for kind in ("failed", "unsupported"):
        rows = [f"{backend}: {detail}" for backend, result, detail in results if result == kind]
        if rows:
            return kind, "; ".join(dict.fromkeys(rows))
    return "passed", ""


def main():
    options = parser("onnx-suite", "without whole models").parse_args()
    board = Board("onnx-suite", options.only)
    cases_folder = ROOT / "build/onnx-suite"
    subprocess.run([sys.executable, HERE / "onnx_suite_cases.py", cases_folder], check=True)
    groups = {}
    for line in (cases_folder / "cases.tsv").read_text().splitlines():
        case, _, group = line.partition("\t")
        if options.only in case and not (options.quick and case.startswith(SLOW)):
            groups[case] = group

    results = collections.defaultdict(list)
    slow = [case for case in groups if case.startswith(SLOW)]
    for cases, seconds in (([c for c in groups if c not in slow], SECONDS), (slow, SLOW_SECONDS)):
        with tempfile.TemporaryDirectory() as scratch:
            listed, out = pathlib.Path(scratch, "cases.txt"), pathlib.Path(scratch, "out.tsv")
            listed.write_text("".join(f"{cases_folder / case}\n" for case in cases))
            subprocess.run([find_runner(), listed, out, "--seconds", str(seconds)], check=True)
            for line in out.read_text(errors="replace").splitlines():
                folder, backend, result, *detail = line.split("\t")
                case = str(pathlib.Path(folder).relative_to(cases_folder))
                results[case].append((backend, result, "".join(detail).replace(str(cases_folder) + "/", "")))

    for case, group in groups.items():
        result, detail = worst(results[case])
        if group in RANDOM and result == "failed" and "compare: " in detail:
            result, detail = "unsupported", "random numbers cannot be compared; " + detail
        board.add(group, case, result, detail)
    return board.finish(options)


if __name__ == "__main__":
    sys.exit(main())
