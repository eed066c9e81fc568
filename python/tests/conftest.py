"""Tiny models that the tests of the package run, and references for them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def save(path, nodes, inputs, outputs, initializers=(), opset=20):
    """Writes a graph; inputs and outputs are (name, element type, dims)."""
    infos = [[helper.make_tensor_value_info(*each) for each in group] for group in (inputs, outputs)]
    graph = helper.make_graph(
        nodes, "g", *infos, [numpy_helper.from_array(value, name) for name, value in initializers]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    return path


def python(*arguments, **options):
    """Runs this interpreter."""
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture(scope="session")
def affine(tmp_path_factory):
    """y = x @ w + b, with x: float32[n, 3]."""
    rng = np.random.default_rng(1)
    w, b = rng.standard_normal((3, 4), np.float32), rng.standard_normal(4, np.float32)
    path = save(
        tmp_path_factory.mktemp("affine") / "model.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])],
        [("x", TensorProto.FLOAT, ["n", 3])],
        [("y", TensorProto.FLOAT, ["n", 4])],
        [("w", w), ("b", b)],
    )
    return path, w, b


@pytest.fixture
def identity(tmp_path):
    """Writes y = x (through a Reshape to the same dims) for an element type."""

    def make(element_type, dims=("n", "m")):
        shape = helper.make_node("Shape", ["x"], ["s"])
        move = helper.make_node("Reshape", ["x", "s"], ["y"])
        path = tmp_path / f"identity{element_type}.onnx"
        return save(path, [shape, move], [("x", element_type, list(dims))], [("y", element_type, list(dims))])

    return make


@pytest.fixture(scope="session")
def texts():
    return [
        "The lighthouse keeper walked home.",
        "  two  spaces, 12345 numbers;\ttabs\n\nand lines",
        "naïve café — “quotes”, emoji 🙂🙃, 漢字かな",
        "",
        "<|user|>special<|assistant|> tokens </s>",
    ]


@pytest.fixture(scope="session")
def tokenizer(texts):
    """A byte-level BPE tokenizer of 320 tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<pad>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    t.train_from_iterator(texts * 4 + ["lighthouse keeper home walked " * 20], trainer)
    t.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


@pytest.fixture(scope="session")
def checkpoint(tokenizer, tmp_path_factory):
    """(eager model, folder) of a tiny random Llama with a tokenizer and a chat template."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        attn_implementation="eager",
        initializer_range=0.3,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    folder = tmp_path_factory.mktemp("checkpoint")
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        '{"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}'
    )
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    return model, folder


def _export(checkpoint, folder: pathlib.Path, *options: str) -> pathlib.Path:
    done = python("-m", "decant", "export", checkpoint[1], "-o", folder, "--format", "onnx", *options)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def static_export(checkpoint, tmp_path_factory):
    """The tiny Llama with a static cache of 64 positions."""
    return _export(checkpoint, tmp_path_factory.mktemp("static") / "out", "--cache", "static", "--max-cache-len", "64")


@pytest.fixture(scope="session")
def plain_export(checkpoint, tmp_path_factory):
    """The tiny Llama without a cache."""
    return _export(checkpoint, tmp_path_factory.mktemp("plain") / "out", "--cache", "none")


@pytest.fixture(scope="session")
def text_model(static_export):
    import decant

    return decant.load(static_export, threads=1)


@pytest.fixture(scope="session")
def eager_ids(checkpoint):
    """The greedy ids after a prompt, by PyTorch."""
    torch = pytest.importorskip("torch")

    def generate(ids, count):
        with torch.no_grad():
            out = checkpoint[0].generate(
                torch.tensor([list(ids)]), max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0
            )
        return out[0, len(ids) :].tolist()

    return generate
