"""A pytest plugin: programs under the strict simulator, and hazards as failures with their places.

    pytest -p fp4.testing                      or pytest_plugins = ["fp4.testing"] in conftest.py
    pytest -p fp4.testing --fp4-sim=lazy,random
    pytest -p fp4.testing --fp4-annotations    prints annotations of GitHub Actions

    def test_linear(fp4_sim):                  a simulator with the strict checker
        fp4.load("linear.so", fp4_sim)(x, w)

    def test_my_kernel(fp4_sim_run):           a program for CUDA, under fp4-sim
        fp4_sim_run(["./my_kernel", "--m=64"], device="h200")

A test that raises a SimulationError or a HazardError fails with the reports of the simulator and
without a traceback. A test that uses `fp4_sim` runs once for each policy of `--fp4-sim`.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from .device import Device
from .errors import HazardError, SimulationError, make_error

_POLICIES = "eager,lazy"
_KEY = "fp4-annotation"
# "gemm.ptx:41:3 (gemm.mlir:14:5): ..." of a hazard; "..., at gemm.ptx:41:3 (...)" of a fault.
_PLACE = re.compile(r"(?:^error: | at )(?P<file>[^\s:]+):(?P<line>\d+):(?P<column>\d+)"
                    r"(?: \((?:\S+, inlined at )?"
                    r"(?P<source>[^\s:]+):(?P<sourceline>\d+):(?P<sourcecolumn>\d+)\))?",
                    re.M)
_RULE = re.compile(r"\[([a-z0-9-]+)\]$", re.M)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fp4")
    group.addoption("--fp4-sim", metavar="POLICIES", default=_POLICIES,
                    help=f"policies of the simulator for tests that use fp4_sim ({_POLICIES})")
    group.addoption("--fp4-annotations", action="store_true",
                    default=os.environ.get("GITHUB_ACTIONS") == "true",
                    help="print findings as annotations of GitHub Actions, as in such a job")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers",
                            "fp4_target(name): the target of the simulator of fp4_sim (sm_100a)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fp4_sim" in metafunc.fixturenames:
        policies = metafunc.config.getoption("--fp4-sim").split(",")
        metafunc.parametrize("fp4_sim", policies, indirect=True)


@pytest.fixture
def fp4_sim(request: pytest.FixtureRequest) -> Iterator[Device]:
    """The simulator with the strict checker, for the target of the mark `fp4_target`."""
    marker = request.node.get_closest_marker("fp4_target")
    target = marker.args[0] if marker else "sm_100a"
    with Device("sim", target=target, check="strict", policy=request.param) as device:
        yield device


@pytest.fixture
def fp4_sim_run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs a command under `fp4-sim run --check=strict`."""
    return run


def run(command: Sequence[str | os.PathLike[str]], *, device: str = "b200",
        **options: str | int) -> subprocess.CompletedProcess[str]:
    """Runs a program for CUDA under the strict simulator.

    Args:
        command: the program and its arguments.
        device: the GPU that the program finds.
        options: options of `fp4-sim run`, such as `policy="lazy"`.

    Raises:
        HazardError, SimulationError: with the reports, as the exit code of fp4-sim says.
        subprocess.CalledProcessError: the program itself failed.
    """
    from .sim.__main__ import find_tool

    flags = [f"--{name.replace('_', '-')}={value}"
             for name, value in {"check": "strict", "device": device, **options}.items()]
    words = [os.fspath(word) for word in command]
    done = subprocess.run([find_tool(), "run", *flags, "--", *words], capture_output=True,
                          text=True)
    lines = done.stderr.splitlines()
    # A program may exit with these codes itself: fp4-sim says that a report of its own is there.
    reported = any(line.startswith("fp4-sim: ") and line.endswith(" above") for line in lines)
    if reported and done.returncode in (HazardError.kind, SimulationError.kind):
        reports = [line for line in lines if not line.startswith("fp4-sim: ")]
        raise make_error(done.returncode, "\n".join(reports), "")
    done.check_returncode()
    return done


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    error = call.excinfo.value if call.excinfo else None
    if not report.failed or not isinstance(error, SimulationError):
        return
    file, line, _ = item.location
    report.longrepr = f"{file}:{(line or 0) + 1}: {type(error).__name__}\n{error}"
    report.user_properties += [(_KEY, text) for text in github_annotations(str(error))]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--fp4-annotations"):
        # pytest calls the failure of a fixture an error.
        reports = [report for kind in ("failed", "error")
                   for report in terminalreporter.stats.get(kind, [])]
        for name, text in (entry for report in reports for entry in report.user_properties):
            if name == _KEY:
                terminalreporter.write_line(text)


#===--- Annotations -------------------------------------------------------===#


def github_annotations(text: str) -> list[str]:
    """Annotations of GitHub Actions for the reports in a text, as `fp4-sim run --annotations` has
    them: at the source, where the PTX names one."""
    reports = re.split(r"(?m)^(?=error: )", text)
    return [_annotation(report.strip()) for report in reports if _PLACE.search(report)]


def _annotation(report: str) -> str:
    place = _PLACE.search(report)
    assert place
    prefix = "source" if place["source"] else ""
    file, line = place[prefix or "file"], place[f"{prefix}line"]
    rule = _RULE.search(report)
    title = rule[1] if rule else "deadlock" if "deadlock: " in report else "kernel failed"
    return (f"::error file={_escaped(_in_repository(file), '%,:')},line={line},"
            f"col={place[f'{prefix}column']},title={title}::{_escaped(report, '%')}")


def _in_repository(file: str) -> str:
    path = pathlib.Path(file)
    here = pathlib.Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _escaped(text: str, characters: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in characters + "\r\n" else c for c in text)
