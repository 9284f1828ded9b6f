#!/usr/bin/env bash
# run.sh FOLDER: in a folder that pack.sh made, on a machine with a Hopper GPU: calls with torch and
# CuPy on streams, in graphs and under memory pressure, compared byte for byte with the simulator, and
# what a call costs above a launch. Prints a table and "N passed, N failed"; 0 if none failed.
set -euo pipefail
cd "$1"
unset FP4_LIBRARY FP4_NATIVE
export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
exec "${FP4_PYTHON:-python3}" main.py run "$PWD"
