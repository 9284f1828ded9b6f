"""The interface of a library."""
from __future__ import annotations

import abc
import importlib
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from problems import Operands, Problem, reference

Launch = Callable[[], None]


class Missing(Exception):
    """The reason why a library cannot run: something that this machine or folder does not have."""


def check_module(site: pathlib.Path, module: str, made: str) -> None:
    """Imports `module` from the packages in `site`, where `prepare` put them: `made` says how.
    Raises Missing."""
    package = module.split(".")[0]
    if not (site / package).is_dir():
        raise Missing(f"the package {package}, which prepare {made}")
    sys.path.insert(0, str(site))
    try:
        importlib.import_module(module)
    except ImportError as failure:
        raise Missing(str(failure)) from failure


class Library(abc.ABC):
    """A library, or a compiler, that multiplies.

    `prepare` runs where there are compilers, and no GPU is needed; `cases` and `run` run where
    there is a GPU and may compile there what can be compiled only there. Nothing is fetched.
    """

    name: str
    #: The argument --source of `prepare`: a folder or a file, or "" if it takes none.
    source = ""

    def prepare(self, source: pathlib.Path | None, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        """Writes into `folder`, which is of this library alone, what `run` needs. Raises
        Missing."""

    def check(self, folder: pathlib.Path) -> None:
        """Raises Missing where `run` could not run."""

    def warm(self, folder: pathlib.Path, problems: Sequence[Problem]) -> None:
        """Compiles before the runs what can be compiled only where there is a GPU."""

    @abc.abstractmethod
    def cases(self, folder: pathlib.Path, problem: Problem) -> list[str]:
        """The labels of what the library has for a problem, the preferred one first; empty if it
        has nothing."""

    @abc.abstractmethod
    def run(self, folder: pathlib.Path, case: str, sets: Sequence[Operands]) -> "Prepared":
        """Returns launches of the GEMM of each set on torch's current stream, with operands already
        in the layouts that the library wants."""


class Prepared:
    """Launches, one for each set, and the results that they write. `expected` gives the f32 result
    of a set where it is not problems.reference, because the library multiplies without some of the
    scales. `rounding` is the error that results have because they are rounded to fewer bits than
    those of bf16."""

    def __init__(self, launches: Sequence[Launch], results: Sequence[Any],
                 expected: Callable[[Operands], Any] = reference, rounding: float = 0.0) -> None:
        self.launches, self.results, self.expected, self.rounding = launches, results, expected, rounding
