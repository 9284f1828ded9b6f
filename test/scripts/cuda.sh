#!/usr/bin/env bash
# The programs of integration_test/sim, compiled by nvcc, run unmodified in the simulator; the wrong
# ones are told why. Needs nvcc, not a GPU.
set -euo pipefail
build="$(cd "$1" && pwd)"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
if ! command -v nvcc > /dev/null; then
  echo "nvcc is not here"
  exit 77
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
sim="$build/bin/fp4-sim"

fail() {
  echo "$*" >&2
  exit 1
}

# compile NAME ARCHITECTURE [OPTION]...
compile() {
  nvcc "${@:3}" -std=c++17 -O2 -cudart=shared -gencode "arch=compute_$2,code=compute_$2" \
    "$root/integration_test/sim/$1.cu" -o "$work/$1" || fail "nvcc fails on $1"
}

# expect CODE TEXT COMMAND...: the command ends with CODE and says TEXT
expect() {
  local code=0 output
  output="$(timeout 120 "${@:3}" 2>&1)" || code=$?
  [ "$code" = "$1" ] || fail "${*:3} ended with $code instead of $1: $output"
  grep -qF -- "$2" <<< "$output" || fail "${*:3} does not say '$2': $output"
}

major="$(nvcc --version | sed -n 's/.*release \([0-9]*\).*/\1/p')"
if [ "$major" = 13 ]; then
  nvcc -std=c++20 -Xcompiler -Wno-enum-compare -DFP4_CUDART_MAJOR=13 -I"$root" -I"$root/include" -c \
    "$root/integration_test/sim/abi.cpp" -o "$work/abi.o" || fail "the ABI differs from the toolkit's"
fi

compile basics 100a
for policy in eager random; do
  expect 0 "NVIDIA B200: all equal" "$sim" run --policy "$policy" -- "$work/basics"
done
expect 4 "has PTX for sm_100a, but not for sm_90a" "$sim" run --device h200 -- "$work/basics"
expect 0 "PTX 9.0 for sm_100a" "$sim" check "$work/basics"

compile groups 90
for device in b200 h200; do
  expect 0 "all equal" "$sim" run --device "$device" --check default -- "$work/groups"
done
expect 0 "all equal" "$sim" run --policy lazy -- "$work/groups"

compile library 90a
for policy in eager random; do
  expect 0 "NVIDIA H200: all equal" \
    "$sim" run --device h200 --policy "$policy" --check strict -- "$work/library"
done

compile graphs 100a
for check in default strict; do
  expect 0 "all equal" "$sim" run --check "$check" -- "$work/graphs"
done

# Two files, linked on the device: their PTX is linked again here. nvlink wants machine code beside it.
nvcc -std=c++17 -cudart=shared -rdc=true -gencode "arch=compute_100a,code=[compute_100a,sm_100a]" \
  "$root"/integration_test/sim/separate{,_part}.cu -o "$work/separate" || fail "nvcc fails on separate"
expect 0 "all equal" "$sim" run -- "$work/separate"
nvcc -std=c++17 -cudart=shared -rdc=true -gencode arch=compute_100a,code=sm_100a \
  "$root"/integration_test/sim/separate{,_part}.cu -o "$work/separate" || fail "nvcc fails on separate"
expect 4 "code=[compute_100a,sm_100a]" "$sim" run -- "$work/separate"

compile faults 90
expect 5 "0 bytes past the end of 'cudaMalloc #1'" "$sim" run -- "$work/faults" beyond
expect 5 "assertion failed: in[0] == 7" "$sim" run -- "$work/faults" assert
expect 5 "waits for barrier 1 of its CTA: 32 of 64 threads have arrived" "$sim" run -- "$work/faults" stuck
expect 6 "[shared-race]" "$sim" run --check default -- "$work/faults" race
expect 0 "the program sees: cudaSuccess" "$sim" run -- "$work/faults" none
expect 6 "[shared-race]" "$sim" run -- "$work/faults" race
expect 0 "" "$sim" run --check=off -- "$work/faults" race

# The hazard checker needs no option: a fence that is missing, and the program with it.
compile fence 90
expect 6 "[missing-proxy-fence]" "$sim" run -- "$work/fence"
expect 0 "128 of 128 are right" "$sim" run --check=off -- "$work/fence"
compile fence 90 -DFENCE
expect 0 "128 of 128 are right" "$sim" run -- "$work/fence"
expect 0 "128 of 128 are right" "$sim" run --check=strict -- "$work/fence"

