#!/usr/bin/env bash
# The lists of the sweeps and of the fuzzer of plans follow the tables of the sources: a new row of
# each table is in them, and without it they are what they were.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$root"
cp --parents -r -t "$tree" validation include/fp4/{Numerics,Dialect} lib/ISA/Targets.cpp \
  lib/Dialect/Fp4/IR/KernelPlan.cpp lib/Sim/Async/Policies.cpp
cd "$tree"
lists() { # prints an entry of a list in each line
  python3 -B - <<'PY'
import sys
sys.path[:0] = ["validation", "validation/fuzz"]
import plans, recipes, spills, sweep, sweep_fp8, sweep_groups, sweep_quantize, sweep_results
import sweep_weights, sweep_wide, sweeping, tables
plans.check_fields()
sweeps = {"sweep": sweep, "groups": sweep_groups, "weights": sweep_weights, "wide": sweep_wide,
          "results": sweep_results}
lists = {f"{name}.FORMATS": module.FORMATS for name, module in sweeps.items()} | {
    "quantize.TARGET": sweep_quantize.TARGET, "quantize.RECIPE": sweep_quantize.RECIPE,
    "quantize.ROUNDING": sweep_quantize.ROUNDING,
    "spills.TARGETS": spills.TARGETS, "fuzz.TARGETS": plans.TARGETS, "fuzz.ORDERS": plans.ORDERS,
    "fuzz.ENGINES": plans.ENGINES, "policies": {policy for policy, _ in sweeping.schedules(2)},
    **{f"sweep.PLANS.{name}": plans for name, plans in sweep.PLANS.items()},
    "fp8.TILES": sweep_fp8.TILES, "fp8.LANES": sweep_fp8.LANES, "results.converted": sweep_results.KINDS["converted"][1],
    **{f"groups.{kind}": plans for kind, (_, _, plans, _) in sweep_groups.KINDS.items()}}
fuzzed = " ".join(plans.case_of(1, number).options[2] for number in range(2000))
lists["fuzz.fields"] = {field.name for fields in tables.plan_fields().values() for field in fields
                        if f", {field.name}" in fuzzed}
lists["fuzz.families"] = {family for family in tables.plan_fields() if f"{family}," in fuzzed}
for name, entries in sorted(lists.items()):
    for entry in sorted(map(str, entries)):
        print(name, entry)
PY
}
lists >before
follows() { # file, expression of sed that adds a row, lines that the lists then have besides
  cp "$1" saved
  sed -i -E "$2" "$1"
  ! cmp -s "$1" saved || { echo "error: '$2' must add a row to $1"; exit 1; }
  lists >after
  cp saved "$1"
  diff before after >changes || true
  if [ "$(sed -n 's/^> //p' changes)" != "$(printf '%s\n' "${@:3}" | sort)" ] || grep -q '^<' changes; then
    printf 'error: a row that is added to %s must be in the lists, which change by\n%s\n' "$1" "$(cat changes)"
    exit 1
  fi
}
format='FP4_FORMAT(MXFP4B16, mxfp4_b16, 4E2M1FN, 16, 8E8M0FNU)'
recipe='FP4_RECIPE(b16_floor, MXFP4B16, "an example")'
numerics=include/fp4/Numerics
cp $numerics/Recipes.def recipes
echo "$recipe" >>$numerics/Recipes.def
follows $numerics/Formats.def "\$a $format" 'quantize.RECIPE b16_floor' \
  {groups,results,sweep,weights,wide}'.FORMATS mxfp4_b16'
cp recipes $numerics/Recipes.def
follows $numerics/Recipes.def '$a FP4_RECIPE(upward, MXFP4, "an example")' 'quantize.RECIPE upward'
# All facts of the table but one, which no target has together.
facts=$(grep -oE '\.has\w+' lib/ISA/Targets.cpp | sort -u | sed 's/.*/        & = true,/;/hasFp4Convert/s/true/false/')
follows lib/ISA/Targets.cpp "/^constexpr TargetModel rows/a \    {\n        .name = \"sm_999a\",\n${facts//$'\n'/\\n}\n    }," \
  {fuzz,spills}'.TARGETS sm_999a' 'quantize.TARGET sm_999a'
enumerator() { # the enumeration, and lines as in `follows`
  local file
  file=$(grep -rl "Enum<\"$1\"" include/fp4/Dialect)
  follows "$file" "/Enum<\"$1\"/,/\]>/ s/\]>/, I32EnumAttrCase<\"New\", 99, \"new\">]>/" "${@:2}"
}
enumerator Raster 'fuzz.ORDERS new' 'fp8.LANES new' 'fp8.TILES new' 'groups.converted new' \
  groups.weights{,_warps}' w_new' 'groups.weights_lanes l_new' 'results.converted new' \
  'sweep.PLANS.converted converted_new' 'sweep.PLANS.half_pairs half_pair_new' \
  'sweep.PLANS.others new' 'sweep.PLANS.others taken_over_new' 'sweep.PLANS.warps warps_new'
enumerator Engine 'fuzz.ENGINES new'
enumerator Philox 'quantize.ROUNDING new'
follows lib/Sim/Async/Policies.cpp \
  's/^  if \(text == "lazy"\)/  if (text == "new")\n    return CompletionPolicy::New;\n&/' 'policies new'
cp include/fp4/Dialect/Fp4/IR/KernelPlan.h plan
member() { sed "/^struct KernelPlan {/a \  $1 newField;" plan >include/fp4/Dialect/Fp4/IR/KernelPlan.h; }
fields=lib/Dialect/Fp4/IR/KernelPlan.cpp
row='/^constexpr Field kFields/a \    {"new_field", member<\&KernelPlan::newField>(), of(TileGemm, Gemv)},'
for type in 'std::optional<int64_t>' bool 'std::optional<LaunchDependents>'; do
  member "$type"
  follows $fields "$row" 'fuzz.fields new_field'
done

# A field whose values the fuzzer cannot know, and a table that is not where it was, are errors.
refuses() { # words of the error and its note
  local said
  if said=$(lists 2>&1); then
    echo "error: lists must be refused with '$1'"
    exit 1
  fi
  [[ "$said" == *"error: $1"*"note: "*"$2"* ]] || { echo "error: expects '$1' and '$2', but found: $said"; exit 1; }
}
member 'mlir::Attribute'
sed -i -E "$row" $fields
refuses "the field 'new_field' of tile_gemm must have values" 'add its name to VALUES'
cp plan include/fp4/Dialect/Fp4/IR/KernelPlan.h
cp "$root/$fields" $fields
sed -i 's/Enum<"Raster"/Enum<"Order"/' include/fp4/Dialect/Pipe/IR/*.td
refuses 'expects the enumeration Raster in include/fp4/Dialect, but found none' 'teach validation/tables.py'
echo "the lists follow the tables"
