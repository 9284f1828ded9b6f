#!/usr/bin/env bash
# lint.sh in a copy of the tree: it names the check that fails, reports it to run_tests.py, and says
# that ruff is missing where it is. A script stands for ruff. run_tests.py sees that lint.sh passes.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$root"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -f "$file" ] || printf '%s\0' "$file"
done | xargs -0 cp --parents -t "$tree"
cd "$tree"
git init -q
git add -A
mkdir -p build/test-reports build/python-env/bin
plain=$(IFS=:; for folder in $PATH; do [ -x "$folder/ruff" ] || printf '%s:' "$folder"; done)
fail() { echo "error: $*"; exit 1; }
lint() { # exit code, lines that it must print, arguments
  local code=$1 status=0 said
  said=$(PATH=$plain test/scripts/lint.sh "${@:3}" 2>&1) || status=$?
  [ "$status" == "$code" ] || fail "lint.sh must end with $code, but ended with $status: $said"
  while IFS= read -r line; do
    grep -qF -- "$line" <<<"$said" || fail "lint.sh must print '$line', but printed: $said"
  done <<<"$2"
}
without='ruff is not installed, so Python was not checked with it: pip install '
lint 1 "$without" build ruff

# Files that are too long, and a merge that is not resolved.
printf 'x\n%.0s' {1..601} | tee test/Long.mlir >lib/Support/Long.def
marker='<<<<<<<'
echo "$marker HEAD" >>lib/Support/Error.cpp
lint 1 "lib/Support/Error.cpp:9:$marker HEAD"$'\nmerges failed\nerror: lib/Support/Long.def:1: the file has 601 lines\nerror: test/Long.mlir:1: the file has 601 lines\nsizes failed\nprose passed\nremedies passed\n'"$without" build
grep -q 'name="sizes"><failure>error: lib/Support/Long.def' build/test-reports/lint.sh.xml
grep -q '&lt;&lt;&lt;&lt;&lt;&lt;&lt; HEAD' build/test-reports/lint.sh.xml
grep -q '<testcase classname="lint" name="ruff"><skipped/>' build/test-reports/lint.sh.xml
python3 - <<'PY'
import pathlib, sys
sys.path.insert(0, "utils")
import run_tests
passed, skipped, failures = run_tests.read_junit(pathlib.Path("build/test-reports/lint.sh.xml"))
assert passed > 5 and skipped == 1 and [text.split("\n")[0] for text in failures] == ["lint.sizes", "lint.merges"], failures
PY

# Tests that cannot fail, and a path of the machine in a binary file; each has a twin that may stay.
printf '%s\n' 'set -e' '! grep a b' 'grep a b &&' '  grep c d' 'f() {' '  ! cmp a b' '}' \
  'if ! cmp a b; then exit 1; fi' '[ -f a ] && [ -f b ] && exit' '! cmp a b || exit 1' "echo '" \
  '! no command' "'" '[[ a && ! b ]]' >test/scripts/other.sh
printf 'set -u\n! grep a b\n' >test/scripts/goes_on.sh
printf '\0/home/user/tree/a.mlir\0' >packages/promises/other.bin
printf '\0test/Dialect/a.mlir\0' >packages/promises/relative.bin
git add -A
lint 1 "error: test/scripts/other.sh:2: '! COMMAND' must be"$'\nother.sh:3: \'A && B\' must be\nother.bin: a binary file must have no path of a machine, but has \'/home/user/tree/a.mlir\'\nscripts failed' build scripts
[ "$(python3 lint/check_scripts.py | wc -l)" = 3 ]
rm test/scripts/{other,goes_on}.sh packages/promises/{other,relative}.bin
git add -A

# The twin without, and a ruff that finds something where it reads the programs.
rm lib/Support/Long.def test/Long.mlir
printf '#!/bin/sh\necho "$@"\n[ "$3" != --config ] || { echo "wrong & <late>"; exit 1; }\n' >build/python-env/bin/ruff
chmod +x build/python-env/bin/ruff
lint 1 $'wrong & <late>\nruff-programs failed' build ruff ruff-programs
lint 0 $'sizes passed\nruff passed' build sizes ruff
echo "lint.sh finds and reports what its checks find"
