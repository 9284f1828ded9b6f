"""Prints the cases and their devices; needs Triton, no device."""
import sys
import types

sys.modules["device"] = types.SimpleNamespace(Array=None, Scratch=None, zeros=None)  # libcuda is not there
import basics  # noqa: E402,F401
import matmul  # noqa: E402,F401
import tensors  # noqa: E402,F401
from cases import CASES  # noqa: E402

for name, (_, devices) in CASES.items():
    print(name, ",".join(devices))
