#!/usr/bin/env bash
# pack_two.sh BUILD FOLDER: gathers what run_two.sh needs, so that FOLDER can be copied to a machine with two
# Hopper GPUs, a driver, and a python3 that has torch with NCCL. Needs ptxas, and torch in $FP4_PYTHON.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
source "$here"/packing.sh
begin_pack "$1" "$2" "$here"/{two_gpus.py,run_two.sh,packed.py} "$root"/python/tests/dist_cases.py
record "$folder"/two_gpus.py
end_pack
