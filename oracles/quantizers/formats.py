"""The narrow floating-point formats in numpy, of which the models make quantizers."""
import contextlib

import numpy as np

F = np.float32
FLT_MAX = np.finfo(F).max
BF16_MAX = F(3.3895314e38)
R6 = F(1) / F(6)
NAN_CODE = 16  # stands for the E2M1 code of a NaN where the platform decides it
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], F)


def bits(x):
    return np.asarray(x, F).view(np.uint32)


def bf16(x):
    """x rounded to bf16, as fp32."""
    x = np.asarray(x, F)
    u = bits(np.atleast_1d(x)).astype(np.uint64)
    r = ((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(F).copy()
    r[np.isnan(np.atleast_1d(x))] = np.nan
    return r.reshape(x.shape)


CONVERSIONS = []  # functions that round to E2M1 in place of the nearest, the innermost last


@contextlib.contextmanager
def rounding(function):
    """Makes `function` of the values the conversion to E2M1; None leaves the nearest."""
    CONVERSIONS.extend([function] if function else [])
    try:
        yield
    finally:
        if function:
            CONVERSIONS.pop()


def e2m1(x, nan=7, keep_negative_zero=True):
    """Comparison form: nearest, ties to even code, saturating."""
    if CONVERSIONS:
        return CONVERSIONS[-1](x)
    x = np.asarray(x, F)
    a = np.abs(x)
    steps = [a > 0.25, a >= 0.75, a > 1.25, a >= 1.75, a > 2.5, a >= 3.5, a > 5]
    code = sum(s.astype(np.uint8) for s in steps).astype(np.uint8)
    sign = np.signbit(x) if keep_negative_zero else x < 0
    code |= sign.astype(np.uint8) << 3
    return np.where(np.isnan(x), np.uint8(nan), code)


def decode_e2m1(code):
    return np.where(code & 8, -E2M1[code & 7], E2M1[code & 7]).astype(F)


def decode_e4m3(byte):
    byte = np.asarray(byte, np.uint8)
    e, m = (byte >> 3) & 15, (byte & 7).astype(F)
    v = np.where(e == 0, m * F(2**-9), (F(1) + m / F(8)) * np.exp2(e.astype(F) - F(7)))
    v = np.where((byte & 127) == 127, F(np.nan), v.astype(F))
    return np.where(byte & 128, -v, v).astype(F)


E4M3_VALUES = decode_e4m3(np.arange(127)).astype(np.float64)
E4M3_MIDPOINTS = (E4M3_VALUES[1:] + E4M3_VALUES[:-1]) / 2


def e4m3(x, saturate=True):
    """Table search: nearest, ties to even code."""
    x = np.asarray(x, F)
    a = np.abs(x).astype(np.float64)
    lo = np.searchsorted(E4M3_MIDPOINTS, a, "left")
    hi = np.searchsorted(E4M3_MIDPOINTS, a, "right")
    code = np.where(lo == hi, lo, np.where(lo & 1, hi, lo)).astype(np.uint8)
    if not saturate:
        code = np.where(a > 464, 127, code)
    nan = np.isnan(x)
    code = np.where(nan, 127, code).astype(np.uint8)
    return code | (np.signbit(x) & ~nan).astype(np.uint8) * np.uint8(128)


WIDE_FORMATS = {  # mantissa bits, bias, largest, its exponent, code of NaN
    "mxfp6_e2m3": (3, 1, 7.5, 2, 0x1F),
    "mxfp6_e3m2": (2, 3, 28.0, 4, 0x1F),
    "mxfp8_e4m3": (3, 7, 448.0, 8, 0x7F),
    "mxfp8_e5m2": (2, 15, 57344.0, 15, 0x7F),
}


def wide_values(name):
    """The finite values of codes without sign."""
    mantissa, bias, largest, _, _ = WIDE_FORMATS[name]
    values = []
    for code in range(128):
        e, m = code >> mantissa, code & (1 << mantissa) - 1
        value = (m + (e > 0) * 2.0**mantissa) * 2.0 ** (max(e, 1) - bias - mantissa)
        if value <= largest:
            values.append(value)
    return np.array(values)


def wide_codes(y, name):
    """Table search: nearest, ties to even code, saturating."""
    values = wide_values(name)
    middles = (values[1:] + values[:-1]) / 2
    a = np.abs(y).astype(np.float64)
    lo, hi = np.searchsorted(middles, a, "left"), np.searchsorted(middles, a, "right")
    code = np.where(lo == hi, lo, np.where(lo & 1, hi, lo))
    code = code | np.signbit(y) << (5 if "mxfp6" in name else 7)
    return np.where(np.isnan(y), WIDE_FORMATS[name][4], code).astype(np.uint8)
