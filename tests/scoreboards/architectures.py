"""Scoreboard: tiny random models of many architectures, exported by Transformers' OnnxExporter, run by decant.

Every float output equals PyTorch eager's within 1e-4 (or the case's own bound) relative to outputs of magnitude 1.
The quick part runs the exports kept in testdata/architectures; without --quick they are made by the installed
Transformers, below build/scoreboards/architectures, and made again when a case or a version changes.

    architectures.py [--quick] [--only NAME,NAME] [--group NAME] [--refresh] [--keep] [--update] [TARGET.tsv]
"""

import argparse
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import safetensors.numpy

import architecture_exports as exports
from architecture_cases import CASES

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "architectures"
CACHE = ROOT / "build/scoreboards" / NAME
COUNTS = pathlib.Path(__file__).with_suffix(".txt")

sys.path.insert(0, str(ROOT / "tests/e2e"))
import helpers  # noqa: E402


def decant(*arguments):
    return subprocess.run([str(helpers.find_binary()), *map(str, arguments)], capture_output=True, text=True,
                          timeout=120)


def run(case, folder):
    """(result, detail) of one exported case."""
    done = []
    for shape, expected in exports.references(folder).items():
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as target:
            ran = decant("forward", folder / "model.onnx", "--inputs", folder / f"inputs{shape}.safetensors",
                         "--outputs", target.name)
            if ran.returncode:
                message = " ".join(ran.stderr.split())[-300:]
                return "unsupported" if "unsupported" in message else "failed", f"shape {shape}: {message}"
            got = safetensors.numpy.load_file(target.name)
        difference, where, _ = exports.worst(got, expected)
        if not difference <= case.atol:
            return "failed", f"shape {shape}: {where} differs by {difference:.2g}"
        done.append(f"{difference:.1e}")
    return "passed", f"largest difference at {len(done)} shapes " + " ".join(done) + describe(folder)


def describe(folder):
    """What of a case's graph was lifted, and what runs on reference kernels."""
    inspected = decant("inspect", folder / "model.onnx", "--json")
    if inspected.returncode:
        return ""
    component = json.loads(inspected.stdout)["components"][0]
    parts = [f"; {title}: " + ", ".join(f"{op} {n}" for op, n in component[key].items())
             for title, key in (("lifted", "lifted"), ("on reference kernels", "reference_ops")) if component[key]]
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target", nargs="?", default=str(ROOT / "build/scoreboards" / f"{NAME}.tsv"))
    parser.add_argument("--quick", action="store_true", help="the exports kept in the repository")
    parser.add_argument("--only", default="", help="comma-separated case names; counts are not held against the file")
    parser.add_argument("--group", default="", help="one group's cases; counts are not held against the file")
    parser.add_argument("--keep", action="store_true", help="keep these exports in testdata/architectures")
    parser.add_argument("--update", action="store_true", help=f"write the count reached to {NAME}.txt")
    parser.add_argument("--refresh", action="store_true", help="try again what did not export")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.disable(logging.WARNING)
    only = options.only.split(",") if options.only else None
    cases = [case for case in CASES
             if (not only or case.name in only) and (not options.group or case.group == options.group)]
    if options.quick:
        kept = exports.read_table()
        cases = [case for case in cases if only or case.name in kept]
        ready = exports.restore(cases, CACHE.with_name(NAME + "-kept"))
    else:
        ready = ((case, *exports.exported(case, CACHE, options.refresh)) for case in cases)
    rows, groups, fresh = [], {}, []
    for case, folder, failure in ready:
        fresh.append((case, folder, failure))
        # What the exporter cannot do says nothing about decant: it is listed, and counted as unsupported.
        result, detail = ("unsupported", "not exported: " + failure) if failure else run(case, folder)
        rows.append((case.name, result, detail))
        groups.setdefault(case.group, []).append(result)
        if result != "passed":
            print(f"  {case.name}: {result}: {detail}", flush=True)
    if options.keep and not options.quick:
        exports.keep(fresh)
    path = pathlib.Path(options.target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("case\tresult\tdetail\n" + "".join("\t".join(row) + "\n" for row in rows))
    for group, results in groups.items():
        print(f"{group:18} {results.count('passed'):3} of {len(results):3}")
    count = {kind: sum(row[1] == kind for row in rows) for kind in ("passed", "failed", "unsupported")}
    held = bool(only or options.group)
    if not held:
        held = hold("quick" if options.quick else "full", count["passed"], options.update)
    print(f"{NAME}: {count['passed']} passed, {count['failed']} failed, {count['unsupported']} unsupported")
    return 0 if held else 1


def hold(part, passed, update):
    """Whether no fewer cases passed than the kept count says; with `update` that becomes the kept count."""
    kept = dict(line.split() for line in COUNTS.read_text().splitlines()) if COUNTS.exists() else {}
    before = int(kept.get(part, 0))
    if update:
        kept[part] = str(passed)
        COUNTS.write_text("".join(f"{name} {number}\n" for name, number in sorted(kept.items())))
    elif passed < before:
        print(f"{NAME}: {before} passed before")
    return update or passed >= before


if __name__ == "__main__":
    sys.exit(main())
