#!/usr/bin/env bash
# pack.sh BUILD FOLDER [--small] [TARGET...]: gathers the first-light kit in FOLDER, for the targets (default: sm_100a
# sm_103a sm_120a), so that FOLDER can be copied to a machine with such a GPU that has nothing but a driver, bash and
# python3. --small: a few cases and programs, whose kernels the driver assembles, so that a simulated GPU runs them too.
set -euo pipefail
usage='usage: pack.sh BUILD FOLDER [--small] [TARGET...]'
build=${1:?$usage} folder=${2:?$usage}
[ -x "$build"/bin/fp4-run ] || { echo "error: BUILD must be a build tree with bin/fp4-run, but got '$build'" >&2; exit 2; }
build=$(cd "$build" && pwd)
shift 2
small=
[ "${1:-}" != --small ] || { small=yes; shift; }
targets=("${@:-sm_100a}")
[ $# -gt 0 ] || [ -n "$small" ] || targets=(sm_100a sm_103a sm_120a)
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
declare -A devices=([sm_90a]=h200 [sm_100a]=b200 [sm_103a]=b300 [sm_120a]=rtx5090)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -rf "$folder"/{expected,images,report.*,sm_*,quick}
cp "$here"/kit/* "$root"/benchmarks/micro/*.py "$build"/bin/fp4-run "$build"/unittests/fp4-cts "$here"/../cuda-sm90/{copy_tiles,norm_rows}.ptx "$folder"
[ -z "$small" ] || touch "$folder"/quick # microbenchmarks in short
for target in "${targets[@]}"; do
  device=${devices[$target]:?"no device has the target $target"}
  "$build"/bin/fp4-sim run --device "$device" -- python3 "$folder"/run_case.py --images "$folder"/expected/"$target" \
    ${small:+--small}
  "$here"/pack_programs.py --build "$build" --target "$target" ${small:+--small} "$folder"/"$target"
done
[ -n "$small" ] || "$here"/pack_suites.py --build "$build" "$folder" "${targets[@]}"
python3 - "$folder" "$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)" "${targets[@]}" <<'PY'
import json, pathlib, sys
folder, revision, *targets = sys.argv[1:]
(pathlib.Path(folder) / "kit.json").write_text(json.dumps({"revision": revision, "targets": targets}) + "\n")
PY
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
du -sh "$folder"
