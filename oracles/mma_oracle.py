"""Exact-rational model of one tcgen05 FP4 MMA step, and the golden cases made with it.

Written from the formula in docs/reference/numerics.md with fractions.Fraction: no shifts, no
floats, nothing in common with lib/Numerics/Fp4Mma.cpp. Run as a script it rewrites
unittests/Numerics/data/mma_golden.json, or that of a folder given. The name of a case makes its
seed."""
import random
from fractions import Fraction as Q

import goldens

E2M1 = [Q(0), Q(1, 2), Q(1), Q(3, 2), Q(2), Q(3), Q(4), Q(6)]
NAN = 0x7FFFFFFF


def e2m1(code):
    return -E2M1[code & 7] if code & 8 else E2M1[code & 7]


def scale(kind, byte):
    """(significand, exponent) of a scale, or None for NaN."""
    if kind == "ue8m0":
        return None if byte == 255 else (Q(1), byte - 127)
    byte &= 127
    if byte == 127:
        return None
    e, m = byte >> 3, byte & 7
    return (Q(m, 8), -6) if e == 0 else (1 + Q(m, 8), e - 7)


def fp32(bits):
    """(significand, exponent) of a finite fp32."""
    e, m = bits >> 23 & 255, bits & 0x7FFFFF
    s = Q(m, 1 << 23) if e == 0 else 1 + Q(m, 1 << 23)
    return (-s if bits >> 31 else s), (-126 if e == 0 else e - 127)


def power(e):
    return Q(2) ** e


def cut(x):
    """Toward zero to an integer."""
    return -(-x.numerator // x.denominator) if x < 0 else x.numerator // x.denominator


def to_fp32(x):
    """Toward zero to fp32 bits; infinity from 2**128 up."""
    if x == 0:
        return 0
    sign = 0x80000000 if x < 0 else 0
    x = abs(x)
    if x >= power(128):
        return sign | 0x7F800000
    e = -126
    while x >= power(e + 1):
        e += 1
    m = cut(x / power(e - 23))
    if m < 1 << 23:
        return sign | m if m else 0  # every zero is +0
    return sign | (e + 127) << 23 | (m - (1 << 23))


def step(kind, vector, a, sa, b, sb, c):
    """a, b: 64 codes; sa, sb: `vector` scale bytes; c: fp32 bits. Returns fp32 bits."""
    terms = []
    for g in range(4):
        x, y = scale(kind, sa[g * vector // 4]), scale(kind, sb[g * vector // 4])
        if x is None or y is None:
            return NAN
        products = [e2m1(a[k]) * e2m1(b[k]) for k in range(16 * g, 16 * g + 16)]
        s = sum(products) * x[0] * y[0]
        zero = all(p == 0 for p in products) or x[0] * y[0] == 0
        terms.append((s, -139 if zero else x[1] + y[1]))
    if c & 0x7FFFFFFF > 0x7F800000:
        return NAN
    if c & 0x7FFFFFFF == 0x7F800000:
        return c
    s, e = fp32(c)
    terms.append((s, e if s else -139))
    top = max(e for _, e in terms)
    total = sum(cut(s * power(e - top + 35)) for s, e in terms)
    return to_fp32(total * power(top - 35))


def pack(codes):
    return bytes(codes[i] | codes[i + 1] << 4 for i in range(0, 64, 2))


def draw(rng, kind, style):
    vector = 4 if kind == "ue4m3" else rng.choice([2, 4])
    a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
    if style == "cancel":  # group 0 cancels exactly, group 1 is all zero
        for i in range(8):
            a[2 * i], a[2 * i + 1], b[2 * i + 1] = a[2 * i] & 7, a[2 * i] & 7 | 8, b[2 * i]
        a[16:32] = [0, 8] * 8
    scales = {
        "ue4m3": lambda: rng.randrange(0x20, 0x60) if style == "plain" else rng.randrange(256),
        "ue8m0": lambda: rng.randrange(120, 134) if style == "plain" else rng.choice(
            [rng.randrange(80, 180), rng.randrange(256)]),
    }[kind]
    sa, sb = ([scales() for _ in range(vector)] for _ in range(2))
    if style == "plain":
        normal = rng.randrange(2) << 31 | rng.randrange(115, 145) << 23 | rng.randrange(1 << 23)
        c = rng.choice([0, normal])
    else:
        c = rng.choice([rng.randrange(1 << 32), 0x80000000, rng.randrange(1 << 23), 0x7F7FFFFF])
    return kind, vector, a, sa, b, sb, c


def draw_zero(rng, kind, _):
    """A block whose products are all zero, under scales far above the others."""
    vector = 4 if kind == "ue4m3" else rng.choice([2, 4])
    a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
    block = rng.randrange(vector)
    a[64 // vector * block:64 // vector * (block + 1)] = [rng.choice([0, 8])] * (64 // vector)
    low, high = ((0x08, 0x20), 0x7E) if kind == "ue4m3" else ((100, 120), 140)
    sa, sb = ([rng.randrange(*low) for _ in range(vector)] for _ in range(2))
    sa[block] = sb[block] = high
    c = rng.randrange(2) << 31 | rng.randrange(112, 128) << 23 | rng.randrange(1 << 23)
    return kind, vector, a, sa, b, sb, rng.choice([0, c])


def draw_tiny(rng, *_):
    """Sums near the least fp32."""
    vector = rng.choice([2, 4])
    a, b = ([rng.randrange(16) for _ in range(64)] for _ in range(2))
    sa, sb = ([rng.randrange(44, 58) for _ in range(vector)] for _ in range(2))
    return "ue8m0", vector, a, sa, b, sb, rng.choice([0, 0x80000000, 1, 0x80000001])


STYLES = {"plain": (120, draw), "cancel": (60, draw), "wild": (120, draw),
          "zero": (40, draw_zero), "tiny": (40, draw_tiny)}  # fmt: skip


def case_of(name, seed):
    """A row of the golden file; the name is STYLE_KIND_NUMBER."""
    style, kind, _ = name.split("_")
    kind, vector, a, sa, b, sb, c = STYLES[style][1](random.Random(seed), kind, style)
    d = step(kind, vector, a, sa, b, sb, c)
    operands = [pack(a), bytes(sa), pack(b), bytes(sb)]
    return [kind, vector] + [o.hex() for o in operands] + ["%08x" % c, "%08x" % d]


def main():
    seeds = goldens.seeded(f"{style}_{'ue4m3' if i % 2 else 'ue8m0'}_{i}"
                           for style, (count, _) in STYLES.items() for i in range(count))
    goldens.write_rows("mma_golden.json", (case_of(*case) for case in seeds.items()))


if __name__ == "__main__":
    main()
