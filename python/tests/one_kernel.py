"""Checks that each program a test compiles is one kernel."""

import types
import unittest
from typing import Any
from unittest import mock


def watch(case: unittest.TestCase, programs: types.ModuleType, *made: Any) -> "list[Any]":
    """The programs that `programs.compile_text` compiles from now on in `case`, each of which has
    one kernel at its end. The caches of the functions `made` are emptied."""
    compiled: list[Any] = []
    compile_text = programs.compile_text

    def compiling(*arguments: Any) -> Any:
        compiled.append(compile_text(*arguments))
        return compiled[-1]

    for make in made:
        make.cache_clear()
    patch = mock.patch.object(programs, "compile_text", compiling)
    patch.start()
    case.addCleanup(lambda: case.assertEqual([len(program.kernels) for program in compiled],
                                             [1] * len(compiled)))
    case.addCleanup(patch.stop)
    return compiled
