"""Plans of a search for programs of the cache: python -m fp4 cache tune."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile

from . import _cache, _library
from .compiler import compile
from .errors import UsageError

#: Options of fp4-runner for launches that overlap, as fp4.compile names them.
_PDL = {"chosen": [], "all": ["--pdl"], "none": ["--no-pdl"]}


def find_runner() -> str:
    """fp4-runner: $FP4_RUNNER, the one beside the library of this package, or that of the PATH."""
    named = os.environ.get("FP4_RUNNER")
    here = _library.PATH.resolve().parent.parent / "bin" / "fp4-runner"
    found = named or (os.fspath(here) if here.exists() else shutil.which("fp4-runner"))
    if found is None or not os.access(found, os.X_OK):
        what = f"$FP4_RUNNER is '{named}', which" if named else "the tool fp4-runner"
        raise UsageError(f"{what} cannot be executed",
                         "build the target fp4-runner, and set FP4_RUNNER to the tool")
    return found


def entry_of(name: str) -> _cache.Entry:
    """The one entry of this compiler whose name begins so."""
    found = [item for item in _cache.entries() if isinstance(item, _cache.Entry)
             and item.key.name.startswith(name) and item.facts["compiler"] == _cache.compiler()]
    if len(found) == 1:
        return found[0]
    raise UsageError(f"'{name}' must be the begin of the name of one entry of this compiler, but "
                     f"{len(found)} begin so", "'python -m fp4 cache list' prints the names")


def tune(name: str, options: list[str]) -> str:
    """Searches plans for the program of an entry with `fp4-runner --tune` and puts the program with
    these plans in the place of the entry. Returns what the tool prints.

    Args:
        options: of fp4-runner, such as --dim=M=64, the size that the search is for.

    Raises:
        UsageError: the entry or the tool is not there, or the tool refuses the options.
    """
    entry, runner = entry_of(name), find_runner()
    key = entry.key
    with tempfile.TemporaryDirectory(prefix="fp4-") as folder:
        program, tuned = pathlib.Path(folder, "program.mlir"), pathlib.Path(folder, "tuned.mlir")
        program.write_text(key.text)
        command = [runner, os.fspath(program), f"--target={key.target}", *_PDL[key.pdl],
                   *([f"--plan-device={key.device}"] if key.device else []),
                   "--tune", "-o", os.fspath(tuned), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip()
            raise UsageError(f"fp4-runner --tune ended with {done.returncode}:\n{said}",
                             "options of fp4-runner follow the name of the entry")
        compiled = compile(tuned.read_text(), target=key.target, device=key.device or None,
                           name="fp4.torch", assemble=key.code == "cubin", pdl=key.pdl)
    _cache.keep(key, compiled, tuned=" ".join(options))
    return done.stdout.strip()
