#!/usr/bin/env bash
# packages/promises.py: the tree keeps what CHANGELOG.md promises since the record, each broken promise
# is found, and a change that a promise allows passes.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$(cd "$1" && pwd)"
for tool in abidiff abidw clang-22 nm; do
  command -v "$tool" >/dev/null ||
    { echo "the check of the C ABI needs $tool (package abigail-tools)"; exit 77; }
done
if [ ! -x "$build/bin/fp4-runner" ]; then
  echo "this build has no compiler, and the record has programs of one"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
record=$root/packages/promises
# promises CODE WORDS ARGUMENTS...: the exit code, and a line that is printed.
promises() {
  local code=0
  timeout 300 python3 -B "$root/packages/promises.py" check --build "$build" "${@:3}" \
    >"$scratch/log" 2>&1 || code=$?
  if [ "$code" != "$1" ] || ! grep -q -- "$2" "$scratch/log"; then
    echo "promises.py ${*:3} must end with $1 and '$2', but ended with $code:"
    cat "$scratch/log"
    exit 1
  fi
}
promises 0 "5 promises since .*: 0 broken" --record "$record"

# edited FILE EXPRESSION: a copy of the headers, or of the package, in which sed changed a file.
edited() {
  rm -rf "$scratch/include" "$scratch/python"
  cp -r "$root/include" "$root/python" "$scratch"
  sed -i -E "$2" "$scratch/$1"
  ! cmp -s "$root/$1" "$scratch/$1" || { echo "'$2' must change $1"; exit 1; }
}
abi() { promises "$1" "$2" --record "$record" --headers "$scratch/include" abi; }
edited include/fp4-c/Program.h 's/^(  uint64_t seed;)/  uint64_t other;\n\1/'
abi 1 "fp4_device_options must keep .uint64_t seed. at byte 32"
edited include/fp4-c/Program.h 's/^(  uint32_t threads;.*)/\1\n  uint32_t other;/'
abi 1 "must have .uint32_t other. behind its former 56 bytes"
edited include/fp4-c/Program.h 's/^(  uint32_t threads;.*)/\1\n  uint64_t other;/'
abi 0 "0 broken"
edited include/fp4-c/Runtime.h 's/^(  uint64_t \(\*result_pitch\).*)/\1\n  void (*other)(void);/'
abi 0 "0 broken"
edited include/fp4-c/Runtime.h '/^  void \(\*free\)\(void \*device\);$/d'
abi 1 "fp4rt_api must keep .void"
edited include/fp4-c/Program.h 's/^(  int32_t layout;)/  int32_t other;\n\1/' # callers do not give its size
abi 1 "layout.* offset changed from"
edited include/fp4-c/Runtime.h 's/(fp4rt_memset\(void \*device, )uint8_t/\1uint64_t/'
abi 1 "fp4rt_memset"
edited include/fp4-c/Error.h 's/FP4_ERROR_HAZARD = 6/FP4_ERROR_HAZARD = 8/'
abi 1 "FP4_ERROR_HAZARD"

python() { promises "$1" "$2" --record "$record" --python "$scratch/python" python; }
edited python/fp4/builder.py 's/^(    def matmul_alpha\(self, )lhs/\1left/'
python 1 "fp4.FunctionBuilder.matmul_alpha must take 'lhs'"
edited python/fp4/device.py 's/(target: str) = "[^"]*"/\1/'
python 1 "'target' of fp4.Device must have a default"
edited python/fp4/program.py 's/^def load\(path/def load(extra, path/'
python 1 "'extra' of fp4.load is new and must have a default"
edited python/fp4/__init__.py 's/"load", "tiled"/"tiled"/'
python 1 "fp4 must have load, or an error"
echo '"""load is a word of this module."""' >>"$scratch/python/fp4/__init__.py"
python 1 "fp4 must have load, or an error"
echo 'FORMER = {"load": "read"}' >>"$scratch/python/fp4/__init__.py"
python 0 "0 broken"

# A record of another release, which this one does not read.
rm -rf "$scratch/record"
cp -r "$record" "$scratch/record"
cd "$scratch/record"
other() { promises "$1" "$2" --record "$scratch/record" "$3"; cp "$record"/* .; }
sed -i 's/"fp4_version"/"fp4_gone"/' exports.json
other 1 "libfp4.so must export fp4_gone" abi
sed -i 's/"--device"/"--no-such-option"/' options.json
other 1 "fp4-run.* --no-such-option must work" options
sed -i '0,/"--sms"/s//"--multiprocessors"/; 0,/"--pdl"/s//"--overlap-launches"/' options.json
if cmp -s options.json "$record/options.json"; then exit 1; fi
other 0 "0 broken" options
sed -i '0,/fp4.quantize/s//fp4.quantise/' fp4.mlir
other 1 "fp4-opt must read fp4.mlir" programs
head -c 2000 "$record/pipe.mlirbc" >pipe.mlirbc
other 1 "fp4-opt must read pipe.mlirbc" programs
sed -i 's/"schema":1/"schema":7/; s/"schema": 1/"schema": 7/' library.so
other 1 "fp4-run must run the library" libraries

# A tag names the record of a release.
git init -q "$scratch/tree"
cp -r "$root/packages" "$root/pyproject.toml" "$scratch/tree"
cd "$scratch/tree"
commit() { git add -A && git -c user.name=fp4 -c user.email=fp4@localhost commit -q -m "$1"; }
commit one
git tag v0
sed -i 's/"fp4_version"/"fp4_gone"/' packages/promises/exports.json
commit two
git tag v1
# tagged CODE WORDS ARGUMENTS...: as promises, for the copy.
tagged() {
  local code=0
  timeout 300 python3 -B packages/promises.py check --build "$build" --headers "$root/include" \
    "${@:3}" abi >"$scratch/log" 2>&1 || code=$?
  if [ "$code" != "$1" ] || ! grep -q "$2" "$scratch/log"; then
    echo "promises.py ${*:3} must end with $1 and '$2', but ended with $code:"
    cat "$scratch/log"
    exit 1
  fi
}
tagged 1 "(v1): "
tagged 1 "libfp4.so must export fp4_gone"
tagged 0 "(v0): 0 broken" --against v0
tagged 2 "tag v2 must have packages/promises" --against v2
echo "what is broken is found"
