"""Rotations of heads and weighted sums of rows, written in plain torch, for their tests."""

from typing import Any

import norm_formulas
from programs import torch


def rotated(x: Any, cos_sin: Any, positions: Any, *, interleaved: bool = False,
            dtype: Any = None) -> Any:
    """Heads [T, H, D], rotated by their positions, in f32 and rounded once."""
    size = cos_sin.shape[1]
    cos, sin = cos_sin.float()[positions][:, None].chunk(2, -1)
    turned, rest = x.float().split([size, x.shape[-1] - size], -1)
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    parts = a * cos - b * sin, b * cos + a * sin
    turned = torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)
    return torch.cat((turned, rest), -1).to(dtype or x.dtype)


def normed(x: Any, weight: Any, **options: Any) -> Any:
    """norm_formulas.norm of each head."""
    return norm_formulas.norm(x.reshape(-1, x.shape[-1]), weight, **options).view(x.shape)


def weighted_sum(y: Any, rows: Any, weights: Any) -> Any:
    """The terms are added in order."""
    terms = [y[index].float() * weight[:, None] for index, weight in zip(rows.t(), weights.t())]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total.to(y.dtype)


def operands(tokens: int, heads: int, columns: int, size: int = 0, dtype: Any = None,
             seed: int = 0) -> "tuple[Any, Any, Any]":
    """Heads with zeros, an infinity and a NaN, a table of cosines and sines, and positions."""
    x = norm_formulas.data(tokens * heads, columns, seed, dtype).view(tokens, heads, columns)
    return x, torch.randn(11, size or columns), torch.randint(11, (tokens,))


def q_of_qkv(tokens: int, heads: int, columns: int, dtype: Any = None) -> Any:
    """The first heads of rows that have more behind them."""
    whole = norm_formulas.data(tokens, (heads + 2) * columns, 4, dtype)
    return whole[:, :heads * columns].view(tokens, heads, columns)
