#!/usr/bin/env bash
# The first-light kit (integration_test/cuda-sm100) from pack to report, on a simulated B200: all agree; then a wrong
# byte, a kernel that faults and one that does not end are reported, and what comes after them runs all the same.
set -euo pipefail
build=${1:?usage: first_light.sh BUILD}
build=$(cd "$build" && pwd)
kit=$(mktemp -d)
trap 'rm -rf "$kit"' EXIT
wrong=$(integration_test/cuda-sm100/pack.sh 2>&1) && exit 1
[[ "$wrong" == *"usage: pack.sh BUILD FOLDER"* ]]
wrong=$(integration_test/cuda-sm100/pack.sh "$kit" "$kit"/new 2>&1) && exit 1
[[ "$wrong" == "error: BUILD must be a build tree"* && ! -e "$kit"/new ]]
integration_test/cuda-sm100/pack.sh "$build" "$kit" --small
# No limit of the simulator: the kit itself ends what does not.
run() { "$build"/bin/fp4-sim run --device b200 --limit 0 -- "$kit"/run.sh "$@" >"$kit"/log 2>&1; }

run --only images probes programs || { cat "$kit"/log; exit 1; }
grep -q "^images: [1-9][0-9]* pass$" "$kit"/report.txt
grep -q "^programs: 20 pass$" "$kit"/report.txt
for kind in nvfp4 half_pair dual groups split_k stream_k codes fp8_scales fp8_scales_groups mxfp8 mxfp6 gemv gemv_batch; do
  grep -q "^product_${kind}_[0-9x]*\.so$" "$kit"/sm_100a/programs.txt
  awk -F '\t' -v kind="$kind" '$1 ~ "^" kind "_[0-9]" && $3 > 1 { found = 1 } END { exit !found }' "$kit"/sm_100a/times.txt
done
grep -q "agrees  probe_" "$kit"/report.txt

# Measured beside predicted. The device that is measured here is the host, and fp4-sim has a code of its own for what
# NVML is asked.
run --only times --match mxfp6 || true
grep -q "^  mxfp6_64x128x128 .*measured .* us, predicted .* us, ratio .*, at .* MHz" "$kit"/report.txt
python3 - "$kit" <<'PY'
import json, pathlib, sys
kit = pathlib.Path(sys.argv[1])
[time] = [e["data"] for e in json.loads((kit / "report.json").read_text())["entries"] if e["section"] == "times"]
packed = dict((name, float(us)) for name, _, us in (line.split("\t") for line in open(kit / "sm_100a/times.txt")))
assert time["predicted"] == packed["mxfp6_64x128x128"], time["predicted"]
# Two kernels pack the elements for the third: all count.
entries = json.loads(time["report"][time["report"].index("{"):])["benchmark"]["entries"]
assert len(entries) == 4 and [1e3 * e["timing"]["median_ms"] for e in entries if e["name"] == "program"] == [time["measured"]]
assert time["ratio"] == time["measured"] / time["predicted"] > 0, time["ratio"]
PY

# The second start has nothing left to do.
run --only images
if grep "^pass" "$kit"/log; then exit 1; fi

image=$(find "$kit"/expected/sm_100a -name 'ld_*' | sort | head -1)
printf '\x55' | dd of="$image" bs=1 seek=5 conv=notrunc status=none
code=0
FP4_KIT_FAULTS=1 run --again --only images --limit 15 --match 'fault|ld_' || code=$?
[ $code != 0 ] || { cat "$kit"/log; exit 1; } # fp4-sim has a code of its own for kernels that fail
grep -q "differs: $(basename "$image" .bin): 1 of .* bytes differ, first at 4" "$kit"/report.txt
grep -q "failed: fault_outside: exit code 1" "$kit"/report.txt
grep -q "hung: fault_endless: ended after" "$kit"/report.txt
python3 - "$kit"/report.json <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
statuses = [entry["status"] for entry in report["entries"]]
assert report["schema"] == 1 and not report["device_lost"], report["device_lost"]
assert statuses.index("hung") < len(statuses) - 1, "what comes after a hung case must run"
PY
# A kit for B300 has GEMMs of K = 96.
integration_test/cuda-sm100/pack_programs.py --build "$build" --target sm_103a --small "$kit"/b300 >"$kit"/log 2>&1
[ -s "$kit"/b300/times.txt ]
grep target.so "$kit"/b300/programs.txt >"$kit"/lines
while read -r line; do (cd "$kit"/b300 && "$build"/bin/fp4-run $line --device=sim >"$kit"/log); done <"$kit"/lines

code=0
"$build"/bin/fp4-sim run --device h200 -- "$kit"/run.sh >"$kit"/log 2>&1 || code=$?
[ $code = 3 ]
grep -q "packed for sm_100a, but the device is sm_90a" "$kit"/log
