#!/usr/bin/env bash
# tune.sh FOLDER [ROWS...]: in a folder that integration_test/cuda-sm90/pack.sh made, on a machine with a Hopper GPU:
# the kernels of streaming.mlir beside their twins without arithmetic, those of orientations.mlir the same, PyTorch
# where there is one, and at 16384 rows every mapping that pack.sh compiled (threads per CTA, quantization blocks per
# thread, resident CTAs, cache hints). One line per measurement; DEVICE=sim tries the script without a GPU.
set -uo pipefail
cd "$1"
shift
[ $# -gt 0 ] || set -- 16384 56064
device=${DEVICE:-cuda}
lines='(graph|rows) |without arithmetic|differ|error:'
[ "$device" = cuda ] || lines="^ +[a-z0-9]+_[a-z_]+_0 .* ms$|$lines"
row() { grep -E "$lines" | sed "s/^/$1 /"; }
measure() { ./fp4-run "$1" --device "$device" --function "$2" --benchmark "${@:3}" 2>&1; }
twin() { [ "$device" != cuda ] || echo --twin "$1"; } # a simulation has none
for rows in "$@"; do
  for function in amax nvfp4 mxfp4 hadamard stochastic adaptive; do
    measure streaming.so "$function" --shape "$rows" $(twin twin.so) | row "$rows chosen"
  done
  for function in both weight activation gradient; do
    measure orientations_"$rows".so $function $(twin orientations_"$rows".twin.so) | row "$rows $function"
  done
  if [ "$rows" = 16384 ]; then
    for library in streaming_*.so; do
      for function in nvfp4 mxfp4 hadamard; do
        measure "$library" $function --shape "$rows" | row "$rows $library" | grep quantize
      done
    done
  fi
  if python3 -c 'import torch' 2>/dev/null; then
    python3 pytorch.py --fp4-run ./fp4-run --library streaming.so --rows "$rows" | sed "s/^/$rows /"
  fi
done
