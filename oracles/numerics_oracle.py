"""Bit-level numpy models of FP4 block quantizers: the oracle of lib/Numerics.

Each NVFP4 model is one library's quantizer, written out on its own (lib/Numerics composes the same
results from named decisions, so the two share no structure). `nv` and `mx_quant` are the entry
points; run as a script, it re-checks unittests/Numerics/data/numerics_vectors.json.
docs/reference/recipes.md has the formulas."""
import json
import os
import re

import numpy as np

from float_formats import (
    E2M1, F, WIDE_FORMATS, bf16, bits, decode_e2m1, decode_e4m3, e2m1, e4m3, wide_codes)

np.seterr(all="ignore")
FLT_MAX = np.finfo(F).max
BF16_MAX = F(3.3895314e38)
R6 = F(1) / F(6)
NAN_CODE = 16  # stands for the E2M1 code of a NaN where the platform decides it


# --- MXFP4 ------------------------------------------------------------------


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


GGML_VALUES = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]


def nearest_of_table(x, d):
    """ggml: the first of the 16 values whose distance, in fp32, is the smallest."""
    best = np.zeros(x.shape, np.uint8)
    best_error = np.abs(F(0) * d[:, None] - x).astype(F)
    for i, value in enumerate(GGML_VALUES):
        error = np.abs((F(value) * d[:, None]).astype(F) - x).astype(F)
        best = np.where(error < best_error, np.uint8(i), best)
        best_error = np.where(error < best_error, error, best_error)
    return np.where(np.isinf(x), np.where(x < 0, 15, 7), best).astype(np.uint8)  # ours; ggml: 0


def ggml_mx(x):
    amax = np.max(np.where(np.isnan(x), F(0), np.abs(x)), 1).astype(F)
    byte = np.clip((bits(amax) >> 23).astype(int) - 2, 0, 254)
    # Below 2^-125 ggml's byte wraps around; this one does not.
    return byte.astype(np.uint8), nearest_of_table(x, np.exp2(byte - 128.0).astype(F))


# --- MXFP6 and MXFP8 ----------------------------------------------------------

def wide(name, mode):
    _, _, largest, exponent, _ = WIDE_FORMATS[name]

    def quantize(x):
        amax = np.max(np.abs(x), 1).astype(F)
        u = bits(amax).astype(np.int64)
        byte = (u >> 23) - exponent
        if mode == "rceil":
            w = bits((amax / F(largest)).astype(F)).astype(np.int64)
            e, m = w >> 23, w & 0x7FFFFF
            byte = np.where(e == 0, m > 0x400000, e + (m != 0))
        byte = np.where(np.isfinite(amax), np.clip(byte, 0, 254), 255)
        factor = np.where(byte == 255, np.nan, np.exp2(127.0 - byte)).astype(F)
        return byte.astype(np.uint8), wide_codes((x * factor[:, None]).astype(F), name)

    return quantize


WIDE_MODELS = {f"{name}_{mode}": wide(name, mode)
               for name in WIDE_FORMATS for mode in ("floor", "rceil")}  # fmt: skip

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


def block_of(model):
    """Elements of a model's block."""
    return 16 if model in NV_MODELS else BLOCKS.get(model, 32)


def mx_variant(x, model):
    return MXFP4_VARIANTS[model](np.asarray(x, F).reshape(-1, block_of(model)))


def mx_quant(x, mode):
    """x: (n, 32). Returns scale bytes and codes; amax propagates NaN, whose code is torchao's 3."""
    x = np.asarray(x, F).reshape(-1, 32)
    byte = mx_byte(np.max(np.abs(x), 1), mode)
    factor = np.where(byte == 255, np.nan, np.exp2(127.0 - byte.astype(np.float64))).astype(F)
    return byte, e2m1((x * factor[:, None]).astype(F), nan=3)


# --- NVFP4 ------------------------------------------------------------------


