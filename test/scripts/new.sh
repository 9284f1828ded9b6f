#!/usr/bin/env bash
# scripts/new in a copy of the tree: its scaffolds pass the checks that need no build, and its
# refusals change nothing.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
python=${FP4_PYTHON:-python3} # with numpy
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$root"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -f "$file" ] || printf '%s\0' "$file"
done | xargs -0 cp --parents -t "$tree"
cd "$tree"
git init -q
commit() { git add -A && git -c user.name=test -c user.email=test@localhost commit -qm "$1"; }
commit base

fail() { echo "error: $*"; exit 1; }
adds() { # files that are new, then the command: prints them, and three steps
  local made=$1 said
  shift
  said=$(scripts/new "$@") || fail "scripts/new $* must succeed"
  for file in $made; do
    [ -f "$file" ] && grep -q "^made *$file$" <<<"$said" || fail "scripts/new $* must make $file: $said"
  done
  [ "$(grep -c '^  [123]\. ' <<<"$said")" == 3 ] || fail "scripts/new $* must print three steps: $said"
  [ "$(git status --porcelain -uall | grep -c '^?? ')" == "$(wc -w <<<"$made")" ] ||
    fail "scripts/new $* must make these files alone: $made"
  [ "$(git status --porcelain | wc -l)" == "$(grep -c '^made\|^changed' <<<"$said")" ] ||
    fail "scripts/new $* must print each file that it changes: $said"
  commit "$*"
}
refuses() { # words of the error and of its note, then the command
  local error=$1 note=$2 said status=0
  shift 2
  said=$(scripts/new "$@" 2>&1) || status=$?
  [ "$status" == 2 ] || fail "scripts/new $* must end with 2, but ended with $status: $said"
  [[ "$said" == "error: "*"$error"*$'\n'"  note: "*"$note"* ]] || fail "scripts/new $* must say '$error' and '$note': $said"
  [ -z "$(git status --porcelain)" ] || fail "scripts/new $* must change nothing: $(git status --porcelain)"
}

adds 'lib/Dialect/Fp4/IR/NewThingOp.cpp test/Dialect/Fp4/invalid-new-thing.mlir' \
  op new_thing --dialect fp4 --summary 'matrix as it is'
adds 'lib/Dialect/Pipe/IR/NewMarkOp.cpp test/Dialect/Pipe/invalid-new-mark.mlir' \
  op new_mark --dialect pipe --summary 'marker of a place'
adds 'lib/Dialect/Fp4/Transforms/CountThings.cpp test/Dialect/Fp4/count-things.mlir' \
  pass count-things --dialect fp4 --summary 'count what there is'
adds 'lib/Dialect/Pipe/Transforms/CountThings.cpp test/Dialect/Pipe/Transforms/count-things.mlir' \
  pass count-things --dialect pipe --summary 'count what there is'
like=$(sed -n 's/^FP4_RECIPE(\(\w*\), MXFP4,.*/\1/p' include/fp4/Numerics/Recipes.def | tail -1)
# Without goldens the row that was held in memory is not written.
FP4_PYTHON=false refuses 'must remake the goldens' 'numpy' recipe new_recipe --like "$like"
FP4_PYTHON=$python adds '' recipe new_recipe --like "$like"
target=$(sed -n 's/^ *\.name = "\(sm_\w*\)",/\1/p' lib/ISA/Targets.cpp | head -1)
adds '' target sm_999a --like "$target"
gemm=$(scripts/new gemm-test new-gemm --target "$target" --lhs nvfp4 --rhs nvfp4 | sed -n 's/^made *//p')
grep -q 'fp4.scaled<nvfp4, ' "$gemm" || fail "the GEMM of $gemm must have the formats that were asked for"
commit gemm

