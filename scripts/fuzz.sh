#!/usr/bin/env bash
# fuzz.sh [SECONDS] [TARGET...]: builds the fuzz targets with clang and runs each for SECONDS (60) from its seeds.
set -euo pipefail
source "$(dirname "$0")/common.sh"
seconds=${1:-60}
shift || true

scripts/install_packages.sh build fuzz
compiler=${FUZZ_CXX:-$(command -v clang++ || ls /usr/bin/clang++-[0-9]* 2>/dev/null | sort -V | tail -1)}
[[ -n $compiler ]] || { echo "no clang++ found" >&2; exit 1; }
export CXX=$compiler
step build-fuzz configure_and_build fuzz

mapfile -t targets < <(find build/fuzz -name '*_fuzz' -type f -perm -u+x | sort)
((${#targets[@]})) || { echo "no fuzz target was built" >&2; exit 1; }
failed=0
for target in "${targets[@]}"; do
  name=$(basename "$target" _fuzz)
  [[ $# == 0 || " $* " == *" $name "* ]] || continue
  mkdir -p "build/fuzz-corpus/$name" build/fuzz-crashes
  seeds=()
  for folder in "testdata/$name" "tests/fuzz/seeds/$name"; do [[ -d $folder ]] && seeds+=("$folder"); done
  step "fuzz-$name" "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz-crashes/$name-" "build/fuzz-corpus/$name" "${seeds[@]}" || failed=1
done
exit $failed
