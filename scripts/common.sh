# Sourced by the other scripts: the repository root, the number of jobs, quiet steps.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=${JOBS:-$(nproc)}
mkdir -p build/logs

# step NAME COMMAND...: runs with its output in build/logs/NAME.log; prints one line, or the log's end when it fails.
step() {
  local name=$1 start=$SECONDS
  shift
  if "$@" >"build/logs/$name.log" 2>&1; then
    printf '%-28s %4d s\n' "$name" $((SECONDS - start))
  else
    local code=$?
    printf '%-28s failed (exit %d) after %d s; the end of build/logs/%s.log:\n' "$name" $code $((SECONDS - start)) "$name"
    tail -n 60 "build/logs/$name.log"
    return $code
  fi
}

# configure_and_build PRESET TARGET...: the extra cmake arguments are in the array cmake_arguments.
configure_and_build() {
  local preset=$1
  shift
  cmake --preset "$preset" -DDECANT_WERROR="${DECANT_WERROR:-OFF}" "${cmake_arguments[@]}" &&
    cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"}
}
cmake_arguments=()

# use_clang: the preset "fuzz" needs it; $FUZZ_CXX, or the newest there is.
use_clang() {
  export CXX
  CXX=${FUZZ_CXX:-$(command -v clang++ || ls /usr/bin/clang++-[0-9]* 2>/dev/null | sort -V | tail -1)}
  [[ -n $CXX ]] || { echo "no clang++ found" >&2; return 1; }
}
