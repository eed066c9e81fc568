"""Models made to harm the reader: refused with a message, within a second and 100 MB."""

import time

import helpers
import hostile_models
import numpy as np
import pytest
import safetensors.numpy

MEGABYTE = 1 << 20
SECONDS, BYTES = 1.0, 100 * MEGABYTE


def run_case(name, folder):
    case = hostile_models.CASES[name]
    path = hostile_models.build(name, folder)
    inputs, outputs = folder / "in.safetensors", folder / "out.safetensors"
    safetensors.numpy.save_file({k: np.ascontiguousarray(v) for k, v in case.inputs().items()}, inputs)
    args = ["forward", path, "--inputs", inputs, "--outputs", outputs, "--threads", "1", *case.args]
    begin = time.monotonic()
    run = helpers.run_decant(args, timeout=20, check=False, address_space=4 << 30)
    return path, run, time.monotonic() - begin, outputs


@pytest.mark.parametrize("name", hostile_models.CASES)
def test_hostile_model(name, tmp_path):
    case = hostile_models.CASES[name]
    path, run, seconds, outputs = run_case(name, tmp_path)
    if case.outcome == "runs":
        assert run.returncode == 0, run.stderr
        np.testing.assert_allclose(safetensors.numpy.load_file(outputs)["y"], case.expected, atol=1e-6)
    else:
        assert run.returncode in (1, 3), f"exit {run.returncode}: {run.stderr[-500:]}"
        assert len(run.stderr) > 30 and run.stderr.startswith("decant: "), run.stderr
        assert len(run.stderr) < 4000, "a message is no dump"
        assert not outputs.exists()
    assert "\0" not in run.stderr
    assert seconds < SECONDS, f"{seconds:.2f} s"
    assert run.peak_rss_bytes < BYTES, f"{run.peak_rss_bytes / MEGABYTE:.0f} MB"


def test_every_class_of_attack_is_here():
    """A06, A07 and A10 are tested where the code is: mapped_file_test.cc, and the layouts below."""
    covered = {row for case in hostile_models.CASES.values() for row in case.rows}
    wanted = {f"A{i:02}" for i in range(1, 38)} - {"A06", "A07", "A10", "A36"}
    assert not wanted - covered, f"no case for {sorted(wanted - covered)}"


@pytest.mark.parametrize("name", ["../outside.onnx", "/outside.onnx", "sub/../../outside.onnx", "..", ""])
def test_a_manifest_names_files_of_its_folder_only(name, tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    (tmp_path / "outside.onnx").write_bytes(hostile_models.good())
    text = '{"export_format": "onnx", "components": {"model": {"file": "%s"}}}' % name
    (folder / "export.json").write_text(text)
    run = helpers.run_decant(["inspect", folder], check=False)
    assert run.returncode == 1
    assert "export.json" in run.stderr
