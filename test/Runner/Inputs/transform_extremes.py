"""Quantizes transformed bf16 blocks of every magnitude, from subnormal numbers to sums that overflow bf16 or fp32, under
tensor amaxes of every magnitude, and lets fp4-run compare each with the reference.

  transform_extremes.py FP4_RUN LIBRARY FOLDER
"""
import pathlib
import random
import struct
import subprocess
import sys

fp4_run, library, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


def save(name, dtype, shape, data):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def block(rng, number):
    """Biased exponent `number`, or close to subnormal, and up to 8 binades less; alike where their sums are to be largest."""
    top = number % 255 if number % 2 else number // 2 % 12
    if number % 3 == 0:
        element = top << 7 | rng.randrange(128)
        return [element | rng.randrange(2) << 15 for _ in range(16)]
    return [max(top - rng.randrange(9), 0) << 7 | rng.randrange(128) | rng.randrange(2) << 15 for _ in range(16)]


rng = random.Random(1)
rows = 96
elements = [x for number in range(rows * 16) for x in block(rng, number)]
save("x.npy", "<u2", (rows, 256), struct.pack(f"<{len(elements)}H", *elements))
for function, exponents in (("sixteen", range(-130, 128, 6)), ("thirty_two", range(-130, 128, 20)),
                            ("sixty_four", range(-130, 128, 6)), ("floor", range(-130, 128, 20)),
                            ("mxfp4", [0])):
    for exponent in exponents:
        save("a.npy", "<f4", (), struct.pack("<f", 2.0**exponent * 1.4375))
        amax = [f"--input=a={folder}/a.npy"] if function != "mxfp4" else []
        run = subprocess.run([fp4_run, library, "--device=sim", "--check=strict", f"--function={function}",
                              f"--shape={rows}", f"--input=x={folder}/x.npy", *amax], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{function}, amax 1.4375 * 2^{exponent}\n{run.stdout}{run.stderr}")
print("passed")
