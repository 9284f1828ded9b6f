#!/usr/bin/env bash
# Compiles examples of CUTLASS with nvcc and runs them, unmodified, in `fp4-sim run` under the hazard checker: each must pass its
# own verification with nothing reported, or be reported for what is wrong in it (cutlass.txt says which). Needs nvcc and a
# checkout of CUTLASS outside this repository; no GPU. Compiling takes one to six minutes each and up to 7 GB; what is there in
# WORK is not compiled again.
#
#   cutlass.sh BUILD CUTLASS WORK [NAME...]
#
# CUDA's headers of cuRAND must be found by nvcc: NVCC_APPEND_FLAGS=-I... where they are not in the toolkit.
# CHECK=strict, POLICY=lazy, TIMEOUT=900 change how they run.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,12p' "$0" | cut -c3- >&2; exit 2; }
build="$(cd "$1" && pwd)" cutlass="$(cd "$2" && pwd)"
mkdir -p "$3"
work="$(cd "$3" && pwd)"
shift 3
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

compile() { # NAME ARCHITECTURE SOURCE
  [ -x "$work/$1" ] && return
  nice nvcc -std=c++17 -O2 -cudart=shared -gencode "arch=compute_$2,code=compute_$2" --expt-relaxed-constexpr \
    -DCUTLASS_ENABLE_TENSOR_CORE_MMA=1 -DCUTE_USE_PACKED_TUPLE=1 -I"$cutlass/include" -I"$cutlass/tools/util/include" \
    -I"$cutlass/examples/common" -I"$cutlass/examples/${3%/*}" -Xlinker "$build/lib/fp4-cuda/libcuda.so.1" -o "$work/$1" \
    "$cutlass/examples/$3" > "$work/$1.nvcc" 2>&1
}

# Prints a verdict in a word: pass, failed, timeout or the rule of the first report.
verdict() { # CODE OUTPUT
  local rule
  rule="$(grep -o '\[[a-z0-9-]*\]$' "$2" | head -1 | tr -d '[]' || true)"
  if [ "$1" = 124 ]; then echo timeout
  elif [ -n "$rule" ]; then echo "$rule"
  elif grep -q 'deadlock: ' "$2"; then echo deadlock
  elif [ "$1" = 0 ] && grep -qiE 'passed|test pass|success|\[OK\]|vector relative error: *[0-9.]+e-0[4-9]' "$2" && ! grep -qiE 'failed|\[FAIL\]' "$2"; then echo pass
  else echo "failed ($1)"
  fi
}

total=0 good=0
while IFS='|' read -r name device architecture source expected arguments; do
  read -r name <<< "$name"
  case "$name" in '' | '#'*) continue ;; esac
  [ $# = 0 ] || [[ " $* " = *" $name "* ]] || continue
  read -r device <<< "$device" && read -r architecture <<< "$architecture"
  read -r source <<< "$source" && read -r expected <<< "$expected"
  total=$((total + 1))
  if ! compile "$name" "$architecture" "$source"; then
    echo "$name: nvcc fails, see $work/$name.nvcc"
    continue
  fi
  code=0 start=$SECONDS
  # shellcheck disable=SC2086
  timeout "${TIMEOUT:-900}" "$build/bin/fp4-sim" run --device "$device" --check "${CHECK:-default}" --policy "${POLICY:-eager}" \
    --stats -- "$work/$name" $arguments > "$work/$name.txt" 2>&1 || code=$?
  found="$(verdict "$code" "$work/$name.txt")"
  [ "$found" = "$expected" ] && good=$((good + 1))
  echo "$name: $found$([ "$found" = "$expected" ] || echo ", but expected $expected") ($((SECONDS - start)) s)"
done < "$here/cutlass.txt"
echo "$good of $total as expected"
[ "$good" = "$total" ]
