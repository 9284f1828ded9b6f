#!/usr/bin/env bash
# FProp, DGrad and WGrad with each other's tensors: verified, near the results of unquantized GEMMs, in as few kernels as docs/guides/models.md says.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
exec "${FP4_PYTHON:-python3}" "$root/validation/training_step.py" --build "$1"
