"""Models of MXFP4 quantizers: `mx_quant` has the rules of OCP MX, `mx_variant` those of libraries.
Models of the other formats of MX are variants too."""
import numpy as np

from .formats import NAN_CODE, R6, F, bits, e2m1
from .ggml import ggml_mx
from .wide import WIDE_MODELS


def mx_byte(amax, mode):
    """The UE8M0 byte of a block; modes floor ceil even even_mslk rceil rceil_div."""
    amax = np.asarray(amax, F)
    u = bits(amax).astype(np.int64)
    exponent, mantissa = (u >> 23) & 255, u & 0x7FFFFF
    bad = ~np.isfinite(amax)
    if mode == "floor":
        e = exponent - 2
    elif mode == "ceil":
        e = exponent - 2 + (mantissa != 0)
    elif mode == "even":
        bad = bad | (u + (1 << 21) >= 0x7F800000)
        e = ((u + (1 << 21)) >> 23) - 2
    elif mode == "even_mslk":
        e = ((u + (1 << 21) - 1) >> 23) - 2
    else:
        d = amax * R6 if mode == "rceil" else amax / F(6)
        w = bits(d.astype(F)).astype(np.int64)
        de, dm = (w >> 23) & 255, w & 0x7FFFFF
        e = np.where(de == 0, dm > 0x400000, de + (dm != 0))
    return np.where(bad, 255, np.clip(e, 0, 254)).astype(np.uint8)


MXFP4_MODELS = ["floor", "ceil", "even", "even_mslk", "rceil", "rceil_div"]


def zero_byte_factor(x, rule, zero_factor):
    """Quantizers that give byte 0 a factor of their own. These quantizers drop NaN and have no byte
    255: infinity is their largest exponent."""
    amax = np.max(np.where(np.isnan(x), F(0), np.abs(x)), 1).astype(F)
    u = bits(amax).astype(np.int64)
    even = np.clip(((u + (1 << 21)) >> 23) - 2, 0, 254)
    byte = np.where(np.isinf(amax), 254, mx_byte(amax, rule)) if rule == "rceil" else even
    factor = np.where(byte == 0, zero_factor, np.exp2(127.0 - byte)).astype(F)
    return byte.astype(np.uint8), e2m1((x * factor[:, None]).astype(F))


def torchao_0_18(x, mode):
    """torchao 0.18.0: elements are divided by the scale, which is at least 2^-126 and, of NaN,
    infinite; its RCEIL takes a logarithm and multiplies."""
    amax = np.max(np.abs(x), 1)
    nan = np.isnan(amax)
    if mode == "rceil":
        log = np.log2((amax / F(6)).astype(np.float64)).astype(F)
        byte = np.where(nan, 255, np.clip(np.ceil(log), -127, 127) + 127)
        byte = np.where(np.isinf(amax), 254, byte)
        factor = np.where(nan, np.nan, np.where(byte == 0, 1.0, np.exp2(127 - byte)))
        return byte.astype(np.uint8), e2m1((x * factor.astype(F)[:, None]).astype(F), nan=NAN_CODE)
    u = bits(amax).astype(np.int64)
    u = (u + (1 << 21)) & 0xFF800000 if mode == "even" else u
    exponent = (u >> 23) - 127 + (mode == "ceil") * (u & 0x7FFFFF > 0)
    byte = np.where(nan, 255, np.clip(exponent - 2, -127, 128) + 127)
    scale = np.maximum((byte.astype(np.uint32) << 23).view(F), F(2**-126))
    return byte.astype(np.uint8), e2m1((x / scale[:, None]).astype(F), nan=NAN_CODE)


def fouroversix_mx(x):
    """fouroversix 1.1: the exponent field, in 8 bits, plus one where any mantissa bit is set."""
    u = bits(np.max(np.abs(x), 1) / F(6)).astype(np.int64)
    byte = ((u >> 23 & 255) + (u & 0x7FFFFF != 0)).astype(np.uint8)
    scale = (byte.astype(np.uint32) << 23).view(F)
    y = np.where(byte[:, None] != 0, (x / scale[:, None]).astype(F), F(0))
    return byte, e2m1(y, nan=0, keep_negative_zero=False)


