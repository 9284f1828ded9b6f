"""fp4 for torch: quantized matrices, operations for torch.compile, and linear layers.

    x = fp4.torch.quantize(torch.randn(128, 256, dtype=torch.bfloat16))
    w = fp4.torch.quantize(torch.randn(64, 256, dtype=torch.bfloat16))
    y = fp4.torch.linear(x, w)                       # x w^T, bfloat16 [128, 64]

    fp4.torch.quantize_(model, training=True)        # linear layers that train in NVFP4
    fp4.torch.quantize_(model, weight_only=True)     # 16-bit activations, weights in 4 bits
    fp4.torch.W4A8Linear.from_linear(layer)          # E4M3 activations, weights in MXFP4

CPU tensors run in the simulator, CUDA tensors on their device's current stream. `import fp4` does
not import this package, because it imports torch.
"""

from . import requirement  # noqa: F401 (first: it says what is wrong with torch)
from .attend import attention, attention_scaled
from .attend_heads import scaled_dot_product_attention
from .buffers import ScaledBuffers
from .checking import checked
from .convert import dequantize_, quantize_
from .cross_entropies import cross_entropy
from .decoder import Decoder
from .drop_in import scaled_mm
from .execution import simulator
from .experts import WeightOnlyExperts
from .exported import Exported, from_export
from .fp8_experts import FP8Experts
from .functional import (
    SIGN_MASK,
    amax,
    dequantize,
    fake_quantize,
    hadamard,
    linear,
    quantize,
    swizzle,
)
from .gates import silu_and_mul
from .layers import Linear, NVFP4Training, QuantizedLinear, keep_weights
from .merged import WeightOnlyGate, merge_linears
from .moe import MoE
from .norms import (
    layer_norm,
    layer_norm_quantize,
    rms_norm,
    rms_norm_quantize,
    silu_and_mul_quantize,
)
from .paged_cache import PagedCache
from .preparation import Prepared, prepare
from .report import LayerReport, Report
from .rotations import combine, gather_quantize, rotate, rotate_quantize
from .routed import RoutedExperts, experts_from
from .router import Router, Rule, router_from
from .routing import ExpertOrder, permute_tokens, route
from .row_results import Normed, ScaledFP8
from .scaled import Scaled
from .scales import (
    amax_of_decode_scale,
    amax_of_encode_scale,
    decode_scale_of,
    encode_scale_of,
)
from .slots import reshape_and_cache
from .stored_weight import StoredWeight
from .w4a8 import W4A8Linear
from .weight_only import WeightOnlyLinear

__all__ = ["SIGN_MASK", "Decoder", "ExpertOrder", "Exported", "FP8Experts", "LayerReport",
           "Linear", "MoE", "NVFP4Training", "Normed", "PagedCache", "Prepared", "QuantizedLinear",
           "Report", "RoutedExperts", "Router", "Rule", "Scaled", "ScaledBuffers", "ScaledFP8",
           "StoredWeight", "W4A8Linear", "WeightOnlyExperts", "WeightOnlyGate", "WeightOnlyLinear",
           "amax", "amax_of_decode_scale", "amax_of_encode_scale", "attention", "attention_scaled",
           "checked", "combine", "cross_entropy", "decode_scale_of", "dequantize", "dequantize_",
           "encode_scale_of", "experts_from", "fake_quantize", "from_export", "gather_quantize",
           "hadamard", "keep_weights", "layer_norm", "layer_norm_quantize", "linear",
           "merge_linears", "permute_tokens", "prepare", "quantize", "quantize_",
           "reshape_and_cache", "rms_norm", "rms_norm_quantize", "rotate", "rotate_quantize",
           "route", "router_from", "scaled_dot_product_attention", "scaled_mm", "silu_and_mul",
           "silu_and_mul_quantize", "simulator", "swizzle"]
