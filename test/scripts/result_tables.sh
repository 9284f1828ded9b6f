#!/usr/bin/env bash
# Tables of documents are those of benchmarks/results, and each wrong result, stale page and table of
# measurements without a result is found, beside one that is right. docs.sh checks this tree.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
program="$root/docgen/result_tables.py"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git -C "$tree" init -q
mkdir -p "$tree/benchmarks/results" "$tree/docs" "$tree/notebook"

expect() { # findings of --check
  git -C "$tree" add -A
  found=$(python3 "$program" --check --root "$tree" || true)
  [ "$found" == "$1" ] || { printf 'expected: %s\nfound: %s\n' "$1" "$found"; exit 1; }
}
result() { # date, time, name
  printf '{"area": "sum", "card": "H200", "device": "NVIDIA H200", "driver": null, "date": "%s",
 "revision": "abc", "clock": "1980 MHz", "command": "run", "program": null, "evidence": "measured",
 "columns": [{"name": "rows", "title": "rows", "unit": null}, {"name": "t", "title": "time", "unit": "us"}],
 "key": ["rows"], "rows": [{"rows": 16, "t": %s}, {"rows": 1, "t": 1.50}]}\n' "$1" "$2" \
    >"$tree/benchmarks/results/$3_h200_$1.json"
}
page() { printf '# Page\n\n%s\n' "$1" >"$tree/docs/Page.md"; }
edited() { # what sed does to the result, and the finding
  cp "$file" "$tree/kept"
  sed -i "$1" "$file"
  expect "error: benchmarks/results/sum_h200_2026-11-26.json: $2
error: docs/Page.md: no file of benchmarks/results has the area sum on H200"
  mv "$tree/kept" "$file"
}

# The page that the program writes is current, has the number as it was noted, and ascends.
file="$tree/benchmarks/results/sum_h200_2026-11-26.json"
result 2026-11-26 2.5 sum
page '<!-- table: sum H200 -->
<!-- end of table -->'
expect 'error: docs/Page.md: a table is not current: run docgen/result_tables.py'
python3 "$program" --root "$tree" | grep -qx 'docs/Page.md is written'
expect ''
[ "$(sed -n '4,7p' "$tree/docs/Page.md")" == '| rows | time, us |
|---|---|
| 1 | 1.50 |
| 16 | 2.5 |' ]
grep -qF '(../benchmarks/results/sum_h200_2026-11-26.json)' "$tree/docs/Page.md"
sed -i 's/| 2.5 |/| 2.4 |/' "$tree/docs/Page.md"
expect 'error: docs/Page.md: a table is not current: run docgen/result_tables.py'
python3 "$program" --root "$tree" >/dev/null

# The notebook has tables of results that are current, too, beside others.
printf '# Note\n\n<!-- table: sum H200 -->\n<!-- end of table -->\n' >"$tree/notebook/Note.md"
expect 'error: notebook/Note.md: a table is not current: run docgen/result_tables.py'
python3 "$program" --root "$tree" | grep -qx 'notebook/Note.md is written'
expect ''
rm "$tree/notebook/Note.md"

# The newer one of two results has a row, and two of one date do not agree.
result 2026-11-25 3.5 older
sed -i 's/"rows": 1,/"rows": 2,/' "$tree/benchmarks/results/older_h200_2026-11-25.json"
python3 "$program" --root "$tree" >/dev/null
grep -qx '| 2 | 1.50 | 2026-11-25 |' "$tree/docs/Page.md"
grep -qx '| 16 | 2.5 | 2026-11-26 |' "$tree/docs/Page.md"
rm "$tree/benchmarks/results/older_h200_2026-11-25.json"
result 2026-11-26 3.5 other
expect 'error: docs/Page.md: two results of 2026-11-26 have the row (16,)'
rm "$tree/benchmarks/results/other_h200_2026-11-26.json"
python3 "$program" --root "$tree" >/dev/null
expect ''

# Results that break the schema.
edited 's/"clock": "1980 MHz", //' 'has no clock (null where nobody noted it)'
edited 's/"device": "NVIDIA H200", //' 'has no device'
edited 's/"device": "NVIDIA H200"/"device": 3/' 'device has another type'
edited 's/"area"/"mood": "good", "area"/' 'has a field mood that no schema knows'
edited 's/2026-11-26/2026-11-27/' 'the name of the file must end with _h200_2026-11-27.json'
edited 's/"measured"/"guessed"/' 'evidence is guessed, and must be measured or predicted'
edited 's/"t": 2.5/"u": 2.5/' 'row 1 has u, which is no column'
edited 's/"rows": 16, //' 'row 1 has no rows, which is part of its key'
edited 's/"rows": 16/"rows": 1/' 'row 2 has the key of another row'
edited 's/"t": 2.5/"t": null/' 'row 1: t is neither number nor text'
edited 's/, "unit": null//' 'a column has a name, a title and a unit (null where there is none)'
edited 's/"rows": \[{.*/"rows": []}/' 'a result has at least one row, and at least one column in its key'
cp "$file" "$tree/kept"
echo '{' >"$file"
{ python3 "$program" --check --root "$tree" || true; } | grep -q 'is no JSON'
mv "$tree/kept" "$file"
expect ''

# Tables of a document that no result has.
stray='the table has measurements that no file of benchmarks/results has: transcribe them and write `<!-- table: AREA CARD -->`, or `<!-- not measured: REASON -->`'
page '| kernel | time, us |
|---|---|
| a | 3 |'
expect "error: docs/Page.md:3: $stray"
cp "$tree/docs/Page.md" "$tree/notebook/Old.md"
page '| kernel | time |
|---|---|
| a | 3.5 us |
| b | 96 % |'
expect "error: docs/Page.md:3: $stray"
page 'Sizes of two shapes, in us:

| shape | a | b |
|---|---|---|
| 1 | 3.5 | 4 |
| 2 | 7 | 8 |'
expect "error: docs/Page.md:5: $stray"
page 'Sizes of two shapes, in bytes:

| shape | a | b |
|---|---|---|
| 1 | 3.5 | 4 |
| 2 | 7 | 8 |'
expect ''
page '| option | bytes |
|---|---|
| a | 16 |
| b | 100 % |'
expect ''
page '<!-- not measured: an example of a report -->
| kernel | time, us |
|---|---|
| a | 3 |'
expect ''
page '<!-- not measured: -->
| kernel | time, us |
|---|---|
| a | 3 |'
expect 'error: docs/Page.md:3: `not measured` needs a reason'
page '<!-- not measured: an example -->
No table.'
expect 'error: docs/Page.md:3: no table follows `not measured`'
page '<!-- docgen/other.py writes this -->
| kernel | time, us |
|---|---|
| a | 3 |
<!-- end of what it writes -->'
expect ''
page '<!-- table: sum H100 -->
<!-- end of table -->'
expect 'error: docs/Page.md: no file of benchmarks/results has the area sum on H100'
page '<!-- table: sum H200 -->'
expect 'error: docs/Page.md: a table has no <!-- end of table -->'
echo "tables of measurements are those of results, and others are found"
