#!/usr/bin/env python3
"""Compiles chains with reductions of rows, runs them in the simulator and checks.

  validation/sweep_rows.py          a covering subset: every pair of values of two parameters occurs
  validation/sweep_rows.py --full   the cross product
  validation/sweep_rows.py --list   what would run

A program is a norm of a matrix or of a matrix plus a residual, which is rounded before the norm or
beside it ("exact"), the gradient of a norm, a softmax, or a rotation of halves, of neighbours or of
some columns ("partial"), behind a norm of the row or not, and what follows it: nothing, codes and
scales, codes behind the amax of the tensor or of each row, codes that are rounded stochastically,
or FP8 under one scale for each row or for 128 elements. The elements in bf16 are a result besides,
or not. One CTA has a row, or several CTAs of a cluster, or as many as the compiler chooses. A CTA
takes one row, or the four of a strip, or "eight" where scales are not tiled, of which the next one
waits in registers or, "staged", in shared memory, and the last rows have a CTA each ("ends"). The
reference executes the operations of the program one by one, and every result must be equal bit by
bit, also for infinite, subnormal and NaN inputs. Each library runs under every schedule of the
simulator with its strict hazard check. Programs whose operations did not become one kernel count as
failed; the amax of a tensor has another one.
"""
import itertools
import subprocess
import sys

import recipes
import sweeping

ROTATION = ["halves", "neighbours", "partial"]
CHAIN = ["rms", "residual", "exact", "layer", "gradient", "softmax", *ROTATION, *(f"norm_{kind}" for kind in ROTATION)]
AFTER = ["none", "nvfp4", "amax", "token", "mxfp4", "mxfp8_e4m3", "fp8_row", "fp8_block", "nvfp4_random", "mxfp4_random"]
SCALES = ["tiled", "linear"]
ELEMENTS = ["kept", "gone"]
TYPE = ["bf16", "f16", "f32"]
ROWS = ["1", "5", "130", "?0", "?1", "?37"]  # dynamic ones with the number that runs
COLUMNS = [3, 17, 40, 96, 512, 560, 1056, 4672, 9232, 16411, 17424]
CLUSTER = [0, 1, 2, 3, 8, 16]  # 0: the compiler decides
THREADS = [0, 32, 96, 256]
STRIP = {"": "", "strip": "strip = 4", "staged": "strip = 4, stages = 1", "ends": "strip = 4, stages = 1, single_rows = 3",
         "eight": "strip = 8, stages = 1, single_rows = 1"}
DIST = ["gaussian", "adversarial", "zeros"]
TARGET = ["sm_90a", "sm_100a", "sm_120a"]
SCHEDULES = sweeping.schedules(1)
LAYOUT = ", #fp4.scale_layout<tiled_128x4>"
RECIPE = recipes.swept()


def matrix(rows, columns, element, layout=""):
    return f"tensor<{rows}x{columns}x{element}{layout}>"


def reduction(name, value, kind, element, combine, start, more="", other=None):
    """Lines that combine what `element` computes of %v as %e; `more` is an operand with a number,
    %s, for each row, and `other` one with a matrix, %g."""
    maps = "#all, #row, #row" if more else "#all, #all, #row" if other else "#all, #row"
    of = kind.split("x")[-1][:-1]
    ins = f"{value}, {more} : {kind}, NUMBERS" if more else f"{value} : {kind}"
    if other:
        ins = f"{value}, {other[0]} : {kind}, {other[1]}"
    return [f"  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"reduction\"]}}",
            f"      ins({ins}) outs(%{start} : NUMBERS) {{",
            f"  ^bb0(%v: {of}{', %s: f32' if more else f', %g: {of}' if other else ''}, %acc: f32):", *widened(of), *element,
            f"    %n = arith.{combine} %acc, %e : f32", "    linalg.yield %n : f32", "  } -> NUMBERS"]


def widened(element):
    return ["    %zero = arith.constant -0.0 : f32",
            "    %f = arith.addf %v, %zero : f32" if element == "f32" else f"    %f = arith.extf %v : {element} to f32"]


