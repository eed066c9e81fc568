#!/usr/bin/env python3
"""Writes tiny GGUF files and the config values that Transformers loads from them (configs.json).

Run in this folder: python3 make_configs.py (needs numpy, gguf, torch, transformers). The weights are zeros: only
metadata, shapes and rope_freqs.weight matter.
"""

import json
import math
import pathlib

import gguf
import numpy as np
from transformers import AutoConfig

HERE = pathlib.Path(__file__).parent
HIDDEN, FFN, HEADS, KV, HEAD_DIM, VOCAB = 32, 48, 2, 1, 32, 16
KEYS = [
    "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "hidden_act", "vocab_size", "max_position_embeddings", "rms_norm_eps",
    "tie_word_embeddings",
]


def llama3_divisors(theta: float, factor: float, low: float, high: float, length: int) -> np.ndarray:
    """As llama.cpp's converter computes them."""
    out = []
    for i in range(0, HEAD_DIM, 2):
        wavelength = 2 * math.pi * theta ** (i / HEAD_DIM)
        if wavelength < length / high:
            out.append(1.0)
        elif wavelength > length / low:
            out.append(factor)
        else:
            smooth = (length / wavelength - low) / (high - low)
            out.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(out, dtype=np.float32)


def write(name: str, theta: float, tied: bool, divisors: np.ndarray | None, layers: int = 2) -> None:
    writer = gguf.GGUFWriter(str(HERE / name), "llama")
    writer.add_name(name)
    writer.add_block_count(layers)
    writer.add_context_length(4096)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(theta)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"t{i}" for i in range(VOCAB)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_eot_token_id(3)

    def zeros(tensor: str, *shape: int) -> None:
        writer.add_tensor(tensor, np.zeros(shape, dtype=np.float16))

    zeros("token_embd.weight", VOCAB, HIDDEN)
    if not tied:
        zeros("output.weight", VOCAB, HIDDEN)
    if divisors is not None:
        writer.add_tensor("rope_freqs.weight", divisors)
    writer.add_tensor("output_norm.weight", np.zeros(HIDDEN, dtype=np.float32))
    for i in range(layers):
        writer.add_tensor(f"blk.{i}.attn_norm.weight", np.zeros(HIDDEN, dtype=np.float32))
    zeros("blk.0.attn_q.weight", HEADS * HEAD_DIM, HIDDEN)
    zeros("blk.0.attn_k.weight", KV * HEAD_DIM, HIDDEN)
    zeros("blk.0.ffn_up.weight", FFN, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    write("tied.gguf", 100000.0, True, None)
    write("llama3.gguf", 500000.0, False, llama3_divisors(500000.0, 8.0, 1.0, 4.0, 8192))
    write("llama3_other.gguf", 10000.0, False, llama3_divisors(10000.0, 4.0, 1.0, 6.0, 1000))
    expected = {}
    for name in ("tied.gguf", "llama3.gguf", "llama3_other.gguf"):
        config = AutoConfig.from_pretrained(str(HERE), gguf_file=name)
        row = {key: getattr(config, key) for key in KEYS}
        row["rope_theta"] = config.rope_parameters["rope_theta"]
        expected[name] = row
    (HERE / "configs.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
