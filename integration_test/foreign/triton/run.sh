#!/bin/sh
# usage: run.sh VENV [options of run.py]
# Installs the pinned Triton into VENV (1 GB, once; no PyTorch, no GPU, no CUDA) and runs the corpus in the simulator.
set -eu
venv=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r "$here/requirements.txt"
fi
exec "$venv/bin/python" "$here/run.py" --cache "$venv/triton-cache" "$@"
