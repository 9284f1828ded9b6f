"""A model of Hadamard transforms."""
import numpy as np

from .formats import F, bf16


def hadamard(x, n=16, mask=0xD7E8, flavour="ascending", to_bf16=True):
    """Blocks of n along the last axis. Flavours: ascending or descending fp32 butterflies, or the
    exact sum rounded to fp32."""
    x = np.asarray(x, F).reshape(-1, n)
    x = x * np.array([-1 if mask >> i % 16 & 1 else 1 for i in range(n)], F)
    inverse = F(1) / F(n)
    scale = F(n**-0.5)
    if flavour == "exact":
        matrix = np.array([[(-1) ** bin(i & j).count("1") for j in range(n)] for i in range(n)])
        y = (x.astype(np.float64) @ matrix * np.float64(scale)).astype(F)
    else:
        x = x * inverse
        strides = [1 << k for k in range(n.bit_length() - 1)]
        for h in strides if flavour == "ascending" else strides[::-1]:
            pairs = x.reshape(-1, n // (2 * h), 2, h)
            a, b = pairs[:, :, 0], pairs[:, :, 1]
            x = np.stack([a + b, a - b], 2).astype(F).reshape(-1, n)
        y = x * (scale / inverse)
    return bf16(y) if to_bf16 else y
