"""The formulas of the packages that fp4.compat stands for, written in torch, for its tests."""

import unittest
from typing import Any

from programs import torch

FLT_MAX = 3.4028234663852886e38


def data(rows: int, columns: int, seed: int = 0, dtype: Any = None) -> Any:
    """Normal numbers with blocks of zeros, of negative zeros, of ties, of one outlier, and of
    numbers whose scale rounds to zero."""
    torch.manual_seed(seed)
    x = torch.randn(rows, columns) * 0.7
    x[0, :16] = 0
    x[1, :16] = -0.0
    x[2, :16] = torch.tensor([6, .25, .75, 1.25, 1.75, 2.5, 3.5, 5, -.25, -.75, -1.25, -1.75, -2.5,
                              -3.5, -5, -6])
    x[3, :16] = 2.0 ** -20
    x[4, 5] = 40
    return x.to(dtype or torch.bfloat16)


def e2m1(x: Any) -> Any:
    """Codes, to the nearest, ties to even codes; two in a byte."""
    a = x.abs()
    code = sum((a > edge).to(torch.uint8) for edge in (.25, 1.25, 2.5, 5)) + sum(
        (a >= edge).to(torch.uint8) for edge in (.75, 1.75, 3.5))
    code = code | (torch.signbit(x).to(torch.uint8) << 3)
    return code[..., 0::2] | (code[..., 1::2] << 4)


def e4m3(s: Any) -> Any:
    return s.clamp(max=448).to(torch.float8_e4m3fn)


def with_global_scale(x: Any, g: Any, scale: Any, factor: Any) -> "tuple[Any, Any]":
    """Codes and E4M3 scales, by a formula of the scale of an amax, and one of the factor of a scale
    (and its amax)."""
    blocks = x.float().view(x.shape[0], -1, 16)
    amax = blocks.abs().amax(-1, keepdim=True)
    s = e4m3(scale(amax, g))
    return (e2m1((blocks * factor(s.float(), g, amax)).view(x.shape)),
            s.view(torch.uint8).squeeze(-1))


def flashinfer_exact(x: Any, g: Any) -> "tuple[Any, Any]":
    sixth = torch.tensor(1 / 6, dtype=torch.float32)
    return with_global_scale(
        x, g, lambda a, g: torch.where(a != 0, a * (g * sixth), 0),
        lambda f, g, a: torch.where(a != 0, (1 / (f * (1 / g))).clamp(max=FLT_MAX), 0))


def fast(x: Any, g: Any, zero_is_of_scale: bool) -> "tuple[Any, Any]":
    """The fast path of FlashInfer and vLLM for a g that is a power of two, whose approximate
    reciprocals are exact."""
    sixth = torch.tensor(1 / 6, dtype=torch.float32)
    return with_global_scale(
        x, g, lambda a, g: g * (a * sixth),
        lambda f, g, a: torch.where((f if zero_is_of_scale else a) != 0, 1 / (f * (1 / g)), 0))


def to_blocked(scales: Any) -> Any:
    """torch's formula for the layout of 128 x 4 tiles, as one row."""
    rows, columns = scales.shape
    high, wide = -(-rows // 128), -(-columns // 4)
    full = torch.zeros(high * 128, wide * 4, dtype=torch.uint8)
    full[:rows, :columns] = scales.view(torch.uint8)
    blocks = full.view(high, 128, wide, 4).permute(0, 2, 1, 3)
    return blocks.reshape(-1, 4, 32, 4).transpose(1, 2).reshape(-1)


def vllm_tiles(scales: Any) -> Any:
    """Linear scales in tiles of 8 x 4, by torch."""
    rows, columns = scales.shape
    full = torch.zeros(-(-rows // 8) * 8, -(-columns // 4) * 4, dtype=torch.uint8)
    full[:rows, :columns] = scales.view(torch.uint8)
    return full.view(-1, 8, full.shape[1] // 4, 4).permute(0, 2, 1, 3).contiguous()


def same(test: unittest.TestCase, found: Any, expected: Any) -> None:
    test.assertTrue(torch.equal(found.reshape(-1).view(torch.uint8),
                                expected.reshape(-1).view(torch.uint8)))


def torchao_formula(x: Any, p: Any) -> "tuple[Any, Any]":
    """Codes and linear scales; p is the decode scale, or None."""
    blocks = x.float().view(x.shape[0], -1, 16)
    s = blocks.abs().amax(-1, keepdim=True) / 6.0
    s = (s if p is None else s / p).clamp(2.0 ** -6, 448).to(torch.float8_e4m3fn)
    factor = 1.0 / s.float() if p is None else (1.0 / p) / s.float()
    return e2m1((blocks * factor).clamp(-6, 6).view(x.shape)), s.squeeze(-1)


def dequantized(codes: Any, scales: Any, d: Any) -> Any:
    values = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6])
    numbers = torch.stack([codes & 15, codes >> 4], -1).view(codes.shape[0], -1).long()
    factor = scales.float() if d is None else scales.float() * d
    blocks = values[numbers].view(codes.shape[0], -1, 16)
    return (blocks * factor.unsqueeze(-1)).view(codes.shape[0], -1)
