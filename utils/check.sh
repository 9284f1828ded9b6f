#!/usr/bin/env bash
# Builds everything and runs every test: the README's second command. Ends with "N passed, N failed".
# Arguments go to utils/run_tests.py (for example --filter Sim).
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
if [ ! -f build/build.ninja ] || grep -q "^FP4_QUICK:BOOL=ON" build/CMakeCache.txt; then
  configure release
fi
build
install_tool ptxas-later "$FP4_LATER_PTXAS_WHEEL" "the tests of PTX 9.5 are skipped" ptxas
# Packages that a mirror may lack, each with the test that is skipped without.
install_packages qemu-user || echo "warning: qemu-user is missing; the test of Arm hosts is skipped"
install_packages abigail-tools ||
  echo "warning: abigail-tools is missing; the test of promises is skipped"
install_packages g++-mingw-w64-x86-64-posix ||
  echo "warning: g++-mingw-w64-x86-64-posix is missing; the test of the portable core is skipped"
exec python3 utils/run_tests.py --build build "$@"
