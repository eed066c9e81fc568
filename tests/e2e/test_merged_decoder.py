"""A merged decoder whose branch is chosen when it is compiled is the single graph: the same steps, the same ids."""

import sys

import helpers
import pytest

sys.path.insert(0, str(helpers.ROOT / "bench"))


@pytest.fixture(scope="module")
def folders(tiny_llama, tmp_path_factory):
    """(single graph with a growing cache, the same graph as both branches of an If)."""
    import merged_decoder

    _, checkpoint = tiny_llama
    folder = tmp_path_factory.mktemp("merged")
    helpers.run_decant(["export", checkpoint, "-o", folder / "single", "--format", "onnx", "--cache", "dynamic"])
    return folder / "single", merged_decoder.merge(folder / "single/model.onnx", folder / "merged")


def test_same_steps(folders):
    single, merged = (helpers.run_decant(["inspect", folder, "--json"]).json()["components"][0] for folder in folders)
    assert merged["ops"]["If"] == 1 and "If" not in merged["ops_compiled"]
    assert merged["ops_compiled"] == single["ops_compiled"]
    assert merged["reference_ops"] == single["reference_ops"]


def test_same_ids(folders):
    prompt = helpers.random_ids(4, 9).tolist()
    assert helpers.generate_ids(folders[1], prompt, 32) == helpers.generate_ids(folders[0], prompt, 32)
