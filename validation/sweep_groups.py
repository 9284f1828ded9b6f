#!/usr/bin/env python3
"""Compiles grouped GEMMs and split-K, runs them in the simulator and checks every result.

  validation/sweep_groups.py          a covering subset: every pair of values of two parameters
                                      occurs
  validation/sweep_groups.py --full   the cross product
  validation/sweep_groups.py --list   what would run
  validation/sweep_groups.py --plans=warps, converted   groups whose sums are in registers, of
                                 mma.sync for sm_120a and of wgmma for sm_90a
  validation/sweep_groups.py --plans=weights, weights_warps, weights_lanes   groups of activations
                                 without scales, by wgmma, by mma.sync and by tcgen05
  validation/sweep_groups.py --plans=promoted, promoted_warps   groups of FP8 with f32 scales, by
                                 wgmma and by mma.sync, whose codes have the format of a case

A program is a GEMM of operands that are already quantized. The rows of its groups are known when it
is compiled (groups), or a tensor of offsets has them (offsets), or ranges with rows of no group
between them (ranges); or the GEMM has split-K (split), or whose tiles workers share (stream); or
threads multiply a batch of a few rows each (threads). The alpha is none, one number, or one for
each group. An epilogue region adds the bias of each group, or multiplies with a second GEMM of
other weights besides, or gives codes and scales of its elements, or there is none. Activations
without scales are bf16, f16 or e4m3 beside plain weights, or prepacked ones, stacked by the
program. One library is compiled per program and run by fp4-run under every schedule of the
simulator, with its strict hazard check. Prints every failure with the command that repeats it, then
"N passed, N failed".
"""
import itertools
import sys

import recipes
import sweeping
import tables
from matmul_text import Side, matmul

FORMS = ["groups", "offsets", "split", "stream", "threads"]
# Rows of groups: a batch, ragged groups with empty ones and single rows, one group, many.
ROWS = [(40, 40, 40), (170, 0, 1, 130), (1,), (0, 256, 0), tuple((7 * i) % 33 for i in range(20)),
        (3, 3, 3), (8, 8)]
N = [8, 64, 200]
K = [64, 512, 1312]  # 1312 ends half a step early, in a slice of 256 of its own
FORMATS = [name for name, facts in recipes.FORMATS.items() if facts.is_packed]
RESULTS = ["bf16", "f32"]
ALPHAS = ["none", "one", "groups"]
BODIES = ["none", "bias", "gate", "codes"]
RECIPE = recipes.swept()
PLANS = {"chosen": "", "96": "tile = [128, 96, 256]", "256": "tile = [128, 256, 256]",
         "pair": "pair, tile = [256, 192, 256]", "2x1": "cluster = [2, 1], tile = [128, 128, 256]",
         "deep": "tile = [128, 64, 512], stages = 1", "swap": "route = <orientation = swapped>", "workspace": "reduction = workspace",
         "joined": "reduction = cluster, tile = [128, 64, 256]",
         "joined_pairs": "reduction = cluster, pair, tile = [256, 64, 256]",
         "joined_swap": "reduction = cluster, route = <orientation = swapped>"}
WARPS = {"chosen": "", "16": "tile = [16, 64, 128]", "32": "tile = [32, 256, 128]",
         "64": "tile = [64, 128, 256]", "128": "tile = [128, 128, 128]", "shallow": "stages = 1"}
CONVERTED = {"chosen": "", "tall": "tile = [256, 128, 128]", "square": "tile = [128, 128, 128]",
             **sweeping.scheduled(), "shallow": "stages = 1"}
WEIGHTS = {"chosen": "", "w8": "tile = [8, 128, {0}]", "w64": "tile = [64, 128, {0}]", "w128": "tile = [128, 128, {0}]",
           "wide": "tile = [64, 256, {0}]", **sweeping.scheduled("w_")}
