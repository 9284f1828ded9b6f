#!/usr/bin/env bash
# The portable core compiles for Windows: formats, instructions, numerics, routes, the simulator and the
# devices, with clang and the headers of mingw-w64. lib/Support has the calls of Linux, and the sources
# below have a reason. Nothing is linked. Headers of macOS are in no package, so there is no such check.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
triple=x86_64-w64-mingw32
if ! [ -d "/usr/$triple/include" ] ||
  ! compgen -G "/usr/lib/gcc/$triple/*-posix/include/c++" >/dev/null; then
  echo "the headers of $triple are missing (package g++-mingw-w64-x86-64-posix)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/include"
for name in fmt nlohmann tl; do ln -s "/usr/include/$name" "$scratch/include"; done # and none of glibc
skipped=(
  lib/Program/LoadableElf.cpp # reads ELF files, as which emitted libraries are written
)
compile() { # a file with sources, compiled as one
  clang++-22 --target=$triple -std=c++20 -fsyntax-only -ffp-contract=off -DFMT_HEADER_ONLY \
    -I"$root/include" -I"$root/lib" -isystem "$scratch/include" -x c++ "$1" 2>"$1.log" ||
    { grep -m 5 "error:" "$1.log"; return 1; }
}
cd "$root"
alone=$(sed -n '/^fp4_alone(/,/)/p' lib/*/CMakeLists.txt | tr -s '()\n' ' ')
count=0
batch() { # sources that are compiled as one
  [ $# = 0 ] && return
  printf "#include \"$root/%s\"\n" "$@" >"$scratch/unit$((count += 1)).cpp"
}
for library in ISA Numerics Routes Runtime Reference Program; do
  together=()
  while IFS= read -r source; do
    [[ " ${skipped[*]} " == *" $source "* ]] && continue
    if [[ "$alone" == *" ${source#lib/"$library"/} "* ]]; then
      batch "$source"
    else
      together+=("$source")
    fi
    [ ${#together[@]} = 16 ] && { batch "${together[@]}"; together=(); }
  done < <(find "lib/$library" -name '*.cpp' | LC_ALL=C sort)
  batch "${together[@]}"
done
rooms=(PTX Decode State Run Async Orders Check Debug Time Insn/Copy Insn/Poison Insn/TensorCore/Tcgen05
  Insn/TensorCore/MmaSync) # whose sources lib/Sim/CMakeLists.txt compiles as one
for room in "${rooms[@]}"; do
  mapfile -t together < <(find lib/Sim -path "lib/Sim/$room*.cpp" | LC_ALL=C sort)
  batch "${together[@]}"
done
while IFS= read -r source; do
  [[ "$source" =~ ^lib/Sim/($(IFS='|'; echo "${rooms[*]}")) ]] || batch "$source"
done < <(find lib/Sim -name '*.cpp' | LC_ALL=C sort)
echo 'int main() { return getpid(); }' >"$scratch/wrong.cpp" # a call that Windows has not
if compile "$scratch/wrong.cpp" >/dev/null; then
  echo "a call of POSIX compiles for $triple"
  exit 1
fi
export -f compile
export root scratch triple
find "$scratch" -name 'unit*.cpp' -print0 | xargs -0 -n 1 -P "$(nproc)" bash -c 'compile "$1"' _
echo "$count batches of sources compile for $triple"
