#!/usr/bin/env bash
# The simulator writes the images that a real H200 wrote (integration_test/cuda-sm90), byte for byte.
set -euo pipefail
build=${1:?usage: h200_images.sh BUILD}
images=$(mktemp -d)
trap 'rm -rf "$images"' EXIT
FP4_DEVICE=sim FP4_IMAGES=$images "$build/unittests/fp4-cts" --gtest_brief=1
hashes=$PWD/integration_test/cuda-sm90/h200.sha256
cd "$images"
sha256sum --check --quiet --strict "$hashes"
# No image may be missing from the record.
diff <(ls) <(cut -c67- "$hashes" | sort)
