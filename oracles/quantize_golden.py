"""Golden hashes of every quantizer recipe over bf16 tensors, from the numpy models.

bf16 values with an amax that is no power of two are where the recipes differ (continuous fp32 data
shows nothing). The tensors are drawn from Philox words, so that the C++ test makes the same ones;
the hash is FNV-1a. Rewrites unittests/Numerics/data/quantize_golden.json, and vectors_golden.json:
the inputs of numerics_vectors.json through the models that file lacks. A folder given as argument
receives the files instead."""
import json

import goldens
import numerics_oracle as oracle
import numpy as np
from quantizers.stochastic import philox

ROWS, COLUMNS, TENSORS = 16, 512, 8


def tensor(seed):
    """bf16 values: random sign and mantissa; exponent 127 minus the trailing zeros of 8 random
    bits and a per-block offset, so that block amaxes spread over several binades; element 5 is the
    amax."""
    out = []
    for i in range(ROWS * COLUMNS // 4):
        for j, w in enumerate(philox(seed, 0, i)):
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


def tensor_goldens():
    golden = []
    for seed in range(TENSORS):
        x = tensor(seed)
        hashes = {}
        for model in oracle.MODELS:
            s, c = oracle.quantize(x, model)
            hashes[model] = [fnv(s.tobytes()), fnv(oracle.pack(c, model).tobytes())]
        amax = "%08x" % int(np.max(np.abs(x)).view(np.uint32))
        golden.append({"seed": seed, "amax": amax, "recipes": hashes})
    return golden


def vector_goldens(vectors):
    """{vector: {model: "scale:codes ..."}} in the vectors' own notation."""
    golden = {}
    for v in vectors["nv"]:
        x = np.stack([oracle.from_hex(block) for block in v["x_fp32_hex"]])
        models = [m for m in oracle.NV_MODELS if m not in v["model"]]
        results = {m: oracle.quantize(x, m, v["tensor_amax_override"]) for m in models}
        golden[v["name"]] = {m: oracle.text(s, c) for m, (s, c) in results.items()}
    for v in vectors["mx"]:
        x = oracle.from_hex(v["x_fp32_hex"])
        results = {m: oracle.quantize(x, m) for m in oracle.MXFP4_VARIANTS}
        golden[v["name"]] = {m: oracle.text(s, c, 1 + (m in oracle.WIDE_MODELS))
                             for m, (s, c) in results.items()}  # fmt: skip
    return golden


def main():
    vectors = json.loads((goldens.DATA / "numerics_vectors.json").read_text())
    outputs = {"quantize_golden": tensor_goldens(), "vectors_golden": vector_goldens(vectors)}
    for name, golden in outputs.items():
        (goldens.output_folder() / f"{name}.json").write_text(json.dumps(golden, indent=0) + "\n")


if __name__ == "__main__":
    main()
