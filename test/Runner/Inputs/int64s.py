"""int64s.py FILE NUMBER...: an int64 .npy file of one dimension."""
import struct
import sys

path, numbers = sys.argv[1], [int(text) for text in sys.argv[2:]]
header = "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }" % len(numbers)
header += " " * (63 - (10 + len(header)) % 64) + "\n"
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack("<%dq" % len(numbers), *numbers))
