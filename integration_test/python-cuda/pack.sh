#!/usr/bin/env bash
# pack.sh BUILD FOLDER: gathers what run.sh needs, so that FOLDER can be copied to a machine with a
# Hopper GPU, a driver, and a python3 that has torch. Needs ptxas, and torch in $FP4_PYTHON.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
source "$here"/packing.sh
begin_pack "$1" "$2" "$here"/*.py "$here"/run.sh "$root"/python/tests/{programs,test_torch,test_native}.py
cc -O2 -shared -fPIC "$root"/benchmarks/python/loops.c -o "$folder"/libloops.so
record "$here"/main.py
end_pack
