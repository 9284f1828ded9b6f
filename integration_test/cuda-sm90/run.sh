#!/usr/bin/env bash
# run.sh FP4_CTS FOLDER: the conformance suite on the first GPU and on the simulator, then their
# images compared. Ends with 0 when both pass and every image is equal.
set -euo pipefail
cts=$1 folder=$2
status=0
for device in cuda sim; do
  mkdir -p "$folder/$device"
  FP4_DEVICE=$device FP4_IMAGES=$folder/$device "$cts" --gtest_brief=1 || status=1
done
"$(dirname "$0")/compare.py" "$folder/cuda" "$folder/sim" || status=1
exit $status
