"""Kernels in Triton for foreign.py: what its tutorials have, in our words: sums, softmax, layer
norm, GEMMs, attention.

`compile_all(folder)` writes the PTX that Triton makes of each for sm_90a and what a launch needs
(triton.json). The function needs Triton (3.9.0 here), and neither a GPU nor PyTorch.
"""
from __future__ import annotations

import json
import pathlib
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """A row of each program."""
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, i < columns, other=-float("inf")).to(tl.float32)
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + i, (values / tl.sum(values, axis=0)).to(out.dtype.element_ty), i < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, BLOCK: tl.constexpr):
    """A row of each program, which reads it three times, in pieces."""
    row = tl.program_id(0)
    x += row * columns
    out += row * columns
    total = tl.zeros([BLOCK], tl.float32)
    for at in range(0, columns, BLOCK):
        i = at + tl.arange(0, BLOCK)
        total += tl.load(x + i, i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for at in range(0, columns, BLOCK):
        i = at + tl.arange(0, BLOCK)
        apart = tl.where(i < columns, tl.load(x + i, i < columns, other=0.0).to(tl.float32) - mean, 0.0)
        squares += apart * apart
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + 1e-5)
    for at in range(0, columns, BLOCK):
        i = at + tl.arange(0, BLOCK)
        inside = i < columns
        value = (tl.load(x + i, inside, other=0.0).to(tl.float32) - mean) * scale
        value = value * tl.load(weight + i, inside).to(tl.float32) + tl.load(bias + i, inside).to(tl.float32)
        tl.store(out + i, value.to(out.dtype.element_ty), inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """a is M x K, b N x K; programs take tiles in groups of GROUP rows of tiles."""
    pid, down, across = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    m, n = first + pid % (GROUP * across) % height, pid % (GROUP * across) // height
    rows, columns, depth = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN), tl.arange(0, BK)
    pa, pb = a + rows[:, None] * K + depth[None, :], b + columns[None, :] * K + depth[:, None]
    sums = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        sums = tl.dot(tl.load(pa), tl.load(pb), sums)
        pa += BK
        pb += BK
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(c.dtype.element_ty))


@triton.jit
def attention(q, k, v, out, scale, LENGTH, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """BM queries of a head, all keys; the softmax is made as keys come."""
    q += tl.program_id(1) * LENGTH * D
    k += tl.program_id(1) * LENGTH * D
    v += tl.program_id(1) * LENGTH * D
    out += tl.program_id(1) * LENGTH * D
    rows, columns, keys = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    queries = tl.load(q + rows[:, None] * D + columns[None, :])
    most, weights = tl.full([BM], -float("inf"), tl.float32), tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, D], tl.float32)
    for at in range(0, LENGTH, BN):
        scores = tl.dot(queries, tl.load(k + (at + keys)[None, :] * D + columns[:, None])) * scale
        now = tl.maximum(most, tl.max(scores, axis=1))
        scores = tl.exp2(scores - now[:, None])
        shrink = tl.exp2(most - now)
        weights = weights * shrink + tl.sum(scores, axis=1)
        sums = sums * shrink[:, None]
        values = tl.load(v + (at + keys)[:, None] * D + columns[None, :])
        sums = tl.dot(scores.to(values.dtype), values, sums)
        most = now
    sums = sums / weights[:, None]
    tl.store(out + rows[:, None] * D + columns[None, :], sums.to(out.dtype.element_ty))


PTX_VERSION = 86  # that drivers and ptxas of CUDA 12.8 and later know
PRODUCT = {"M": "i32", "N": "i32", "K": "i32"}
# name: kernel, types of its parameters, constants, options
KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, int], dict[str, int]]] = {
    "add": (add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}, {}),
    **{f"softmax_{columns}": (softmax, {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"BLOCK": columns}, {"num_warps": 8})
       for columns in (1024, 4096, 8192)},
    "layer_norm": (layer_norm, {"x": "*bf16", "weight": "*bf16", "bias": "*bf16", "out": "*bf16", "columns": "i32"}, {"BLOCK": 1024},
                   {"num_warps": 4}),
    "matmul_small": (matmul, {"a": "*bf16", "b": "*bf16", "c": "*bf16", **PRODUCT}, {"BM": 64, "BN": 64, "BK": 64, "GROUP": 8},
                     {"num_warps": 4, "num_stages": 4}),
    "matmul": (matmul, {"a": "*bf16", "b": "*bf16", "c": "*bf16", **PRODUCT}, {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8},
               {"num_warps": 8, "num_stages": 3}),
    "matmul_fp8": (matmul, {"a": "*fp8e4nv", "b": "*fp8e4nv", "c": "*bf16", **PRODUCT}, {"BM": 128, "BN": 256, "BK": 128, "GROUP": 8},
                   {"num_warps": 8, "num_stages": 3}),
    **{f"attention_{d}": (attention, {"q": "*bf16", "k": "*bf16", "v": "*bf16", "out": "*bf16", "scale": "fp32", "LENGTH": "i32"},
                          {"D": d, "BM": 128, "BN": 64}, {"num_warps": 8, "num_stages": 3}) for d in (64, 128)},
}


def compile_all(folder: pathlib.Path) -> None:
    launches = {}
    for name, (kernel, types, constants, options) in KERNELS.items():
        signature = {**types, **{constant: "constexpr" for constant in constants}}
        aligned = {(at,): [["tt.divisibility", 16]] for at, kind in enumerate(types.values()) if kind != "fp32"}
        made = triton.compile(ASTSource(kernel, signature, constants, aligned), target=GPUTarget("cuda", 90, 32),
                              options={"ptx_version": PTX_VERSION, **options})
        (folder / f"triton_{name}.ptx").write_text(made.asm["ptx"], encoding="utf-8")
        launches[name] = {"entry": made.metadata.name, "threads": 32 * made.metadata.num_warps, "shared": made.metadata.shared,
                          "constants": constants}
    (folder / "triton.json").write_text(json.dumps(launches, indent=1) + "\n", encoding="utf-8")
