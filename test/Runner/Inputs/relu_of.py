"""relu_of.py PLAIN RELU: of two .npy files of f32, the second is the first with its negative elements zero, and there
are some."""
import array
import math
import struct
import sys


def elements(path):
    data = open(path, "rb").read()
    length, = struct.unpack_from("<H", data, 8)
    assert b"'<f4'" in data[:10 + length]
    return array.array("f", data[10 + length:])


plain, relu = map(elements, sys.argv[1:])
assert min(plain) < 0 < max(plain) and len(plain) == len(relu)
assert all(y == max(x, 0.0) and math.copysign(1, y) == 1 for x, y in zip(plain, relu))
