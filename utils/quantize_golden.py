"""Golden hashes of every quantizer recipe over bf16 tensors, from the numpy models.

bf16 values with an amax that is no power of two are where the recipes differ (continuous fp32 data
shows nothing). The tensors are drawn from Philox words, so that the C++ test makes the same ones;
the hash is FNV-1a. Rewrites unittests/Numerics/data/quantize_golden.json."""
import json, os, sys
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numerics_oracle as oracle

ROWS, COLUMNS, TENSORS = 16, 512, 8
MXFP4 = ["floor", "ceil", "even", "even_mslk", "rceil", "rceil_div"]


def tensor(seed):
    """bf16 values: random sign and mantissa; exponent 127 minus the trailing zeros of 8 random
    bits and a per-block offset, so that block amaxes spread over several binades; element 5 is the
    amax."""
    out = []
    for i in range(ROWS * COLUMNS // 4):
        for j, w in enumerate(oracle.philox(seed, 0, i)):
            low = w & 0xFF
            tz = 8 if low == 0 else (low & -low).bit_length() - 1
            block = (4 * i + j) // 32
            exponent = 127 - tz - (block * 2654435761 >> 8) % 9
            out.append((w >> 31) << 31 | exponent << 23 | (w >> 16 & 0x7F) << 16)
    out[5] = 128 << 23 | ((37 * seed + 5) & 0x7F) << 16  # the tensor's amax
    return np.array(out, np.uint32).view(np.float32)


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def main():
    golden = []
    for seed in range(TENSORS):
        x = tensor(seed)
        hashes = {}
        for mode in list(oracle.NV_MODELS) + MXFP4:
            s, c = oracle.mx_quant(x, mode) if mode in MXFP4 else oracle.nv(x, mode)
            hashes[mode] = [fnv(s.tobytes()), fnv(oracle.pack(c).tobytes())]
        amax = "%08x" % int(np.max(np.abs(x)).view(np.uint32))
        golden.append({"seed": seed, "amax": amax, "recipes": hashes})
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../unittests/Numerics/data/quantize_golden.json"), "w") as f:
        json.dump(golden, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
