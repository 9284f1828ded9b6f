"""Benchmarks of Triton: times of a simulator say nothing, so each runs as little as it can.

do_bench calls its function once. perf_report runs the first sizes only, and autotune takes the
first configurations that run. Matmuls of cuBLAS are torch's, and Proton records nothing. All say
so on stderr, once.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import time
import types
from typing import Any


@functools.cache
def _say(text: str) -> None:
    print(f"fp4.sim: {text}", file=sys.stderr)


def install(points: int, configs: int) -> None:
    """Prepares Triton where it is installed."""
    if importlib.util.find_spec("triton") is None:
        return
    testing = importlib.import_module("triton.testing")
    autotuner = importlib.import_module("triton.runtime.autotuner")
    _replace_cublas()
    if importlib.util.find_spec("triton.profiler") is not None:
        _replace_proton()
    _run_once(testing)
    limit_points(testing, points)
    _limit_configs(autotuner.Autotuner, configs)


def _replace_cublas() -> None:
    """Triton's class loads libcublas.so when it is made; scripts make it when they are imported."""
    nvidia: Any = getattr(importlib.import_module("triton._C.libtriton"), "nvidia", None)
    if not hasattr(nvidia, "cublas") or importlib.util.find_spec("torch") is None:
        return
    from .cublas import CublasLt

    class Announced(CublasLt):
        def __init__(self, workspace: Any = None) -> None:
            _say("there is no cuBLAS: its matmuls are those of torch on the CPU")
            super().__init__(workspace)

    nvidia.cublas.CublasLt = Announced


def _replace_proton() -> None:
    """Proton needs CUPTI. Without it nothing is recorded, and there is no profile to show."""

    def nothing(*args: Any, **options: Any) -> None:
        _say("there is no CUPTI: Proton records nothing")

    profiler: Any = importlib.import_module("triton.profiler")
    for name in ("start", "activate", "deactivate", "finalize"):
        setattr(profiler, name, nothing)
    viewer: Any = types.ModuleType("triton.profiler.viewer")
    viewer.parse = lambda *args, **options: (None, None)
    viewer.print_tree = nothing
    sys.modules[viewer.__name__] = profiler.viewer = viewer


def _run_once(testing: Any) -> None:
    def do_bench(fn: Any, *args: Any, quantiles: Any = None, return_mode: str = "mean",
                 **options: Any) -> Any:
        _say("do_bench runs its function once; its times are those of the simulator on this host")
        begin = time.perf_counter()
        fn()
        milliseconds = (time.perf_counter() - begin) * 1000
        if quantiles is not None:
            found = [milliseconds] * len(quantiles)
            return found[0] if len(found) == 1 else found
        return [milliseconds] if return_mode == "all" else milliseconds

    for name in ("do_bench", "do_bench_cudagraph", "do_bench_proton",
                 "do_bench_cudagraph_proton"):
        if hasattr(testing, name):
            setattr(testing, name, do_bench)


def limit_points(testing: Any, points: int) -> None:
    original = testing.Mark._run

    def run(self: Any, bench: Any, *args: Any, **options: Any) -> Any:
        if len(bench.x_vals) > points:
            _say(f"perf_report runs {points} of {len(bench.x_vals)} sizes; --points has more")
            bench.x_vals = list(bench.x_vals)[:points]
        return original(self, bench, *args, **options)

    testing.Mark._run = run


def _limit_configs(tuner: Any, configs: int) -> None:
    original = tuner._bench
    # Configurations that were tried, by the arguments of a run: one that does not fit the device
    # counts for nothing.
    tried: dict[int, tuple[Any, int]] = {}

    def bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        arguments, count = tried.get(id(self), (None, 0))
        if arguments is not self.nargs:
            count = 0
        if count >= configs:
            _say(f"autotune takes the first {configs} of its configurations; --configs has more")
            return [float("inf")] * 3
        found = original(self, *args, config=config, **meta)
        if found[0] != float("inf"):
            count += 1
        tried[id(self)] = (self.nargs, count)
        return found

    tuner._bench = bench
