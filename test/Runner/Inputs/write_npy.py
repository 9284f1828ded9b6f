"""write_npy.py FILE DESCR SHAPE VALUE...: an array as numpy.save writes it, with no numpy. SHAPE is 2x3, or '' of a scalar; VALUEs are
repeated to fill it, and are floats for '<f2', '<f4' and '<f8', else integers."""
import struct
import sys

path, descr, shape, *words = sys.argv[1:]
dims = tuple(int(d) for d in shape.split("x") if d)
count = 1
for d in dims:
    count *= d
letter = {"<f2": "e", "<f4": "f", "<f8": "d", "<u2": "H", "<V2": "H"}.get(descr, "B")
convert = float if letter in "efd" else lambda word: int(word, 0)
values = [convert(words[i % len(words)]) for i in range(count)]
header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}"
header += " " * (-(10 + len(header) + 1) % 64) + "\n"
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack(f"<{count}{letter}", *values))
