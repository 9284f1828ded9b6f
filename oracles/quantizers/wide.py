"""Models of MXFP6 and MXFP8 quantizers."""
import numpy as np

from .formats import WIDE_FORMATS, F, bits, wide_codes


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
