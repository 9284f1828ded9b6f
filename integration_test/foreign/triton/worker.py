"""Runs the cases named on the command line, one after the other; says how each ended (run.py starts it)."""
import os
import sys
import traceback

import triton

import basics  # noqa: F401  (they fill CASES)
import matmul  # noqa: F401
import tensors  # noqa: F401
from cases import CASES
from device import Scratch

triton.set_allocator(lambda size, alignment, stream: Scratch(size))

for name in sys.argv[1:]:
    sys.stdout.flush()
    os.write(2, f"::begin {name}\n".encode())
    try:
        CASES[name][0]()
        verdict = "passed"
    except Exception as error:  # a kernel that failed leaves its own report on stderr
        verdict = "failed"
        traceback.print_exc(limit=-2) if not isinstance(error, AssertionError) else sys.stderr.write(f"{error}\n")
    sys.stderr.flush()
    os.write(2, f"::end {name} {verdict}\n".encode())
