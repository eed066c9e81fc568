"""The ONNX backend test, run by decant's own runner on the CPU backend and on the reference backend.

    onnx-suite.py [--quick] [--only TEXT] [--update] [TARGET.tsv]

A case counts as passed when both backends pass it, as failed when one fails, as unsupported when loading says that
something is missing. Case by case the result goes to TARGET.tsv; the counts to hold are in onnx-suite.txt.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = HERE / "onnx-suite.txt"
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="without whole models")
    parser.add_argument("--only", default="", help="cases whose name has this text; counts are not held")
    parser.add_argument("--update", action="store_true", help="write the counts reached to onnx-suite.txt")
    parser.add_argument("target", nargs="?", default=str(ROOT / "build/scoreboards/onnx-suite.tsv"))
    options = parser.parse_args()
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

    rows, table, total = [], collections.defaultdict(collections.Counter), collections.Counter()
    for case, group in groups.items():
        result, detail = worst(results[case])
        if group in RANDOM and result == "failed" and "compare: " in detail:
            result, detail = "unsupported", "random numbers cannot be compared; " + detail
        rows.append((case, result, detail))
        table[group][result] += 1
        total[result] += 1
    target = pathlib.Path(options.target)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("case\tresult\tdetail\n" + "".join("\t".join(row) + "\n" for row in rows))

    print(f"{'operator':<34} {'passed':>7} {'failed':>7} {'unsupported':>12}")
    for group, count in sorted(table.items()):
        print(f"{group:<34} {count['passed']:>7} {count['failed']:>7} {count['unsupported']:>12}")
    for case, result, detail in rows:
        if result == "failed":
            print(f"failed: {case}: {detail[:300]}")
    print(f"onnx-suite: {total['passed']} passed, {total['failed']} failed, {total['unsupported']} unsupported")
    if options.only:
        return 0

    part = "quick" if options.quick else "full"
    kept = dict(line.split("\t") for line in KEPT.read_text().splitlines()) if KEPT.exists() else {}
    if options.update:
        kept |= {f"{part} passed": total["passed"], f"{part} failed": total["failed"]}
        KEPT.write_text("".join(f"{key}\t{kept[key]}\n" for key in sorted(kept)))
        return 0
    if total["passed"] < int(kept.get(f"{part} passed", 0)):
        print(f"onnx-suite: {kept[f'{part} passed']} passed before")
        return 1
    if total["failed"] > int(kept.get(f"{part} failed", 0)):
        print(f"onnx-suite: {kept.get(f'{part} failed', 0)} failed before")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
