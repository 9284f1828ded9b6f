"""Models of the quantizers of ggml, the library of llama.cpp."""
import numpy as np

from .formats import F, bits, decode_e4m3

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
