#!/usr/bin/env bash
# Shapes, formats and result types under the schedules of the simulator, with its strict hazard check:
# the covering subset.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
exec "$root/validation/sweep.py" --build "$1"
