#!/usr/bin/env bash
# FProp, DGrad and WGrad with each other's tensors: verified, near the unquantized products, in as few kernels as the README says.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
exec "$root/utils/training_step.py" --build "$1"
