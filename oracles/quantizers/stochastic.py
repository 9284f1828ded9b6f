"""Models of stochastic rounding to E2M1, and of the random numbers that it takes."""
import numpy as np

from .formats import E2M1, F


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


def philox(seed, subsequence, offset, rounds=10):
    mask = 0xFFFFFFFF
    key = [seed & mask, seed >> 32 & mask]
    c = [offset & mask, offset >> 32 & mask, subsequence & mask, subsequence >> 32 & mask]
    for _ in range(rounds):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ key[0], p1 & mask, p0 >> 32 ^ c[3] ^ key[1], p0 & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return c
