"""Encoder-decoder exports by optimum: a folder, each of its decoders, and PyTorch eager give the same ids."""

import json
import os
import pathlib
import subprocess
import sys

import helpers
import numpy as np
import pytest
import safetensors.numpy

EXPORT = """
import sys
from optimum.exporters.onnx import main_export
main_export(sys.argv[1], sys.argv[2], task=sys.argv[3], do_validation=False, no_post_process=False)
"""
COUNT = 24


@pytest.fixture(scope="module")
def optimum():
    overlay = helpers.ROOT / "build/optimum"
    if not (overlay / ".complete").exists():
        pytest.skip("optimum-onnx is unavailable: build/optimum is not there (scripts/python_env.sh optimum)")

    def export(checkpoint, folder, task):
        done = subprocess.run(
            [sys.executable, "-c", EXPORT, str(checkpoint), str(folder), task],
            env={**os.environ, "PYTHONPATH": str(overlay)}, capture_output=True, text=True, timeout=600,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return pathlib.Path(folder)

    return export


def save(model, folder):
    """A checkpoint that transformers 4 reads too."""
    model.save_pretrained(folder)
    helpers.save_tokenizer(folder, model.config.vocab_size)
    config = json.loads((folder / "config.json").read_text())
    config["torch_dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def t5(optimum, tmp_path_factory):
    import transformers

    config = transformers.T5Config(
        vocab_size=320, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_decoder_layers=2, num_heads=4,
        decoder_start_token_id=0, eos_token_id=2, pad_token_id=0)
    model = helpers.sharpen(transformers.T5ForConditionalGeneration(config), 4)
    folder = tmp_path_factory.mktemp("t5")
    return model, optimum(save(model, folder / "checkpoint"), folder / "onnx", "text2text-generation-with-past")


@pytest.fixture(scope="module")
def whisper(optimum, tmp_path_factory):
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=320, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, num_mel_bins=16, max_source_positions=1500,
        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None)
    model = helpers.sharpen(transformers.WhisperForConditionalGeneration(config), 4)
    folder = tmp_path_factory.mktemp("whisper")
    checkpoint = save(model, folder / "checkpoint")
    transformers.WhisperFeatureExtractor(feature_size=16).save_pretrained(checkpoint)
    return model, optimum(checkpoint, folder / "onnx", "automatic-speech-recognition-with-past")


def generate(path, *args):
    fixed = ["--max-new-tokens", COUNT, "--ignore-eos", "--temperature", "0", "--json"]
    return helpers.run_decant(["generate", path, *args, *fixed]).json()["ids"]


def disagreement(model, inputs, start, ids):
    """The first position at which eager prefers another id, by more than a rounding."""
    import torch

    with torch.no_grad():
        logits = model(**inputs, decoder_input_ids=torch.tensor([[*start, *ids[:-1]]])).logits[0, len(start) - 1:]
    for position, (row, token) in enumerate(zip(logits, ids)):
        if float(row.max() - row[token]) > 1e-4:
            return position
    return None


# The folder itself (the merged decoder), the pair, the decoder without a past.
PATHS = ["", "decoder_with_past_model.onnx", "decoder_model.onnx"]


@pytest.mark.parametrize("file", PATHS)
def test_t5(t5, file):
    import torch

    model, folder = t5
    prompt = helpers.random_ids(3, 9).tolist()
    ids = generate(folder / file, "--ids", ",".join(map(str, prompt)))
    assert len(ids) == COUNT
    assert disagreement(model, {"input_ids": torch.tensor([prompt])}, [0], ids) is None


@pytest.mark.parametrize("file", PATHS)
@pytest.mark.parametrize("start", [[1], [1, 40, 41]])
def test_whisper(whisper, file, start, tmp_path):
    import torch

    model, folder = whisper
    features = np.random.default_rng(6).normal(0, 1, (1, 16, 3000)).astype(np.float32)
    safetensors.numpy.save_file({"input_features": features}, tmp_path / "features.safetensors")
    prompt = [] if start == [1] else ["--ids", ",".join(map(str, start))]
    ids = generate(folder / file, "--inputs", tmp_path / "features.safetensors", *prompt)
    assert disagreement(model, {"input_features": torch.from_numpy(features)}, start, ids) is None


def test_forced_and_suppressed_ids(whisper, tmp_path):
    """generation_config.json: forced ids follow the start token, suppressed ones never come."""
    import shutil

    _, source = whisper
    folder = shutil.copytree(source, tmp_path / "ruled")
    features = np.random.default_rng(6).normal(0, 1, (1, 16, 3000)).astype(np.float32)
    safetensors.numpy.save_file({"input_features": features}, tmp_path / "features.safetensors")
    plain = generate(folder, "--inputs", tmp_path / "features.safetensors")
    rules = json.loads((folder / "generation_config.json").read_text())
    rules.update(forced_decoder_ids=[[1, 40], [2, 41]], suppress_tokens=[plain[3]], begin_suppress_tokens=[plain[0]])
    (folder / "generation_config.json").write_text(json.dumps(rules))
    ruled = generate(folder, "--inputs", tmp_path / "features.safetensors")
    del rules["suppress_tokens"], rules["begin_suppress_tokens"]
    (folder / "generation_config.json").write_text(json.dumps(rules))
    forced = generate(folder, "--inputs", tmp_path / "features.safetensors")
    prompted = generate(source, "--inputs", tmp_path / "features.safetensors", "--ids", "1,40,41")
    assert forced == prompted
    assert plain[3] not in ruled and ruled[0] != plain[0]


def test_incomplete_folders_say_what_is_missing(t5, tmp_path):
    import shutil

    _, source = t5
    folder = shutil.copytree(source, tmp_path / "cut")
    (folder / "encoder_model.onnx").unlink()
    done = helpers.run_decant(["generate", folder, "--ids", "5,6", "--json"], check=False)
    assert done.returncode == 1 and "encoder_model.onnx" in done.stderr
    info = helpers.run_decant(["inspect", folder, "--json"]).json()
    assert "encoder_model.onnx" in info["missing_for_generation"]
