"""fp4 for torch: quantized matrices, operations for torch.compile, and linear layers.

    x = fp4.torch.quantize(torch.randn(128, 256, dtype=torch.bfloat16))
    y = fp4.torch.dequantize(x)

CPU tensors run in the simulator, CUDA tensors on their device's current stream. docs/Python.md has
the operations; `import fp4` does not import this package, because it imports torch.
"""

from .buffers import ScaledBuffers
from .scaled import Scaled
from .scales import amax_of_decode_scale, decode_scale_of, encode_scale_of

__all__ = ["Scaled", "ScaledBuffers", "amax_of_decode_scale", "decode_scale_of",
           "encode_scale_of"]