#: K is cut in two, and each CTA has both parts: with warpgroups of their own.
SLICED = {"sliced": "tile = [8, 128, 256], sliced_k", "sliced32": "tile = [32, 128, 256], sliced_k"}
LANES = {"chosen": "", "l16": "tile = [16, 128, 128]", "l32": "tile = [32, 128, {0}]", "l64": "tile = [64, 128, 128]",
         "l256": "tile = [256, 128, 128]", **sweeping.scheduled("l_"),
         "l_shallow": "stages = 1"}
#: Elements of lhs, and what the weights are, where lhs has no scales, and where it has.
CODES, LHS = ("codes",), ("bf16 plain", "bf16 prepacked", "f16 prepacked", "f8E4M3FN prepacked", "f8E4M3FN plain")
SCALED, FP8 = ("f4E2M1FN prepacked",), ("fp8_block128 scaled",)
PROMOTED = {"chosen": "", "p56": "tile = [64, 56, 128]", "p96": "tile = [128, 96, 128]", "square": "tile = [128, 128, 128]",
            "tall": "tile = [256, 128, 128]"}
PROMOTED_WARPS = {"chosen": "", "w32": "tile = [64, 32, 128]", "w128x64": "tile = [128, 64, 128]", "w64x128": "tile = [64, 128, 128]"}
WEIGHT_FORMS = ["groups", "offsets", "ranges"]
KINDS = {"tcgen05": ("sm_100a", FORMS, PLANS, CODES), "warps": ("sm_120a", FORMS[:2], WARPS, CODES),
         "converted": ("sm_90a", FORMS[:2], CONVERTED, CODES),
         "weights": ("sm_90a", WEIGHT_FORMS, WEIGHTS | SLICED, LHS + SCALED),
         "weights_warps": ("sm_120a", WEIGHT_FORMS, WEIGHTS, LHS[:3] + LHS[4:]),
         "weights_lanes": ("sm_100a", WEIGHT_FORMS, LANES, LHS),
         "promoted": ("sm_90a", WEIGHT_FORMS, PROMOTED, FP8), "promoted_warps": ("sm_120a", WEIGHT_FORMS, PROMOTED_WARPS, FP8)}
#: 200 and 176 end within a tile of prepacked weights.
WEIGHT_N, WEIGHT_K = [128, 256, 200], [64, 320, 384, 176]
SCHEDULES = sweeping.schedules(2)

LAYOUT = "#fp4.scale_layout<tiled_128x4>"


