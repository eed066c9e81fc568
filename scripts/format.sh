#!/usr/bin/env bash
# format.sh [--check]: clang-format over all C++ files that git knows.
set -euo pipefail
source "$(dirname "$0")/common.sh"
tool=${CLANG_FORMAT:-$(command -v clang-format || ls /usr/bin/clang-format-[0-9]* 2>/dev/null | sort -V | tail -1 || true)}
if [[ -z $tool ]]; then
  scripts/install_packages.sh lint
  tool=clang-format
fi
arguments=(-i)
[[ ${1:-} == --check ]] && arguments=(--dry-run -Werror)
git ls-files -z '*.cc' '*.h' | xargs -0 -r -n 20 -P "$jobs" "$tool" "${arguments[@]}"
