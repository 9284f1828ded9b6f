#!/usr/bin/env bash
# Every mutant of validation/mutants still applies to the sources and changes them. Judging them takes long:
# validation/mutate_cpp.py does it by hand, notebook/evidence.md has what it found.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
exec "$root/validation/mutate_cpp.py" --check --build "$1"
