"""Golden hashes of whole-matrix quantization: orientations, square blocks, masked remainders,
Hadamard transforms, stochastic rounding and scale layouts, from the numpy models.

Rewrites unittests/Numerics/data/matrix_golden.json, or that of a folder given. The options of a
case make its name, and the name makes its seed. The C++ test (MatrixTest.cpp) reads them, so a case
added here is a test added there."""
import functools

import goldens
import numerics_oracle as oracle
import numpy as np
from quantize_golden import fnv
from quantizers import transforms
from quantizers.formats import rounding
from quantizers.nvfp4 import NV_MODELS, Amaxes
from quantizers.stochastic import e2m1_fused_add, e2m1_truncate, philox, random_bytes

F = np.float32


def tensor(seed, rows, columns):
    """bf16 values over some binades, from Philox words (as MatrixTest.cpp makes them)."""
    offsets = np.arange((rows * columns + 3) // 4, dtype=np.uint64)
    w = np.stack(philox(seed, 1, offsets), 1).reshape(-1)[: rows * columns].astype(np.int64)
    exponent = 127 - (w >> 8 & 7) - (np.arange(len(w)) // 64 * 2654435761 >> 8) % 5
    out = (w >> 31) << 31 | exponent << 23 | (w >> 16 & 0x7F) << 16
    out[0] = 128 << 23 | ((37 * seed + 5) & 0x7F) << 16  # the tensor's amax
    return out.astype(np.uint32).view(F).reshape(rows, columns)


def layout_offset(layout, r, c, blocks):
    tiles = (blocks + 3) // 4
    if layout == "linear":
        return r * blocks + c
    if layout == "padded_128x4":
        return r * tiles * 4 + c
    if layout == "tiled_8x4":
        return (r // 8 * tiles + c // 4) * 32 + r % 8 * 4 + c % 4
    return (r // 128 * tiles + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4


def lay_out(scales, layout):
    rows, blocks = scales.shape
    if layout == "linear":
        return scales
    unit = 8 if layout == "tiled_8x4" else 128
    out = np.zeros((rows + unit - 1) // unit * unit * ((blocks + 3) // 4 * 4), np.uint8)
    for r in range(rows):
        for c in range(blocks):
            out[layout_offset(layout, r, c, blocks)] = scales[r, c]
    return out


def random_of(case, rows, columns):
    """Random bytes of every element of the output."""
    sr = case["stochastic"]
    out = np.zeros((rows, (columns + 15) // 16 * 16), np.int64)
    tiles_x = ((rows if case["columnwise"] else columns) + 127) // 128
    for r in range(rows):
        for g in range((columns + 15) // 16):
            if sr["mapping"] == "element":
                sub = r * ((columns + 15) // 16) + g + (case["columnwise"] << 63)
                draw = 0
            elif case["columnwise"]:
                thread = r % 128 // 2 % 32 * 8 + g % 8
                draw = 4 * case["both"] + r % 128 // 64 * 2 + r % 2
                sub = thread + 256 * (r // 128) + 256 * tiles_x * (g // 8)
            else:
                sub = r % 32 * 8 + g % 8 + 256 * (g // 8) + 256 * tiles_x * (r // 128)
                draw = r % 128 // 32
            words = philox(sr["seed"], sub, sr["offset"] + draw)
            out[r, 16 * g : 16 * g + 16] = random_bytes(words, sr["bytes"])
    return out


def blocks_of(x, width):
    rows, columns = x.shape
    padded = np.zeros((rows, (columns + width - 1) // width * width), x.dtype)
    padded[:, :columns] = x
    return padded.reshape(-1, width)


def quantize_blocks(case, x, amax):
    """x: (n, elements of a scale), which square blocks have more of than the model's block."""
    if case["model"] in NV_MODELS:
        return NV_MODELS[case["model"]](x, Amaxes(x, amax))
    return oracle.quantize(x, case["model"])


def one_amax(case, x, amax):
    """Scales (rows, blocks) and codes (rows, columns) of blocks along rows."""
    width = oracle.block_of(case["model"])
    conversion = None
    if case["stochastic"]:
        random = random_of(case, *x.shape)
        random = np.pad(random, ((0, 0), (0, -random.shape[1] % width))).reshape(-1, width)
        kind = e2m1_fused_add if case["stochastic"]["fused_add"] else e2m1_truncate
        conversion = functools.partial(kind, byte=random)
    with rounding(conversion):
        s, c = quantize_blocks(case, blocks_of(x, width), amax)
    rows, columns = x.shape
    return s.reshape(rows, -1), c.reshape(rows, -1)[:, :columns]


def flipped(case, tiles):
    """Tiles of the output in the orientation of the input, and back."""
    return tiles.reshape(-1, 16, 16).transpose(0, 2, 1) if case["columnwise"] else tiles


def square(case, x, amax):
    rows, columns = x.shape
    r16, c16 = (rows + 15) // 16, (columns + 15) // 16
    padded = np.zeros((r16 * 16, c16 * 16), F)
    padded[:rows, :columns] = x
    tiles = padded.reshape(r16, 16, c16, 16).transpose(0, 2, 1, 3).reshape(-1, 256)
    s, c = quantize_blocks(case, flipped(case, tiles).reshape(-1, 256), amax)
    codes = flipped(case, c).reshape(r16, c16, 16, 16).transpose(0, 2, 1, 3).reshape(r16 * 16, -1)
    return np.repeat(s.reshape(r16, c16), 16, 0)[:rows], codes[:rows, :columns]


def run(case):
    x = tensor(case["seed"], case["rows"], case["columns"])
    if case["columnwise"]:
        x = np.ascontiguousarray(x.T)
    if case["hadamard"]:
        h = case["hadamard"]
        x = transforms.hadamard(x, h["size"], h["mask"], h["flavour"], h["bf16"]).reshape(x.shape)
    amax = F(np.max(np.abs(x)))
    if case["amax_per_row"]:
        parts = [one_amax(case, row[None], F(np.max(np.abs(row)))) for row in x]
        s, c = (np.concatenate(p) for p in zip(*parts))
    else:
        s, c = (square if case["square"] else one_amax)(case, x, amax)
    if c.shape[1] % 2 and case["model"] not in oracle.WIDE_MODELS:
        c = np.pad(c, ((0, 0), (0, 1)))
    scales = lay_out(s, case["layout"])
    return {
        **case,
        "amax": "%08x" % int(amax.view(np.uint32)),
        "data": fnv(np.ascontiguousarray(oracle.pack(c, case["model"])).tobytes()),
        "scales": fnv(np.ascontiguousarray(scales).tobytes()),
    }


DEFAULTS = {
    "model": "te214", "rows": 64, "columns": 160, "columnwise": 0, "both": 0, "square": 0,
    "layout": "linear", "amax_per_row": 0, "hadamard": None, "stochastic": None,
}  # fmt: skip


def hadamard(size=16, mask=0xD7E8, flavour="ascending", bf16=1):
    return {"size": size, "mask": mask, "flavour": flavour, "bf16": bf16}


def stochastic(mapping="element", bytes="hardware", fused_add=0, seed=42, offset=7):
    return {"mapping": mapping, "bytes": bytes, "fused_add": fused_add, "seed": seed,
            "offset": offset}  # fmt: skip


def cases():
    for layout in ("linear", "padded_128x4", "tiled_128x4", "tiled_8x4"):
        for columnwise in (0, 1):
            yield {"layout": layout, "columnwise": columnwise, "rows": 144}
    for model in ("floor", "rceil"):
        for columnwise in (0, 1):
            yield {"model": model, "columnwise": columnwise, "layout": "tiled_128x4"}
    for rows, columns in ((130, 96), (5, 24), (3, 1), (24, 37), (33, 15)):
        for columnwise in (0, 1):
            yield {"rows": rows, "columns": columns, "columnwise": columnwise,
                   "layout": "tiled_128x4"}  # fmt: skip
    for rows, columns in ((64, 160), (20, 40)):
        for columnwise in (0, 1):
            yield {"square": 1, "rows": rows, "columns": columns, "columnwise": columnwise}
    for columnwise in (0, 1):
        yield {"amax_per_row": 1, "columnwise": columnwise}
    yield {"amax_per_row": 1, "columnwise": 1, "model": "ao2", "rows": 40, "columns": 24,
           "layout": "tiled_128x4"}  # fmt: skip
    for size in (16, 32, 64, 128):
        for flavour in ("ascending", "descending", "exact"):
            for bf16 in (0, 1):
                yield {"hadamard": hadamard(size, 0xD7E8, flavour, bf16), "columnwise": bf16,
                       "rows": 128, "columns": 128}  # fmt: skip
    yield {"hadamard": hadamard(16, 0)}
    yield {"hadamard": hadamard(32, 0x1234), "model": "floor"}
    for columnwise in (0, 1):
        yield {"stochastic": stochastic(bytes="plain", seed=2**63 + 5, offset=2**40), "rows": 5,
               "columns": 24, "columnwise": columnwise}  # fmt: skip
        yield {"stochastic": stochastic(fused_add=1), "columnwise": columnwise,
               "hadamard": hadamard()}  # fmt: skip
        for both in (0, 1):
            yield {"stochastic": stochastic("blockwise"), "columnwise": columnwise, "both": both,
                   "rows": 272, "columns": 320}  # fmt: skip


def every_model():
    """Each recipe through each part of the family; shapes differ, so that remainders occur."""
    for model in oracle.MODELS:
        is_nvfp4 = model in NV_MODELS
        yield {"model": model, "columnwise": 1}
        for columnwise in (0, 1):
            yield {"model": model, "columnwise": columnwise, "hadamard": hadamard(), "rows": 96,
                   "layout": "tiled_128x4"}  # fmt: skip
        if is_nvfp4:
            yield {"model": model, "columnwise": 1, "rows": 40, "columns": 24}
            for columnwise in (0, 1):
                yield {"model": model, "columnwise": columnwise, "square": 1, "rows": 48}
        if model not in oracle.NEAREST_ONLY:
            for columnwise in (0, 1):
                yield {"model": model, "columnwise": columnwise, "stochastic": stochastic()}


def name_of(case):
    """The options of a case, of which no two cases have the same."""
    words = [case["model"], f"{case['rows']}x{case['columns']}"]
    words += [key for key in ("columnwise", "both", "square", "amax_per_row") if case[key]]
    words += [case["layout"]] if case["layout"] != "linear" else []
    if h := case["hadamard"]:
        words += ["hadamard", h["size"], f"{h['mask']:x}", h["flavour"],
                  "bf16" if h["bf16"] else "f32"]  # fmt: skip
    if s := case["stochastic"]:
        arithmetic = "fused_add" if s["fused_add"] else "truncate"
        words += ["stochastic", s["mapping"], s["bytes"], arithmetic, s["seed"], s["offset"]]
    return "_".join(map(str, words))


def chosen():
    """Every case with its name and its seed."""
    named = [{**DEFAULTS, **case} for case in (*cases(), *every_model())]
    seeds = goldens.seeded(map(name_of, named)).items()
    return [{"name": name, "seed": seed, **case} for (name, seed), case in zip(seeds, named)]


def main():
    goldens.write_rows("matrix_golden.json", map(run, chosen()))


if __name__ == "__main__":
    main()
