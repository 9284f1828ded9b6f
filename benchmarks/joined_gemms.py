#!/usr/bin/env python3
"""Writes programs of GEMMs that one kernel can join, and of those that it joins.

`gates` are of threads that multiply few rows with gate and up: a dual GEMM, or two GEMMs of which
the second reads the first. `experts` are groups of e4m3 and MXFP4, plain or prepacked.

  benchmarks/joined_gemms.py gates|experts > FILE
  fp4-runner FILE --target=sm_90a --emit=so -o LIBRARY
  fp4-run LIBRARY --function NAME --device cuda --benchmark --warm 20
"""
import sys

LAYOUT = "#fp4.scale_layout<tiled_128x4>"
FMA = "arithmetic = #fp4.matmul_arithmetic<fma>"
SILU = ["%one = arith.constant 1.0 : f32", "%less = arith.negf %f : f32", "%power = math.exp %less : f32",
        "%sum = arith.addf %power, %one : f32", "%silu = arith.divf %f, %sum : f32",
        "%product = arith.mulf %silu, %s : f32", "%rounded = arith.truncf %product : f32 to bf16"]


def function(name, arguments, result, lines):
    return "\n".join([f"func.func @{name}({arguments}) -> ({result} {{fp4.name = \"y\"}}) {{",
                      *(f"  {line}" for line in lines), f"  return %y : {result}", "}", ""])


def operand(rows, k, fmt):
    """The types of data, of scales and of both."""
    block, scale = (16, "f8E4M3FN") if fmt == "nvfp4" else (32, "f8E8M0FNU")
    data, scales = f"tensor<{rows}x{k}xf4E2M1FN>", f"tensor<{rows}x{k // block}x{scale}, {LAYOUT}>"
    return data, scales, f"!fp4.scaled<{fmt}, {data}, {scales}>"


def gate(form, rows, n, k, fmt):
    (a, sa, lhs), (w, sw, rhs) = operand(rows, k, fmt), operand(n, k, fmt)
    y, sums = f"tensor<{rows}x{n}xbf16>", f"tensor<{rows}x{n}xf32>"
    lines = [f"%x = fp4.scaled %a, %sa : {lhs}", f"%gate = fp4.scaled %g, %sg : {rhs}", f"%up = fp4.scaled %u, %su : {rhs}"]
    if form == "dual":
        lines += ["%y = fp4.matmul %x, %gate with %up epilogue() {", "^bb0(%f: f32, %s: f32):", *SILU,
                  "fp4.yield %rounded : bf16", f"}} {{{FMA}}} : ({lhs}, {rhs}, {rhs}) -> {y}"]
    else:  # plans of their own keep them apart
        lines += [f"%{sum_} = fp4.matmul %x, %{weights} {{{FMA}, fp4.plan = #fp4.plan<gemv>}} : ({lhs}, {rhs}) -> {sums}"
                  for sum_, weights in (("first", "gate"), ("second", "up"))]
        maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * 3)
        lines += [f"%empty = tensor.empty() : {y}",
                  f"%y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\"]}}"
                  f" ins(%first, %second : {sums}, {sums}) outs(%empty : {y}) {{",
                  "^bb0(%f: f32, %s: f32, %o: bf16):", *SILU, "linalg.yield %rounded : bf16", f"}} -> {y}"]
    arguments = f"%a: {a}, %sa: {sa}, %g: {w}, %sg: {sw}, %u: {w}, %su: {sw}"
    return function(f"{form}_{fmt}_{rows}", arguments, y, lines)


def experts(form, rows, groups, n, k):
    x, y, alpha = f"tensor<{groups * rows}x{k}xf8E4M3FN>", f"tensor<{groups * rows}x{n}xbf16>", f"tensor<{groups}xf32>"
    attributes = f"{{work = #fp4.work<groups = {[rows] * groups}>}}"
    if form == "plain":
        w, s = f"tensor<{groups * n}x{k}xf4E2M1FN>", f"tensor<{groups * n * k // 128}x4xf8E8M0FNU, {LAYOUT}>"
        rhs, given = f"!fp4.scaled<mxfp4, {w}, {s}>", f"%w: {w}, %s: {s}"
        lines = [f"%rhs = fp4.scaled %w, %s : {rhs}"]
    else:
        rhs = f"tensor<{groups * n // 128}x{k // 128}x8704xi8, #fp4.weight_layout<wgmma>>"
        given, lines = f"%rhs: {rhs}", []
    lines.append(f"%y = fp4.matmul %x, %rhs alpha %alpha {attributes} : ({x}, {rhs}, {alpha}) -> {y}")
    return function(f"{form}_{rows}", f"%x: {x}, {given}, %alpha: {alpha}", y, lines)


def main():
    if sys.argv[1:] == ["gates"]:
        texts = [gate(form, rows, 14336, 4096, fmt)
                 for fmt, rows in (("nvfp4", 1), ("mxfp4", 1), ("nvfp4", 2), ("nvfp4", 4), ("nvfp4", 8))
                 for form in ("dual", "two")]
    elif sys.argv[1:] == ["experts"]:
        texts = [experts(form, rows, 8, 2048, 2048) for rows in (16, 64, 128) for form in ("plain", "prepacked")]
    else:
        sys.exit("error: expects 'gates' or 'experts'")
    print("\n".join(texts))


if __name__ == "__main__":
    main()
