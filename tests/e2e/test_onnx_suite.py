"""The quick part of the ONNX backend test's scoreboard."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_counts_hold(tmp_path):
    script = ROOT / "tests/scoreboards/onnx-suite.py"
    run = subprocess.run(
        [sys.executable, script, "--quick", tmp_path / "onnx-suite.tsv"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert "onnx-suite: " in run.stdout
