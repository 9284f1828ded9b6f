"""fp4: programs that this repository compiles, called through its Python package."""
from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import torch
from plan_space import candidates
from problems import BLOCK, PACKED, Operands, Problem, scale_type

from .library import Library, Missing, Prepared

#: Columns and bytes of a tile of prepacked weights.
TILE = {"bf16_nvfp4": (64, 4608), "bf16_mxfp4": (64, 4352), "e4m3_mxfp4": (128, 8704), "nvfp4_nvfp4": (64, 4608),
        "mxfp4_mxfp4": (64, 4352)}
#: The label of packed activations beside prepacked weights begins so; else weights are as the
#: activations.
PREPACKED = "prepacked, "
#: The label of GEMMs whose sums stay in the tensor core begins so, as those of Humming and of
#: `use_fast_accum` do.
FAST = "fast_accumulation, "
#: The split-K factor of a usual case: the compiler chooses it.
CHOSEN = "fastest"


class Ours(Library):
    name = "fp4"
    source = "a build folder with bin/fp4-runner and lib/libfp4rt.so"

    def __init__(self, plans: Sequence[tuple[str, str, str]] = (), space: bool = False) -> None:
        """`plans` are cases beside the usual ones: a part of the names of problems, split-K or
        stream-K as `split_of` takes it, and a plan. `space`: the legal ones of plan_space.py
        too."""
        self.plans, self.space = plans, space

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        if source is None or not (source / "bin" / "fp4-runner").exists():
            raise Missing("bin/fp4-runner of a build folder")
        cases: dict[str, dict[str, str]] = {}
        work: dict[pathlib.Path, tuple[str, str]] = {}
        tried: dict[pathlib.Path, tuple[str, str]] = {}
        for problem in problems:
            cases[problem.name] = {}
            for form in forms_of(problem):
                asked = [(CHOSEN, ""), *self._plans_of(problem, form)]
                others = [case for case in candidates(problem) if case not in asked] if self.space else []
                for ranges, plan in [*asked, *others]:
                    library = f"{problem.name}_{len(cases[problem.name])}.so"
                    cases[problem.name][label_of(form, ranges, plan)] = library
                    (tried if (ranges, plan) in others else work)[folder / library] = program(problem, ranges, form), plan
                if problem.kind in BLOCK:
                    work[folder / _prepack_library(problem, form)] = prepack_program(problem, form), ""
            if problem.kind in PACKED:
                work |= {folder / _tile_library(problem, rows): (tile_program(problem, rows), "")
                         for rows in (problem.m, problem.n)}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda item: _compile(source, item[0], *item[1]), work.items()))
            legal = dict(zip(tried, pool.map(lambda item: _compiles(source, item[0], *item[1]), tried.items())))
        cases = {name: {label: library for label, library in found.items() if legal.get(folder / library, True)}
                 for name, found in cases.items()}
        known = folder / "cases.json"
        before = json.loads(known.read_text()) if known.exists() else {}
        known.write_text(json.dumps(before | cases, indent=1))
        _copy_package(source, folder)

    def _plans_of(self, problem: Problem, form: str) -> list[tuple[str, str]]:
        """The plans of the command line. With e4m3 and MXFP4, only GEMMs with fast accumulation
        have workers that share tiles, and only the other GEMMs have pre-dequantized weights."""
        def exists(ranges: str, plan: str) -> bool:
            return problem.kind != "e4m3_mxfp4" or ("x" not in ranges if form != FAST else "a = pre" not in plan)

        return [(ranges, plan) for part, ranges, plan in self.plans
                if part in form + problem.name and exists(ranges, plan)]

    def check(self, folder: pathlib.Path) -> None:
        if not (folder / "cases.json").exists():
            raise Missing(f"{folder.name}/cases.json, which prepare writes")

    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        return list(json.loads((folder / "cases.json").read_text()).get(problem.name, ()))

    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> Prepared:
        sys.path.insert(0, str(folder / "python"))
        import fp4

        problem = sets[0].problem
        library = json.loads((folder / "cases.json").read_text())[problem.name][case]
        product = fp4.load(folder / library)
        results = [torch.empty(problem.m, problem.n, dtype=torch.bfloat16, device=s.x.device) for s in sets]

        def launch(arguments: Sequence[Any], result: Any) -> Any:
            return lambda: product(*arguments, out=result)

        if problem.kind in PACKED:
            arguments = [_packed_arguments(folder, s, case.startswith(PREPACKED)) for s in sets]
        elif problem.kind in BLOCK:
            form = FAST if case.startswith(FAST) else ""
            arguments = [_prepacked_arguments(folder, s, form) for s in sets]
        else:
            arguments = [_arguments(s) for s in sets]
        return Prepared([launch(a, r) for a, r in zip(arguments, results)], results)


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
        types, format = [*_block_types(problem, m)], _format(problem)
        types += [_packed(problem)] if prepacked else _block_types(problem, n)
        scaled = (0,) if prepacked else scaled
    elif kind in BLOCK:
        x = f"tensor<{m}x{k}x{'bf16' if kind.startswith('bf16') else 'f8E4M3FN'}>"
        alpha = {"bf16_nvfp4": "tensor<f32>", "bf16_mxfp4": ""}.get(kind, f"tensor<{m}x1xf32>")
        types, format = [x, _packed(problem, form), *([alpha] if alpha else [])], _format(problem)
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
    w, s, p = f"tensor<{problem.n}x{problem.k}xf4E2M1FN>", _scales(problem, problem.n), _packed(problem, form)
    return (f"func.func @prepack(%w: {w}, %s: {s}) -> {p} {{\n"
            f"  %p = fp4.prepack %w scaled %s {{format = #fp4.format<{_format(problem)}>}} : ({w}, {s}) -> {p}\n"
            f"  return %p : {p}\n}}\n")


