#!/usr/bin/env bash
# pack.sh BUILD FOLDER: gathers what run.sh needs, so that FOLDER can be copied to a machine with a
# Hopper GPU, a driver, and a python3 that has torch. Needs ptxas, and torch in $FP4_PYTHON.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
mkdir -p "$2"
folder=$(cd "$2" && pwd)
rm -rf "$folder"/{python,programs}
mkdir -p "$folder"/python
cp "$here"/*.py "$here"/run.sh "$root"/python/tests/{programs,test_torch,test_native}.py "$folder"
cp -r "$root"/python/fp4 "$folder"/python
cc -O2 -shared -fPIC "$root"/benchmarks/python/loops.c -o "$folder"/libloops.so
export PYTHONDONTWRITEBYTECODE=1
FP4_LIBRARY=$build/lib/libfp4.so PYTHONPATH=$root/python:$root/python/tests \
  "${FP4_PYTHON:-python3}" "$here"/main.py record "$folder"
mkdir -p "$folder"/python/fp4/lib
cp "$build"/lib/{libfp4rt.so,_native.abi3.so} "$folder"/python/fp4/lib
strip "$folder"/python/fp4/lib/*.so
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
du -sh "$folder"
