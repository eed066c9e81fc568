#!/usr/bin/env bash
# install_packages.sh [build] [python] [fuzz] [cross] [lint]: installs what those parts need from Debian 12 or 13.
# Asks for sudo only when not root, and only when something is missing. On other systems it lists what is missing.
set -euo pipefail

declare -A groups=(
  [build]="build-essential cmake ninja-build ccache pkg-config git libfmt-dev libsimdjson-dev nlohmann-json3-dev
    libonig-dev libutf8proc-dev libprotozero-dev libcli11-dev libgtest-dev libgmock-dev libssl-dev libcurl4-openssl-dev"
  [python]="python3 python3-venv python3-dev ca-certificates"
  [fuzz]="clang"
  [cross]="g++-aarch64-linux-gnu qemu-user googletest"
  [lint]="clang-format clang-tidy"
)

missing=()
for group in "${@:-build}"; do
  for package in ${groups[$group]:?unknown package group $group}; do
    state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [[ $state == "install ok installed" ]] || missing+=("$package")
  done
done
# The sanitizer and fuzzer runtimes are a package of their own, named after the version `clang` stands for.
if [[ " $* " == *" fuzz "* ]]; then
  version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]\+\)$/\1/p' | head -1)
  if [[ -n $version ]]; then
    dpkg-query -W "libclang-rt-$version-dev" >/dev/null 2>&1 || missing+=("libclang-rt-$version-dev")
  fi
fi
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  echo "missing packages (Debian's names): ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || { echo "not root and no sudo; install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
# A package list that was empty before the update hid the clang runtime; look once more.
if [[ " $* " == *" fuzz "* && -z ${version:-} && -z ${DECANT_SECOND_LOOK:-} ]]; then
  DECANT_SECOND_LOOK=1 exec "$0" fuzz
fi
