#!/usr/bin/env bash
# Diagrams and pages that a build generates describe this tree, and a page, a diagram, a comment or a file
# that breaks a rule is found. lint.sh checks what needs no build, and result_tables.sh has the wrong
# results and tables beside the right ones.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
python3 "$root/docgen/draw_diagrams.py" --check --build "$1"
python3 "$root/docgen/write_reference.py" --check --build "$1"

# The support matrix of README.md is current, and one of a compiler without kernels is not.
python3 "$root/docgen/support_matrix.py" --build "$1" --check
compiler=$(mktemp -d)
mkdir "$compiler/bin"
printf '#!/bin/sh\nexit 3\n' >"$compiler/bin/fp4-runner"
chmod +x "$compiler/bin/fp4-runner"
if python3 "$root/docgen/support_matrix.py" --build "$compiler" --check 2>/dev/null; then
  echo "a stale support matrix is not found"
  exit 1
fi
rm -r "$compiler"

# A tree in which everything is right, then each kind of finding.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git -C "$tree" init -q
mkdir -p "$tree/lib/Add" "$tree/docs"
printf '// The sum is in Sum.cpp, the rest in lib/{Add,Rest}.\nint a;\nint b;\n' >"$tree/lib/Add/Sum.h"
touch "$tree/lib/Add/Sum.cpp"
cp "$root"/docs/images/*.svg "$tree"
echo >>"$tree/floors.svg"
if stale=$("$root/docgen/draw_diagrams.py" --check --build "$1" --images "$tree"); then
  echo "a diagram that was changed is not found"
  exit 1
fi
[[ "$stale" == *"floors.svg is stale"* ]]
mkdir -p "$tree/include/fp4/Sim" "$tree/docs/reference"
table=include/fp4/Sim/HazardRules.def
sed 's/"lane-race"/"lane-races"/' "$root/$table" >"$tree/$table"
cp "$root/docs/reference/hazards.md" "$tree/docs/reference"
hazards() { python3 "$root/docgen/reference_hazards.py" --root "$tree" "$@"; }
if stale=$(hazards --check); then
  echo "a page of hazards that lacks a rule is not found"
  exit 1
fi
[[ "$stale" == *"run docgen/reference_hazards.py" ]]
hazards && hazards --check
grep -q '^## lane-races$' "$tree/docs/reference/hazards.md"

numbers=include/fp4/Numerics
mkdir "$tree/$numbers"
cp "$root/$numbers/Formats.def" "$tree/$numbers"
sed 's/^FP4_RECIPE(ocp_ceil,/FP4_RECIPE(ocp_upward,/' "$root/$numbers/Recipes.def" >"$tree/$numbers/Recipes.def"
cp "$root/docs/reference/recipes.md" "$tree/docs/reference"
recipes() { python3 "$root/docgen/reference_recipes.py" --root "$tree" "$@"; }
if stale=$(recipes --check); then
  echo "tables of recipes that lack one are not found"
  exit 1
fi
[[ "$stale" == *"run docgen/reference_recipes.py" ]]
recipes && recipes --check
grep -q '^| ocp_upward | mxfp4 |' "$tree/docs/reference/recipes.md"
rm -r "$tree/include" "$tree/docs/reference"
# A generated page that was changed by hand, and one that is missing.
cp -r "$root/docs/reference" "$tree/reference"
echo >>"$tree/reference/fp4-ops.md"
rm "$tree/reference/targets.md"
if stale=$(python3 "$root/docgen/write_reference.py" --check --build "$1" --pages "$tree/reference"); then
  echo "a generated page that was changed is not found"
  exit 1
fi
[[ "$stale" == *"fp4-ops.md is stale"*"targets.md is stale"* && "$stale" != *"python.md is stale"* ]]
rm -r "$tree/reference"
# A description of plans that has another field than the parser, and an export of C that is not read.
generate() { # function
  python3 -c 'import pathlib, sys; sys.path.append(sys.argv[1]); from reference import languages, tablegen
eval(sys.argv[2])(pathlib.Path(sys.argv[3]))' "$root/docgen" "$1" "$tree"
}
mkdir -p "$tree/include/fp4-c"
printf '/* A header. */\n\n/** Adds. */\nFP4RT_EXPORT int add(void);\n' >"$tree/include/fp4-c/Add.h"
generate languages.c
echo 'FP4RT_EXPORT int sub(void)' >>"$tree/include/fp4-c/Add.h"
if stale=$(generate languages.c 2>&1); then
  echo "a function of C that is not read is not found"
  exit 1
