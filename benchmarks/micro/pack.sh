#!/usr/bin/env bash
# pack.sh BUILD FOLDER: gathers what measure.sh needs, so that FOLDER can be copied to a machine with
# a Hopper GPU that has nothing but a driver, bash and python3.
set -euo pipefail
build=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
rm -rf "$folder"/kernels
cp "$build"/bin/fp4-run "$here"/{measure.sh,*.py} "$folder"
for program in streaming elementwise; do
  file=$here/../$program.mlir
  [ -f "$file" ] || file=$here/$program.mlir
  "$build"/bin/fp4-runner "$file" --target=sm_90a --emit=so -o "$folder"/$program.so
done
