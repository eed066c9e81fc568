#!/usr/bin/env bash
# Compiles base and the kernels for aarch64 with Debian's cross compiler and runs the kernel tests under qemu-user.
# GoogleTest is built from its source package, so no arm64 root is needed. CROSS_FILTER narrows the tests.
set -euo pipefail
source "$(dirname "$0")/common.sh"
scripts/install_packages.sh build cross
out=build/cross
mkdir -p $out/objects
tests=/usr/src/googletest

flags=(-std=c++20 -O2 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-psabi -fno-math-errno -ffp-contract=off -Isrc
  -Iinclude -DDECANT_SOURCE_DIR="\"$root\"" -DDECANT_VERSION="\"cross\"")
compile() {
  local object="$out/objects/${1//\//_}.o"
  [[ $object -nt $1 ]] && return
  local extra=()
  [[ $1 == *simd/isa* ]] && extra=(-O3 -fno-trapping-math)
  [[ $1 == /usr/src/* ]] && extra=(-w -I$tests/googletest -I$tests/googlemock)
  aarch64-linux-gnu-g++ "${flags[@]}" "${extra[@]}" -c "$1" -o "$object" && echo "$1"
}
export -f compile
export out tests flags_text="${flags[*]@Q}"
sources=($(find src/base src/kernels -name '*.cc' ! -name '*_test.cc' ! -path '*/isa/*') src/kernels/simd/isa/{baseline,neon}.cc
  $(find src/kernels -name '*_test.cc') $tests/googletest/src/gtest-all.cc $tests/googletest/src/gtest_main.cc)
build() {
  printf '%s\0' "${sources[@]}" |
    xargs -0 -n 1 -P "$jobs" bash -c 'eval "flags=($flags_text)"; compile "$1"' _ &&
    aarch64-linux-gnu-g++ -static $out/objects/*.o -lpthread -o $out/kernels_tests
}
step cross-build build
qemu-aarch64 $out/kernels_tests --gtest_brief=1 --gtest_filter="${CROSS_FILTER:-*}"