fi
[[ "$stale" == "error: Add.h exports a function that cannot be read" ]]
rm -r "$tree/include"
mkdir -p "$tree/lib/Dialect/Fp4/IR"
ln -s "$root/include" "$tree/include"
plan=lib/Dialect/Fp4/IR/KernelPlan.cpp
cp "$root/$plan" "$tree/$plan"
generate tablegen.plan_fields
sed 's/{"k_slices",/{"slices",/' "$root/$plan" >"$tree/$plan"
if stale=$(generate tablegen.plan_fields 2>&1); then
  echo "a plan field that is not described is not found"
  exit 1
fi
[[ "$stale" == *"the same fields of tile_gemm, but differ in k_slices, slices" ]]
rm -r "$tree/include" "$tree/lib/Dialect"
page() { printf '# Page\n\n## One part\n\n%s\n\n<!-- from lib/Add/Sum.h -->\n```\nint a;\n%s\n```\n' "$1" "$2"; }
expect() { # findings, with the page that is given
  page "$2" "$3" >"$tree/docs/Page.md"
  git -C "$tree" add -A
  found=$(python3 "$root/lint/check_docs.py" --root "$tree" || true)
  [ "$found" == "$1" ] || { printf 'expected: %s\nfound: %s\n' "$1" "$found"; exit 1; }
}
braces='lib/Add/Sum.h:1: names lib/{Add,Rest}, which does not exist'
expect "$braces" 'See Sum.cpp.' 'int b;'
mkdir "$tree/lib/Rest" && touch "$tree/lib/Rest/Rest.cpp"
expect '' '[A](../lib/Add/Sum.h), [part](#one-part), Sum.cpp, lib/Add, Add/*.h; not gemm.ptx' '...'
expect 'docs/Page.md: lib/Add/Sum.h no longer has: int c;' 'x' 'int c;'
expect 'docs/Page.md: link to None.md, which does not exist
docs/Page.md:5: names None.md, which does not exist' '[x](None.md)' 'int b;'
expect 'docs/Page.md: link to #two, but there is no such heading' '[x](#two)' 'int b;'
expect 'docs/Page.md:5: names lib/Other, which does not exist' 'see lib/Other.' 'int b;'
expect 'docs/Page.md:5: the line has 101 columns, and must have at most 100' "$(printf 'w %.0s' {1..50})w" 'int b;'

# A page of the notebook may have excerpts and paths that are gone, and no link that leads nowhere.
expect 'docs/Page.md: lib/Add/Sum.h no longer has: int c;
docs/Page.md:5: names lib/Other, which does not exist' 'see lib/Other.' 'int c;'
mkdir "$tree/notebook"
page 'see lib/Other.' 'int c;' >"$tree/notebook/Old.md"
expect '' 'x' 'int b;'
page '[x](None.md)' 'int c;' >"$tree/notebook/Old.md"
expect 'notebook/Old.md: link to None.md, which does not exist' 'x' 'int b;'
rm -r "$tree/notebook"

# A revision that no commit has, in a page and in a result, beside one that a commit has.
expect '' 'revision abcdef12' 'int b;' # no commit to compare with
git -C "$tree" -c user.name=a -c user.email=a@b commit -qm a --no-gpg-sign
commit=$(git -C "$tree" rev-parse --short=8 HEAD)
mkdir -p "$tree/benchmarks/results"
printf '{\n "revision": "%s",\n "command": "./a"\n}\n' "$commit" >"$tree/benchmarks/results/a.json"
expect '' "revisions $commit, $commit and $commit" 'int b;'
sed -i "s/$commit/abcdef12/" "$tree/benchmarks/results/a.json"
expect 'benchmarks/results/a.json: names revision abcdef12, which no commit before this one has
docs/Page.md: names revision abcdef13, which no commit before this one has' "revisions $commit and abcdef13" 'int b;'
expect '' 'revision abcdef13' 'int b;' # a copy of files, whose history is another one
rm -r "$tree/benchmarks" "$tree/.git"
git -C "$tree" init -q

