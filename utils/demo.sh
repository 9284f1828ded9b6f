#!/usr/bin/env bash
# Installs what is needed, builds, and runs an NVFP4 linear layer: the README's first command.
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
[ -f build/build.ninja ] || configure demo
build fp4-runner
exec build/bin/fp4-runner examples/nvfp4_linear.mlir "$@"
