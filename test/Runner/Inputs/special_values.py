"""special_values.py FILE ROWS COLUMNS KIND: an fp32 .npy file of values that quantizers stumble over.

finite: zeros of both signs, ties between codes, subnormals, magnitudes from 2^-130 to 2^100.
nan, inf: the same with a few of those.
"""
import random
import struct
import sys

path, rows, columns, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(rows * columns)
ties = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]
values = []
for block in range(rows * columns // 16):
    exponent = random.choice([0, 0, 0, -3, 7, -130, -140, 100 if block % 50 == 0 else 0])
    for _ in range(16):
        value = random.choice([random.gauss(0, 1), random.choice(ties), 0.0, -0.0])
        values.append(random.choice([-1, 1]) * value * 2.0**exponent)
for _ in range(5 if kind != "finite" else 0):
    values[random.randrange(len(values))] = float(kind)
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
header += " " * (63 - (10 + len(header)) % 64) + "\n"
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack("<%df" % len(values), *values))
