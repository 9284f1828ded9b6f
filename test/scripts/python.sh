#!/usr/bin/env bash
# The Python package in a virtual environment of its own: pip installs a wheel with the libraries of
# this build, then pytest, mypy --strict, ruff and the examples run. The environment stays in
# BUILD/python-env until pyproject.toml changes. utils/run_tests.py counts the cases of pytest.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$(cd "$1" && pwd)"
env="$build/python-env"
report="$build/test-reports/python.sh.xml"
library="$build/lib/libfp4.so"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
if [ ! -f "$library" ]; then
  echo "this build has no compiler, so there is no libfp4.so"
  exit 77
fi
if ldd "$library" | grep -q 'libclang_rt\|libasan'; then
  echo "a Python without the runtime of the sanitizers cannot load a library that needs it"
  exit 77
fi

# install OPTIONS...: the package of this tree with what CMake has built.
install_package() {
  "$env/bin/pip" install -q "$@" -C cmake.define.FP4_PREBUILT="$build"
}

# The two commands of docs/guides/python.md.
make_environment() {
  rm -rf "$env"
  python3 -m venv "$env" && install_package "$root[test]" && cp "$root/pyproject.toml" "$env"
}

# Tests that need NumPy alone, with the Python of the machine.
test_without_environment() {
  export FP4_LIBRARY="$library" PYTHONPATH="$root/python"
  for python in python3 "${FP4_PYTHON:-python3}" none; do
    "$python" -c 'import numpy' 2>/dev/null && break
  done
  if [ "$python" != none ]; then
    cd "$root/python/tests"
    "$python" -m unittest -v
  fi
}

start=$SECONDS
if cmp -s "$root/pyproject.toml" "$env/pyproject.toml"; then
  install_package --no-build-isolation --no-deps --force-reinstall "$root"
elif ! make_environment; then
  echo "pip cannot install what the tests need: torch, mypy and ruff are left out"
  test_without_environment
  exit 77
fi
echo "installed in $((SECONDS - start)) s"

cd "$root"
export PATH="$env/bin:$PATH"
unset FP4_LIBRARY PYTHONPATH
if [ -x "$build/bin/fp4-sim" ]; then # a wheel has no tools
  export FP4_SIM="$build/bin/fp4-sim"
fi
failed=0
# check NAME COMMAND...: runs a check, and goes on if it fails.
check() {
  local name=$1 start=$SECONDS
  shift
  "$@" || failed=1
  echo "$name took $((SECONDS - start)) s"
}
mkdir -p "$(dirname "$report")"
check pytest python -m pytest -q -p no:cacheprovider --junitxml="$report" python/tests
check mypy mypy --strict --cache-dir "$build/mypy" python/fp4
check ruff test/scripts/lint.sh "$build" ruff ruff-programs
for example in quickstart builder checkpoint linear; do # the tests run the tutorial
  check "$example" python "examples/python/$example.py"
done
exit $failed
