"""fp4, Triton and torch in one process, the compilers with an LLVM each: uses them in the order of
the arguments. test_beside.py runs it."""

import pathlib
import sys

import fp4
import numpy as np
from programs import compiled, operands, product


def ours() -> None:
    y = compiled(product())(*operands(), verify=True)
    assert np.asarray(y).shape == (130, 32)
    try:
        fp4.compile("func.func @f(")
    except fp4.CompileError as error:  # diagnostics find their context
        assert error.location is not None
    else:
        raise AssertionError("garbage was compiled")


def theirs(element: str) -> None:
    from triton_kernel import ptx

    text = ptx(element)
    assert ".visible .entry double" in text and ".target sm_90a" in text, text


def torchs() -> None:
    import torch

    assert (torch.ones(4, 8) @ torch.ones(8, 4)).sum().item() == 128


def main() -> None:
    for step, who in enumerate(sys.argv[1:]):
        if who == "fp4":
            ours()
        elif who == "torch":
            torchs()
        else:
            # Another kernel each time: nothing is cached.
            theirs(["fp32", "fp16", "fp64", "bf16"][step])
    maps = pathlib.Path("/proc/self/maps").read_text()
    libraries = {"fp4": "/libfp4.so", "torch": "/libtorch_cpu.so", "triton": "/libtriton.so"}
    for who in sys.argv[1:]:
        assert libraries[who] in maps, who
    print("all computed")


if __name__ == "__main__":
    main()