class Amaxes:
    """Block and tensor amaxes of x (n, 16), with NaN dropped and with NaN propagated."""

    def __init__(self, x, tensor):
        dropped = np.where(np.isnan(x), F(0), np.abs(x))
        self.drop = np.max(dropped, 1).astype(F)
        self.prop = np.max(np.abs(x), 1).astype(F)
        self.tensor_drop = F(np.max(dropped)) if tensor is None else F(tensor)
        self.tensor_prop = F(np.max(np.abs(x))) if tensor is None else F(tensor)


def fmin(a, b):
    return np.fmin(a, b).astype(F)  # drops NaN


def python_scalar_over_tensor(a):
    """2688.0 / tensor in PyTorch: a reciprocal, then a product."""
    return F(F(2688) * F(F(1) / F(a)))


def te_encode_scale(amax, e4m3_max=448):
    s = F(e4m3_max * 6) / F(amax)
    s = FLT_MAX if np.isnan(s) else min(s, FLT_MAX)
    return F(1) if amax == 0 or s == 0 else F(s)


def transformer_engine(x, a, folded):
    g = te_encode_scale(a.tensor_drop)
    s = a.drop * (g * R6) if folded else a.drop / F(6) * g
    s8 = e4m3(fmin(s.astype(F), FLT_MAX))
    factor = fmin(F(1) / (decode_e4m3(s8) * (F(1) / g)), FLT_MAX)
    return s8, e2m1(x * factor[:, None])


def transformer_engine_fast(x, a):
    g = te_encode_scale(a.tensor_drop)
    s8 = e4m3(fmin(a.drop * (g * R6), FLT_MAX))
    factor = bf16(fmin(g / decode_e4m3(s8), BF16_MAX)).astype(np.float64)
    return s8, e2m1(bf16((x.astype(np.float64) * factor[:, None]).astype(F)))


