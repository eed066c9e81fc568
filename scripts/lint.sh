#!/usr/bin/env bash
# Layer check, format check and clang-tidy over the sources of the release build. LINT_FILES narrows clang-tidy.
set -euo pipefail
source "$(dirname "$0")/common.sh"
scripts/install_packages.sh build
tool=${CLANG_TIDY:-$(command -v clang-tidy || ls /usr/bin/clang-tidy-[0-9]* 2>/dev/null | sort -V | tail -1 || true)}
if [[ -z $tool ]]; then
  scripts/install_packages.sh lint
  tool=clang-tidy
fi
python3 scripts/check_layers.py
scripts/format.sh --check
cmake --preset release >/dev/null
files=${LINT_FILES:-$(git ls-files 'src/*.cc' ':!src/kernels/simd/**')}
echo "$files" | xargs -r -n 1 -P "$jobs" "$tool" --quiet -p build/release
