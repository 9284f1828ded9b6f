"""Benchmarks of Triton: times of a simulator say nothing, so each runs as little as it can.

do_bench calls its function once. perf_report runs the first sizes only, and autotune takes the
first configurations that run. All say so on stderr, once.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import time
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
    _run_once(testing)
    _limit_points(testing, points)
    _limit_configs(autotuner.Autotuner, configs)


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


def _limit_points(testing: Any, points: int) -> None:
    original = testing.Mark._run

    def run(self: Any, bench: Any, *args: Any, **options: Any) -> Any:
        if len(bench.x_vals) > points:
            _say(f"perf_report runs {points} of {len(bench.x_vals)} sizes; --points has more")
            bench.x_vals = list(bench.x_vals)[:points]
        return original(self, bench, *args, **options)

    testing.Mark._run = run


def _limit_configs(tuner: Any, configs: int) -> None:
    original = tuner._bench
    # By the arguments of a run: a configuration that does not fit the device counts for nothing.
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
