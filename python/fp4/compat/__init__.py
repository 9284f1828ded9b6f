"""The functions of flashinfer, vllm and torchao, computed by fp4 (docs/guides/python.md).

    from fp4.compat.flashinfer import mm_fp4, nvfp4_quantize    # instead of: from flashinfer

Names, parameters, defaults, shapes and dtypes are those of the packages, and so are the bits, as
far as lib/Numerics has their formulas (docs/reference/numerics.md has the versions and exceptions).
Everything that differs here is refused with an fp4.UsageError, never approximated: kernels that do
not exist here, scales in the other layout, implicit copies.

CPU tensors run in the simulator, CUDA tensors on their device and torch's current stream. The
functions are eager, so torch.compile breaks the graph at them; fp4.torch has operators for it. The
modules need torch, so import the one that you use: fp4.compat itself imports nothing.
"""
