"""A kernel of Triton, which beside_triton.py compiles. Importing it loads Triton's LLVM."""

import importlib
from typing import Any

triton: Any = importlib.import_module("triton")
tl: Any = importlib.import_module("triton.language")
compiler: Any = importlib.import_module("triton.compiler")
targets: Any = importlib.import_module("triton.backends.compiler")


@triton.jit  # type: ignore[untyped-decorator]
def double(x, n):  # type: ignore[no-untyped-def]
    i = tl.program_id(0)
    tl.store(x + i, tl.load(x + i) * 2.0, mask=i < n)


def ptx(element: str) -> str:
    """Returns the kernel's PTX for tensors of `element`, such as "fp32", on a Hopper GPU, which
    need not be there."""
    source = compiler.ASTSource(fn=double, signature={"x": f"*{element}", "n": "i32"},
                                constexprs={})
    made = triton.compile(source, target=targets.GPUTarget("cuda", 90, 32))
    return str(made.asm["ptx"])
