"""Models of NVFP4 quantizers; `nv` is the entry point."""
import pathlib
import re

import numpy as np

from .formats import (
    BF16_MAX, FLT_MAX, NAN_CODE, R6, F, bf16, bits, decode_e2m1, decode_e4m3, e2m1, e4m3)
from .ggml import ggml_nv


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
    """rcp.approx.ftz.f32 of an H200 for positive normal x: the rows of Reciprocal.cpp, in integers.
    The square is the sum of those partial products z_i z_j that weigh 2^17 and more."""
    text = (pathlib.Path(__file__).parents[2] / "lib/Numerics/Reciprocal.cpp").read_text()
    rows = np.array(re.findall(r"\{(\d+), (\d+), (\d+)\}", text), np.int64)
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


def cutlass(x, a):
    g = F(2688) / a.tensor_prop
    s8 = e4m3(a.prop * (g * R6))
    factor = (g * (F(1) / decode_e4m3(s8))).astype(F)
    factor = np.where(np.isnan(factor), factor, np.minimum(factor, FLT_MAX)).astype(F)
    return s8, e2m1(x * factor[:, None])


def error_of(distance, metric):
    """(n, 16), or (n, 256) for 16 x 16 tiles: in element order along rows, whose errors then meet
    in a tree of strides 8, 4, 2, 1."""
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


def nv(x, model, tensor_amax=None):
    """x: (n, 16); tensor_amax: None takes it from x. Returns scale bytes and codes."""
    x = np.asarray(x, F).reshape(-1, 16)
    return NV_MODELS[model](x, Amaxes(x, tensor_amax))
