#!/usr/bin/env bash
# pack_two.sh BUILD FOLDER: gathers what run_two.sh needs, so that FOLDER can be copied to a machine with two
# Hopper GPUs, a driver, and a python3 that has torch with NCCL. Needs ptxas, and torch in $FP4_PYTHON.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
mkdir -p "$2"
folder=$(cd "$2" && pwd)
rm -rf "$folder"/{python,programs}
mkdir -p "$folder"/python
cp "$here"/{two_gpus.py,run_two.sh,packed.py} "$root"/python/tests/dist_cases.py "$folder"
cp -r "$root"/python/fp4 "$folder"/python
export PYTHONDONTWRITEBYTECODE=1
FP4_LIBRARY=$build/lib/libfp4.so PYTHONPATH=$root/python \
  "${FP4_PYTHON:-python3}" "$folder"/two_gpus.py record "$folder"
mkdir -p "$folder"/python/fp4/lib
cp "$build"/lib/{libfp4rt.so,_native.abi3.so} "$folder"/python/fp4/lib
strip "$folder"/python/fp4/lib/*.so
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
du -sh "$folder"
