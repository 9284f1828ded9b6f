#!/usr/bin/env bash
# run_models.sh FOLDER [STEPS]: in a folder that pack_models.sh made, on a machine with a Hopper GPU:
# sentence embeddings and a training run in 4 bits, against bfloat16. Prints tables.
set -euo pipefail
cd "$1"
unset FP4_LIBRARY FP4_NATIVE
export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
exec "${FP4_PYTHON:-python3}" models.py run "$PWD" "${2:-1000}"