def tiles(rows, blocks):
    """Blocks of 128 rows and 4 columns of scales that the groups have."""
    return sum(-(-count // 128) for count in rows) * -(-blocks // 4)


def operand(name, count, k, fmt, list_rows):
    """Arguments and lines of `count` rows, and the operand that they are; their scales are a list
    of tiles, or are swizzled."""
    facts = recipes.FORMATS[fmt]
    data, linear = f"tensor<{count}x{k}xf4E2M1FN>", f"tensor<{count}x{k // facts.block}x{facts.scale}>"
    if list_rows is not None:
        tiled = f"tensor<{128 * list_rows}x4x{facts.scale}, {LAYOUT}>"
        return [f"%q{name}: {data}", f"%s{name}: {tiled}"], [], Side(f"%q{name}", data, f"%s{name}", tiled, fmt)
    tiled = f"{linear[:-1]}, {LAYOUT}>"
    swizzle = f"  %t{name} = fp4.swizzle_scales %s{name} : {linear} -> {tiled}"
    return ([f"%q{name}: {data}", f"%s{name}: {linear}"], [swizzle],
            Side(f"%q{name}", data, f"%t{name}", tiled, fmt))


def prepacked(name, fmt, n, groups, k, element):
    """Arguments and lines of weights that are stacked and that the program prepacks, and the
    operand that they are."""
    facts = recipes.FORMATS[fmt]
    columns = 128 if element == "f8E4M3FN" else 64
    tile = columns * 128 // 2 + columns * 128 // facts.block
    count, rows_of_tiles = n * groups, -(-n // 128) * groups
    data, scales = f"tensor<{count}x{k}xf4E2M1FN>", f"tensor<{count}x{k // facts.block}x{facts.scale}>"
    packed = f"tensor<{rows_of_tiles}x{-(-k // columns)}x{tile}xi8, #fp4.weight_layout<wgmma>>"
    attributes = f"format = #fp4.format<{fmt}>" + (f", groups = {groups} : i64" if n % 128 else "")
    line = f"  %p{name} = fp4.prepack %q{name} scaled %s{name} {{{attributes}}} : ({data}, {scales}) -> {packed}"
    return [f"%q{name}: {data}", f"%s{name}: {scales}"], [line], Side(f"%p{name}", packed)


def promoted(name, rows, k, bands):
    """Rows of FP8 with f32 scales, a row of them for each band."""
    data, scales = f"tensor<{rows}x{k}xf8E4M3FN>", f"tensor<{bands}x{-(-k // 128)}xf32>"
    return [f"%q{name}: {data}", f"%s{name}: {scales}"], [], Side(f"%q{name}", data, f"%s{name}", scales, "fp8_block128")


def weights_of(name, form, rows, n, k, fmt, lhs):
    """The weights of all groups."""
    facts, groups = recipes.FORMATS[fmt], len(rows)
    if lhs in FP8:
        return promoted(name, n * groups, k, -(-n // 128) * groups)
    if form in ("split", "stream"):
        return operand(name, n, k, fmt, None)
    if lhs.endswith("prepacked"):
        return prepacked(name, fmt, n, groups, k, lhs.split()[0])
    return operand(name, n * groups, k, fmt, tiles([n] * groups, k // facts.block))


def activations(form, rows, k, fmt, lhs):
    facts, groups, m = recipes.FORMATS[fmt], len(rows), sum(rows)
    if lhs in FP8:
        return promoted("x", m, k, m)
    if lhs not in CODES + SCALED:
        x = f"tensor<{m}x{k}x{lhs.split()[0]}>"
        return [f"%x: {x}"], [], Side("%x", x)
    if form in ("split", "stream"):
        return operand("x", m, k, fmt, None)
    blocks = k // facts.block
    room = tiles(rows, blocks) if form in ("groups", "threads") else (m // 128 + groups) * -(-blocks // 4)
    return operand("x", m, k, fmt, room)


def shares(m, n, k, plan):
    """The tile of the plan, and so many workers that some tiles are shared, by two or by three."""
    height, width = {"96": (128, 96), "256": (128, 256), "pair": (256, 192)}.get(plan, (128, 64))
    count = -(-m // height) * -(-n // width)
    return max(1, count * min(3, -(-k // 256)) - 1), height, width


def ranges_of(rows):
    """Returns the range of each group, whose last row is of none if it has several."""
    ends = itertools.accumulate(rows)
    return [[end - count, end - (count > 1)] for count, end in zip(rows, ends)]


def is_mx(fmt):
    return recipes.FORMATS[fmt].is_mx


def quantize_line(value, element, fmt):
    amax, kind = ("", "") if is_mx(fmt) else (" amax %most", ", f32")
    return (f"    %code, %scale = fp4.epilogue_quantize {value}{amax} {{recipe = #fp4.recipe<{RECIPE[fmt]}>}}"
            f" : ({element}{kind}) -> (f4E2M1FN, {recipes.FORMATS[fmt].scale})")


def with_body(after, result, groups, n, fmt):
    """An epilogue region that adds a row of each group, and the type of all rows; or one that
    multiplies two sums. The elements of `fmt` are quantized where codes come after."""
    if after == "none":
        return "", []
    lines = ["", "  ^bb0(%sum: f32, %b: bf16):", "    %wide = arith.extf %b : bf16 to f32",
             "    %all = arith.addf %sum, %wide : f32"]
    if after == "codes":
        lines = ["", f"  ^bb0(%all: f32{'' if is_mx(fmt) else ', %most: f32'}):"]
    if after == "gate":
        lines = ["", "  ^bb0(%sum: f32, %gate: f32):", "    %all = arith.mulf %sum, %gate : f32"]
    if result != "f32":
        lines.append(f"    %z = arith.truncf %all : f32 to {result}")
    value, kind = "%all" if result == "f32" else "%z", result
    if after == "codes":
        lines.append(quantize_line(value, result, fmt))
        value, kind = "%code, %scale", f"f4E2M1FN, {recipes.FORMATS[fmt].scale}"
    lines.append(f"    fp4.yield {value} : {kind}\n  ")
    return "\n".join(lines), [f"tensor<{groups}x1x{n}xbf16>"] if after == "bias" else []


def groups_of(form, rows, n, k, plan):
    """Lines, and parts of the GEMM, that say what it consists of."""
    splits = ("split_k = 2",) if plan in SLICED else ()
    batch = {"work": (*splits, f"groups = [{', '.join(map(str, rows))}]")}
    if form in ("threads", "groups"):
        return [], batch
    if form == "stream":
        return [], {"work": (f"stream_k = [{', '.join(map(str, shares(sum(rows), n, k, plan)))}]",)}
    if form == "split":
        return [], {"work": (f"split_k = {-(-k // 256)}",)}
    kind, numbers = f"tensor<{len(rows) + 1}xi64>", list(itertools.accumulate(rows, initial=0))
    if form == "ranges":
        kind, numbers = f"tensor<{len(rows)}x2xi64>", ranges_of(rows)
    return ([f"  %o = arith.constant dense<{numbers}> : {kind}"],
            {"offsets": "%o", "offsets_type": kind, **({"work": splits} if splits else {})})


def results_of(form, rows, n, fmt, result, after):
    """Types of results, and of the amax that they need. Scales of nvfp4 are row-major."""
    m, facts = sum(rows), recipes.FORMATS[fmt]
    if after != "codes":
        return [f"tensor<{m}x{n}x{result}>"], []
    blocks = n // facts.block
    room = tiles(rows, blocks) if form == "groups" else (m // 128 + len(rows)) * -(-blocks // 4)
    scales = f"tensor<{128 * room}x4x{facts.scale}, {LAYOUT}>" if facts.is_mx else f"tensor<{m}x{blocks}x{facts.scale}>"
    return [f"tensor<{m}x{n}xf4E2M1FN>", scales], [] if facts.is_mx else ["tensor<f32>"]


def program(form, rows, n, k, fmt, result, alpha, plan, lhs="codes", after="none"):
    groups = len(rows)
    sides = [activations(form, rows, k, fmt, lhs), weights_of("w", form, rows, n, k, fmt, lhs)]
    arguments, body = (sum((side[i] for side in sides), []) for i in range(2))
    factor = {}
    if alpha != "none":
        sizes = {"groups": f"{groups}x", "rows": f"{sum(rows)}x1x"}.get(alpha, "")
        kind_of_alpha = f"tensor<{sizes}f32>"
        arguments.append(f"%alpha: {kind_of_alpha}")
        factor = {"alpha": "%alpha", "alpha_type": kind_of_alpha}
    region, inputs = with_body(after, result, groups, n, fmt)
    inputs = [("%bias", kind) for kind in inputs]
    lines, parts = groups_of(form, rows, n, k, plan)
    body += lines
    second = None
    if after == "gate":
        more, lines, second = weights_of("v", form, rows, n, k, fmt, lhs)
        arguments, body = arguments + more, body + lines
    attributes = ["arithmetic = #fp4.matmul_arithmetic<fma>"] * (form == "threads")
    if partial := (PLANS | WARPS | CONVERTED | WEIGHTS | SLICED | LANES | PROMOTED | PROMOTED_WARPS)[plan]:
        halves = plan == "l32" and lhs.endswith("prepacked")  # k tiles of one tile of weights
        partial = partial.format(256 if lhs.startswith("f8") else 64 if halves else 128)
        attributes.append(f"fp4.plan = #fp4.plan<tile_gemm, {partial}>")
    given, amax = results_of(form, rows, n, fmt, result, after)
    inputs += [("%given", kind) for kind in amax]
    arguments += [f"{name}: {kind}" for name, kind in inputs]
    y, names = ", ".join(given), ", ".join(f"%y{i}" for i in range(len(given)))
    body += [*matmul(names, f"({y})", *(side[2] for side in sides), rhs2=second, **factor, **parts,
                     inputs=tuple(inputs), region=region, attributes=tuple(attributes)),
             f"  return {names} : {y}"]
    return "\n".join([f"func.func @product({', '.join(arguments)}) -> ({y}) {{", *body, "}", ""])


#: Plans whose tiles are too large for the sums of two GEMMs.
SINGLE = {"tcgen05": ["256", "pair"], "warps": ["128"], "converted": ["tall"], "weights": ["wide"],
          "weights_warps": ["wide", "w128"], "weights_lanes": ["l256"], "promoted": ["tall"], "promoted_warps": ["w64x128"]}
#: Tiles that do not have whole words of scales, or all rows of threads.
WITHOUT_CODES = {"tcgen05": ["96", "deep", "pair"], "warps": ["16", "32", "64", "128"], "converted": ["tall"],
                 "weights": [], "weights_warps": [], "weights_lanes": ["l16"], "promoted": ["p56", "p96", "tall"],
                 "promoted_warps": ["w32", "w64x128"]}


def multiplies(kind, case):
    """Weights and activations go together, and the tile goes with both."""
    _, _, n, k, fmt, _, alpha, plan, lhs, after = case
    element, weights = lhs.split()
    if lhs == "f8E4M3FN prepacked" and (plan in ("l256", "l32") or after == "gate" and kind != "weights_lanes"):
        return False
    if plan in SLICED and not (lhs.endswith("6 prepacked") and 256 < k and after in ("none", "bias")):
        return False
    if lhs in SCALED + FP8 and (alpha == "rows" or k % 32):
        return False
    if fmt == "mxfp4" and k % 32 or fmt == "nvfp4" and element == "f8E4M3FN":
        return False
    if lhs == "f8E4M3FN plain":  # tiles are those of operands with scales
        return k % 128 == 0 and (plan == "chosen" or plan.endswith(tuple(tables.rasters())))
    return plan != "wide" or weights == "prepacked" and n % 256 == 0


def all_cases(kind):
    _, forms, plans, left = KINDS[kind]
    if left != CODES:
        alphas = [*ALPHAS, "rows"]
        for case in itertools.product(forms, ROWS, WEIGHT_N, WEIGHT_K, FORMATS, RESULTS, alphas, plans, left, BODIES):
            if not multiplies(kind, case):
                continue
            form, _, n, *_, plan, lhs, after = case
            has_codes = n % 64 == 0 and form != "ranges" and plan not in WITHOUT_CODES[kind]
            if (after != "gate" or plan not in SINGLE[kind]) and (after != "codes" or has_codes):
                yield case
        return
    for case in itertools.product(forms, ROWS, N, K, FORMATS, RESULTS, ALPHAS, plans, left, BODIES):
        form, rows, n, k, _, _, alpha, plan, _, after = case
        if after != "none" and form in ("split", "stream"):
            continue
        if after == "gate" and plan in SINGLE[kind]:
            continue
        if after == "codes" and (form == "threads" or n % 64 or plan in WITHOUT_CODES[kind]):
            continue
        if plan == "swap" and form != "split" or plan != "chosen" and form == "threads":
            continue
        if (plan == "workspace" or plan.startswith("joined")) and (form != "split" or k <= 256):
            continue
        if form == "threads" and (max(rows) > 8 or len(set(rows)) > 1):
            continue
        if form == "stream" and plan not in ("chosen", "96", "256", "pair"):
            continue
        if form in ("split", "stream") and (alpha == "groups" or len(rows) > 3 or plan == "deep"):
            continue  # the groups are only how many rows there are
        yield case


def main():
    parser = sweeping.product_parser(__doc__)
    parser.add_argument("--plans", default="tcgen05", choices=KINDS)
    options = parser.parse_args()
    cases = all_cases(options.plans) if options.full else sweeping.covering(all_cases(options.plans))
    arguments = [f"--target={KINDS[options.plans][0]}"]
    programs = [sweeping.Program(sweeping.file_name(*case), program(*case), arguments,
                                 sweeping.with_powers([[]]) if {"mxfp4", "bf16 prepacked"} < set(case) else [[]])
                for case in cases]
    return sweeping.run_gemms(options, programs, SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