def approximate_reciprocal(x):
    """rcp.approx.ftz.f32 of an H200 for positive normal x: the rows of lib/Numerics/Reciprocal.cpp, in
    integers. The square is the sum of those partial products z_i z_j that weigh 2^17 and more."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../lib/Numerics/Reciprocal.cpp")) as f:
        rows = np.array(re.findall(r"\{(\d+), (\d+), (\d+)\}", f.read()), np.int64)
    u = bits(x).astype(np.int64)
    (c0, c1, c2), z = rows[u >> 16 & 127].T, u & 0xFFFF
    square = sum((z >> i & z >> j & 1) << (i + j + (i != j)) for i in range(16)
                 for j in range(i, 16) if i + j + (i != j) >= 17) >> 17
    y = c0 * 8192 - c1 * z + c2 * square + 2023 >> 15
    result = np.ldexp(y.astype(np.float64), 127 - 24 - (u >> 23))
    result = np.where(result < 2.0**-126, 0, result)
    return np.where(np.asarray(x, F) < F(2**-126), np.inf, result).astype(F)


def transformer_engine_transform(x, a, fast):
    """The kernels that transform first: NaN propagates, of the amax of the tensor too."""
    g = min(F(2688) / a.tensor_prop, FLT_MAX) if a.tensor_prop > 0 else F(1)
    s8 = e4m3(a.prop * (g * R6))
    product = (decode_e4m3(s8) * (F(1) / g)).astype(F)
    factor = approximate_reciprocal(product) if fast else F(1) / product
    factor = np.where(np.isnan(product), product, np.minimum(factor, FLT_MAX)).astype(F)
    return s8, e2m1(x * factor[:, None])


def torchao_one_level(x, a, divide, cuda=False):
    sixth = a.prop * R6 if cuda else a.prop / F(6)
    s8 = e4m3(np.clip(sixth, F(2**-6), F(448)).astype(F), saturate=False)
    f = decode_e4m3(s8)[:, None]
    y = x / f if divide else x * (F(1) / f)
    return s8, e2m1(np.clip(y, -6, 6), nan=NAN_CODE)


def torchao_two_level(x, a, divide, cuda=False):
    """On CUDA, PyTorch multiplies a tensor by the reciprocal of a Python scalar instead."""
    p = F(a.tensor_prop * (F(1) / F(2688))) if cuda else F(a.tensor_prop / F(2688))
    sixth = a.prop * R6 if cuda else a.prop / F(6)
    s8 = e4m3(np.clip(sixth / p, F(2**-6), F(448)).astype(F), saturate=False)
    f = decode_e4m3(s8)
    y = x / (p * f)[:, None] if divide else x * ((F(1) / p) / f)[:, None]
    return s8, e2m1(np.clip(y, -6, 6), nan=NAN_CODE)


def pytorch_eager(x, a):
    g = python_scalar_over_tensor(a.tensor_prop)
    s8 = e4m3(np.clip(a.prop / F(6) * g, -448, 448).astype(F), saturate=False)
    f = decode_e4m3(s8)
    factor = np.where(np.isnan(f), F(np.nan), g / np.maximum(f, F(1e-12))).astype(F)
    return s8, e2m1(x * factor[:, None])


def flashinfer_or_vllm(x, a, is_vllm):
    g = python_scalar_over_tensor(a.tensor_drop)
    s8 = e4m3(g * (a.drop * R6))
    f = decode_e4m3(s8)
    used = f != 0 if is_vllm else a.drop != 0
    factor = np.where(used, F(1) / (f * (F(1) / g)), F(0)).astype(F)
    return s8, e2m1(x * factor[:, None])


def flashinfer_exact(x, a):
    g = python_scalar_over_tensor(a.tensor_drop)
    s8 = e4m3(a.drop * (g * R6))
    factor = fmin(F(1) / (decode_e4m3(s8) * (F(1) / g)), FLT_MAX)
    return s8, e2m1(x * np.where(a.drop != 0, factor, F(0)).astype(F)[:, None])


def mslk(x, a, floor):
    g = F(2688) / a.tensor_prop
    s8 = e4m3(np.clip(a.prop / F(6) * g, F(floor), F(448)).astype(F))
    return s8, e2m1(x * (g / decode_e4m3(s8)).astype(F)[:, None])


def modelopt(x, a, clamps):
    p = F(a.tensor_prop / F(2688))
    s = (a.prop / (F(6) * p)).astype(F)
    s = np.where(s == 0, F(1), s)
    s8 = e4m3((np.clip(s, F(2**-9), F(448)) if clamps else s).astype(F), saturate=False)
    return s8, e2m1(x / (decode_e4m3(s8) * p)[:, None], keep_negative_zero=False)


def modelopt_static(x, a):
    s = (a.prop / F(6)).astype(F)
    s = (np.where(s == 0, F(1), s) * F(448)).astype(F) / F(a.tensor_prop / F(6))
    s8 = e4m3(np.clip(s.astype(F), F(2**-9), F(448)).astype(F))
    p = F(a.tensor_prop / F(2688))
    return s8, e2m1(x / (decode_e4m3(s8) * p)[:, None], keep_negative_zero=False)


def compressed_tensors(x, a, to):
    """`to` rounds to the type of the weights, in which PyTorch computes their amaxes."""
    tiny = np.finfo(F).tiny
    largest = a.tensor_prop if np.isnan(a.tensor_prop) else max(a.tensor_prop, tiny)
    g = to(F(2688) * to(F(1) / F(largest)))
    g = F(g) if np.isfinite(g) else F(1)
    s8 = e4m3((g * to((a.prop / F(6)).astype(F))).astype(F))
    s8 = np.where(s8 == 0, 0x20, s8).astype(np.uint8)  # 0.125
    return s8, e2m1(x / (decode_e4m3(s8) / g)[:, None].astype(F), keep_negative_zero=False)


def ggml_e4m3(x):
    """ggml_fp32_to_ue4m3 of numbers from 0 on."""
    x = np.minimum(x, F(448)).astype(F)
    u = bits(x).astype(np.int64)
    exponent, mantissa = (u >> 23) - 127 + 7, (u >> 20 & 7) + (u >> 19 & 1)
    exponent, mantissa = exponent + (mantissa > 7), mantissa & 7
    normal = np.where(exponent >= 15, 0x7E, exponent << 3 | mantissa)
    subnormal = np.minimum((x * F(512) + F(0.5)).astype(F).astype(int), 7)
    return np.where(x < F(2**-6), subnormal, normal).astype(np.uint8)


def ggml_nv(x, a):
    s8 = ggml_e4m3((a.drop / F(6)).astype(F))
    # From 2^34 on all values are as far from an element as 0 is, for ggml; not here.
    small = np.where(np.isinf(x), x, np.clip(x, -1e6, 1e6)).astype(F)
    return s8, nearest_of_table(small, decode_e4m3(s8) / F(2))


def cutlass(x, a):
    g = F(2688) / a.tensor_prop
    s8 = e4m3(a.prop * (g * R6))
    factor = (g * (F(1) / decode_e4m3(s8))).astype(F)
    factor = np.where(np.isnan(factor), factor, np.minimum(factor, FLT_MAX)).astype(F)
    return s8, e2m1(x * factor[:, None])


def error_of(distance, metric):
    """(n, 16), or (n, 256) for 16 x 16 tiles: in element order along rows, whose errors then meet in
    a tree of strides 8, 4, 2, 1."""
    if metric == "largest":
        return np.max(distance, 1)
    power = (distance * distance).astype(F) if metric == "squared" else distance
    rows = power.reshape(len(power), -1, 16)
    error = np.zeros(rows.shape[:2], F)
    for i in range(16):
        error = (error + rows[:, :, i]).astype(F)
    while error.shape[1] > 1:
        half = error.shape[1] // 2
        error = (error[:, :half] + error[:, half:]).astype(F)
    return error[:, 0]


def four_over_six(x, a, e4m3_max, metric="absolute", package=False):
    """TransformerEngine's, with the sum of absolute errors taken in element order; or the sum of
    their squares; or the largest. The package fouroversix has codes 0 where a scale is 0."""
    tensor, amax = (a.tensor_prop, a.prop) if package else (a.tensor_drop, a.drop)
    g = te_encode_scale(tensor, e4m3_max)
    if package:
        g = F(6 * e4m3_max) / tensor if tensor != 0 else F(1)
    base = (amax / F(6) * g).astype(F)
    candidates = []
    for stretch in (F(1.5), F(1)):
        s8 = e4m3((base * stretch).astype(F))
        f = decode_e4m3(s8)
        factor = F(1) / (f * (F(1) / g))
        if package:
            y = np.where(f[:, None] != 0, (x * factor[:, None]).astype(F), F(0))
            q = e2m1(y, keep_negative_zero=False)
        else:
            q = e2m1(x * fmin(factor, FLT_MAX)[:, None])
        back = ((decode_e2m1(q) * f[:, None]).astype(F) * tensor).astype(F)
        distance = np.abs((back / F(6 * e4m3_max)).astype(F) - x).astype(F)
        candidates.append((s8, q, error_of(distance, metric)))
    (s4, q4, error4), (s6, q6, error6) = candidates
    four = error4 < error6
    return np.where(four, s4, s6), np.where(four[:, None], q4, q6)


def flashinfer_four_over_six(x, a, exact):
    """cvt_warp_fp16_to_fp4 of nv_internal, a thread per block, reciprocals exact."""
    g = python_scalar_over_tensor(a.tensor_drop)
    base = (a.drop / F(6) * g if exact else g * (a.drop * R6)).astype(F)
    d = F(1) / g
    candidates = []
    for stretch in (F(1.5), F(1)):
        s8 = e4m3((base * stretch).astype(F))
        f = decode_e4m3(s8)
        q = e2m1(x * fmin(F(1) / (f * d), FLT_MAX)[:, None])
        back = ((decode_e2m1(q) * f[:, None]).astype(F) * d).astype(F)
        candidates.append((s8, q, error_of(np.abs(back - x).astype(F), "absolute")))
    (s4, q4, error4), (s6, q6, error6) = candidates
    four, zero = error4 < error6, a.drop == 0
    scales = np.where(zero, 0, np.where(four, s4, s6)).astype(np.uint8)
    return scales, np.where(zero[:, None], 0, np.where(four[:, None], q4, q6)).astype(np.uint8)


NV_MODELS = {
    "te213": lambda x, a: transformer_engine(x, a, folded=False),
    "te214": lambda x, a: transformer_engine(x, a, folded=True),
    "te_fast": transformer_engine_fast,
    "transformer_engine_transform": lambda x, a: transformer_engine_transform(x, a, False),
    "transformer_engine_transform_fast": lambda x, a: transformer_engine_transform(x, a, True),
    "ao1": lambda x, a: torchao_one_level(x, a, divide=False),
    "ao1old": lambda x, a: torchao_one_level(x, a, divide=True),
    "ao2": lambda x, a: torchao_two_level(x, a, divide=False),
    "ao2old": lambda x, a: torchao_two_level(x, a, divide=True),
    "eager": pytorch_eager,
    "fi": lambda x, a: flashinfer_or_vllm(x, a, is_vllm=False),
    "vllm": lambda x, a: flashinfer_or_vllm(x, a, is_vllm=True),
    "fi_exact": flashinfer_exact,
    "mslk": lambda x, a: mslk(x, a, 1.5258789e-05),
    "mslk_2026": lambda x, a: mslk(x, a, 2**-9),
    "modelopt": lambda x, a: modelopt(x, a, clamps=True),
    "modelopt_044": lambda x, a: modelopt(x, a, clamps=False),
    "modelopt_static": modelopt_static,
    "compressed_tensors": lambda x, a: compressed_tensors(x, a, bf16),
    "compressed_tensors_f32": lambda x, a: compressed_tensors(x, a, lambda v: F(v)),
    "ggml_nvfp4": ggml_nv,
    "cutlass": cutlass,
    "flashinfer_four_over_six": lambda x, a: flashinfer_four_over_six(x, a, exact=False),
    "flashinfer_four_over_six_exact": lambda x, a: flashinfer_four_over_six(x, a, exact=True),
    "te46": lambda x, a: four_over_six(x, a, 256),
    "te46_448": lambda x, a: four_over_six(x, a, 448),
    "te46_squared": lambda x, a: four_over_six(x, a, 256, "squared"),
    "te46_largest": lambda x, a: four_over_six(x, a, 256, "largest"),
    "fos": lambda x, a: four_over_six(x, a, 256, "squared", package=True),
    "fos_mae": lambda x, a: four_over_six(x, a, 256, package=True),
    "fos_abs_max": lambda x, a: four_over_six(x, a, 256, "largest", package=True),
    "ao2_cuda": lambda x, a: torchao_two_level(x, a, divide=False, cuda=True),
    "ao2old_cuda": lambda x, a: torchao_two_level(x, a, divide=True, cuda=True),
    "ao1_cuda": lambda x, a: torchao_one_level(x, a, divide=False, cuda=True),
}


# Recipes that round codes in a way of their own, and so do not round stochastically.
NEAREST_ONLY = ["fos", "fos_mae", "fos_abs_max", "te46", "te46_448", "te46_squared", "te46_largest",
                "flashinfer_four_over_six", "flashinfer_four_over_six_exact", "ggml_nvfp4", "ggml_mxfp4", "mxfp4_modelopt",
                *WIDE_MODELS]  # fmt: skip


def nv(x, model, tensor_amax=None):
    """x: (n, 16); tensor_amax: None takes it from x. Returns scale bytes and codes."""
    x = np.asarray(x, F).reshape(-1, 16)
    return NV_MODELS[model](x, Amaxes(x, tensor_amax))


# --- Hadamard ---------------------------------------------------------------


def hadamard(x, n=16, mask=0xD7E8, flavour="ascending", to_bf16=True):
    """Blocks of n along the last axis. Flavours: ascending or descending fp32 butterflies, or the
    exact sum rounded to fp32."""
    x = np.asarray(x, F).reshape(-1, n)
    x = x * np.array([-1 if mask >> i % 16 & 1 else 1 for i in range(n)], F)
    inverse = F(1) / F(n)
    scale = F(n**-0.5)
    if flavour == "exact":
        matrix = np.array([[(-1) ** bin(i & j).count("1") for j in range(n)] for i in range(n)])
        y = (x.astype(np.float64) @ matrix * np.float64(scale)).astype(F)
    else:
        x = x * inverse
        strides = [1 << k for k in range(n.bit_length() - 1)]
        for h in strides if flavour == "ascending" else strides[::-1]:
            pairs = x.reshape(-1, n // (2 * h), 2, h)
            a, b = pairs[:, :, 0], pairs[:, :, 1]
            x = np.stack([a + b, a - b], 2).astype(F).reshape(-1, n)
        y = x * (scale / inverse)
    return bf16(y) if to_bf16 else y


# --- Stochastic rounding ----------------------------------------------------


def e2m1_truncate(y, byte):
    """Model of cvt.rs: away from zero iff the byte carries the first 8 discarded bits over."""
    a = np.minimum(np.abs(y).astype(np.float64), 6.0)
    low = np.searchsorted(E2M1.astype(np.float64), a, "right") - 1
    high = np.minimum(low + 1, 7)
    step = np.where(high > low, E2M1[high] - E2M1[low], 1)
    up = np.floor(256 * (a - E2M1[low]) / step) + byte >= 256
    code = (np.where(up, high, low) | np.signbit(y) << 3).astype(np.uint8)
    return np.where(np.isnan(y), np.uint8(7), code)


def e2m1_fused_add(y, byte):
    """TransformerEngine's fallback: the fused sum, in fp32, then down to the grid."""
    a = np.abs(y).astype(np.float64)
    step = np.where(a < 2, 0.5, np.where(a < 4, 1.0, 2.0))
    total = (a + byte / 256.0 * step).astype(F)  # exact in fp64 for all but tiny a
    code = np.searchsorted(E2M1, np.minimum(total, F(6)), "right") - 1
    code = (code | np.signbit(y) << 3).astype(np.uint8)
    return np.where(np.isnan(y), np.uint8(7), code)


