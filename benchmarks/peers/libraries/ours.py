"""fp4: programs that this repository compiles, called through its Python package."""
from __future__ import annotations

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import torch
from plan_space import candidates, likely
from problems import BLOCK, PACKED, Operands, Problem, scale_type
from programs_of_fp4 import (
    FAST,
    PREPACKED,
    TILE,
    format_of,
    forms_of,
    label_of,
    prepack_program,
    program,
    tile_program,
)

from .library import Library, Missing, Prepared

#: The split-K factor of a usual case: the compiler chooses it.
CHOSEN = "fastest"


class Ours(Library):
    name = "fp4"
    source = "a build folder with bin/fp4-runner and lib/libfp4rt.so"

    def __init__(self, plans: Sequence[tuple[str, str, str]] = (), space: int = 0, device: str = "") -> None:
        """`plans` are cases beside the usual ones: a part of the names of problems, split-K or
        stream-K as `split_of` takes it, and a plan. `space`: so many legal ones of plan_space.py
        too, -1 for all. `device`: besides, the plan that the compiler chooses for this GPU."""
        self.plans, self.space, self.device = plans, space, device

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        if source is None or not (source / "bin" / "fp4-runner").exists():
            raise Missing("bin/fp4-runner of a build folder")
        cases: dict[str, dict[str, str]] = {}
        work: dict[pathlib.Path, tuple[str, Sequence[str]]] = {}
        for problem in problems:
            cases[problem.name] = {}
            for form in forms_of(problem):
                for label, (text, options) in self._programs_of(source, problem, form).items():
                    library = f"{problem.name}_{len(cases[problem.name])}.so"
                    cases[problem.name][label] = library
                    work[folder / library] = text, options
                if problem.kind in BLOCK:
                    work[folder / _prepack_library(problem, form)] = prepack_program(problem, form), ()
            if problem.kind in PACKED:
                work |= {folder / _tile_library(problem, rows): (tile_program(problem, rows), ())
                         for rows in (problem.m, problem.n)}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda item: _compile(source, item[0], *item[1]), work.items()))
        known = folder / "cases.json"
        before = json.loads(known.read_text()) if known.exists() else {}
        known.write_text(json.dumps(before | cases, indent=1))
        _copy_package(source, folder)

    def _programs_of(self, source: pathlib.Path, problem: Problem, form: str) -> dict[str, tuple[str, Sequence[str]]]:
        """The text of the program of each case, and the options of its compiler. Plans of the space
        are legal, and other ones than those before."""
        found = {label_of(form, ranges, plan): (program(problem, ranges, form), ("--plan", plan) if plan else ())
                 for ranges, plan in [(CHOSEN, ""), *self._plans_of(problem, form)]}
        if self.device:
            chosen = label_of(form, CHOSEN, "")
            found[f"{chosen} for {self.device}"] = found[chosen][0], ("--plan-device", self.device)
        if not self.space:
            return found
        known = {_planned(source, *case): label for label, case in reversed(found.items())}
        found = {label: case for label, case in found.items() if label in known.values()}

        def planned(ranges: str, plan: str) -> str:
            return _planned(source, program(problem, ranges, form), ("--plan", plan))

        if self.space < 0:
            space = [case for case in candidates(problem, form) if planned(*case)]
        else:
            space = likely(problem, form, self.space, lambda *case: bool(planned(*case)))
        others = {planned(*case): case for case in reversed(space)}
        return found | {label_of(form, ranges, plan): (program(problem, ranges, form), ("--plan", plan))
                        for gemm, (ranges, plan) in reversed(others.items()) if gemm not in known}

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


def _prepack_library(problem: Problem, form: str = "") -> str:
    return f"prepack_{'rows_' if form == FAST else ''}{problem.kind}_{problem.n}x{problem.k}.so"


def _tile_library(problem: Problem, rows: int) -> str:
    return f"tile_{format_of(problem)}_{rows}x{problem.k}.so"


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


def _compile(build: pathlib.Path, library: pathlib.Path, text: str, options: Sequence[str]) -> None:
    source, text = library.with_suffix(".mlir"), f"// {' '.join(options) or 'the chosen plan'}\n{text}"
    compiler = build / "bin" / "fp4-runner"
    if library.exists() and source.read_text() == text and library.stat().st_mtime > compiler.stat().st_mtime:
        return
    source.write_text(text)
    found = subprocess.run([compiler, source, "--target=sm_90a", "--emit=so", "-o", library, *options],
                           capture_output=True, text=True)
    if found.returncode:
        raise Missing(f"a program that compiles: {source}: {found.stderr.strip()}")


@functools.cache
def _planned(build: pathlib.Path, text: str, options: tuple[str, ...]) -> str:
    """The GEMM with its plan; empty where this is not legal."""
    command = [build / "bin" / "fp4-runner", "-", "--target=sm_90a", "--emit=mlir", "--compile-to=planned", *options]
    found = subprocess.run(command, input=text, capture_output=True, text=True)
    return "" if found.returncode else "\n".join(re.findall(r".*fp4\.matmul.*", found.stdout))


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
