#!/usr/bin/env bash
# A short run of the fuzzers, the same cases each time: no crash, hang, assert or uncaught exception.
# validation/fuzz/README.md says how to run them for long.
set -euo pipefail
build=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fuzz() { "$build/bin/$1" "${@:2}" --out "$out" || failed=1; }
failed=0
fuzz fp4-fuzz ptx --cases 2000 integration_test test/Sim
for parser in npy manifest recipe fatbin ptx-bytes; do
  fuzz fp4-fuzz $parser --cases 500 validation/fuzz/corpus integration_test/sim/bugs
done
fuzz fp4-fuzz elf --cases 300 "$build/lib/HandLibrary.so"
if [ -x "$build/bin/fp4-fuzz-mlir" ]; then
  fuzz fp4-fuzz-mlir --cases 300 examples test
  fuzz fp4-fuzz-mlir --phases --cases 1000000 examples test
  fuzz fp4-fuzz-mlir --plugin "$build/lib/FP4Plugin.so" --cases 100 examples test
  validation/fuzz/plans.py --build "$build" --cases 60 || failed=1
fi
[[ "$("$build/bin/fp4-fuzz" ptx docs 2>&1)" == "error: the corpus has no file for 'ptx'" ]] || failed=1
exit $failed
