#!/usr/bin/env bash
# The simulator writes the images that a real H200 wrote (integration_test/cuda-sm90), byte for byte.
# Families in unconfirmed.txt have not been run there yet. An emulator runs the simulator of another
# host. Usage: h200_images.sh BUILD [EMULATOR...]
set -euo pipefail
build=${1:?usage: h200_images.sh BUILD [EMULATOR...]}
images=$(mktemp -d)
trap 'rm -rf "$images"' EXIT
FP4_DEVICE=sim FP4_IMAGES=$images "${@:2}" "$build/unittests/fp4-cts" --gtest_brief=1
record=$PWD/integration_test/cuda-sm90
cd "$images"
while read -r family; do rm "$family"_*.bin; done < <(grep -v '^#' "$record/unconfirmed.txt")
sha256sum --check --quiet --strict "$record/h200.sha256"
# No image may be missing from the record.
diff <(ls) <(cut -c67- "$record/h200.sha256" | sort)
