#!/usr/bin/env bash
# Installs the missing Debian packages that the build and the tests need (apt-get, with sudo when not root).
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev lld llvm-14-tools pkg-config python3 python3-jsonschema
  libfmt-dev libcli11-dev libinih-dev libsimdjson-dev libstb-dev libtoml11-dev libmd-dev nlohmann-json3-dev zlib1g-dev
  libflatbuffers-dev flatbuffers-compiler libdnnl-dev libhwy-dev libtbb-dev libopenmpi-dev openmpi-bin
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm
)

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | cut -c1-2)" = ii ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "Installing ${#missing[@]} missing Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "scripts/deps.sh: apt-get failed; install these packages by hand: ${missing[*]}" >&2
  exit 1
fi