def even_of_torch_sign(x):
    """compressed-tensors: torch.sign(-0.0) is 0."""
    byte = mx_byte(np.max(np.abs(x), 1), "even")
    factor = np.where(byte == 255, np.nan, np.exp2(127.0 - byte.astype(np.float64))).astype(F)
    return byte, e2m1((x * factor[:, None]).astype(F), keep_negative_zero=False)


def bounds_below(x):
    """ModelOpt: the code counts bounds below |y|, so halves go down; (2 - sign) // 2 of 0 is 1."""
    amax = np.max(np.abs(x), 1)
    log = np.log2((amax / F(6)).astype(np.float64)).astype(F)
    byte = np.where(np.isfinite(amax), np.clip(np.ceil(log), -127, 127) + 127, 255)
    byte = byte.astype(np.uint8)
    factor = np.where(byte == 255, np.nan, np.exp2(127.0 - byte.astype(np.float64))).astype(F)
    y = (x * factor[:, None]).astype(F)
    code = sum((np.abs(y) > b).astype(np.uint8) for b in (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5))
    code = code | ((2 - np.sign(y)) // 2 == 1).astype(np.uint8) << 3
    return byte, np.where(np.isnan(y), 7, code).astype(np.uint8)


def triton_masks(x, divisor, up):
    """downcast_to_mxfp_torch: exponents by masks, a factor of 0 under scales 0 and infinity."""
    scale = (np.max(np.abs(x), 1) / F(divisor)).astype(F)
    u = bits(scale).astype(np.int64) & 0xFFFFFFFF
    rounded = ((u + (0x7FFFFF if up else 0)) & 0x7F800000).astype(np.uint32)
    value = rounded.view(F)
    factor = np.where(value == 0, F(0), F(1) / value).astype(F)
    return (rounded >> 23).astype(np.uint8), e2m1((x * factor[:, None]).astype(F))


MXFP4_VARIANTS = {
    **WIDE_MODELS,
    "fi_mx": lambda x: zero_byte_factor(x, "rceil", 1.0),
    "vllm_mx": lambda x: zero_byte_factor(x, "even", 0.0),
    "fos_mx": fouroversix_mx,
    "torchao_0_18_floor": lambda x: torchao_0_18(x, "floor"),
    "torchao_0_18_ceil": lambda x: torchao_0_18(x, "ceil"),
    "torchao_0_18_even": lambda x: torchao_0_18(x, "even"),
    "torchao_0_18_rceil": lambda x: torchao_0_18(x, "rceil"),
    "mxfp4_compressed_tensors": even_of_torch_sign,
    "ggml_mxfp4": ggml_mx,
    "mxfp4_modelopt": bounds_below,
    "mxfp4_triton_up": lambda x: triton_masks(x, 6, True),
    "mxfp4_triton_down": lambda x: triton_masks(x, 4, False),
    "mxfp4_triton_down_6": lambda x: triton_masks(x, 6, False),
}


BLOCKS = {}  # of models whose blocks do not have the 32 elements of OCP MX


def mx_block(model):
    """Elements of the block of a model."""
    return BLOCKS.get(model, 32)


def mx_variant(x, model):
    return MXFP4_VARIANTS[model](np.asarray(x, F).reshape(-1, mx_block(model)))


def mx_quant(x, mode):
    """x: (n, 32). Returns scale bytes and codes; amax propagates NaN, whose code is torchao's 3."""
    x = np.asarray(x, F).reshape(-1, 32)
    byte = mx_byte(np.max(np.abs(x), 1), mode)
    factor = np.where(byte == 255, np.nan, np.exp2(127.0 - byte.astype(np.float64))).astype(F)
    return byte, e2m1((x * factor[:, None]).astype(F), nan=3)
