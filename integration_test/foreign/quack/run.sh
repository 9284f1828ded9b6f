#!/bin/sh
# usage: run.sh BUILD VENV [CASE...]
# Installs the pinned QuACK and PyTorch into VENV (several GB, once; no GPU), and runs its kernels in the simulator, each
# case under three policies (`cases.py --list` prints cases as they are given here). Ends with "N of N".
set -eu
build=$1 venv=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r "$here/requirements.txt"
fi
# QuACK's cache of compiled kernels does not know which device they are for.
export PYTHONPATH="$here/../../../python" FP4_SIM="$build/bin/fp4-sim" TORCHDYNAMO_DISABLE=1 QUACK_CACHE_ENABLED=0
[ $# -gt 0 ] || set -- $("$venv/bin/python" "$here/cases.py" --list)
passed=0 total=0
for case in "$@"; do
  IFS=: read -r device name ends policies <<X
$case
X
  for policy in $(echo "$policies" | tr + ' '); do
    total=$((total + 1)) code=0
    found=$("$venv/bin/python" -m fp4.sim --device "$device" --policy $policy "$here/cases.py" "$name" 2>&1) || code=$?
    if [ $code = "$ends" ]; then
      passed=$((passed + 1))
    else
      echo "FAILED: $device, $name, $policy: exit code $code, not $ends"
      echo "$found" | tail -n 12
    fi
  done
done
echo "$passed of $total"
[ $passed = $total ]
