"""What scoreboards share: cases with a result each, the table they print, and the counts they hold.

A scoreboard NAME writes build/scoreboards/NAME.tsv (`case`, `result`, `detail`) and ends with one line of totals. Its
kept counts are in NAME.txt beside it, one line a part (`quick`, `full`): how many passed. Fewer than that, or a case
that failed, is an error.
"""

import argparse
import collections
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import helpers  # noqa: E402

KINDS = ("passed", "failed", "unsupported")


class Unsupported(Exception):
    """Raised by a case whose model decant refuses as unsupported."""


def parser(name, quick):
    """The options of every scoreboard; `quick` says what the quick part is."""
    made = argparse.ArgumentParser()
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument("--only", default="", help="cases whose name has this text; counts are not held against the file")
    made.add_argument("--update", action="store_true", help=f"write the count reached to {name}.txt")
    made.add_argument("target", nargs="?", default=str(ROOT / f"build/scoreboards/{name}.tsv"))
    return made


class Board:
    """Collects results by case and prints them by group."""

    def __init__(self, name, only=""):
        self.name, self.only, self.rows, self.groups = name, only, [], collections.OrderedDict()

    def wants(self, case):
        return self.only in case

    def add(self, group, case, result, detail=""):
        group = group if isinstance(group, str) else "  ".join(group)
        detail = " ".join(str(detail).split())[:600]
        self.rows.append((case, result, detail))
        self.groups.setdefault(group, collections.Counter())[result] += 1
        if result != "passed":
            print(f"  {result}: {case}: {detail[:300]}", flush=True)

    def check(self, group, case, function):
        """Runs one case: `function` returns a detail, or raises."""
        if not self.wants(case):
            return
        try:
            self.add(group, case, "passed", function())
        except Unsupported as e:
            self.add(group, case, "unsupported", e)
        except Exception as e:  # noqa: BLE001: any failure of one case is its result
            self.add(group, case, "failed", f"{type(e).__name__}: {e}")

    def finish(self, options):
        """Prints the table and the totals, writes the file; the exit code. With --only nothing is held."""
        width = max([20, *(len(group) for group in self.groups)])
        print(f"{'':{width}}" + "".join(f" {kind:>12}" for kind in KINDS))
        for group, count in sorted(self.groups.items()):
            print(f"{group:{width}}" + "".join(f" {count[kind]:>12}" for kind in KINDS))
        target = pathlib.Path(options.target)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("case\tresult\tdetail\n" + "".join("\t".join(row) + "\n" for row in self.rows))
        total = collections.Counter(row[1] for row in self.rows)
        held = bool(options.only) or self.hold("quick" if options.quick else "full", total, options.update)
        print(f"{self.name}: " + ", ".join(f"{total[kind]} {kind}" for kind in KINDS))
        return 0 if held else 1

    def hold(self, part, total, update):
        """Whether nothing failed and no fewer passed than the kept count says; with `update` that becomes the count."""
        path = HERE / f"{self.name}.txt"
        kept = dict(line.split() for line in path.read_text().splitlines()) if path.exists() else {}
        before = int(kept.get(part, 0))
        if update:
            kept[part] = str(total["passed"])
            path.write_text("".join(f"{key} {number}\n" for key, number in sorted(kept.items())))
        if total["passed"] < before:
            print(f"{self.name}: {before} passed before")
        elif total["passed"] > before:
            print(f"{self.name}: more than the {before} in {path.name}; raise it (--update)")
        return total["passed"] >= before and not total["failed"]


def decant(args):
    """Standard output of one run; raises Unsupported, or RuntimeError with what decant said."""
    binary = helpers.find_binary() or sys.exit("no decant: build it (make release) or set DECANT")
    done = subprocess.run([str(binary), *map(str, args)], capture_output=True, text=True, timeout=300)
    if done.returncode and done.stderr.startswith("decant: unsupported"):
        raise Unsupported(done.stderr.strip())
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def forward(path, inputs, *extra):
    """The outputs, by name, of one `decant forward`."""
    return helpers.forward(path, inputs, *extra, run=decant)


def largest_difference(got, expected):
    """(difference, name of the output) where `got` is farthest from `expected`; AssertionError when shapes differ."""
    worst, where = 0.0, ""
    for name, reference in expected.items():
        if name not in got:
            raise AssertionError(f"output {name} is missing")
        if got[name].shape != reference.shape:
            raise AssertionError(f"output {name} is {got[name].shape}, expected {reference.shape}")
        difference = np.abs(got[name].astype(np.float64) - reference.astype(np.float64))
        if reference.size and not difference.max() <= worst:
            worst, where = float(difference.max()), name
    return worst, where