def chain(kind, element, rows, columns, value):
    """Lines that compute %y, a matrix of bf16, of `value`."""
    x, y = matrix(rows, columns, element), matrix(rows, columns, "bf16")
    mean = [f"    %c = arith.constant {1 / columns!r} : f32"]
    if kind == "softmax":
        lines = reduction("most", value, x, ["    %e = arith.addf %f, %zero : f32"], "maximumf", "least")
        exp = ["    %d = arith.subf %f, %s : f32", "    %e = math.exp %d : f32"]
        lines += reduction("sum", value, x, exp, "addf", "init", "%most")
        body, numbers = [*exp, "    %h = arith.divf %e, %t : f32"], ["%most", "%sum"]
    elif kind == "gradient":  # of x, which the products of x with it and with itself decide
        lines = reduction("along", value, x, ["    %e = arith.mulf %f, %f : f32"], "addf", "init")
        ofg = "    %gf = arith.addf %g, %zero : f32" if element == "f32" else f"    %gf = arith.extf %g : {element} to f32"
        lines += reduction("sum", value, x, [ofg, "    %e = arith.mulf %f, %gf : f32"], "addf", "init", other=("%r", x))
        body, numbers = [*mean, "    %ms = arith.mulf %s, %c : f32", "    %rs = math.rsqrt %ms : f32",
                         "    %mp = arith.mulf %t, %c : f32", "    %d = arith.mulf %f, %mp : f32", "    %h = arith.mulf %d, %rs : f32"], ["%along", "%sum"]
    else:
        square = "    %e = arith.mulf %f, %f : f32"
        lines, numbers = [], ["%sum", "%sum"]
        if kind == "layer":
            lines += reduction("total", value, x, ["    %e = arith.addf %f, %zero : f32"], "addf", "init")
            centred = [*mean, "    %mu = arith.mulf %s, %c : f32", "    %d = arith.subf %f, %mu : f32"]
            lines += reduction("sum", value, x, [*centred, "    %e = arith.mulf %d, %d : f32"], "addf", "init", "%total")
            body, numbers = centred, ["%total", "%sum"]
        else:
            lines += reduction("sum", value, x, [square], "addf", "init")
            body = [*mean, "    %d = arith.addf %f, %zero : f32"]
        body += ["    %ms = arith.mulf %t, %c : f32", "    %rs = math.rsqrt %ms : f32", "    %h = arith.mulf %d, %rs : f32"]
    return [*lines, "  %y = linalg.generic {indexing_maps = [#all, #row, #row, #column, #all], iterator_types = [\"parallel\", \"parallel\"]}",
            f"      ins({value}, {', '.join(numbers)}, %w : {x}, NUMBERS, NUMBERS, tensor<{columns}xbf16>) outs(%empty : {y}) {{",
            f"  ^bb0(%v: {element}, %s: f32, %t: f32, %g: bf16, %o: bf16):", *widened(element), *body,
            "    %gw = arith.extf %g : bf16 to f32", "    %p = arith.mulf %h, %gw : f32",
            "    %b = arith.truncf %p : f32 to bf16", "    linalg.yield %b : bf16", f"  }} -> {y}"]


def normed(element, rows, columns, value):
    """Lines that compute %normed, a matrix of bf16."""
    x, y = matrix(rows, columns, element), matrix(rows, columns, "bf16")
    return [*reduction("sum", value, x, ["    %e = arith.mulf %f, %f : f32"], "addf", "init"),
            "  %normed = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = [\"parallel\", \"parallel\"]}",
            f"      ins({value}, %sum, %w : {x}, NUMBERS, tensor<{columns}xbf16>) outs(%empty : {y}) {{",
            f"  ^bb0(%v: {element}, %s: f32, %g: bf16, %o: bf16):", *widened(element), f"    %c = arith.constant {1 / columns!r} : f32",
            "    %ms = arith.mulf %s, %c : f32", "    %rs = math.rsqrt %ms : f32", "    %h = arith.mulf %f, %rs : f32",
            "    %gw = arith.extf %g : bf16 to f32", "    %p = arith.mulf %h, %gw : f32",
            "    %b = arith.truncf %p : f32 to bf16", "    linalg.yield %b : bf16", f"  }} -> {y}"]


