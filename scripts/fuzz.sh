#!/usr/bin/env bash
# fuzz.sh [SECONDS] [TARGET...]: builds the fuzz targets with clang and runs each for SECONDS (60) from its seeds,
# as many at once as there are processors.
set -euo pipefail
source "$(dirname "$0")/common.sh"
seconds=${1:-60}
shift || true

scripts/install_packages.sh build fuzz
use_clang
step build-fuzz configure_and_build fuzz fuzz_targets

mapfile -t targets < <(find build/fuzz -name '*_fuzz' -type f -perm -u+x | sort)
((${#targets[@]})) || { echo "no fuzz target was built" >&2; exit 1; }
failed=0 running=0
for target in "${targets[@]}"; do
  name=$(basename "$target" _fuzz)
  [[ $# == 0 || " $* " == *" $name "* ]] || continue
  if ((running == jobs)); then
    wait -n || failed=1
    running=$((running - 1))
  fi
  mkdir -p "build/fuzz-corpus/$name" build/fuzz-crashes
  seeds=()
  for folder in "testdata/$name" "tests/fuzz/seeds/$name"; do [[ -d $folder ]] && seeds+=("$folder"); done
  step "fuzz-$name" "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz-crashes/$name-" "build/fuzz-corpus/$name" "${seeds[@]}" &
  running=$((running + 1))
done
for (( ; running > 0; --running)); do wait -n || failed=1; done
exit $failed