def reverse8(byte):
    return int(f"{byte:08b}"[::-1], 2)


def random_bytes(words, bytes_map):
    """Bytes of 16 elements from four words; element i of a quad goes to operand f, e, b, a."""
    out = []
    for w in words:
        b = [w >> 8 * i & 255 for i in range(4)]
        out += [b[2], reverse8(b[0]), b[3], reverse8(b[1])] if bytes_map == "hardware" else b
    return out


# --- Philox and packing -----------------------------------------------------


def philox(seed, subsequence, offset, rounds=10):
    mask = 0xFFFFFFFF
    key = [seed & mask, seed >> 32 & mask]
    c = [offset & mask, offset >> 32 & mask, subsequence & mask, subsequence >> 32 & mask]
    for _ in range(rounds):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ key[0], p1 & mask, p0 >> 32 ^ c[3] ^ key[1], p0 & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return c


def pack(codes, model=None):
    if model in WIDE_MODELS:
        return codes
    codes = codes.reshape(-1)
    return (codes[0::2] | codes[1::2] << 4).astype(np.uint8)


# --- Check of the golden vectors --------------------------------------------


def from_hex(words):
    return np.array([int(w, 16) for w in words], np.uint32).view(F)


def text(scales, codes, digits=1):
    """"38:0123... 7e:...": scale byte and codes of each block, N for a NaN code."""
    nan = NAN_CODE if digits == 1 else None
    blocks = ("".join("N" if c == nan else "%0*x" % (digits, c) for c in row) for row in codes)
    return " ".join("%02x:%s" % pair for pair in zip(scales, blocks))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../unittests/Numerics/data/numerics_vectors.json")) as f:
        vectors = json.load(f)
    checked = wrong = 0
    for v in vectors["nv"]:
        x = np.stack([from_hex(block) for block in v["x_fp32_hex"]])
        for model, want in v["model"].items():
            checked += 1
            wrong += text(*nv(x, model, v["tensor_amax_override"])) != want
    for v in vectors["mx"]:
        for mode, want in v["model"].items():
            checked += 1
            wrong += text(*mx_quant(from_hex(v["x_fp32_hex"]), mode)) != want
    print("%d checked, %d wrong" % (checked, wrong))
    return wrong != 0


if __name__ == "__main__":
    raise SystemExit(main())
