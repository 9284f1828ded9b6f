#!/usr/bin/env bash
# run.sh FOLDER: in a folder that pack.sh made, on a machine with a Hopper GPU: the conformance suite on
# the GPU and on the simulator, their images compared; then every compiled program on the GPU, those
# of validation/sweep_quantize.py, of GEMMs and of chains along rows too, verified against the reference. Ends with "passed" and 0, or names what failed.
set -uo pipefail
cd "$1"
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

export FP4_CUBIN=empty.cubin FP4_PTX_FOLDER=.
for device in cuda sim; do
  FP4_DEVICE=$device FP4_IMAGES=images/$device ./fp4-cts --gtest_brief=1 || fail "fp4-cts on $device"
done
./compare.py images/cuda images/sim || fail "images differ"
for fault in AStoreOutside TmaInner; do # each ends the context of its process
  FP4_DEVICE=cuda FP4_FAULTS=1 ./fp4-cts --gtest_brief=1 --gtest_filter="CtsFault.$fault*" ||
    fail "CtsFault.$fault"
done

# Programs are independent processes: eight at a time.
mkdir -p runs
program() { echo "programs.so --function $*"; }
programs() {
  for function in nvfp4_bf16 nvfp4_f16 nvfp4_f32 nvfp4_2_13 mxfp4_floor mxfp4_ceil mxfp4_even \
    mxfp4_rceil dequantize_nvfp4; do
    for rows in 1 127 128 300 4096; do
      for dist in gaussian uniform exact zeros; do
        program $function --shape $rows --dist $dist --seed $rows
      done
    done
  done
  for function in nvfp4_k1000 nvfp4_k1003 nvfp4_k1001_f32 nvfp4_tiled_k1000 mxfp4_tiled torchao cutlass \
    four_over_six; do
    for rows in 1 127 128 300 2049; do
      for dist in gaussian bf16 adversarial zeros; do
        program $function --shape $rows --dist $dist --seed $rows
      done
    done
  done
  for function in transform stochastic training; do
    for rows in 16 128 304 4096; do
      for dist in gaussian bf16 adversarial zeros; do
        program $function --shape $rows --dist $dist --seed $rows
      done
    done
  done
  for function in nvfp4_8192 mxfp4_8192; do
    for dist in gaussian bf16; do program $function --shape 8192 --dist $dist; done
  done
  for function in nvfp4_bf16 nvfp4_2_13 mxfp4_floor mxfp4_ceil mxfp4_even mxfp4_rceil; do
    program $function --input x=all_bf16.npy
  done
  for function in unswizzle alpha; do program $function; done
}
run_one() {
  log=runs/$(echo "$*" | tr -c 'a-zA-Z0-9\n' _).log
  ./fp4-run "$@" --device cuda >"$log" 2>&1 || { echo "FAILED: $*"; cat "$log"; exit 1; }
}
export -f run_one
programs >programs.txt
sed 's|^|sweep/|' sweep/*.txt >sweep.txt
# shellcheck disable=SC2016
xargs -P 8 -L 1 bash -c 'run_one "$@"' _ < <(cat programs.txt sweep.txt) || failures=$((failures + 1))
echo "programs: $(wc -l <programs.txt) runs; of the sweep: $(wc -l <sweep.txt)"
[ $failures = 0 ] && echo passed || echo "$failures failed"
exit $((failures != 0))
