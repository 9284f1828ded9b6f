#!/usr/bin/env bash
# pack.sh BUILD FOLDER: gathers what run.sh needs, so that FOLDER can be copied to a GPU machine that
# has nothing but a driver, bash and python3.
set -euo pipefail
usage='usage: pack.sh BUILD FOLDER'
build=${1:?$usage} folder=${2:?$usage}
[ -x "$build"/bin/fp4-runner ] || { echo "error: BUILD must be a build tree with bin/fp4-runner, but got '$build'" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
cp "$build"/unittests/fp4-cts "$build"/bin/fp4-run "$here"/{run.sh,compare.py,copy_tiles.ptx,norm_rows.ptx} "$folder"
"$build"/bin/fp4-runner "$here"/programs.mlir --target=sm_90a --emit=so -o "$folder"/programs.so
rm -rf "$folder"/sweep
"$here"/../../validation/sweep_quantize.py --build "$build" --pack "$folder"/sweep --match sm_90a
"$here"/../../validation/sweep.py --build "$build" --plans converted --pack "$folder"/sweep
"$here"/../../validation/sweep_rows.py --build "$build" --target sm_90a --pack "$folder"/sweep
streaming=$here/../../benchmarks/streaming.mlir
"$build"/bin/fp4-runner "$streaming" --target=sm_90a --emit=so -o "$folder"/streaming.so
"$build"/bin/fp4-runner "$streaming" --target=sm_90a --emit=so --no-arithmetic -o "$folder"/twin.so
cp "$here"/../../benchmarks/{tune.sh,pytorch.py} "$folder"
# Compiles a variant for tune.sh: NAME, threads, blocks per thread, other fields of the plan.
variant() {
  "$build"/bin/fp4-runner "$streaming" --target=sm_90a --emit=so \
    --plan "stream_blocks, threads = $2, blocks_per_thread = $3${4:+, $4}" -o "$folder"/streaming_"$1".so
}
for threads in 128 256 512; do
  for blocks in 1 2 4; do variant ${threads}_$blocks $threads $blocks; done
done
variant 128_2_resident12 128 2 "ctas_per_sm = 12"
variant 256_1_hints 256 1 cache_hints
variant 128_2_hints 128 2 cache_hints
orientations=$here/../../benchmarks/orientations.mlir
for rows in 16384 56064; do
  emit() { "$build"/bin/fp4-runner "$orientations" --target=sm_90a --shape $rows --emit=so "$@"; }
  emit -o "$folder"/orientations_$rows.so
  emit --no-arithmetic -o "$folder"/orientations_$rows.twin.so
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