def rotated(values, element, maps, types, result, body, name="y", out="%empty"):
    """Lines that compute bf16 as %e of the values %f and %pf, which are rotated, %s and %t."""
    names = ["%v", "%g", "%s", "%t"][:len(values)]
    of = [element, element, "f32", "f32"]
    wide = widened(element)
    if len(values) > 1:
        wide += [wide[1].replace("%f =", "%pf =").replace("%v", "%g")]
    return [f"  %{name} = linalg.generic {{indexing_maps = [{', '.join([*maps, '#all'])}], iterator_types = [\"parallel\", \"parallel\"]}}",
            f"      ins({', '.join(values)} : {', '.join(types)}) outs({out} : {result}) {{",
            f"  ^bb0({', '.join(f'{name}: {kind}' for name, kind in zip(names, of))}, %o: bf16):", *wide, *body,
            "    %b = arith.truncf %e : f32 to bf16", "    linalg.yield %b : bf16", f"  }} -> {result}"]


def rotated_columns(columns):
    """Columns of one of the two parts of a partial rotation: whole chunks if there are."""
    return columns // 64 * 16 or max(1, columns // 4)


def partial(element, rows, columns, value):
    """Lines with slices and a concatenation: some columns are rotated, and others pass."""
    half = rotated_columns(columns)
    x, y = matrix(rows, columns, element), matrix(rows, columns, "bf16")
    size, widths = "%m" if rows == "?" else rows, [half, half, columns - 2 * half]
    lines, start = [], 0
    for name, width in zip(["part0", "part1", "part2"], widths):
        lines += [f"  %{name} = tensor.extract_slice {value}[0, {start}] [{size}, {width}] [1, 1] : {x} to {matrix(rows, width, element)}",
                  f"  %{name}o = tensor.empty({'%m' if rows == '?' else ''}) : {matrix(rows, width, 'bf16')}"]
        start += width
    part, table, result = (matrix(rows, half, kind) for kind in (element, "f32", "bf16"))
    products = ["    %u = arith.mulf %f, %s : f32", "    %z = arith.mulf %pf, %t : f32"]
    for name, values, step in (("first", ["%part0", "%part1"], "subf"), ("second", ["%part1", "%part0"], "addf")):
        lines += rotated([*values, "%cos", "%sin"], element, ["#all"] * 4, [part, part, table, table], result,
                         [*products, f"    %e = arith.{step} %u, %z : f32"], name, f"{values[0]}o")
    rest, last = "%part2", matrix(rows, widths[2], "bf16")
    if element != "bf16":
        rest = "%third"
        lines += rotated(["%part2"], element, ["#all"], [matrix(rows, widths[2], element)], last,
                         ["    %e = arith.addf %f, %zero : f32"], "third", "%part2o")
    return [*lines, f"  %y = tensor.concat dim(1) %first, %second, {rest} : ({result}, {result}, {last}) -> {y}"]


