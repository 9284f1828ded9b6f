#!/usr/bin/env bash
# The numpy models give the vectors of the field, and the goldens that the C++ tests read are theirs.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python=${FP4_PYTHON:-python3} # with numpy
"$python" "$root/oracles/numerics_oracle.py"
"$python" "$root/oracles/quantize_golden.py" "$folder"
"$python" "$root/oracles/matrix_golden.py" "$folder"
for file in "$folder"/*.json; do
  cmp "$file" "$root/unittests/Numerics/data/$(basename "$file")"
done
