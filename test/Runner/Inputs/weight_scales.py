"""Scales (f8E8M0FNU) of 256 x 512 weights of MXFP4, in .npy files of a folder that differ in few bytes.

The conversion of a weight depends on the scales beside it: bytes of 4 to 131 are scales of 2^-123 to 16. A warp
has 16 rows, a warpgroup 64, and a step of K that is multiplied at once 256 elements, 8 blocks.
"""
import pathlib
import random
import struct
import sys

ROWS, BLOCKS = 256, 16
LEAST = 16  # the first rows have scales of 2^-123
folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)


def write(name, changed, lowest=100, highest=131):
    random.seed(1)
    scales = bytearray(random.randint(lowest, highest) for _ in range(ROWS * BLOCKS))
    if highest < 132:
        scales[:LEAST * BLOCKS] = bytes([4]) * (LEAST * BLOCKS)
    for row, block, byte in changed:
        scales[row * BLOCKS + block] = byte
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({ROWS}, {BLOCKS}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    (folder / f"{name}.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(scales))


write("small", [])
write("one", [(3, 0, 132)])  # 32 in the first warp, in the first step
# Three of four warpgroups, two of them in one step. Whole rows are tiny, so that their sums have these weights alone.
write("mixed", [(20, 7, 254), (200, 8, 140), *((70, block, 0) for block in range(BLOCKS)),
                *((71, block, 1 + block % 3) for block in range(BLOCKS))])
write("nan", [(127, 5, 255), (128, 15, 255)])
write("large", [], 132, 150)