def rotation(kind, element, rows, columns, value):
    """Lines that compute %y, a matrix of bf16, of `value`: two rows share the angles of halves, and
    neighbours have four rows of them."""
    x, y = matrix(rows, columns, element), matrix(rows, columns, "bf16")
    table = matrix(4 if kind == "neighbours" else rows, columns // 2, "f32")
    column = ["    %i = linalg.index 1 : index", "    %c = arith.index_cast %i : index to i32"]
    if kind == "halves":
        test = [f"    %k = arith.constant {columns // 2} : i32", "    %is = arith.cmpi ult, %c, %k : i32"]
    else:
        test = ["    %k = arith.constant 1 : i32", "    %l = arith.andi %c, %k : i32", "    %is = arith.cmpi ne, %l, %k : i32"]
    body = [*column, *test, "    %minus = arith.negf %pf : f32", "    %p = arith.select %is, %minus, %pf : f32",
            "    %u = arith.mulf %f, %s : f32", "    %z = arith.mulf %p, %t : f32", "    %e = arith.addf %u, %z : f32"]
    return rotated([value, value, "%cos", "%sin"], element, ["#all", f"#{kind}", f"#{kind}_angle", f"#{kind}_angle"],
                   [x, x, table, table], y, body)


def rotation_tables(kind, rows, columns):
    """Arguments of a rotation."""
    width = rotated_columns(columns) if kind == "partial" else columns // 2
    table = matrix(4 if kind == "neighbours" else rows, width, "f32")
    return [f"%cos: {table}", f"%sin: {table}"]


def rotation_maps(columns):
    half = columns // 2
    return [f"#halves = affine_map<(i, j) -> (i, (j + {half}) mod {2 * half})>",
            f"#halves_angle = affine_map<(i, j) -> (i floordiv 2, j mod {half})>",
            "#neighbours = affine_map<(i, j) -> (i, j + 1 - (j mod 2) * 2)>",
            "#neighbours_angle = affine_map<(i, j) -> (i mod 4, j floordiv 2)>"]


def quantizer(after, layout, rows, columns):
    """Lines that quantize %y, and the types of codes and scales."""
    y, numbers = matrix(rows, columns, "bf16"), f"tensor<{rows}xf32>"
    if after in ("fp8_row", "fp8_block"):
        block = columns if after == "fp8_row" else 128
        types = [matrix(rows, columns, "f8E4M3FN"), matrix(rows, -(-columns // block), "f32")]
        attributes = f"format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, {block}>"
        return [f"  %z:2 = fp4.quantize %y {{{attributes}}} : ({y}) -> ({', '.join(types)})"], types
    fmt = "nvfp4" if after in ("amax", "token") else after.removesuffix("_random")
    facts = recipes.FORMATS[fmt]
    types = [matrix(rows, columns, "f4E2M1FN" if facts.is_packed else "f8E4M3FN"),
             matrix(rows, -(-columns // facts.block), facts.scale, LAYOUT if layout == "tiled" else "")]
    lines, amax, kind, rest = [], "", "", ""
    if after == "token":
        lines = [f"  %a = fp4.amax %y {{per_row}} : {y} -> {numbers}"]
        amax, kind, rest = " amax %a", f", {numbers}", ", per_row"
    elif after == "amax":
        lines = [f"  %a = fp4.amax %y : {y} -> tensor<f32>"]
        amax, kind = " amax %a", ", tensor<f32>"
    elif not facts.is_mx:
        amax, kind = " amax %given", ", tensor<f32>"
    recipe = RECIPE[fmt]
    if after.endswith("_random"):
        amax, kind, rest = f"{amax} rng %rng", f"{kind}, tensor<2xi64>", ", rounding = #fp4.rounding<stochastic>"
    return [*lines, f"  %z:2 = fp4.quantize %y{amax} {{format = #fp4.format<{fmt}>, recipe = #fp4.recipe<{recipe}>{rest}}}"
            f" : ({y}{kind}) -> ({', '.join(types)})"], types


def program(case):
    kind, after, layout, kept, element, rows, columns, *_ = case
    rows = "?" if rows[0] == "?" else rows
    x, y, numbers = matrix(rows, columns, element), matrix(rows, columns, "bf16"), f"tensor<{rows}xf32>"
    size = "(%m)" if rows == "?" else "()"
    body = ["  %c0 = arith.constant 0 : index", f"  %m = tensor.dim %x, %c0 : {x}"] if rows == "?" else []
    body += ["  %none = arith.constant 0.0 : f32", "  %low = arith.constant 0xFF800000 : f32",
             f"  %place = tensor.empty{size} : {numbers}", f"  %empty = tensor.empty{size} : {y}",
             f"  %init = linalg.fill ins(%none : f32) outs(%place : {numbers}) -> {numbers}",
             f"  %least = linalg.fill ins(%low : f32) outs(%place : {numbers}) -> {numbers}"]
    arguments, results, types = [f"%x: {x}", f"%w: tensor<{columns}xbf16>", "%given: tensor<f32>", "%rng: tensor<2xi64>"], [], []
    value = "%x"
    if kind in ("residual", "exact", "gradient"):
        arguments.append(f"%r: {x}")
    if kind == "exact":
        wide = matrix(rows, columns, "f32")
        body += [f"  %{value}w = arith.extf %{value} : {x} to {wide}" for value in "xr"]
        body += [f"  %sumw = arith.addf %xw, %rw : {wide}", f"  %sumh = arith.truncf %sumw : {wide} to {x}"]
        value, element, results, types = "%sumw", "f32", ["%sumh"], [x]
    if kind == "residual":
        body.append(f"  %sumh = arith.addf %x, %r : {x}")
        value, results, types = "%sumh", ["%sumh"], [x]
    lines, of = [], kind.removeprefix("norm_")
    if of in ROTATION:
        arguments += rotation_tables(of, rows, columns)
        if of != kind:
            lines, element, value = normed(element, rows, columns, value), "bf16", "%normed"
        lines += partial(element, rows, columns, value) if of == "partial" else rotation(of, element, rows, columns, value)
    else:
        lines = chain(kind, element, rows, columns, value)
    body += [line.replace("NUMBERS", numbers) for line in lines]
    if kept == "kept":
        results, types = [*results, "%y"], [*types, y]
    if after != "none":
        lines, more = quantizer(after, layout, rows, columns)
        body, results, types = body + lines, [*results, "%z#0", "%z#1"], types + more
    return "\n".join(["#all = affine_map<(i, j) -> (i, j)>", "#row = affine_map<(i, j) -> (i)>",
                      "#column = affine_map<(i, j) -> (j)>", *(rotation_maps(columns) if of in ROTATION else ()),
                      f"func.func @rows({', '.join(arguments)}) -> ({', '.join(types)}) {{", *body,
                      f"  return {', '.join(results)} : {', '.join(types)}", "}", ""])


def takes_strip(case):
    """Returns true when all threads of a CTA keep a row and, with stages, copies find it whole."""
    kind, after, layout, _, element, _, columns, strip, cluster, threads, *_ = case
    if after == "amax" or cluster > 1 or not threads:
        return False
    if strip == "eight" and layout == "tiled" and after != "none" and not after.startswith("fp8"):
        return False
    chunks, matrices = -(-columns // 16), 2 if kind in ("residual", "exact", "gradient") else 1
    each, words = -(-(-(-chunks // 8) * 8) // threads), 16 if element == "f32" else 8
    if chunks > 1024 and not cluster:  # the compiler decides for several CTAs
        return False
    if chunks <= threads // 2 or (each > 1 and each * words * matrices > 64) or kind.removeprefix("norm_") in ROTATION:
        return False
    return strip == "strip" or (columns % 16 == 0 and columns * 2 * words // 8 * matrices <= 32768)


def valid(case):
    kind, after, layout, kept, element, rows, columns, strip, *_ = case
    if strip and not takes_strip(case):
        return False
    if kind == "exact" and element == "f32":
        return False
    if kind in ("halves", "neighbours") and columns % 2:
        return False
    if kind.startswith("norm_") and columns % (32 if kind == "norm_halves" else 16):  # others are no whole chunks
        return False
    if kind.endswith("partial") and rows == "1":  # slices of one row are views of memory
        return False
    if kind == "norm_partial" and columns < 64:
        return False
    if after == "none" and (kept == "gone" or layout == "linear"):
        return False
    if after.startswith("fp8") and (layout == "linear" or columns % 16):
        return False
    if after.startswith("mx") and columns % 32:
        return False
    if case[8] > 8 and case[-1] == "sm_120a":  # such clusters are not portable
        return False
    return columns < 4000 or rows in ("1", "5", "?0", "?1")  # the simulator takes seconds for more


def has_its_kernels(tools, path):
    planned = subprocess.run([tools / "fp4-runner", path, "--emit=mlir", "--compile-to=planned"],
                             capture_output=True, text=True, check=False).stdout
    kernels, expected = planned.count("fp4.plan = "), 2 if "_amax_" in path.name else 1
    return [] if kernels == expected else [f"must have {expected} kernels, but has {kernels}\n"]


def library(case):
    rows, strip, cluster, threads, dist, target = case[5], *case[-5:]
    plan = [STRIP[strip]] * bool(strip) + [f"cluster = [1, {cluster}]"] * bool(cluster) + [f"threads = {threads}"] * bool(threads)
    arguments = [f"--target={target}"] + ([f"--plan={', '.join(['reduce_rows', *plan])}"] if plan else [])
    run = [f"--dist={dist}"] + ([f"--shape={rows[1:]}"] if rows[0] == "?" else [])
    return sweeping.Program(sweeping.file_name(*case), program(case), arguments, [run])


def main():
    options = sweeping.product_parser(__doc__).parse_args()
    cases = list(filter(valid, itertools.product(CHAIN, AFTER, SCALES, ELEMENTS, TYPE, ROWS, COLUMNS, list(STRIP), CLUSTER, THREADS, DIST, TARGET)
                        if options.full else ()))
    if not options.full:
        parameters = [CHAIN, AFTER, SCALES, ELEMENTS, TYPE, ROWS, COLUMNS, list(STRIP), CLUSTER, THREADS, DIST, TARGET]
        cases = sweeping.sampled_covering(parameters, valid, lambda i, j: True)
    return sweeping.run_gemms(options, [library(case) for case in cases], SCHEDULES, has_its_kernels)


if __name__ == "__main__":
    sys.exit(main())
