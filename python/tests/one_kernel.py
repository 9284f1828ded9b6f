"""Checks that each program a test compiles launches one kernel."""

import types
import unittest
from typing import Any
from unittest import mock


def launches(program: Any) -> int:
    """Kernels of which a call launches one, whatever its rows: one that has cases counts once."""
    kernels = len(program.kernels)
    return kernels if kernels == 1 else kernels - program.ir("planned").count("#fp4.case<")


def watch(case: unittest.TestCase, programs: types.ModuleType, *made: Any) -> "list[Any]":
    """The programs that `programs.compile_text` compiles from now on in `case`, each of which
    launches one kernel at its end. The caches of the functions `made` are emptied."""
    compiled: list[Any] = []
    compile_text = programs.compile_text

    def compiling(*arguments: Any) -> Any:
        compiled.append(compile_text(*arguments))
        return compiled[-1]

    for make in made:
        make.cache_clear()
    patch = mock.patch.object(programs, "compile_text", compiling)
    patch.start()
    case.addCleanup(lambda: case.assertEqual([launches(program) for program in compiled],
                                             [1] * len(compiled)))
    case.addCleanup(patch.stop)
    return compiled
