"""The numpy models of quantizers by their names, and the notation of their results.

The models are in oracles/quantizers, a module for each family. Run as a script, this one checks
them against unittests/Numerics/data/numerics_vectors.json."""
import json

import goldens
import numpy as np

from quantizers.formats import NAN_CODE, F
from quantizers.mx import MXFP4_MODELS, MXFP4_VARIANTS, mx_block, mx_quant, mx_variant
from quantizers.nvfp4 import NV_MODELS, nv
from quantizers.wide import WIDE_MODELS

MODELS = [*NV_MODELS, *MXFP4_MODELS, *MXFP4_VARIANTS]
# Recipes that round codes in a way of their own, and so do not round stochastically.
NEAREST_ONLY = ["fos", "fos_mae", "fos_abs_max", "te46", "te46_448", "te46_squared", "te46_largest",
                "flashinfer_four_over_six", "flashinfer_four_over_six_exact", "ggml_nvfp4",
                "ggml_mxfp4", "mxfp4_modelopt", *WIDE_MODELS]  # fmt: skip


def block_of(model):
    """Elements of a model's block."""
    return 16 if model in NV_MODELS else mx_block(model)


def quantize(x, model, tensor_amax=None):
    """Scale bytes and codes of the blocks of x. An amax of None is taken from x."""
    if model in MXFP4_VARIANTS:
        return mx_variant(x, model)
    if model in MXFP4_MODELS:
        return mx_quant(x, model)
    return nv(x, model, tensor_amax)


def pack(codes, model=None):
    if model in WIDE_MODELS:
        return codes
    codes = codes.reshape(-1)
    return (codes[0::2] | codes[1::2] << 4).astype(np.uint8)


def from_hex(words):
    return np.array([int(w, 16) for w in words], np.uint32).view(F)


def text(scales, codes, digits=1):
    """"38:0123... 7e:...": scale byte and codes of each block, N for a NaN code."""
    nan = NAN_CODE if digits == 1 else None
    blocks = ("".join("N" if c == nan else "%0*x" % (digits, c) for c in row) for row in codes)
    return " ".join("%02x:%s" % pair for pair in zip(scales, blocks))


def main():
    vectors = json.loads((goldens.DATA / "numerics_vectors.json").read_text())
    checked = wrong = 0
    for v in vectors["nv"]:
        x = np.stack([from_hex(block) for block in v["x_fp32_hex"]])
        for model, want in v["model"].items():
            checked += 1
            wrong += text(*nv(x, model, v["tensor_amax_override"])) != want
    for v in vectors["mx"]:
        for mode, want in v["model"].items():
            checked += 1
            wrong += text(*mx_quant(from_hex(v["x_fp32_hex"]), mode)) != want
    print("%d checked, %d wrong" % (checked, wrong))
    return wrong != 0


if __name__ == "__main__":
    raise SystemExit(main())
