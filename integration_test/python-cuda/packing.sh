# packing.sh: what the packs of this folder share; they source it.

# begin_pack BUILD FOLDER FILE...: sets build and folder, empties what an earlier pack left, and
# copies the FILEs and the Python package.
begin_pack() {
  build=$(cd "$1" && pwd)
  mkdir -p "$2"
  folder=$(cd "$2" && pwd)
  rm -rf "$folder"/{python,programs}
  mkdir -p "$folder"/python
  cp "${@:3}" "$folder"
  cp -r "$root"/python/fp4 "$folder"/python
}

# record SCRIPT: compiles what SCRIPT of the folder will run, with the whole compiler.
record() {
  PYTHONDONTWRITEBYTECODE=1 FP4_LIBRARY=$build/lib/libfp4.so PYTHONPATH=$root/python:$root/python/tests:${PYTHONPATH:-} \
    "${FP4_PYTHON:-python3}" "$1" record "$folder"
}

# end_pack: adds the runtime, which is all that runs there, and prints the size.
end_pack() {
  mkdir -p "$folder"/python/fp4/lib
  cp "$build"/lib/{libfp4rt.so,_native.abi3.so} "$folder"/python/fp4/lib
  strip "$folder"/python/fp4/lib/*.so
  find "$folder" -name __pycache__ -prune -exec rm -rf {} +
  du -sh "$folder"
}
