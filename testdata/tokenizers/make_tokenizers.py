#!/usr/bin/env python3
"""Trains the small tokenizers of this folder on the texts of cases.json, and writes goldens.jsonl.

Each file covers features that few published tokenizers have. usage: make_tokenizers.py (needs `tokenizers` 0.23).
goldens.jsonl, one line for each (tokenizer, case): t tokenizer, c case; ids without special tokens, sp with them if
they differ; off: code points [begin, end, ...] of ids; d: decode(sp, skip_special_tokens=True) if not the text;
k: decode(sp, skip_special_tokens=False) if not d; pl: ids with special tokens taken as text, if they differ from ids.
"""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
CASES = json.loads((HERE / "cases.json").read_text())
TEXTS = [case["text"] for case in CASES["cases"] if case["tag"] not in ("long", "fuzz", "special")] * 2
SPECIALS = ["<unk>", "<s>", "</s>", "<pad>", "<mask>"]
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def train(model, vocab_size=900, normalizer=None, pre_tokenizer=None, decoder=None, **options):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder:
        tokenizer.decoder = decoder
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=SPECIALS, show_progress=False, **options)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def bos_eos():
    return processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1",
                                         special_tokens=[("<s>", 1), ("</s>", 2)])


def roberta():
    made = train(models.BPE(), pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True),
                 decoder=decoders.ByteLevel(), initial_alphabet=ALPHABET)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1), trim_offsets=True, add_prefix_space=True)
    return made


def byte_fallback(pre_tokenizer, normalizer=None):
    """Llama 2's kind: characters, the rest as <0xNN>."""
    made = train(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), 1200, normalizer, pre_tokenizer,
                 decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                    decoders.Strip(" ", 1, 0)]))
    content = json.loads(made.to_str())
    vocab = content["model"]["vocab"]
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    return Tokenizer.from_str(json.dumps(content))


def metaspace_first():
    return byte_fallback(pre_tokenizers.Metaspace(prepend_scheme="first", split=False))


def prepend_replace():
    made = byte_fallback(None, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                                        special_tokens=[("<s>", 1)])
    return made


def added_tokens():
    made = train(models.BPE(), normalizer=normalizers.Lowercase(),
                 pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel(),
                 initial_alphabet=ALPHABET)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True), AddedToken("[R]", rstrip=True, special=True),
                             AddedToken("<a>", special=True), AddedToken("<a><b>", special=True)])
    made.add_tokens([AddedToken("Hello", single_word=True, normalized=False),
                     AddedToken("WORLD", single_word=True, normalized=True), AddedToken("ab", normalized=True),
                     AddedToken("abab", normalized=True), AddedToken("  ", normalized=False),
                     AddedToken("é", normalized=True),
                     AddedToken("日本", single_word=True, lstrip=True, rstrip=True),
                     AddedToken("\n\n\n", normalized=False)])
    return made


def whole_text():
    made = train(models.BPE(), pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                 decoder=decoders.ByteLevel(), initial_alphabet=ALPHABET)
    made.post_processor = bos_eos()
    return made


def ignore_merges():
    pattern = (r"(?i:'s|'t)|(?<![a-z])x+|\p{Lu}\p{Ll}*(?=\s)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+")
    made = train(models.BPE(ignore_merges=True), initial_alphabet=ALPHABET, max_token_length=8,
                 pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                                        pre_tokenizers.ByteLevel(False, use_regex=False)]),
                 decoder=decoders.ByteLevel())
    made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), bos_eos()])
    return made


def normalized_splits():
    """Normalization with offsets, and the behaviours of splits that lose or join text."""
    return train(models.BPE(unk_token="<unk>"), 700,
                 normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(left=True, right=False),
                                       normalizers.Replace(Regex(r"[\u2018\u2019]"), "'")]),
                 pre_tokenizers.Sequence([pre_tokenizers.Split("-", "merged_with_next"),
                                          pre_tokenizers.Split(Regex(r"\d+"), "contiguous"),
                                          pre_tokenizers.Split(Regex(r"\s+"), "removed"),
                                          pre_tokenizers.Punctuation("merged_with_previous")]),
                 decoders.Metaspace())


def suffix():
    return train(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), 700, normalizers.NFD(),
                 pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"), "removed", True),
                                          pre_tokenizers.ByteLevel(False)]),
                 decoders.ByteLevel(), end_of_word_suffix="</w>", initial_alphabet=ALPHABET)


def goldens(name, tokenizer):
    texts = [(case["c"], case["text"], case["tag"]) for case in CASES["cases"] if case["tag"] != "long"]
    texts = [text for i, text in enumerate(texts) if text[2] != "fuzz" or i % 4 == 0]  # the live oracle runs them all
    texts += [(case["c"], case["text"], "bytes") for case in CASES["bytes"]]
    for case, text, tag in texts:
        plain = tokenizer.encode(text, add_special_tokens=False)
        full = tokenizer.encode(text).ids
        line = {"t": name, "c": case, "ids": plain.ids, "off": [x for pair in plain.offsets for x in pair]}
        if full != plain.ids:
            line["sp"] = full
        shown, whole = (tokenizer.decode(full, skip_special_tokens=skip) for skip in (True, False))
        if shown != text:
            line["d"] = shown
        if whole != shown:
            line["k"] = whole
        if tag == "special":
            tokenizer.encode_special_tokens = True
            as_text = tokenizer.encode(text, add_special_tokens=False).ids
            tokenizer.encode_special_tokens = False
            if as_text != plain.ids:
                line["pl"] = as_text
        yield line


def main():
    makers = [roberta, metaspace_first, prepend_replace, added_tokens, whole_text, ignore_merges, normalized_splits, suffix]
    with open(HERE / "goldens.jsonl", "w") as out:
        for make in makers:
            path = HERE / f"{make.__name__}.json"
            content = json.loads(make().to_str())
            path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")
            for line in goldens(make.__name__, Tokenizer.from_file(str(path))):
                out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
