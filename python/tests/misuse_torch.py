"""Random misuse of fp4.torch, for misuse.py. Importing it imports torch."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import fp4
import fp4.torch as ft
import torch
from misuse_case import JUNK, Case
from torch.nn.functional import ScalingType, SwizzleType

BF16 = torch.bfloat16
NO_TENSORS = [value for value in JUNK if value is not None]


@functools.cache
def matrix(rows: int = 32, columns: int = 64, dtype: torch.dtype = BF16) -> Any:
    generator = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, generator=generator).to(dtype)


@functools.cache
def scaled(rows: int, columns: int = 64, format: str = "nvfp4",
           layout: str = "tiled_128x4") -> ft.Scaled:
    return ft.quantize(matrix(rows, columns), format=format, layout=layout)


def wrong_matrix(rng: random.Random) -> tuple[str, Any]:
    """Makes a tensor that is no matrix of 64 columns that can be quantized."""
    dtype = rng.choice([torch.float64, torch.int8, torch.bool, torch.complex64, torch.uint8,
                        torch.float8_e4m3fn])
    return rng.choice([
        (f"of {dtype}", torch.zeros(32, 64).to(dtype)),
        ("a scalar", torch.zeros((), dtype=BF16)),
        ("sparse", torch.zeros(32, 64).to_sparse()),
        ("sparse by rows", torch.zeros(32, 64).to_sparse_csr()),
        ("of MKL-DNN", torch.zeros(32, 64).to_mkldnn()),
    ])


def misuse_quantize(rng: random.Random) -> Case:
    x, word = matrix(), rng.choice(["", "fp4", "tiled", "NVFP4"])
    what, wrong = wrong_matrix(rng)
    call: Any = rng.choice([ft.quantize, ft.fake_quantize, ft.amax])
    numbers = rng.choice([torch.ones(3), torch.ones((), dtype=torch.float64), torch.ones(32, 1)])
    state = rng.choice([torch.zeros(3, dtype=torch.int64), torch.zeros(2)])
    return rng.choice([
        Case(f"{call.__name__}: x {what}", lambda: call(wrong)),
        Case(f"{call.__name__}: x is no tensor", lambda: call(rng.choice(NO_TENSORS)), TypeError),
        Case("quantize: format", lambda: ft.quantize(x, format=word)),
        Case("quantize: layout", lambda: ft.quantize(x, layout=word)),
        Case("quantize: recipe", lambda: ft.quantize(x, recipe=word or "x"),
             fp4.CompileError),
        Case("quantize: rounding", lambda: ft.quantize(x, rounding=word)),
        Case("quantize: amax", lambda: ft.quantize(x, amax=numbers)),
        Case("quantize: rng", lambda: ft.quantize(x, rounding="stochastic", rng=state)),
        Case("quantize: columns", lambda: ft.quantize(matrix(4, 48), format="mxfp4")),
        Case("quantize: odd columns", lambda: ft.quantize(matrix(4, 63))),
    ])


def misuse_hadamard(rng: random.Random) -> Case:
    x, (what, wrong) = matrix(), wrong_matrix(rng)
    return rng.choice([
        Case("hadamard: dim", lambda: ft.hadamard(x, rng.choice((2, -3, 9)))),
        Case("hadamard: size", lambda: ft.hadamard(x, size=rng.choice((0, 7, 24, 256))),
             fp4.CompileError),
        Case("hadamard: mask", lambda: ft.hadamard(x, sign_mask=rng.choice((1 << 16, -1))),
             fp4.CompileError),
        Case("hadamard: columns", lambda: ft.hadamard(matrix(4, 48), size=32),
             fp4.CompileError),
        Case(f"hadamard: x {what}", lambda: ft.hadamard(wrong)),
    ])


def misuse_linear(rng: random.Random) -> Case:
    q, word = scaled(32), rng.choice(["", "tiled", "row"])
    bias = rng.choice([torch.zeros(15), torch.zeros(16, 1), torch.zeros(16, dtype=torch.int32)])
    junk = rng.choice([*NO_TENSORS, matrix()])
    return rng.choice([
        Case("linear: K", lambda: ft.linear(q, scaled(16, 128))),
        Case("linear: formats", lambda: ft.linear(q, scaled(16, 64, "mxfp4"))),
        Case("linear: layout", lambda: ft.linear(q, scaled(16, 64, "nvfp4", "linear"))),
        Case("linear: bias", lambda: ft.linear(q, scaled(16), bias)),
        Case("linear: dtype", lambda: ft.linear(q, scaled(16), dtype=torch.float64)),
        Case("linear: no Scaled", lambda: ft.linear(q, junk), TypeError),
        Case("dequantize: no Scaled", lambda: ft.dequantize(junk), TypeError),
        Case("dequantize: dtype", lambda: ft.dequantize(q, torch.int8)),
        Case("swizzle: layout", lambda: ft.swizzle(q, word)),
        Case("swizzle: no Scaled", lambda: ft.swizzle(junk), TypeError),
    ])


def misuse_scaled(rng: random.Random) -> Case:
    """A Scaled whose parts do not fit."""
    q = scaled(32)
    wrong: dict[str, Any] = rng.choice([
        {"shape": (32, 128)}, {"shape": (31, 64)}, {"shape": (300, 64)}, {"format": "mxfp4"},
        {"layout": "linear"}, {"data": q.data.view(torch.uint8).t()},
        {"data": torch.zeros(32, 64)}, {"scales": q.scales.view(torch.uint8).float()},
        {"scales": torch.zeros(32, 4, dtype=torch.uint8)}, {"amax": None},
        {"amax": torch.zeros(3)}, {"recipe": "none"}, {"format": "fp4"}, {"layout": "tiled"},
    ])
    parts = {"data": q.data, "scales": q.scales, "amax": q.amax, "shape": q.shape} | wrong
    expected = fp4.CompileError if "recipe" in wrong else fp4.UsageError
    return Case(f"Scaled: {next(iter(wrong))}",
                lambda: ft.linear(ft.Scaled(**parts), scaled(16)), expected)


def misuse_scaled_mm(rng: random.Random) -> Case:
    """The operands of F.scaled_mm, of which one is wrong; one is a packed tensor that somebody
    transposed into memory, which pairs other elements."""
    a, b = scaled(32), scaled(16)
    given: dict[str, Any] = {
        "mat_a": a.data, "mat_b": b.data.t(), "scale_a": a.scales, "scale_b": b.scales,
        "scale_recipe_a": ScalingType.BlockWise1x16, "scale_recipe_b": ScalingType.BlockWise1x16,
        "swizzle_a": SwizzleType.SWIZZLE_32_4_4, "swizzle_b": SwizzleType.SWIZZLE_32_4_4,
    }
    bytes_b = b.data.view(torch.uint8)
    wrong: dict[str, Any] = rng.choice([
        {"mat_b": b.data}, {"mat_b": bytes_b.t().contiguous().view(torch.float4_e2m1fn_x2)},
        {"mat_a": a.data.t()}, {"mat_a": matrix()}, {"mat_b": scaled(16, 128).data.t()},
        {"scale_a": a.scales.reshape(-1)[:-1]}, {"scale_b": b.scales.view(torch.uint8).float()},
        {"scale_recipe_a": ScalingType.BlockWise1x32}, {"scale_recipe_b": ScalingType.RowWise},
        {"swizzle_a": SwizzleType.NO_SWIZZLE}, {"swizzle_b": None},
        {"bias": torch.zeros(15)}, {"output_dtype": torch.int8}, {"contraction_dim": (0, 1)},
        {"use_fast_accum": True},
    ])
    return Case(f"scaled_mm: {next(iter(wrong))}", lambda: ft.scaled_mm(**(given | wrong)),
                (fp4.UsageError, TypeError))


KINDS: dict[Callable[[random.Random], Case], int] = {
    misuse_quantize: 8, misuse_hadamard: 3, misuse_linear: 6, misuse_scaled: 5,
    misuse_scaled_mm: 6,
}
