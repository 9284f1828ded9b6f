#!/usr/bin/env bash
# run.sh [ARGUMENTS OF first_light.py]: runs the kit in this folder on device 0. README.md says what it does.
set -uo pipefail
cd "$(dirname "$0")" || exit 2
command -v python3 >/dev/null || { echo "error: python3 is needed"; exit 2; }
exec python3 first_light.py "$@"
