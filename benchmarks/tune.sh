#!/usr/bin/env bash
# tune.sh FOLDER [ROWS...]: in a folder that integration_test/cuda-sm90/pack.sh made, on a machine with a Hopper GPU:
# the row-wise kernels of streaming.mlir for every mapping (threads per block, quantization blocks per thread), the
# chosen one beside its twin without arithmetic, and PyTorch where there is one. One line per measurement.
set -uo pipefail
cd "$1"
shift
[ $# -gt 0 ] || set -- 16384 56064
row() { grep -E '(graph|events) |without arithmetic|differ|error:' | sed "s/^/$1 /"; }
for rows in "$@"; do
  for function in amax nvfp4 mxfp4; do
    ./fp4-run streaming.so --device cuda --function $function --shape "$rows" --benchmark \
      --twin twin.so 2>&1 | row "$rows chosen"
  done
  for library in streaming_*.so; do
    for function in nvfp4 mxfp4; do
      ./fp4-run "$library" --device cuda --function $function --shape "$rows" --benchmark 2>&1 |
        row "$rows $library" | grep quantize
    done
  done
  if python3 -c 'import torch' 2>/dev/null; then
    python3 pytorch.py --fp4-run ./fp4-run --library streaming.so --rows "$rows" | sed "s/^/$rows /"
  fi
done
