#!/usr/bin/env python3
"""Checks that no source includes a layer above its own. Prints each offending line; exits 1 when there is one.

A layer is the longest key of ALLOWED that the file's path below src/ starts with. A file may include its own layer and
the layers listed for it; nothing else, so the formats cannot see each other. Files built with the flags of one
instruction set, and whatever they include, get the stricter rule of check_isa.
"""

import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parents[1] / "src"

FORMATS = {f"formats/{name}" for name in ("onnx", "safetensors", "gguf", "huggingface")}
ALLOWED = {
    "base": set(),
    "ir": {"base"},
    "passes": {"base", "ir"},
    **{name: {"base", "ir"} for name in FORMATS},
    "models": {"base", "ir"},
    "kernels": {"base"},
    "runtime": {"base", "ir", "kernels", "passes"},
    "text": {"base"},
    "hub": {"base"},
}
ALLOWED["app"] = set(ALLOWED)
ALLOWED["api"] = set(ALLOWED)
ALLOWED["cli"] = set(ALLOWED)

# An inline function of an ordinary header, compiled with AVX flags, may be the copy that the linker keeps for everyone.
ISA_HEADERS = ("kernels/simd/", "kernels/kernel_table.h")
ISA_SYSTEM = {"immintrin.h", "arm_neon.h", "cstddef", "cstdint"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def includes(path):
    """(line number, quoted include or None, system include or None) for each include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def layer_of(name):
    found = [layer for layer in ALLOWED if name == layer or name.startswith(layer + "/")]
    return max(found, key=len, default=None)


def check_file(path):
    name = path.relative_to(SRC).as_posix()
    layer = layer_of(name)
    if layer is None:
        yield f"src/{name}: belongs to no layer; add its folder to scripts/check_layers.py"
        return
    for number, quoted, _ in includes(path):
        if quoted is None:
            continue
        if quoted.startswith((".", "/")):
            yield f"src/{name}:{number}: includes are written from src/, not as \"{quoted}\""
            continue
        target = layer_of(quoted)
        if target is None:
            generated = quoted.endswith(".inc") or quoted.startswith("decant/")
            if not generated:
                yield f"src/{name}:{number}: \"{quoted}\" is in no layer"
        elif target != layer and target not in ALLOWED[layer]:
            yield f"src/{name}:{number}: {layer} may not include {target} (\"{quoted}\")"


def check_isa():
    pending = sorted((SRC / "kernels/simd/isa").glob("*.cc"))
    seen = set()
    while pending:
        path = pending.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        name = path.relative_to(SRC).as_posix()
        for number, quoted, system in includes(path):
            if system and system not in ISA_SYSTEM:
                yield f"src/{name}:{number}: built per instruction set, so it may not include <{system}>"
            elif quoted and not quoted.startswith(ISA_HEADERS):
                yield f"src/{name}:{number}: built per instruction set, so it may not include \"{quoted}\""
            elif quoted:
                pending.append(SRC / quoted)


def main():
    files = sorted(path for path in SRC.rglob("*") if path.suffix in {".h", ".cc", ".inc"})
    faults = [fault for path in files for fault in check_file(path)] + list(check_isa())
    print("\n".join(faults) if faults else f"{len(files)} files keep to the layers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
