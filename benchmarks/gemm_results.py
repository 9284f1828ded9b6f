#!/usr/bin/env python3
"""FP8 GEMMs with f32 scales that are gated units, or quantize their elements, beside two kernels.

  benchmarks/gemm_results.py pack BUILD FOLDER    compiles the programs for sm_90a
  benchmarks/gemm_results.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch. A gated unit has the weights of its gate and of its up
projection, and `one` kernel has the sums of both. `two` are a GEMM of all columns with elements in
bf16, and a kernel that activates and quantizes them; of a GEMM without a gate, one that quantizes
them. Codes and scales must be equal bit for bit before they are timed: those of a gated unit are
compared with `exact`, whose GEMM leaves its sums in f32. Rounds alternate between the ways, each in
a CUDA graph. A line of JSON for each cell has their microseconds, and those of the GEMM alone; with
many rows also of one kernel with the tile that all GEMMs which quantize may have (`square`).
"""
import os

import kit
from attention import time_all

#: Rows, columns, K, and whether groups have the rows.
GATES = ((64, 14336, 4096, False), (128, 14336, 4096, False), (512, 14336, 4096, False), (4096, 14336, 4096, False),
         (4096, 2048, 7168, False), (4096, 2048, 7168, True))
PLAIN = ((128, 14336, 4096, False), (1024, 4096, 4096, False), (4096, 4096, 14336, False), (4096, 7168, 2048, False))
GROUPS = 8
#: Rows from which on a tile of 256 rows has a chance.
MANY = 2048
#: The recipe, the types of codes and of scales, their block, and the family of the quantizer.
FORMATS = {"fp8_block128": ("fp8_deepgemm", "f8E4M3FN", "f32", 128), "mxfp4": ("ocp_rceil", "f4E2M1FN", "f8E8M0FNU", 32)}
CELLS = (*(("gate", "fp8_block128", *sizes) for sizes in GATES),
         *(("plain", name, *sizes) for sizes in PLAIN for name in FORMATS))
SILU = """
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %g : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %below : f32
    %e = arith.mulf %silu, %u : f32"""
#: Both halves of columns.
HALVES = ("affine_map<(i, j) -> (i, j mod {0})>, affine_map<(i, j) -> (i, j mod {0} + {0})>, "
          "affine_map<(i, j) -> (i, j)>")


