#!/usr/bin/env bash
# Compiles the vector kernels for aarch64 with Debian's cross compiler; kernels/simd needs no other package, so this works
# without an arm64 root.
set -euo pipefail
source "$(dirname "$0")/common.sh"
scripts/install_packages.sh build cross
mkdir -p build/cross
for source in src/kernels/simd/isa/baseline.cc src/kernels/simd/isa/neon.cc; do
  step "cross-$(basename "$source" .cc)" aarch64-linux-gnu-g++ -std=c++20 -O3 -Wall -Wextra -Werror -Wno-psabi \
    -fno-math-errno -fno-trapping-math -Isrc -c "$source" -o "build/cross/$(basename "$source" .cc).o"
done