def tile_program(problem: Problem, rows: int) -> str:
    """The program that rearranges the scales of a checkpoint into the layout in which GEMMs read
    them."""
    linear, tiled = _scales(problem, rows), _block_types(problem, rows)[1]
    return (f"func.func @tile(%s: {linear}) -> {tiled} {{\n  %t = fp4.swizzle_scales %s : {linear} -> {tiled}\n"
            f"  return %t : {tiled}\n}}\n")


def _format(problem: Problem) -> str:
    """The format of the weights."""
    return problem.kind.split("_")[1]


def _scales(problem: Problem, rows: int, layout: str = "") -> str:
    type = {"nvfp4": "f8E4M3FN", "mxfp4": "f8E8M0FNU"}[_format(problem)]
    return f"tensor<{rows}x{problem.k // BLOCK[problem.kind]}x{type}{layout}>"


def _block_types(problem: Problem, rows: int) -> list[str]:
    """The types of an operand in scale blocks that a GEMM reads as it is."""
    return [f"tensor<{rows}x{problem.k}xf4E2M1FN>", _scales(problem, rows, ", #fp4.scale_layout<tiled_128x4>")]


def _packed(problem: Problem, form: str = "") -> str:
    columns, size = TILE[problem.kind]
    layout = "wgmma_rows" if form == FAST else "wgmma"
    return f"tensor<{problem.n // 128}x{problem.k // columns}x{size}xi8, #fp4.weight_layout<{layout}>>"


def _prepack_library(problem: Problem, form: str = "") -> str:
    return f"prepack_{'rows_' if form == FAST else ''}{problem.kind}_{problem.n}x{problem.k}.so"


def _tile_library(problem: Problem, rows: int) -> str:
    return f"tile_{_format(problem)}_{rows}x{problem.k}.so"


def _prepack(folder: pathlib.Path, operands: Operands, form: str = "") -> Any:
    import fp4

    problem = operands.problem
    columns, size = TILE[problem.kind]
    packed = torch.empty(problem.n // 128, problem.k // columns, size, dtype=torch.uint8, device=operands.x.device)
    prepack = fp4.load(folder / _prepack_library(problem, form))
    prepack(operands.weights, operands.scales.view(scale_type(problem)), out=packed)
    return packed


def _prepacked_arguments(folder: pathlib.Path, operands: Operands, form: str) -> list[Any]:
    alpha = operands.tensor_scale if operands.tensor_scale is not None else operands.row_scales
    return [operands.x, _prepack(folder, operands, form), *([alpha] if alpha is not None else [])]


def _packed_arguments(folder: pathlib.Path, operands: Operands, prepacked: bool) -> list[Any]:
    import fp4

    problem = operands.problem

    def tiled(scales: Any) -> Any:
        return fp4.load(folder / _tile_library(problem, len(scales)))(scales.view(scale_type(problem)))

    weights = [_prepack(folder, operands)] if prepacked else [operands.weights, tiled(operands.scales)]
    return [operands.x, tiled(operands.row_scales), *weights]


def _arguments(operands: Operands) -> list[Any]:
    problem = operands.problem
    arguments = [operands.x, operands.row_scales, operands.weights, operands.scales]
    if problem.groups > 1:
        arguments.append(_offsets(problem).to(operands.x.device))
    return arguments


def _offsets(problem: Problem) -> Any:
    begins = [group * (problem.m // problem.groups) for group in range(problem.groups + 1)]
    if problem.used:
        return torch.tensor([[begin, begin + rows] for begin, rows in zip(begins, problem.used)])
    return torch.tensor(begins)


def _compile(build: pathlib.Path, library: pathlib.Path, text: str, plan: str) -> None:
    source, text = library.with_suffix(".mlir"), f"// {plan or 'the chosen plan'}\n{text}"
    compiler = build / "bin" / "fp4-runner"
    if library.exists() and source.read_text() == text and library.stat().st_mtime > compiler.stat().st_mtime:
        return
    source.write_text(text)
    command = [compiler, source, "--target=sm_90a", "--emit=so", "-o", library]
    found = subprocess.run(command + (["--plan", plan] if plan else []), capture_output=True, text=True)
    if found.returncode:
        raise Missing(f"a program that compiles: {source}: {found.stderr.strip()}")


def _compiles(build: pathlib.Path, library: pathlib.Path, text: str, plan: str) -> bool:
    try:
        _compile(build, library, text, plan)
    except Missing:
        return False
    return True


def _copy_package(build: pathlib.Path, folder: pathlib.Path) -> None:
    """The Python package and the runtime, which is all that runs need."""
    root = pathlib.Path(__file__).resolve().parents[3]
    shutil.copytree(root / "python" / "fp4", folder / "python" / "fp4", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    lib = folder / "python" / "fp4" / "lib"
    lib.mkdir(exist_ok=True)
    for name in ("libfp4rt.so", "_native.abi3.so"):
        if (build / "lib" / name).exists():
            shutil.copy(build / "lib" / name, lib)
    subprocess.run(["strip", *lib.glob("*.so")], check=False)
