#!/usr/bin/env bash
# Shapes, formats and result types under the schedules of the simulator, with its strict hazard check:
# the covering subset.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
export FP4_PTXAS=none # Target/product-kinds.test assembles every kind of kernel
exec "$root/validation/sweep.py" --build "$1"
