"""fp4 and Triton in one process, each with an LLVM of its own: compiles with both in the order of
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


def main() -> None:
    for step, who in enumerate(sys.argv[1:]):
        if who == "fp4":
            ours()
        else:
            theirs(["fp32", "fp16", "fp64"][step])  # another kernel each time: nothing is cached
    maps = pathlib.Path("/proc/self/maps").read_text()
    assert "libtriton.so" in maps and "libfp4.so" in maps and "libLLVM" in maps
    print("both compiled")


if __name__ == "__main__":
    main()
