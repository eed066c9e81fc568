"""The package as such: its command line, its types, and what it does without PyTorch and Transformers."""

from __future__ import annotations

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import decant
from conftest import python

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_version():
    assert python("-m", "decant", "--version").stdout.strip() == f"decant {decant.__version__}"


def test_the_command_line(affine, static_export, text_model):
    inspected = python("-m", "decant", "inspect", affine[0], "--json")
    assert inspected.returncode == 0
    assert json.loads(inspected.stdout)
    done = python("-m", "decant", "generate", static_export, "--ids", "1,5,9", "--max-new-tokens", "6", "--json")
    assert json.loads(done.stdout)["ids"] == text_model.generate([1, 5, 9], max_new_tokens=6).ids
    missing = python("-m", "decant", "inspect", "nowhere")
    assert missing.returncode == 1
    assert "nowhere" in missing.stderr
    assert not missing.stdout
    assert python("-m", "decant", "frobnicate").returncode == 2
    assert "generate" in python("-m", "decant", "--help").stdout


def test_runs_without_pytorch_and_transformers(affine, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "for name in ('torch', 'transformers', 'onnx', 'onnxruntime', 'tokenizers', 'typing_extensions'):\n"
        "    sys.modules[name] = None\n"
        "import decant\n"
        f"model = decant.load({str(affine[0])!r})\n"
        "print(model.run({'x': [[1.0, 2.0, 3.0]]})['y'].tolist())\n"
        "decant.ChatTemplate('{{ messages }}').render([])\n"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout)[0], np.array([1, 2, 3]) @ affine[1] + affine[2], rtol=1e-5)


def test_errors_are_one_family():
    kinds = [getattr(decant, name) for name in decant.__all__ if name.endswith("Error")]
    assert all(issubclass(kind, decant.DecantError) for kind in kinds)
    assert decant.errors.from_code("no such code", "message").args == ("message",)
    assert issubclass(decant.InvalidArgumentError, ValueError)


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
def test_types(tmp_path):
    cache = f"--cache-dir={tmp_path}"
    done = python("-m", "mypy", cache, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not importlib.util.find_spec("ruff"), reason="ruff is not installed")
def test_style():
    done = python("-m", "ruff", "check", "--no-cache", str(ROOT / "python"))
    assert done.returncode == 0, done.stdout
