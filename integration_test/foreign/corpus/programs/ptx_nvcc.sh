#!/bin/sh
# nvcc for packages that compile kernels as they run: PTX instead of machine code, which the simulator cannot read.
for word; do
  shift
  set -- "$@" "$(printf %s "$word" | sed 's/code=sm_/code=compute_/')"
done
exec nvcc "$@"
