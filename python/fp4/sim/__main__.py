"""python -m fp4.sim: finds fp4-sim, and runs fp4.sim.script under it."""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import shutil
import subprocess
import sys

from .. import __version__
from .._library import find_library, wrong_machine
from ..errors import UsageError

_OPTIONS = ("device", "check", "policy", "mix", "clock", "sample-after", "seed", "timeline",
            "explore", "limit", "threads", "unwritten", "dump-ptx", "ptx-dir")
_FLAGS = ("explain", "stats", "trace", "json", "time", "time-only")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m fp4.sim", description="Runs a script for CUDA in the simulator.",
        usage="%(prog)s [options] (script | -m module) [arguments]",
        epilog="Options but the last two are those of 'fp4-sim run --help'.",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="b200",
                        help="b200, b300, h100, h200, rtx5090, gb10 or vr200")
    parser.add_argument("--check", help="off, default or strict: the hazard checker")
    parser.add_argument("--policy", help="eager, lazy, random or delay: when copies complete")
    parser.add_argument("--mix", choices=("ptx", "cubin", "auto"),
                        help="source of the machine instructions that --time counts")
    parser.add_argument("--clock", type=float, metavar="GHZ", help="clock that --time predicts for")
    for name in ("seed", "limit", "threads", "sample-after"):
        parser.add_argument(f"--{name}", type=int, metavar="N")
    parser.add_argument("--timeline", metavar="FILE", help="a trace of the kernels")
    parser.add_argument("--explore", metavar="FILE", help="a page about the kernels")
    parser.add_argument("--unwritten", choices=("error", "ignore"),
                        help="uses of shared memory and reads of tensor memory that nobody wrote")
    for name in ("dump-ptx", "ptx-dir"):
        parser.add_argument(f"--{name}", metavar="DIR")
    for name in _FLAGS:
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--points", type=int, default=1, metavar="N",
                        help="sizes of each triton.testing.perf_report that run (default 1); with "
                             "0 a script runs without its benchmarks")
    parser.add_argument("--configs", type=int, default=1, metavar="N",
                        help="configurations that triton.autotune tries (default 1)")
    parser.add_argument("--version", action="store_true",
                        help="print the versions of the package and of fp4-sim")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE",
                        help="run a module, such as pytest, with the arguments that follow")
    parser.add_argument("script", nargs="?", help="a Python file, or - for standard input")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def find_tool() -> str:
    """fp4-sim: $FP4_SIM, the one beside the library of this package, or that of the PATH."""
    named = os.environ.get("FP4_SIM")
    if named:
        if not os.access(named, os.X_OK):
            raise UsageError(f"$FP4_SIM must be the tool fp4-sim, but '{named}' cannot be executed",
                             "unset FP4_SIM, or name the tool that the package fp4-sim installs")
        _check(named)
        return named
    here = find_library().resolve().parent.parent / "bin" / "fp4-sim"
    found = os.fspath(here) if here.exists() else _search()
    if found is None:
        raise UsageError("the tool fp4-sim is not installed",
                         "install the package fp4-sim, or build the targets fp4-sim and fp4-cuda "
                         "and set FP4_SIM to the tool")
    _check(found)
    return found


def _is_program(path: str) -> bool:
    """Separates ELF files from scripts, such as that of the wheel, which calls find_tool."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _search() -> str | None:
    """The first program fp4-sim of the PATH."""
    for folder in os.get_exec_path():
        found = shutil.which("fp4-sim", path=folder)
        if found is not None and _is_program(found):
            return found
    return None


@functools.cache
def _check(tool: str) -> None:
    """Refuses a tool of another machine or version, as two wheels of different releases have it."""
    if wrong := wrong_machine(pathlib.Path(tool)):
        raise UsageError(wrong, "install the wheels of this machine with 'pip install "
                                "--force-reinstall fp4-runtime fp4-sim'")
    if not _is_program(tool):
        raise UsageError(f"'{tool}' must be the program fp4-sim, but is a script",
                         "name the program of the package fp4-sim, which FP4_SIM may name too: "
                         "its script would look for itself")
    try:
        said = subprocess.run([tool, "--version"], capture_output=True, text=True,
                              timeout=60).stdout.split()
    except subprocess.TimeoutExpired:
        raise UsageError(f"'{tool} --version' must end within 60 seconds, but does not",
                         "name the program of the package fp4-sim with FP4_SIM") from None
    if said[:1] == ["fp4-sim"] and said[1:2] != [__version__]:
        package = pathlib.Path(__file__).resolve().parent.parent
        raise UsageError(f"'{tool}' must have version {__version__} of the package in "
                         f"'{package}', but has {' '.join(said[1:2]) or 'none'}",
                         f"'pip install fp4-runtime=={__version__} fp4-sim=={__version__}' "
                         "installs one version; in a checkout 'ninja -C build fp4-sim' builds it")


def _command(options: argparse.Namespace) -> list[str]:
    command = [find_tool(), "run"]
    for name in _OPTIONS:
        value = getattr(options, name.replace("-", "_"))
        if value is not None:
            command += [f"--{name}={value}"]
    command += [f"--{name}" for name in _FLAGS if getattr(options, name.replace("-", "_"))]
    what = ["-m", *options.module] if options.module else [options.script, *options.arguments]
    return [*command, "--", sys.executable, "-m", "fp4.sim.script", str(options.points),
            str(options.configs), *what]


def _print_versions() -> int:
    """Prints the version of the package, and of fp4-sim with the revision it was built from."""
    try:
        tool = subprocess.run([find_tool(), "--version"], capture_output=True, text=True,
                              check=True)
        print(f"fp4.sim {__version__}\n{tool.stdout.strip()}")
    except UsageError as error:
        print(f"fp4.sim: error: {error}", file=sys.stderr)
        return 2
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        return _print_versions()
    if not options.module and options.script is None:
        parser.error("the following arguments are required: script, or -m and a module")
    if options.script not in (None, "-") and not os.path.isfile(options.script):
        print(f"fp4.sim: error: there is no script '{options.script}'\nnote: a module is run with "
              "-m; options stand before the script", file=sys.stderr)
        return 2
    if options.points < 0 or options.configs < 1:
        print("fp4.sim: error: --points must be at least 0, and --configs at least 1",
              file=sys.stderr)
        return 2
    try:
        command = _command(options)
    except UsageError as error:
        print(f"fp4.sim: error: {error}", file=sys.stderr)
        return 2
    package = os.fspath(pathlib.Path(__file__).resolve().parent.parent.parent)
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), package]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.stdout.flush()
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
