#!/usr/bin/env bash
# pack.sh BUILD FOLDER: gathers what run.sh needs, so that FOLDER can be copied to a GPU machine that
# has nothing but a driver, bash and python3.
set -euo pipefail
build=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
cp "$build"/unittests/fp4-cts "$build"/bin/fp4-run "$here"/{run.sh,compare.py,copy_tiles.ptx} "$folder"
"$build"/bin/fp4-runner "$here"/programs.mlir --target=sm_90a --emit=so -o "$folder"/programs.so
streaming=$here/../../benchmarks/streaming.mlir
"$build"/bin/fp4-runner "$streaming" --target=sm_90a --emit=so -o "$folder"/streaming.so
"$build"/bin/fp4-runner "$streaming" --target=sm_90a --emit=so --no-arithmetic -o "$folder"/twin.so
cp "$here"/../../benchmarks/{tune.sh,pytorch.py} "$folder"
for threads in 128 256 512; do
  for blocks in 1 2 4; do
    "$build"/bin/fp4-runner "$streaming" --target=sm_90a --emit=so --stream-threads $threads \
      --stream-blocks $blocks -o "$folder"/streaming_${threads}_$blocks.so
  done
done
printf '.version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry empty() { ret; }\n' \
  >"$folder"/empty.ptx
ptxas -arch=sm_90a "$folder"/empty.ptx -o "$folder"/empty.cubin
# Every bf16 there is, 64 x 1024: infinities, NaN and subnormals included.
python3 - "$folder"/all_bf16.npy <<'PY'
import struct, sys
header = "{'descr': '<u2', 'fortran_order': False, 'shape': (64, 1024), }"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack("<65536H", *range(65536)))
PY
