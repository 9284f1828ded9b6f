# measuring.sh: functions that the benchmarks of GEMMs share. Each benchmark sources the file, here and
# in the folder that it packs.

# begin_pack BUILD FOLDER FILE...: sets build and folder, and copies fp4-run, the benchmark and what it runs.
begin_pack() {
  build=$1 folder=$2
  shift 2
  local here
  here=$(dirname "$0")
  mkdir -p "$folder"
  cp "$build"/bin/fp4-run "$0" "$here"/measuring.sh "${@/#/$here/}" "$folder"
}

# emit PROGRAM LIBRARY [OPTIONS...]: compiles PROGRAM.mlir of the folder for sm_90a.
emit() { "$build"/bin/fp4-runner "$folder/$1.mlir" --target=sm_90a --emit=so -o "$folder/$2.so" "${@:3}"; }

# measure LABEL LIBRARY [OPTIONS...]: verifies LIBRARY.so and times it; after the label, a line for each kernel
# and one for the program.
measure() {
  ./fp4-run "$2.so" --device cuda --benchmark "${@:3}" 2>&1 |
    grep -E '(_0|program) .*(graph|rows) |error:|FAILED|differ' | sed "s/^/$1 /"
}

has_torch() { python3 -c 'import torch' 2>/dev/null; }
