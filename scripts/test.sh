#!/usr/bin/env bash
# Everything that must hold, on a fresh machine too: packages, layer check, release and sanitizer builds, unit tests,
# end-to-end tests and, in CI or with FUZZ_SECONDS set, the fuzz targets. Ends with the test runners' own summaries.
set -uo pipefail
source "$(dirname "$0")/common.sh"
failed=()
run() { step "$@" || failed+=("$1"); }
fuzz_seconds=${FUZZ_SECONDS:-$([[ ${CI:-} == true ]] && echo 60 || echo 0)}

groups=(build python)
((fuzz_seconds > 0)) && groups+=(fuzz)
scripts/install_packages.sh "${groups[@]}" || exit 1
run layers python3 scripts/check_layers.py

# The Python packages arrive while the compiler works.
{ scripts/python_env.sh tests && scripts/python_env.sh smollm2; } >build/logs/python-env.log 2>&1 &
python_env=$!

cmake_arguments=(-DDECANT_TESTS=ON)
step build-release configure_and_build release || exit 1
# The fuzz targets' build has the sanitizers too: it takes the place of the debug build, and shows that clang agrees.
sanitized=debug
if ((fuzz_seconds > 0)); then
  sanitized=fuzz
  use_clang || exit 1
fi
step "build-$sanitized" configure_and_build "$sanitized" || failed+=("build-$sanitized")
if ((fuzz_seconds > 0)); then
  scripts/fuzz.sh "$fuzz_seconds" || failed+=(fuzz)
fi

echo "waiting for the Python packages"
if wait $python_env; then
  step python-package scripts/python_env.sh package || failed+=(python-package)
  step optimum-env scripts/python_env.sh optimum || echo "optimum-onnx is unavailable: its tests will be skipped"
else
  echo "installing the Python packages failed:"
  tail -n 40 build/logs/python-env.log
  failed+=(python-env)
fi

echo "unit tests with the address and undefined behaviour sanitizers"
ctest --test-dir "build/$sanitized" -L quick --output-on-failure -j "$jobs" --no-tests=error || failed+=(ctest-sanitizers)
echo "unit tests, release"
ctest --test-dir build/release --output-on-failure -j "$jobs" --no-tests=error || failed+=(ctest-release)
echo "end-to-end tests"
build/venv/bin/python -m pytest tests/e2e -q -rs --durations=10 || failed+=(end-to-end)
echo "tests of the Python package"
build/venv/bin/python -m pytest python/tests -q -rs --durations=5 || failed+=(python-tests)
for kept in tests/scoreboards/*.txt; do
  board=$(basename "$kept" .txt)
  echo "scoreboard $board, its quick part"
  build/venv/bin/python "tests/scoreboards/$board.py" --quick "build/scoreboards/$board-quick.tsv" || failed+=("scoreboard-$board")
done

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}"
  exit 1
fi
