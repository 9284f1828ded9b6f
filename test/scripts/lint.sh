#!/usr/bin/env bash
# The checks of the sources that need no build, seconds after an edit. With a build tree as the argument
# it leaves a report for utils/run_tests.py. The tests of the checks themselves are in docs.sh, laws.sh
# and lint_finds.sh.
#   test/scripts/lint.sh [BUILD [CHECK...]]    CHECK: a name that it prints, to run no others
set -uo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build=${1:+$(realpath "$1")}
only=" ${*:2} "
export PATH="$PATH${build:+:$build/python-env/bin}" PYTHONDONTWRITEBYTECODE=1
cd "$root"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
names=()
check() { # name, command: starts it
  [[ "$only" == "  " || "$only" == *" $1 "* ]] || return 0
  names+=("$1")
  { "${@:2}" >"$folder/$1" 2>&1; echo $? >"$folder/$1.code"; } &
}
for name in docs words numbers sizes members prose laws remedies constraints producers scripts; do
  check $name python3 lint/check_$name.py
done
check merges bash -c '! git grep -nE "(<{7,8}|>{7,8}) [[:alnum:]]"' # what a merge left unresolved
check mutants validation/mutate_cpp.py --check # every mutant still applies; judging them takes long
for page in time_table result_tables reference_hazards reference_recipes; do
  check $page python3 docgen/$page.py --check
done
if command -v ruff >/dev/null; then
  check ruff ruff check --no-cache --output-format concise
  check ruff-programs ruff check --no-cache --config lint/ruff.toml --output-format concise
elif [[ "$only" == "  " || "$only" == *" ruff"* ]]; then
  lacks="ruff is not installed, so Python was not checked with it: pip install '$(grep -o 'ruff==[0-9.]*' pyproject.toml)'"
fi
wait

failed=0
cases=()
for name in "${names[@]}"; do
  result=passed problem=
  if [ "$(cat "$folder/$name.code")" != 0 ]; then
    failed=1 result=failed
    problem="<failure>$(sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' "$folder/$name")</failure>"
    cat "$folder/$name"
  fi
  echo "$name $result"
  cases+=("<testcase classname=\"lint\" name=\"$name\">$problem</testcase>")
done
if [ -n "${lacks:-}" ]; then
  echo "$lacks"
  [ "$only" == "  " ] || failed=1 # who asks for it by name needs it
  cases+=("<testcase classname=\"lint\" name=\"ruff\"><skipped/></testcase>")
fi
if [[ -d "$build/test-reports" && "$only" == "  " ]]; then
  printf '%s\n' '<testsuite>' "${cases[@]}" '</testsuite>' >"$build/test-reports/lint.sh.xml"
fi
exit $failed
