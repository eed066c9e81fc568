#!/usr/bin/env python3
"""Writes blocks.bin: random blocks of every GGUF encoding and what the `gguf` package decodes them to.

Run in this folder: python3 make_block_goldens.py (needs numpy and gguf). Layout, little-endian, for each encoding in
the order of NAMES: blocks (uint32), then the raw blocks, then the decoded float32 values. The scale halves are kept
finite; every other byte is random.
"""

import pathlib

import gguf
import numpy as np

# name, byte offsets of the halves in a block
NAMES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}


def main() -> None:
    rng = np.random.default_rng(20)
    out = bytearray()
    for name, halves in NAMES.items():
        qtype = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[qtype]
        blocks = 8 if elements == 32 else 3
        raw = rng.integers(0, 256, (blocks, size), dtype=np.uint8)
        for offset in halves:
            values = (rng.standard_normal(blocks) * 0.03).astype(np.float16)
            values[0] = np.float16(3e-7)  # a subnormal half
            raw[:, offset : offset + 2] = values.view(np.uint8).reshape(blocks, 2)
        decoded = gguf.dequantize(raw.reshape(-1), qtype).astype("<f4")
        assert decoded.size == blocks * elements
        out += np.uint32(blocks).tobytes() + raw.tobytes() + decoded.tobytes()
    pathlib.Path(__file__).with_name("blocks.bin").write_bytes(out)


if __name__ == "__main__":
    main()