# A function and a file that are too long, each beside one that is just short enough.
lines() { printf 'x;\n%.0s' $(seq "$1"); }
printf 'class A {\n  A(int a = {}) : a{a} {\n%s\n  }\n  int f() const {\n%s\n  }\n};\n' \
  "$(lines 39)" "$(lines 38)" >"$tree/lib/Add/Long.cpp"
printf '// a "\nconst char *s = R"({{)";\nint g() {\n%s\n}\n' "$(lines 39)" >"$tree/lib/Add/Sum.cpp"
lines 601 >"$tree/lib/Add/A.def"
lines 600 >"$tree/lib/Add/B.def"
printf 'def f():\n%s' "$(lines 40 | sed 's/^/    /')" >"$tree/lib/Add/long.py"
found=$(python3 "$root/lint/check_sizes.py" --root "$tree" || true)
excuses=$(grep -c 'is excused, and need not be$' <<<"$found")
found=$(grep -v excused <<<"$found")
[ "$found" == 'error: lib/Add/A.def:1: the file has 601 lines, and must have at most 600
error: lib/Add/Long.cpp:2: A has 41 lines, and must have at most 40
error: lib/Add/Sum.cpp:3: g has 41 lines, and must have at most 40
error: lib/Add/long.py:1: f has 41 lines, and must have at most 40' ] || { echo "found: $found"; exit 1; }
[ "$excuses" -gt 0 ] || { echo "an excuse that nothing needs is not found"; exit 1; }

# A struct with one member too many, beside one that is just small enough: statics, functions, types
# and members of nested structs do not count.
names() { seq -s, -f ' m%.0f' "$1"; }
printf 'struct Large {\n  std::map<int, int>%s;\n  std::array<int, 2> last{}, *next = {};\n};\n' \
  "$(names 19)" >"$tree/lib/Add/Large.h"
printf '%s\n' 'class [[nodiscard]] Small final : Base {' 'public:' '  Small(int a) : m1{a}, m2(a) {}' \
  '  static int count;' '  enum class Kind { A, B };' '  using Map = int;' '  struct Part {' \
  '    int a, b;' '  };' '  struct {' '    int x;' '  } part;' '  int f() const { return m1; }' \
  '  bool operator==(const Small &) const = default;' "  std::function<int(int, int)>$(names 18);" \
  '  int (*call)(int a, int b) = nullptr;' '};' >"$tree/lib/Add/Small.h"
fields() { seq -f '    m%.0f: int = 0' "$1"; }
printf '@dataclasses.dataclass\nclass Large:\n    KIND: ClassVar[int] = 1\n%s\n\n\n@dataclasses.dataclass\nclass Small:\n%s\n' \
  "$(fields 21)" "$(fields 20)" >"$tree/lib/Add/fields.py"
found=$(python3 "$root/lint/check_members.py" --root "$tree" || true)
[ "$found" == 'error: lib/Add/Large.h:1: Large has 21 members, and must have at most 20
error: lib/Add/fields.py:2: Large has 21 members, and must have at most 20' ] || { echo "found: $found"; exit 1; }
[[ $(python3 "$root/lint/check_members.py" --root "$tree" --list) == *"  20 lib/Add/Small.h:1: Small"* ]]
mkdir -p "$tree/lib/SimCuda/Host"
echo 'struct DeviceProp { int a; };' >"$tree/lib/SimCuda/Host/DeviceProp.h"
found=$(python3 "$root/lint/check_members.py" --root "$tree" || true)
[[ "$found" == *"error: lib/SimCuda/Host/DeviceProp.h:DeviceProp is excused, and need not be" ]] ||
  { echo "an excuse that nothing needs is not found: $found"; exit 1; }
rm -r "$tree/lib/SimCuda" "$tree"/lib/Add/{Large.h,Small.h,fields.py}

# Openers without a noun in each kind of file, beside lines that name their noun. A finding is
# LINE:KIND:OPENER.
mkdir "$tree/notebook"
prose() { # file, findings, lines
  printf '%s\n' "${@:3}" >"$tree/$1"
  git -C "$tree" add -A
  found=$(python3 "$root/lint/check_prose.py" --root "$tree" "$1" |
    sed "s/^[^:]*:\([0-9]*\): a \([a-z]*\) opens with '\(.*\)': begin with .*/\1:\2:\3/" | paste -sd ' ' || true)
  [ "$found" == "$2" ] || { printf '%s, expected: %s\nfound: %s\n' "$1" "$2" "$found"; exit 1; }
}
prose lib/Add/Rows.cpp '1:comment:What 4:sentence:It 5:comment:Those 8:comment:The same 9:comment:Of 11:sentence:How' \
  '//===- Rows.cpp - What rows are ---===//' '//' \
  '// The sums that an instruction reads, and' '// That a line break may put first. It waits for them.' \
  'int a; ///< Those that wait' 'int b; ///< the threads that wait, or' '       ///< Which wait' \
  '// The same rows. Rows of the same tile.' \
  'const char *text = "// It is text"; int c; // Of few rows, the first.' \
  '/* Returns true when rows arrive.' '   How many? */' '//===--- Rows of a tile ---===//'
prose lib/Add/These.cu '2:comment:These 3:sentence:This 4:sentence:Such 4:sentence:That 5:comment:Such 6:comment:That 7:sentence:It 8:sentence:It' \
  '// These four loops, of which one is empty, write rows. This op reads them. However, they wait.' \
  'int a; // These hold rows.' \
  'int b; // This access of a row waits. This waits.' \
  'int c; // That op waits. That of a row waits. Such a row waits. Such as this one.' \
  'int d; // Such is a row. "These" is a word. `It` is a name.' \
  'int e; // That rows wait is checked.' '// (C12) Such a row. [x] It waits.' '// [uncertain] It waits.'
prose lib/Add/Add.td '1:comment:Where 2:comment:Whether 2:sentence:It 5:sentence:They 8:comment:Which 13:comment:How' \
  '// Where rows are.' 'let summary = "Whether rows wait. It is long"' '  "That it is no opener";' \
  'let description = [{' '  Adds rows. They are' '  Those of a tile.' '' '  Which rows, a plan says.' \
  '  ```' '  It is an example' '  ```' '}];' \
  'def A : Enum<"how rows wait, what it is">; def B : Enum<"rows of tiles">; def C : Enum<"of rows">;'
prose lib/Add/add.py '1:comment:Who 3:comment:What 5:sentence:Its 6:comment:Of 7:comment:Where' \
  '# Who adds.' 'def add():' '    """What is added.' '' '    Rows of a tile. Its columns stay."""' '    a = 1  # Of rows' \
  '    add(help="where rows are", name="where rows are"); return "What is added"'
prose lib/Add/add.sh '1:comment:Where 3:sentence:They' \
  '# Where rows are' 'echo "It" "${#a}" # the rows' '# Rows are added. They stay.'
prose lib/Add/CMakeLists.txt '2:comment:Those' 'add_library(a a.cpp) # the rows' '# Those of a tile'
prose lib/Add/add.mlir '1:comment:What 4:sentence:It' \
  '// What is added.' '// RUN: fp4-opt %s' '// CHECK: It is' '// Rows are added. It waits.' 'func.func @add()'
prose lib/Add/add.test '1:comment:How' 'How rows are added.' 'RUN: fp4-opt %s' 'OUT: What was added' 'Rows stay.'
prose docs/Add.md '3:sentence:Which 5:sentence:What 7:sentence:Where 13:sentence:It 13:sentence:What 17:sentence:This' \
  '# What is added?' '' 'Which row is empty? Which row is empty, a plan says. Where a row is empty, it waits.' '' \
  '- What is added' '' 'Where rows are empty they wait. **Rows wait.**' '' '[How to add](Page.md)' '' \
  '| What | Where |' '|------|-------|' '| What is added | Rows. It waits |' '```' 'It is code' '```' \
  'This page tells of rows. <!-- It is hidden --> This is all.'
prose notebook/Add.md '' 'What was tried: it is slow.'
found=$(python3 "$root/lint/check_prose.py" --root "$tree" lib/Add/CMakeLists.txt lib/Add/add.py || echo failed)
[ "$found" == "lib/Add/CMakeLists.txt:2: a comment opens with 'Those': begin with the noun it stands for
lib/Add/add.py:1: a comment opens with 'Who': begin with a noun or a verb
lib/Add/add.py:3: a comment opens with 'What': begin with a noun or a verb
lib/Add/add.py:5: a sentence opens with 'Its': begin with the noun it stands for
lib/Add/add.py:6: a comment opens with 'Of': begin with a noun or a verb
lib/Add/add.py:7: a comment opens with 'Where': begin with a noun or a verb
failed" ] || { echo "found: $found"; exit 1; }
counts=$(python3 "$root/lint/check_prose.py" --root "$tree" --count lib/Add/add.sh docs || true)
[ "$counts" == $'     6  docs\n     2  lib/Add\n     8  in all' ] || { echo "found: $counts"; exit 1; }
python3 "$root/lint/check_prose.py" --root "$tree" notebook lib/Add/Sum.h

# A sentence with three numbers, beside words with digits that are none. A finding is LINE:NUMBERS.
numbers() { # findings, lines
  printf '%s\n' "${@:2}" >"$tree/docs/Numbers.md"
  git -C "$tree" add -A
  found=$(python3 "$root/lint/check_numbers.py" --root "$tree" docs/Numbers.md |
    sed -n 's/^docs.Numbers.md:\([0-9]*\): .* numbers (\(.*\)), and must .*/\1:\2/p' | paste -sd ';' || true)
  [ "$found" == "$1" ] || { printf 'expected: %s\nfound: %s\n' "$1" "$found"; exit 1; }
}
numbers '3:8, 1.36, 5;5:1,024, 2^-7, -3' '# 1 of 2 of 3' '' 'With 8 rows it takes 1.36' 'times as long, or 5 % more.' \
  'Of 1,024 rows, 2^-7 are -3.'
numbers '' 'With 8 rows it takes 1.36 times as long. With 9 it takes 2.' '' '| 1 2 | 3 4 |' '|---|---|' '| 5 | 6 7 8 |' '' \
  'On 28 November 2026 an H100 with sm_90a, CUDA 13.0 and LLVM 22 multiplied 128 x 64 by 64x16 in `1 2 3` of 4 or 8 bits.' \
  'Tiles of 32, 64 or 128 rows take 3 to 5 us; [3 and 4](Page.md).' '' '    a = 1 + 2 + 3' '' '```' '1 2 3 4' '```'
rm "$tree/docs/Numbers.md"

# A page with a word too many, beside one that is just short enough, and tables that programs write.
mkdir "$tree/words" && git -C "$tree/words" init -q && mkdir -p "$tree/words/docs/reference"
many() { printf 'word %.0s' $(seq "$1"); }
many 3001 >"$tree/words/docs/Long.md"
many 3000 >"$tree/words/docs/Short.md"
{ many 3000; printf '\n<!-- table: t -->\n'; many 9; printf '\n<!-- end of table -->\n'; } >"$tree/words/docs/Table.md"
{ echo '<!-- Made by docgen/a.py from b. Do not edit. -->'; many 4000; } >"$tree/words/docs/reference/made.md"
many 3001 >"$tree/words/docs/reference/simulator.md"
git -C "$tree/words" add -A
found=$(python3 "$root/lint/check_words.py" --root "$tree/words" || true)
[ "$(grep -v note: <<<"$found")" == 'error: docs/Long.md has 3001 hand-written words, and must have at most 3000' ] || { echo "found: $found"; exit 1; }
for page in $(seq 11); do many 2900 >"$tree/words/docs/Page$page.md"; done
rm "$tree/words/docs/Long.md"
git -C "$tree/words" add -A
found=$(python3 "$root/lint/check_words.py" --root "$tree/words" || true)
[ "${found%%$'\n'*}" == 'error: the documents have 40901 hand-written words, and must have at most 40500' ] || { echo "found: $found"; exit 1; }
rm -rf "$tree/words"
echo "documents, comments and sizes are right, and wrong ones are found"
