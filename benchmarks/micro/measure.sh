#!/usr/bin/env bash
# measure.sh FOLDER: in a folder that pack.sh made, on a machine with a Hopper GPU: the
# microbenchmarks, and then kernels that take no part in calibration, at sizes from launch-bound to
# large. Prints one line per measurement; micro.json and kernels/*.json have the same.
set -uo pipefail
cd "$1"
timeout 400 python3 run.py --json micro.json
mkdir -p kernels
for rows in 32 128 512 1024 2048 4096 8192 16384 32768; do
  for call in streaming:amax streaming:nvfp4 streaming:mxfp4 streaming:hadamard streaming:stochastic \
    streaming:adaptive streaming:dequantize streaming:amaxes elementwise:add; do
    IFS=: read -r library function <<<"$call"
    log=kernels/$function-$rows
    timeout 60 ./fp4-run $library.so --device cuda --function $function --shape $rows --benchmark >"$log.txt" 2>&1 ||
      echo "FAILED: $function $rows: $(tail -1 "$log.txt")"
    grep -E '(graph|rows) |error:|differ' "$log.txt" | sed "s/^/$rows $function /"
  done
done
