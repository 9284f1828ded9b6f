#!/usr/bin/env bash
# run_two.sh FOLDER: in a folder that pack_two.sh made, on a machine with two Hopper GPUs: the cases of
# fp4.dist with NCCL, and the times of gathers and of tensor-parallel layers against bfloat16. Prints
# a table and "N passed, N failed"; 0 if none failed.
set -euo pipefail
cd "$1"
unset FP4_LIBRARY FP4_NATIVE
export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} # multicast needs a fabric manager
exec "${FP4_PYTHON:-python3}" two_gpus.py run "$PWD"
