"""The programs of the GEMMs that are compared, as fp4 compiles them."""
from __future__ import annotations

from problems import BLOCK, PACKED, Problem

#: Columns and bytes of a tile of prepacked weights.
TILE = {"bf16_nvfp4": (64, 4608), "bf16_mxfp4": (64, 4352), "e4m3_mxfp4": (128, 8704), "nvfp4_nvfp4": (64, 4608),
        "mxfp4_mxfp4": (64, 4352)}
#: The label of packed activations beside prepacked weights begins so; else weights are as the
#: activations.
PREPACKED = "prepacked, "
#: The label of GEMMs whose sums stay in the tensor core begins so, as those of Humming and of
#: `use_fast_accum` do.
FAST = "fast_accumulation, "


def forms_of(problem: Problem) -> tuple[str, ...]:
    """The beginnings of the labels of the forms of a GEMM."""
    if problem.kind in PACKED:
        return PREPACKED, ""
    return ("", FAST) if problem.kind == "e4m3_mxfp4" else ("",)


def is_stream(ranges: str) -> bool:
    return ranges[0].isdigit() and "x" in ranges


def label_of(form: str, ranges: str, plan: str) -> str:
    return f"{form}{'stream_k' if is_stream(ranges) else 'split_k'} {ranges}" + (f", {plan}" if plan else "")


def split_of(ranges: str) -> str:
    """The member of the work that cuts K into so many ranges, or gives workers shares of tiles:
    "132x128x128"."""
    if is_stream(ranges):
        return f"stream_k = [{ranges.replace('x', ', ')}]"
    return f"split_k = {ranges}" if ranges != "1" else ""


def program(problem: Problem, ranges: str, form: str = "") -> str:
    """A function `product` of the operands, in the order of `_arguments` and its neighbours."""
    prepacked = form == PREPACKED
    m, n, k, kind = problem.m, problem.n, problem.k, problem.kind
    result = f"tensor<{m}x{n}xbf16>"
    scaled, clauses = (0, 2), ""  # first arguments of data with scales
    if kind in PACKED:
        types, format = [*block_types(problem, m)], format_of(problem)
        types += [packed_type(problem)] if prepacked else block_types(problem, n)
        scaled = (0,) if prepacked else scaled
    elif kind in BLOCK:
        x = f"tensor<{m}x{k}x{'bf16' if kind.startswith('bf16') else 'f8E4M3FN'}>"
        alpha = {"bf16_nvfp4": "tensor<f32>", "bf16_mxfp4": ""}.get(kind, f"tensor<{m}x1xf32>")
        types, format = [x, packed_type(problem, form), *([alpha] if alpha else [])], format_of(problem)
        scaled, clauses = (), " alpha %2" if alpha else ""
    else:
        format = "fp8_block128"
        rows = problem.groups * n
        types = [f"tensor<{m}x{k}xf8E4M3FN>", f"tensor<{m}x{k // 128}xf32>",
                 f"tensor<{rows}x{k}xf8E4M3FN>", f"tensor<{rows // 128}x{k // 128}xf32>"]
        if problem.groups > 1:
            types.append(f"tensor<{problem.groups}x2xi64>" if problem.used else f"tensor<{problem.groups + 1}xi64>")
            clauses = " offsets %4"
    work = [split_of(ranges)] if split_of(ranges) else []
    if problem.used:  # as DeepGEMM's heuristics are told, and other rows are left as they are, as it does
        work += [f"expected_rows = {problem.rows // problem.groups}", "unspecified_rows"]
    attributes = [f"work = #fp4.work<{', '.join(work)}>"] if work else []
    if form == FAST:
        attributes.append("arithmetic = #fp4.matmul_arithmetic<fast_accumulation>")
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
    names = [f"%{i}" for i in range(len(types))]
    lines = []
    for i in reversed(scaled):
        bundle = f"!fp4.scaled<{format}, {types[i]}, {types[i + 1]}>"
        lines.insert(0, f"  %b{i} = fp4.scaled %{i}, %{i + 1} : {bundle}\n")
        names[i:i + 2], types[i:i + 2] = [f"%b{i}"], [bundle]
    return (f"func.func @product({arguments}) -> {result} {{\n{''.join(lines)}"
            f"  %y = fp4.matmul {names[0]}, {names[1]}{clauses} {{{', '.join(attributes)}}}\n"
            f"      : ({', '.join(types)}) -> {result}\n  return %y : {result}\n}}\n")


def prepack_program(problem: Problem, form: str = "") -> str:
    w, s, p = f"tensor<{problem.n}x{problem.k}xf4E2M1FN>", scales_of(problem, problem.n), packed_type(problem, form)
    return (f"func.func @prepack(%w: {w}, %s: {s}) -> {p} {{\n"
            f"  %p = fp4.prepack %w scaled %s {{format = #fp4.format<{format_of(problem)}>}} : ({w}, {s}) -> {p}\n"
            f"  return %p : {p}\n}}\n")


def tile_program(problem: Problem, rows: int) -> str:
    """The program that rearranges the scales of a checkpoint into the layout in which GEMMs read
    them."""
    linear, tiled = scales_of(problem, rows), block_types(problem, rows)[1]
    return (f"func.func @tile(%s: {linear}) -> {tiled} {{\n  %t = fp4.swizzle_scales %s : {linear} -> {tiled}\n"
            f"  return %t : {tiled}\n}}\n")


def format_of(problem: Problem) -> str:
    """The format of the weights."""
    return problem.kind.split("_")[1]


def scales_of(problem: Problem, rows: int, layout: str = "") -> str:
    type = {"nvfp4": "f8E4M3FN", "mxfp4": "f8E8M0FNU"}[format_of(problem)]
    return f"tensor<{rows}x{problem.k // BLOCK[problem.kind]}x{type}{layout}>"


def block_types(problem: Problem, rows: int) -> list[str]:
    """The types of an operand in scale blocks that a GEMM reads as it is."""
    return [f"tensor<{rows}x{problem.k}xf4E2M1FN>", scales_of(problem, rows, ", #fp4.scale_layout<tiled_128x4>")]


def packed_type(problem: Problem, form: str = "") -> str:
    columns, size = TILE[problem.kind]
    layout = "wgmma_rows" if form == FAST else "wgmma"
    return f"tensor<{problem.n // 128}x{problem.k // columns}x{size}xi8, #fp4.weight_layout<{layout}>>"
