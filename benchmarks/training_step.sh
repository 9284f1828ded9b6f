#!/usr/bin/env bash
# training_step.sh pack BUILD FOLDER [M,N,K]: compiles benchmarks/training_step.mlir for sm_90a into FOLDER; the layer has M
#   rows of activations, K inputs and N outputs, 4096,4096,8192 unless you say otherwise.
# training_step.sh run FOLDER: on a machine with a Hopper GPU, verifies the results of the step, times it and each of its
#   kernels, times cuBLAS' three bf16 GEMMs of these sizes in the same run (torch.matmul; needs PyTorch), and
#   prints a table of the kernels and the ratio. FOLDER/training_step.json keeps all of it.
set -uo pipefail
if [ "$1" = pack ]; then
  build=$2 folder=$3 here=$(cd "$(dirname "$0")" && pwd)
  mkdir -p "$folder"
  cp "$build"/bin/fp4-run "$here"/training_step.{sh,py} "$folder"
  exec "$build"/bin/fp4-runner "$here"/training_step.mlir --target=sm_90a --shape "${4:-4096,4096,8192}" --emit=so \
    -o "$folder"/training_step.so
fi
cd "$2" || exit
exec python3 training_step.py
