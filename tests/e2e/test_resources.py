"""Peak memory of exporting and running, and what an interrupted export leaves behind."""

import json
import os
import pathlib
import shutil

import helpers
import pytest

MEGABYTE = 1 << 20


def weights_bytes(export):
    return sum(path.stat().st_size for path in pathlib.Path(export).glob("*") if ".onnx" in path.name)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_export_needs_little_more_than_the_mapped_file(smollm2_gguf, tmp_path, precision):
    args = ["export", smollm2_gguf, "-o", tmp_path / "out", "--cache", "static", "--precision", precision]
    run = helpers.run_decant(args)
    assert run.peak_rss_bytes - smollm2_gguf.stat().st_size < 200 * MEGABYTE


def test_generate_needs_the_weights_and_the_cache(smollm2_static):
    config = json.loads((pathlib.Path(smollm2_static) / "config.json").read_text())
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    per_token = 2 * 4 * config["num_hidden_layers"] * config["num_key_value_heads"] * head
    args = ["generate", smollm2_static, "--prompt", "A short story:", "--max-new-tokens", "64", "--ignore-eos"]
    for prompt in ("A short story:", "word " * 300):
        args[3] = prompt
        run = helpers.run_decant([*args, "--max-cache-len", "512", "--json"])
        bound = 1.1 * weights_bytes(smollm2_static) + 512 * per_token + 50 * MEGABYTE
        assert run.peak_rss_bytes < bound
        assert abs(run.json()["peak_rss_bytes"] - run.peak_rss_bytes) < 16 * MEGABYTE


def test_an_empty_cache_is_not_resident(smollm2_gguf):
    """The default capacity is the model's own, thousands of positions; memory follows those that are filled."""
    args = ["generate", smollm2_gguf, "--ids", "504,3575,282", "--max-new-tokens", "4", "--ignore-eos", "--json"]
    small = helpers.run_decant([*args, "--max-cache-len", "64"]).peak_rss_bytes
    assert helpers.run_decant(args).peak_rss_bytes < small + 16 * MEGABYTE


def test_killed_export_leaves_no_whole_looking_file(decant, smollm2_gguf, tmp_path):
    arguments = [smollm2_gguf, "--cache", "static"]
    folder = helpers.killed_export(arguments, tmp_path)
    # What is left is in nobody's way: the same command completes the folder.
    helpers.run_decant(["export", *arguments, "-o", folder])
    assert {"export.json", "config.json", "tokenizer.json"} <= set(os.listdir(folder))
    shutil.rmtree(folder)
