"""The process that runs the script, under `fp4-sim run`:

    python -m fp4.sim.script POINTS CONFIGS (SCRIPT | -m MODULE) ARGUMENTS...
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import runpy
import sys

from . import triton


def main() -> None:
    points, configs = int(sys.argv[1]), int(sys.argv[2])
    os.environ.setdefault("MPLBACKEND", "Agg")  # nobody looks at plots of benchmarks that ran once
    with contextlib.ExitStack() as modes:
        if importlib.util.find_spec("torch") is not None:
            _redirect_torch(modes)
        triton.install(points, configs)
        _run(*sys.argv[3:])


def _redirect_torch(modes: contextlib.ExitStack) -> None:
    import torch

    if not _brings_a_runtime() and torch.cuda.is_available():
        raise SystemExit("fp4.sim: error: this torch has a GPU, and its CUDA tensors are not the "
                         "simulator's\nnote: set CUDA_VISIBLE_DEVICES= or install torch for CPUs")
    from . import cuda, tensors

    cuda.install()
    tensors.install()
    modes.enter_context(tensors.Redirect())
    modes.enter_context(tensors.Inherit())  # type: ignore[no-untyped-call]


def _brings_a_runtime() -> bool:
    """Returns True if a libcudart that is not the simulator's came with torch. That library accepts
    no driver but NVIDIA's, so a torch with it has no GPU here; to ask torch would only make it
    try."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return any("/libcudart" in line and "/fp4-cuda/" not in line for line in maps)


def _run(script: str, *arguments: str) -> None:
    """Runs `python SCRIPT ARGUMENTS...` or `python -m MODULE ARGUMENTS...`."""
    if script == "-m":
        sys.argv[:] = arguments
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    sys.argv[:] = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path("/dev/stdin" if script == "-" else script, run_name="__main__")


if __name__ == "__main__":
    main()
