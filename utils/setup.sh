#!/usr/bin/env bash
# Installs what the build needs on Debian 12 and configures and builds the release preset.
# Sourced by demo.sh and check.sh; does nothing slow when everything is already there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

FP4_PACKAGES=(
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools cmake ninja-build
  libgtest-dev libgmock-dev libcli11-dev libexpected-dev libfmt-dev nlohmann-json3-dev
  zlib1g-dev libzstd-dev python3 python3-numpy python3-pip python3-venv)
FP4_PTXAS_WHEEL="nvidia-cuda-nvcc==13.0.88"   # the assembler that notebook/evidence.md speaks of
FP4_LATER_PTXAS_WHEEL="nvidia-cuda-nvcc==13.5.37"   # the first assembler of PTX 9.5
FP4_NVDISASM_WHEEL="nvidia-cuda-nvdisasm==13.2.78"   # the first release with a wheel of its own

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# install_packages PACKAGE...
install_packages() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" ||
      missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  echo "== installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# install_tool NAME WHEEL LOSS [FILE]: PyPI carries NVIDIA's tools. The tools are optional; LOSS is
# the part that does not work without. Only the tool of the wheel, FILE where its name is another, is
# kept, in the last place where ours look for it.
install_tool() {
  local name=$1 wheel=$2 loss=$3 file=${4:-$1} folder=build/toolchain
  command -v "$name" >/dev/null && return
  [ -x $folder/"$name" ] && return
  echo "== fetching $name ($wheel)"
  mkdir -p $folder/wheel
  if PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --no-deps --upgrade \
    --target $folder/wheel "$wheel"; then
    install -m 755 "$(find $folder/wheel -name "$file" -type f | head -n 1)" $folder/"$name"
  else
    echo "warning: $name could not be fetched; $loss"
  fi
  rm -rf $folder/wheel
}

# Downloads while the build compiles, which needs neither tool.
fetch_tools() {
  install_tool ptxas "$FP4_PTXAS_WHEEL" "kernels run in the simulator, --emit=cubin fails"
  install_tool nvdisasm "$FP4_NVDISASM_WHEEL" "tests that count machine instructions are skipped"
}

# The Python of the tests that need numpy: the user's, or where that has none, Debian's.
choose_python() {
  export FP4_PYTHON=python3
  python3 -c 'import numpy' 2>/dev/null || FP4_PYTHON=/usr/bin/python3
}

# configure PRESET: the tree build/.
configure() {
  cmake --preset "$1" >build/configure.log 2>&1 || { cat build/configure.log; return 1; }
}

# build [TARGET...] with what the tree is configured for.
build() {
  if [ -t 1 ]; then # one line that changes: how much is done, and the seconds so far
    NINJA_STATUS="[%p after %e s] " ninja -C build "$@"
  else
    ninja -C build --quiet "$@"
  fi
  wait "$fetching"
}

mkdir -p build/toolchain
install_packages "${FP4_PACKAGES[@]}"
fetch_tools &
fetching=$!
choose_python
export PATH="$PATH:$PWD/build/toolchain"