# Programmatic dependent launch, in a stream and in a graph.
compile pdl 100a
for graph in "" graph; do
  expect 0 "64 of 64 are right" "$sim" run --check strict -- "$work/pdl" none $graph
  expect 0 "64 of 64 are right" "$sim" run --check off --policy lazy -- "$work/pdl" none $graph
  for wrong in unwaited middle early overwritten; do
    expect 6 "by cudaLaunchAttributeProgrammaticStreamSerialization" "$sim" run -- "$work/pdl" $wrong $graph
  done
  # Memory that is read too early does not have the result yet.
  expect 0 "0 of 64 are right" "$sim" run --check off --policy lazy -- "$work/pdl" unwaited $graph
done

expect 5 "recursively, which is not simulated" "$sim" run -- "$work/faults" recursive

# The reports that docs/guides/debug-a-kernel.md quotes.
bugs() {
  nvcc -std=c++17 -lineinfo -gencode arch=compute_100a,code=compute_100a "-DBUG=$1" \
    "$root/examples/debug/tcgen05_bugs.cu" -o "$work/bugs" || fail "nvcc fails on tcgen05_bugs"
}
bugs 0
for policy in eager lazy exhaustive; do
  expect 0 "0 of 8192 wrong" "$sim" run --check strict --policy "$policy" -- "$work/bugs"
done
bugs 1
expect 5 "phase 0, 1 of 1 arrivals pending; arrived in this phase: nobody" "$sim" run -- "$work/bugs"
bugs 2
expect 5 "phase 0, 0 of 1 arrivals pending, 128 bytes expected and not delivered" "$sim" run -- "$work/bugs"
bugs 3
expect 5 "waits for phase 0 (parity 0) of the mbarrier 'empty'" "$sim" run -- "$work/bugs"
bugs 4
expect 6 "[overwritten-while-read]" "$sim" run -- "$work/bugs"
for policy in eager lazy random; do
  expect 0 "0 of 8192 wrong" "$sim" run --check off --policy "$policy" -- "$work/bugs"
done
expect 5 "the result depends on the order" "$sim" run --check off --policy exhaustive -- "$work/bugs"

# nvcc's default: the runtime is linked in statically. Ours takes its place by the names of its functions.
for program in basics graphs; do
  nvcc -std=c++17 -O2 -gencode arch=compute_100a,code=compute_100a \
    "$root/integration_test/sim/$program.cu" -o "$work/static" || fail "nvcc fails on $program"
  expect 0 "all equal" "$sim" run -- "$work/static"
done
nvcc -std=c++17 "$root/integration_test/sim/faults.cu" -o "$work/static" || fail "nvcc fails"
expect 5 "0 bytes past the end of 'cudaMalloc #1'" "$sim" run -- "$work/static" beyond
nvcc -std=c++17 -Xlinker -s "$root/integration_test/sim/faults.cu" -o "$work/static" || fail "nvcc fails"
expect 2 "has the CUDA runtime linked in statically, and no names" "$sim" run -- "$work/static"
expect 2 "has the CUDA runtime linked in statically, and no names" "$sim" run -- sh -c "$work/static"
nvcc -std=c++17 "$root/integration_test/sim/limits.cu" -L"$build/lib/fp4-cuda/stubs" -lcuda -o "$work/static" ||
  fail "nvcc fails on limits"
expect 0 "all as expected" "$sim" run -- "$work/static"
expect 0 "all as expected" "$sim" run -- sh -c "$work/static; $work/static" # a script starts it

# Programs of the driver API link with the stub.
cat > "$work/driver.cpp" << 'CPP'
#include <cstdio>
#include <cuda.h>
int main() {
  int version = 0;
  const int result = cuInit(0) + cuDriverGetVersion(&version);
  std::printf("%d %d\n", result, version);
}
CPP
nvcc -cudart=none "$work/driver.cpp" -L"$build/lib/fp4-cuda/stubs" -lcuda -o "$work/driver" ||
  fail "nvcc does not link with the stub"
expect 0 "0 13000" "$sim" run -- "$work/driver"
