#!/usr/bin/env bash
# Calls with arrays on a GPU, which is the simulator behind CUDA's driver API: streams, devices and
# DLPack of the Python package, and calls of XLA and tvm-ffi (python/tests/test_cuda_arrays.py,
# test_frameworks_cuda.py).
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$(cd "$1" && pwd)"
export FP4_LIBRARY="$build/lib/libfp4.so" PYTHONPATH="$root/python" PYTHONDONTWRITEBYTECODE=1
if [ ! -f "$FP4_LIBRARY" ] || ldd "$FP4_LIBRARY" | grep -q 'libclang_rt\|libasan'; then
  echo "this build has no compiler that a Python can load"
  exit 77
fi
for python in python3 "${FP4_PYTHON:-python3}" none; do
  "$python" -c 'import numpy' 2>/dev/null && break
done
if [ "$python" == none ]; then
  echo "no Python here has NumPy"
  exit 77
fi
cd "$root/python/tests"
"$build/bin/fp4-sim" run --device h200 -- "$python" -m unittest -v test_cuda_arrays test_frameworks_cuda