# Lists, models and checks find what was added.
grep -q '^| new_recipe | mxfp4 |' docs/*.md docs/*/*.md || fail 'the document of recipes must have the row'
"$python" - <<'END'
import pathlib, sys
sys.path[:0] = [str(path.parent) for path in pathlib.Path(".").glob("*/*.py")]
import numerics_oracle, recipes
assert recipes.recipes()["new_recipe"].format == "mxfp4"
assert "new_recipe" in numerics_oracle.MXFP4_VARIANTS
END
FP4_PYTHON=$python test/scripts/goldens.sh build current
for check in check_docs check_sizes check_constraints check_laws check_remedies; do
  found=$(python3 "$(find lint -name "$check.py")") || fail "$check.py finds: $found"
done
# The example of each operation is in a test, and each pass has one, which no tool executes here.
found=$(python3 "$(find lint -name check_examples.py)" --opt true --file-check true) || fail "check_examples.py finds: $found"
! git grep -nE '@[A-Za-z]+@' -- include lib test/Dialect test/Runner || fail 'a template must be filled'
if command -v mlir-tblgen-22 llvm-config-22 >/dev/null; then
  knows() { # word, generator, file
    mlir-tblgen-22 -I include -I "$(llvm-config-22 --includedir)" "$2" "$3" >made.inc && grep -q "$1" made.inc ||
      fail "mlir-tblgen must find '$1' in $3"
    rm made.inc
  }
  for room in Fp4 Pipe; do
    knows '^class New\(Thing\|Mark\)Op ' --gen-op-decls include/fp4/Dialect/$room/IR/${room}Ops.td
    knows 'class CountThingsBase ' --gen-pass-decls include/fp4/Dialect/$room/Transforms/Passes.td
  done
fi

# Names that exist.
refuses "operation 'fp4.new_thing' must be new" 'choose another name' op new_thing --dialect fp4 --summary 'a thing'
# A record whose base class is on the next line counts too.
name=$(grep -hPzo '(?m)^def \w+Op\n\s*:[^"{]*"\K\w+' include/fp4/Dialect/Fp4/IR/*.td | tr '\0' '\n' | head -1)
refuses "operation 'fp4.$name' must be new" 'choose another name' op "$name" --dialect fp4 --summary 'a thing'
refuses "pass 'pipe-count-things' must be new" 'choose another name' pass count-things --dialect pipe --summary 'a pass'
refuses "recipe '$like' must be new" 'choose another name' recipe "$like" --like "$like"
refuses "target '$target' must be new" 'choose another name' target "$target" --like "$target"
refuses "$gemm must be a new file" 'choose another name' gemm-test new-gemm --target "$target" --lhs nvfp4 --rhs nvfp4
# Malformed names, and text that is no summary; the names above are their passing twins.
refuses 'lower-case words with underscores' 'swizzle_scales' op NewThing --dialect fp4 --summary 'a thing'
refuses 'lower-case words with hyphens' 'specialize-warps' pass count_things --dialect fp4 --summary 'a pass'
refuses 'must not repeat the dialect' "write 'count-more'" pass fp4-count-more --dialect fp4 --summary 'a pass'
refuses 'lower-case words with underscores' 'mxfp4_vllm' recipe new-recipe --like "$like"
refuses 'the compute capability' 'sm_103a' target sm100 --like "$target"
refuses 'lower-case words with hyphens' 'mixed-sm120' gemm-test new_gemm --target "$target" --lhs nvfp4 --rhs nvfp4
refuses 'summary must be one line' 'say what it is' op other_thing --dialect fp4 --summary 'a "thing".'
# Rows that are copied, targets and formats must exist.
refuses '--like must be a recipe' "$like" recipe other_recipe --like none
refuses '--like must be a target' "$target" target sm_998a --like sm_1a
refuses '--target must be a target' "$target" gemm-test other --target sm_1a --lhs nvfp4 --rhs nvfp4
refuses '--lhs must be a format' 'formats: nvfp4' gemm-test other --target "$target" --lhs int4 --rhs nvfp4
refuses '--rhs must be a format' 'formats: nvfp4' gemm-test other --target "$target" --lhs nvfp4 --rhs bf16
# One file of several cannot be written: its folder has gone.
git mv test/Dialect/Fp4 test/Dialect/Moved && commit moved
refuses 'must be writable' 'no file was changed' pass other --dialect fp4 --summary 'a pass'
echo "each scaffold passes its checks, and each refusal changes nothing"
