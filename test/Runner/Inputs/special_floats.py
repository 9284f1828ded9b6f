"""Writes matrices of 16 x 64 in f32: a quarter has zeros, infinities, NaN, halves, the largest and subnormal numbers, and the
rest is of all exponents."""
import random
import struct
import sys

SPECIALS = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 0.5, -0.5, 1.5, -2.5, 1.0, -1.0, 2.0**-149, -2.0**-149,
            2.0**-126, 3.4028234663852886e38, -3.4028234663852886e38, 8388607.5, 88.7, -104.0, 128.0, -150.0]
for seed, path in enumerate(sys.argv[1:]):
    rng = random.Random(seed)
    numbers = [rng.choice(SPECIALS) if rng.random() < 0.25 else rng.uniform(-2, 2) * 2.0 ** rng.randint(-120, 120)
               if rng.random() < 0.3 else rng.gauss(0, 8) for _ in range(16 * 64)]
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (16, 64), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<1024f", *numbers))
