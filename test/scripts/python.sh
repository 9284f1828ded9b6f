#!/usr/bin/env bash
# The Python package against libfp4.so of this build: its tests and its examples. They are unittest
# classes, so that they need no pytest; NumPy is needed, torch and ml_dtypes are used where they are.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$(cd "$1" && pwd)"
export FP4_LIBRARY="$build/lib/libfp4.so" PYTHONPATH="$root/python" PYTHONDONTWRITEBYTECODE=1
if [ ! -f "$FP4_LIBRARY" ]; then
  echo "this build has no compiler, so there is no libfp4.so"
  exit 77
fi
if ldd "$FP4_LIBRARY" | grep -q 'libclang_rt\|libasan'; then
  echo "a Python without the runtime of the sanitizers cannot load a library that needs it"
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
"$python" -m unittest -v
for example in quickstart builder; do
  "$python" "$root/examples/python/$example.py"
done
