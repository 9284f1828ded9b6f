#!/usr/bin/env bash
# The models give the vectors of the field, the goldens that the C++ tests read are theirs, and a case
# that is added changes no other.
#   test/scripts/goldens.sh BUILD [current]    current: only that the goldens are those of the models
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python=${FP4_PYTHON:-python3} # with numpy
"$python" "$root/oracles/numerics_oracle.py"
"$python" "$root/oracles/quantize_golden.py" "$folder"
"$python" "$root/oracles/matrix_golden.py" "$folder"
"$python" "$root/oracles/mma_oracle.py" "$folder"
for file in "$folder"/*.json; do
  cmp "$file" "$root/unittests/Numerics/data/$(basename "$file")"
done

if [ "${2:-}" == current ]; then
  exit
fi

# A case that is inserted in front is one line more and changes no other. Seeds by number change the
# cases behind it, and a second case of one name is an error.
tree=$folder/tree
mkdir -p "$tree/lib" "$tree/unittests/Numerics/data"
cp -r "$root/oracles" "$tree"
cp -r "$root/lib/Numerics" "$tree/lib"
edit() { # a file of the copy, and expressions of sed, each of which must change it
  local file=$tree/oracles/$1 expression
  for expression in "${@:2}"; do
    cp "$file" "$folder/before"
    sed -i "$expression" "$file"
    ! cmp -s "$file" "$folder/before" || { echo "error: '$expression' must change $1"; exit 1; }
  done
}
# A few matrices serve, since all take long.
edit matrix_golden.py 's/^    return \[{"name": name.*/&[:12]/'
make() { # program, and the file that it writes: prints the cases in order
  "$python" "$tree/oracles/$1" && sed 's/,$//' "$tree/unittests/Numerics/data/$2" | sort
}
inserted() { # program, its file, and the expression that inserts: prints the lines that differ
  make "$1" "$2" >"$folder/first"
  cp "$tree/oracles/$1" "$folder/program"
  edit "$1" "$3"
  make "$1" "$2" >"$folder/second"
  cp "$folder/program" "$tree/oracles/$1"
  diff "$folder/first" "$folder/second" | grep -c '^<' || true
}
matrix=(matrix_golden.py matrix_golden.json 's/^def cases():$/&\n    yield {"rows": 7}/;s/\[:12\]/[:13]/')
steps=(mma_oracle.py mma_golden.json 's/^STYLES = {/&"first": (3, draw), /')
counts="$(inserted "${matrix[@]}") $(inserted "${steps[@]}")"
[ "$counts" == '0 0' ] || { echo "error: a case that is inserted changes others: $counts"; exit 1; }
[ "$(diff "$folder/first" "$folder/second" | grep -c '^>')" == 3 ]
cp "$tree/oracles/goldens.py" "$folder/goldens.py"
edit goldens.py 's/{name: seed_of(name) for name in names}/{name: i for i, name in enumerate(names)}/'
counts="$(inserted "${matrix[@]}") $(inserted "${steps[@]}")"
read -r matrices products <<<"$counts"
((matrices == 12 && products > 300)) || { echo "error: seeds by number must change cases: $counts"; exit 1; }
cp "$folder/goldens.py" "$tree/oracles/goldens.py"
edit matrix_golden.py 's/^def cases():$/&\n    yield {"rows": 7}\n    yield {"rows": 7}/'
if twice=$("$python" "$tree/oracles/matrix_golden.py" 2>&1); then
  echo "error: two cases of one name must be refused"
  exit 1
fi
[[ "$twice" == "error: a case must have a name of its own, but got 'te214_7x160' twice"*"note: remove the second"* ]]
echo "the goldens are current, and a new case changes no other"
