"""Lets each value have the code of one key alone, so that results of attention are its quantized powers, and compares these
with a model of their quantizer, of this file: SageAttention3's for NVFP4, and exponents that are rounded up for MXFP8.

  attention_powers.py FP4_RUNNER FOLDER nvfp4|mxfp8 KEYS_OF_STEP

A warp has one step, whose powers are of distances from the largest score of the step.
"""
import math
import pathlib
import random
import struct
import subprocess
import sys

runner, folder, form, keys_of_step = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
TOKENS, HEADS, KEYS, ELEMENTS = 4, 4, 128, 64
packed = form == "nvfp4"
element, scale, block = ("f4E2M1FN", "f8E4M3FN", 16) if packed else ("f8E4M3FN", "f8E8M0FNU", 32)


def rounded(x, bits, least, largest):
    """`x` to the nearest number of so many bits behind the point; even ones win."""
    if x == 0:
        return 0.0
    step = 2.0 ** (max(math.floor(math.log2(x)), least) - bits)
    return min(round(x / step) * step, largest)


def e2m1(x):
    return rounded(x, 1, 0, 6.0)


def e4m3(x):
    return rounded(x, 3, -6, 448.0)


def quantized(powers):
    """The powers of a block, which are up to 1, as the tensor core multiplies them."""
    largest = max(powers)
    if largest == 0:
        return powers
    if packed:
        scale = e4m3(largest * 2688 / 6) / 2688
        return [e2m1(x / scale) * scale if scale else 0.0 for x in powers]
    scale = 2.0 ** math.ceil(math.log2(largest / 448))
    return [e4m3(x / scale) * scale for x in powers]


def expected(exponents):
    """The row of results of the keys that a query sees, whose powers of two have these exponents."""
    steps = [exponents[i:i + keys_of_step] for i in range(0, len(exponents), keys_of_step)]
    top, result, total = max(exponents), [], 0.0
    for step in steps:
        largest = max(step)
        for first in range(0, len(step), block):
            powers = [2.0 ** (x - largest) for x in step[first:first + block]]
            result += [x * 2.0 ** (largest - top) for x in quantized(powers)]
            total += sum(powers) * 2.0 ** (largest - top)
    return [x / total for x in result] + [0.0] * (KEYS - len(exponents))


def save(name, shape, data):
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    (folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(data))


def codes(rows):
    """Rows of codes: as they are, or two in a byte."""
    return [x for row in rows for x in ([a | b << 4 for a, b in zip(row[::2], row[1::2])] if packed else row)]


def save_tiles(name, rows, scales_of):
    """Scales of a multiple of 128 rows, in tiles of 128 x 4."""
    columns = -(-len(scales_of(0)) // 4)
    tiles = bytearray(rows // 128 * columns * 512)
    for row in range(rows):
        for number, byte in enumerate(scales_of(row)):
            tile = row // 128 * columns + number // 4
            tiles[tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + number % 4] = byte
    save(name, (rows // 128, columns, 512), tiles)


rng = random.Random(3)
one, unit = (2, 0x38) if packed else (0x38, 127)  # codes of 1, and scales of 1
number = (lambda code: [0, .5, 1, 1.5, 2, 3, 4, 6][code]) if packed else \
    (lambda code: (8 + code % 8) / 8 * 2.0 ** (code // 8 - 7))
power = (lambda byte: (8 + byte % 8) / 8 * 2.0 ** (byte // 8 - 7)) if packed else (lambda byte: 2.0 ** (byte - 127))
first = [rng.randrange(1, 8) if packed else rng.randrange(0x38, 0x48) for _ in range(KEYS)]  # codes of element 0 of keys
scales = [rng.randrange(0x20, 0x38) if packed else 127 + rng.randrange(-1, 2) for _ in range(KEYS)]
ELEMENTS_OF_ROW = ELEMENTS // block
sizes = {"q": (TOKENS, HEADS, ELEMENTS), "k": (KEYS, 1, ELEMENTS), "v": (1, KEYS, KEYS)}
save("q", (1, TOKENS, HEADS, ELEMENTS // (1 + packed)), codes([[one] + [0] * (ELEMENTS - 1)] * (TOKENS * HEADS)))
save("k", (1, KEYS, 1, ELEMENTS // (1 + packed)), codes([[code] + [0] * (ELEMENTS - 1) for code in first]))
save("v", (1, 1, KEYS, KEYS // (1 + packed)), codes([[one if i == row else 0 for i in range(KEYS)] for row in range(KEYS)]))
save_tiles("qs", HEADS * 128, lambda row: [unit] * ELEMENTS_OF_ROW)
save_tiles("ks", KEYS, lambda row: [scales[row]] * ELEMENTS_OF_ROW)
save_tiles("vs", KEYS, lambda row: [unit] * (KEYS // block))
types = {name: f"tensor<1x{'x'.join(map(str, size))}x{element}>" for name, size in sizes.items()}
for name, rows, count in (("qs", HEADS * 128, ELEMENTS_OF_ROW), ("ks", KEYS, ELEMENTS_OF_ROW), ("vs", KEYS, KEYS // block)):
    types[name] = f"tensor<{rows}x{count}x{scale}, #fp4.scale_layout<tiled_128x4>>"
result = f"tensor<1x{TOKENS}x{HEADS}x{KEYS}xbf16>"
(folder / "powers.mlir").write_text(
    f"func.func @attention({', '.join(f'%{name}: {kind}' for name, kind in types.items())}) -> {result} {{\n"
    f"  %o = fp4.attention %q, %k, %v block_scales(%qs, %ks, %vs : {types['qs']}, {types['ks']}, {types['vs']})\n"
    f"      scale {math.log(2)} causal : {types['q']}, {types['k']}, {types['v']} -> {result}\n  return %o : {result}\n}}\n")
run = subprocess.run([runner, folder / "powers.mlir", "--target=sm_120a", "--check=strict", f"--output=r0={folder}/o.npy",
                      *(f"--input=a{i}={folder}/{name}.npy" for i, name in enumerate(types))], capture_output=True, text=True)
if run.returncode:
    sys.exit(run.stdout + run.stderr)
results = struct.unpack(f"<{TOKENS * HEADS * KEYS}f", (folder / "o.npy").read_bytes()[-4 * TOKENS * HEADS * KEYS:])
exponents = [number(code) * power(byte) for code, byte in zip(first, scales)]
for row in range(TOKENS * HEADS):
    for key, right in enumerate(expected(exponents[:KEYS - TOKENS + 1 + row // HEADS])):
        got = results[row * KEYS + key]
        if abs(got - right) > right * 2.0**-8:  # half an ulp of bf16 and errors of ex2.approx and sums
            sys.exit(f"row {row}, key {key}: {got}, expected {right}")
print("results are the quantized powers")
