"""Scoreboard: tiny random models of many architectures, exported by Transformers' OnnxExporter, run by decant.

Every float output equals PyTorch eager's within 1e-4 (or the case's own bound) relative to outputs of magnitude 1.
The quick part runs the exports kept in testdata/architectures; without --quick they are made by the installed
Transformers, below build/scoreboards/architectures, and made again when a case or a version changes.

    architectures.py [--quick] [--only NAME,NAME] [--group NAME] [--refresh] [--keep] [--update] [TARGET.tsv]
"""

import json
import logging
import os
import pathlib
import sys
import warnings

import safetensors.numpy

import architecture_exports as exports
from architecture_cases import CASES
from scoreboard import Board, decant, forward, parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "architectures"
CACHE = ROOT / "build/scoreboards" / NAME


def run(case, folder):
    """What to say of one exported case; AssertionError when it differs."""
    done = []
    for shape, expected in exports.references(folder).items():
        inputs = safetensors.numpy.load_file(folder / f"inputs{shape}.safetensors")
        difference, where, _ = exports.worst(forward(folder / "model.onnx", inputs), expected)
        assert difference <= case.atol, f"shape {shape}: {where} differs by {difference:.2g}"
        done.append(f"{difference:.1e}")
    return f"largest difference at {len(done)} shapes " + " ".join(done) + describe(folder)


def describe(folder):
    """What of a case's graph was lifted, and what runs on reference kernels."""
    component = json.loads(decant(["inspect", folder / "model.onnx", "--json"]))["components"][0]
    parts = [f"; {title}: " + ", ".join(f"{op} {n}" for op, n in component[key].items())
             for title, key in (("lifted", "lifted"), ("on reference kernels", "reference_ops")) if component[key]]
    return "".join(parts)


def main():
    options = parser(NAME, "the exports kept in the repository")
    options.add_argument("--group", default="", help="one group's cases; counts are not held against the file")
    options.add_argument("--keep", action="store_true", help="keep these exports in testdata/architectures")
    options.add_argument("--refresh", action="store_true", help="try again what did not export")
    options = options.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.disable(logging.WARNING)
    only = options.only.split(",") if options.only else None
    cases = [case for case in CASES
             if (not only or case.name in only) and (not options.group or case.group == options.group)]
    options.only = options.only or options.group
    if options.quick:
        kept = exports.read_table()
        cases = [case for case in cases if only or case.name in kept]
        ready = exports.restore(cases, CACHE.with_name(NAME + "-kept"))
    else:
        ready = ((case, *exports.exported(case, CACHE, options.refresh)) for case in cases)
    board, fresh = Board(NAME), []
    for case, folder, failure in ready:
        fresh.append((case, folder, failure))
        # What the exporter cannot do says nothing about decant: it is listed, and counted as unsupported.
        if failure:
            board.add(case.group, case.name, "unsupported", "not exported: " + failure)
        else:
            board.check(case.group, case.name, lambda case=case, folder=folder: run(case, folder))
    if options.keep and not options.quick:
        exports.keep(fresh)
    return board.finish(options)


if __name__ == "__main__":
    sys.exit(main())
