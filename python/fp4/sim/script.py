"""The process that runs the script, under `fp4-sim run`:

    python -m fp4.sim.script POINTS CONFIGS SCRIPT ARGUMENTS...
"""

from __future__ import annotations

import os
import runpy
import sys


def main() -> None:
    points, configs, script = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    os.environ.setdefault("MPLBACKEND", "Agg")  # nobody looks at plots of benchmarks that ran once
    import torch

    if torch.cuda.is_available():
        raise SystemExit("fp4.sim: error: this torch has a GPU, and its CUDA tensors are not the "
                         "simulator's\nnote: set CUDA_VISIBLE_DEVICES= or install torch for CPUs")
    from . import cuda, tensors, triton

    cuda.install()
    tensors.install()
    triton.install(points, configs)
    sys.argv[:] = [script, *sys.argv[4:]]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    inherit = tensors.Inherit()  # type: ignore[no-untyped-call]
    with tensors.Redirect(), inherit:
        runpy.run_path("/dev/stdin" if script == "-" else script, run_name="__main__")


if __name__ == "__main__":
    main()
