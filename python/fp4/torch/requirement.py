"""Checks that torch has everything that fp4.torch needs: the first import of the package names what
is missing."""

from __future__ import annotations

try:
    import torch
except ModuleNotFoundError as error:
    raise ImportError("fp4.torch needs torch, which is not installed\nnote: pip install torch"
                      ) from error
try:
    from torch.nn.functional import ScalingType  # noqa: F401
except ImportError as error:
    found = getattr(torch, "__version__", "a torch without a version")
    raise ImportError(f"fp4.torch needs torch 2.10 or later, but found {found}\nnote: "
                      "pip install --upgrade torch") from error
