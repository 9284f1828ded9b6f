"""Problems of the layers of published models: drawn at random, or named on the command line.

A plan that is fitted to a few shapes says little about others. `drawn` gives problems of real
layers by a seed, so that some seeds may serve a fit and other seeds judge it.
"""
from __future__ import annotations

import random

from problems import KINDS, Problem

#: N x K of the linear layers of each model: q, k and v together, output, gate and up, down.
LAYERS = {
    "Llama-3-8B": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "Llama-3-70B": ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)),
    "Qwen3-8B": ((6144, 4096), (4096, 4096), (24576, 4096), (4096, 12288)),
    "Qwen3-32B": ((10240, 5120), (5120, 8192), (51200, 5120), (5120, 25600)),
    "Mistral-Small-24B": ((6144, 5120), (5120, 4096), (65536, 5120), (5120, 32768)),
    "Phi-4": ((7680, 5120), (5120, 5120), (35840, 5120), (5120, 17920)),
    "Gemma-3-27B": ((8192, 5376), (5376, 4096), (43008, 5376), (5376, 21504)),
    "DeepSeek-V3": ((24576, 1536), (32768, 512), (7168, 16384), (36864, 7168), (7168, 18432), (4096, 7168),
                    (7168, 2048)),
}
ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
#: Kinds that take one matrix of weights.
DRAWN = tuple(kind for kind in KINDS if kind not in ("contiguous", "masked"))


def drawn(text: str) -> list[Problem]:
    """The problems of "SEED:COUNT", each once. Kinds, models, layers and rows are equally likely.
    Raises ValueError."""
    try:
        seed, count = map(int, text.split(":"))
    except ValueError:
        raise ValueError(f"--random expects SEED:COUNT, such as 1:60, but got '{text}'") from None
    generator, found = random.Random(seed), {}
    most = len(DRAWN) * len(ROWS) * len({layer for layers in LAYERS.values() for layer in layers})
    if not 0 < count <= most // 2:
        raise ValueError(f"--random must draw from 1 to {most // 2} problems, but got {count}")
    while len(found) < count:
        kind, layers, rows = (generator.choice(list(choices)) for choices in (DRAWN, LAYERS.values(), ROWS))
        problem = Problem(kind, rows, *generator.choice(layers))
        found[problem.name] = problem
    return list(found.values())


def named(text: str) -> Problem:
    """The problem of "KIND:MxNxK", or of "contiguous:MxNxKxGROUPS". Raises ValueError."""
    kind, _, sizes = text.partition(":")
    try:
        m, n, k, *groups = map(int, sizes.split("x"))
    except ValueError:
        raise ValueError(f"--shape expects KIND:MxNxK, such as bf16_nvfp4:64x6144x4096, but got '{text}'") from None
    if kind not in (*DRAWN, "contiguous") or len(groups) != (kind == "contiguous"):
        raise ValueError(f"--shape expects one of {', '.join(DRAWN)}, or contiguous:MxNxKxGROUPS, but got '{text}'")
    return Problem(kind, m, n, k, *groups)
