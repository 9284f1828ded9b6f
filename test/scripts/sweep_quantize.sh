#!/usr/bin/env bash
# Quantizers of every recipe and kernel in the simulator, bit by bit: the covering subset.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
export FP4_PTXAS=none # Target/product-kinds.test assembles every kind of kernel
exec "$root/validation/sweep_quantize.py" --build "$1"