def up(size):
    return -(-size // 128)


def operand(name, rows, k, bands):
    """The arguments, the type and the line of an operand."""
    data, scales = f"tensor<{rows}x{k}xf8E4M3FN>", f"tensor<{bands}x{up(k)}xf32>"
    bundle = f"!fp4.scaled<fp8_block128, {data}, {scales}>"
    return [f"%{name}: {data}", f"%s{name}: {scales}"], bundle, f"  %{name}_ = fp4.scaled %{name}, %s{name} : {bundle}"


def gemm(kind, m, columns, k, grouped, weights):
    """Arguments, lines, operands and types of a GEMM with these weights, and its attributes."""
    groups = GROUPS if grouped else 1
    found = [operand("x", m, k, m), *(operand(name, groups * columns, k, groups * up(columns)) for name in weights)]
    arguments, types, lines = [x for part in found for x in part[0]], [part[1] for part in found], [part[2] for part in found]
    text = f"%x_, %{weights[0]}_" + (f" with %{weights[1]}_" if len(weights) > 1 else "")
    if grouped:
        arguments.append(f"%o: tensor<{GROUPS + 1}xi64>")
        text, types = text + " offsets %o", [*types, f"tensor<{GROUPS + 1}xi64>"]
    work = f"work = #fp4.work<expected_rows = {m // GROUPS}, unspecified_rows>" if grouped else ""
    return arguments, lines, text, ", ".join(types), work


def one(kind, name, m, n, k, grouped, plan=""):
    recipe, code, scale, block = FORMATS[name]
    arguments, lines, text, types, work = gemm(kind, m, n, k, grouped, ["a", "b"] if kind == "gate" else ["a"])
    sums, body = ("%g: f32, %u: f32", SILU) if kind == "gate" else ("%e: f32", "")
    results = f"tensor<{m}x{n}x{code}>, tensor<{m}x{n // block}x{scale}>"
    attributes = ", ".join(filter(None, (work, plan and f"fp4.plan = #fp4.plan<tile_gemm, {plan}>")))
    lines += [f"  %c, %s = fp4.matmul {text} epilogue() {{\n  ^bb0({sums}):{body}",
              "    %r = arith.truncf %e : f32 to bf16",
              f"    %q, %t = fp4.epilogue_quantize %r {{recipe = #fp4.recipe<{recipe}>}} : (bf16) -> ({code}, {scale})",
              f"    fp4.yield %q, %t : {code}, {scale}\n  }} {{{attributes}}} : ({types}) -> ({results})"]
    return function(arguments, results, lines, "%c, %s")


def function(arguments, results, lines, names):
    return "\n".join([f"func.func @f({', '.join(arguments)}) -> ({results}) {{", *lines, f"  return {names} : {results}\n}}\n"])


def two(kind, name, m, n, k, grouped, element="bf16"):
    """Two kernels that give what `one` gives; with no format, the GEMM alone."""
    columns = 2 * n if kind == "gate" else n
    arguments, lines, text, types, work = gemm(kind, m, columns, k, grouped, ["a"])
    product, matrix = f"tensor<{m}x{columns}x{element}>", f"tensor<{m}x{n}xbf16>"
    lines.append(f"  %y = fp4.matmul {text} {{{work}}} : ({types}) -> {product}")
    if not name:
        return function(arguments, product, lines, "%y")
    recipe, code, scale, block = FORMATS[name]
    results = f"tensor<{m}x{n}x{code}>, tensor<{m}x{n // block}x{scale}>"
    if kind == "gate":
        widened = [f"    %{x} = arith.extf %{x}_ : bf16 to f32" for x in "gu"] * (element == "bf16")
        body = SILU if element == "bf16" else SILU.replace("%g", "%g_").replace("%u", "%u_")
        lines += [f"  %empty = tensor.empty() : {matrix}",
                  f"  %h = linalg.generic {{indexing_maps = [{HALVES.format(n)}], iterator_types = [\"parallel\", \"parallel\"]}}",
                  f"      ins(%y, %y : {product}, {product}) outs(%empty : {matrix}) {{",
                  f"  ^bb0(%g_: {element}, %u_: {element}, %old: bf16):", *widened, body[1:],
                  f"    %r = arith.truncf %e : f32 to bf16\n    linalg.yield %r : bf16\n  }} -> {matrix}"]
    alone = ", fp4.plan = #fp4.plan<stream_blocks>" * (kind == "plain")
    source = "%h" if kind == "gate" else "%y"
    lines.append(f"  %c, %s = fp4.quantize {source} {{format = #fp4.format<{name}>, recipe = #fp4.recipe<{recipe}>{alone}}}"
                 f" : ({matrix}) -> ({results})")
    return function(arguments, results, lines, "%c, %s")


def name_of(way, kind, name, m, n, k, grouped):
    return f"{way}_{kind}_{name}_{m}x{n}x{k}{'_groups' * grouped}"


def ways(cell):
    kind, name, *sizes = cell
    yield "one", one(*cell)
    yield "two", two(*cell)
    yield "gemm", two(kind, "", *sizes)
    if kind == "gate":
        yield "exact", two(*cell, element="f32")
    elif sizes[0] > MANY:
        yield "square", one(*cell, plan="tile = [128, 128, 128]")


def pack(build, folder):
    here = os.path.dirname(os.path.abspath(__file__))
    kit.begin(folder, __file__, os.path.join(here, "attention.py"), os.path.join(here, "flash_attention_3.py"))
    kit.copy_package(build, folder)
    kit.compile_programs(build, folder, [(name_of(way, *cell), text) for cell in CELLS for way, text in ways(cell)])


def bytes_of(torch, rows, k):
    return (torch.randn(rows, k, device="cuda") * 16).to(torch.float8_e4m3fn)


def operands(torch, kind, m, n, k, grouped):
    """The arguments of `one`, and those of the ways with one matrix of weights."""
    groups = GROUPS if grouped else 1
    x = [bytes_of(torch, m, k), torch.rand(m, up(k), device="cuda") / 64 + 1 / 64]
    parts = [(bytes_of(torch, groups * n, k), torch.rand(groups * up(n), up(k), device="cuda") / 64 + 1 / 64)
             for _ in range(2 if kind == "gate" else 1)]
    both = [torch.cat([part.view(torch.uint8).view(groups, -1, part.shape[1]) for part in side], 1).flatten(0, 1).view(side[0].dtype)
            if side[0].dtype != torch.float32 else torch.cat([part.view(groups, -1, part.shape[1]) for part in side], 1).flatten(0, 1)
            for side in zip(*parts)]
    rest = []
    if grouped:  # groups of other sizes, one of them empty
        ends = [0, 0, m // 16, m // 4, m // 4 + 77, m // 2, m // 2 + 300, m - 1000, m]
        rest = [torch.tensor(ends, dtype=torch.int64, device="cuda")]
    return [*x, *(value for part in parts for value in part), *rest], [*x, *(value.contiguous() for value in both), *rest]


def differences(mine, theirs):
    import torch
    return sum(int((a.view(torch.uint8) != b.view(torch.uint8)).sum()) for a, b in zip(mine, theirs))


def measure(folder):
    torch = kit.open_package(folder)
    import fp4
    for cell in CELLS:
        kind, name, m, n, k, grouped = cell
        separate, both = operands(torch, *(kind, m, n, k, grouped))
        programs = {way: fp4.load(os.path.join(folder, name_of(way, *cell) + ".so")) for way, _ in ways(cell)}
        calls = {way: lambda program=program, way=way: program(*(separate if way in ("one", "square") else both))
                 for way, program in programs.items()}
        row = {"kind": kind, "format": name, "m": m, "n": n, "k": k, "grouped": grouped}
        row["differences"] = differences(calls["one"](), calls["exact" if kind == "gate" else "two"]())
        calls.pop("exact", None)
        graphs = {way: kit.captured(call) for way, call in calls.items()}
        row.update(time_all({way: graph.replay for way, graph in graphs.items()}, rounds=16, calls=6))
        yield row


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
