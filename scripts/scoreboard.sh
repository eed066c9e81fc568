#!/usr/bin/env bash
# scoreboard.sh NAME: runs tests/scoreboards/NAME.py in the test environment, which prints its table and its count.
set -euo pipefail
source "$(dirname "$0")/common.sh"
names="onnx-suite layouts formats architectures native targets tokenizers templates"
name=${1:-}
if [[ -z $name || " $names " != *" $name "* ]]; then
  echo "usage: make scoreboard NAME=one of: $names" >&2
  exit 2
fi
if [[ ! -f tests/scoreboards/$name.py ]]; then
  echo "scoreboard $name: not available yet" >&2
  exit 1
fi
scripts/install_packages.sh build python
targets=(decant)
[[ $name == onnx-suite ]] && targets+=(onnx_suite_runner) && cmake_arguments=(-DDECANT_TESTS=ON)
step build-release configure_and_build release "${targets[@]}"
step python-env scripts/python_env.sh tests
mkdir -p build/scoreboards
exec build/venv/bin/python "tests/scoreboards/$name.py" "build/scoreboards/$name.tsv"
