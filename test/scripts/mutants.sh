#!/usr/bin/env bash
# Every mutant of utils/mutants still applies to the sources and changes them. Judging them takes long:
# utils/mutate_cpp.py does it by hand, notebook/Evidence.md has what it found.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
exec "$root/utils/mutate_cpp.py" --check --build "$1"
