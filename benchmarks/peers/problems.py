"""The GEMMs that are compared, and their operands.

A problem is one of these kinds, with M rows of activations, N x K weights, and a result in bf16:

  bf16_nvfp4    bf16 activations, NVFP4 weights with a scale of the tensor
  bf16_mxfp4    bf16 activations, MXFP4 weights
  e4m3_mxfp4    e4m3 activations with a scale for each row, MXFP4 weights
  nvfp4_nvfp4   NVFP4 operands without scales of tensors
  mxfp4_mxfp4   MXFP4 operands
  fp8           e4m3 operands, activations with f32 scales of 1 x 128, weights with 128 x 128
  contiguous    the same, groups of equal numbers of rows one after the other, each with weights of
                its own
  masked        the same, groups in buffers of equal size, of which the first rows are used
"""
from __future__ import annotations

import dataclasses
from typing import Any

try:
    import torch
except ImportError:  # the texts of programs need none
    torch = None

KINDS = ("bf16_nvfp4", "bf16_mxfp4", "e4m3_mxfp4", "nvfp4_nvfp4", "mxfp4_mxfp4", "fp8", "contiguous", "masked")
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
#: Elements of a block of weights, and of activations where these are packed too.
BLOCK = {"bf16_nvfp4": 16, "bf16_mxfp4": 32, "e4m3_mxfp4": 32, "nvfp4_nvfp4": 16, "mxfp4_mxfp4": 32}
PACKED = ("nvfp4_nvfp4", "mxfp4_mxfp4")
#: An H200 as its specification has it: bytes per second, and operations per second for each kind of
#: MMA.
MEMORY, BF16, FP8 = 4.8e12, 989e12, 1979e12


@dataclasses.dataclass(frozen=True)
class Problem:
    """`m` is all rows of a result: of a masked GEMM, those of all buffers."""

    kind: str
    m: int
    n: int
    k: int
    groups: int = 1
    used: tuple[int, ...] = ()  # rows of each group of a masked GEMM

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"the kind must be one of {', '.join(KINDS)}, but is '{self.kind}'")
        if self.n % 128 or self.k % 128 or self.m < 1 or self.groups < 1 or self.m % self.groups:
            raise ValueError(f"{self} must have multiples of 128 for n and k, and rows for each group")
        most = self.m // self.groups
        if (self.kind == "masked") != bool(self.used) or any(not 0 <= rows <= most for rows in self.used):
            raise ValueError(f"{self} must say how many of its {most} rows each masked group uses")

    @property
    def name(self) -> str:
        tail = f"_{self.groups}" if self.groups > 1 else ""
        return f"{self.kind}_{self.m}_{self.n}x{self.k}{tail}"

    @property
    def rows(self) -> int:
        """Rows that are multiplied."""
        return sum(self.used) if self.used else self.m

    @property
    def flops(self) -> int:
        return 2 * self.rows * self.n * self.k

    @property
    def bytes(self) -> int:
        """The bytes that have to move between memory and the chip: each operand and the result
        once."""
        weights, activations = self.groups * self.n * self.k, self.rows * self.k
        if self.kind in PACKED:
            activations = activations // 2 + activations // BLOCK[self.kind]
        elif self.kind.startswith("bf16"):
            activations *= 2
        if self.kind in BLOCK:
            return weights // 2 + weights // BLOCK[self.kind] + activations + 2 * self.rows * self.n
        return weights + weights // 4096 + activations + activations // 32 + 2 * self.rows * self.n

    def roof(self) -> tuple[float, str]:
        """The least time in us that the specification of an H200 allows, and what bounds it."""
        peak = BF16 if self.kind.startswith("bf16") or self.kind in PACKED else FP8
        memory, tensor = 1e6 * self.bytes / MEMORY, 1e6 * self.flops / peak
        return (memory, "memory") if memory > tensor else (tensor, "tensor core")


#: N x K of weights, and rows of activations.
WEIGHTS = ((8192, 8192), (7168, 16384), (4096, 7168))
ROWS = (1, 16, 64, 128, 256, 1024, 4096)
PACKED_ROWS = (16, 64, 8192)
#: DeepGEMM's five of 4096 rows, and of groups.
TALL = ((7168, 16384), (4096, 7168), (24576, 1536), (7168, 2048), (32768, 512))
GROUPED = ((6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048))


def every() -> list[Problem]:
    """All problems of the comparison."""
    found = [Problem("fp8", rows, *WEIGHTS[0]) for rows in (16, 64, 256, 4096)]
    found += [Problem("fp8", rows, n, k) for n, k in WEIGHTS[1:] for rows in (64, 128)]
    found += [Problem("fp8", 4096, n, k) for n, k in TALL]
    found += [Problem("contiguous", 4 * 8192, n, k, 4) for n, k in GROUPED]
    found += [Problem("masked", 4 * 1024, n, k, 4, (255, 190, 301, 278)) for n, k in GROUPED[:2]]
    found += [Problem(kind, rows, n, k) for kind in BLOCK if kind not in PACKED for n, k in WEIGHTS for rows in ROWS]
    return found + [Problem(kind, rows, n, k) for kind in PACKED for n, k in WEIGHTS for rows in PACKED_ROWS
                    if rows <= 64 or (n, k) == WEIGHTS[0]]


@dataclasses.dataclass
class Operands:
    """One set of operands of a problem, in the layouts of a checkpoint. Peers rearrange them
    beforehand, as each of them rearranges weights when a model is loaded."""

    problem: Problem
    x: Any  # M x K, bf16 or e4m3, or M x K/2 bytes as those of weights
    row_scales: Any  # M x K/128 f32 (fp8), M x 1 f32 (e4m3_mxfp4), M x K/block bytes (of fp4), or None
    weights: Any  # G*N x K/2 bytes of two codes, the even column low; or G*N x K e4m3
    scales: Any  # N x K/block bytes, or G*N/128 x K/128 f32
    tensor_scale: Any  # f32 scalar (bf16_nvfp4), or None

    @property
    def nbytes(self) -> int:
        tensors = (self.x, self.row_scales, self.weights, self.scales)
        return sum(t.numel() * t.element_size() for t in tensors if t is not None)


def make_operands(problem: Problem, seed: int, device: str = "cuda") -> Operands:
    """Random codes of all values. MXFP4 scales are from 2^-3 to 2^2, so that weights are e4m3
    exactly."""
    generator = torch.Generator(device).manual_seed(seed)
    m, n, k, kind = problem.m, problem.groups * problem.n, problem.k, problem.kind

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator, device=device)

    def integers(low: int, high: int, *shape: int) -> Any:
        return torch.randint(low, high, shape, generator=generator, device=device, dtype=torch.uint8)

    def uniform(*shape: int) -> Any:
        return 2.0 ** -6 * (0.5 + torch.rand(*shape, generator=generator, device=device))

    def block_scales(rows: int) -> Any:
        if kind.endswith("nvfp4"):
            return normal(rows, k // 16).abs().add(0.25).to(torch.float8_e4m3fn).view(torch.uint8)
        return integers(124, 130, rows, k // 32)

    if kind in BLOCK:
        tensor_scale, scales = torch.tensor(0.0078125, device=device) if kind == "bf16_nvfp4" else None, block_scales(n)
        if kind in PACKED:
            x, row_scales = integers(0, 256, m, k // 2), block_scales(m)
            return Operands(problem, x, row_scales, integers(0, 256, n, k // 2), scales, tensor_scale)
        x, row_scales = normal(m, k).to(torch.bfloat16), None
        if kind == "e4m3_mxfp4":
            x, row_scales = (16 * x).to(torch.float8_e4m3fn), uniform(m, 1)
        return Operands(problem, x, row_scales, integers(0, 256, n, k // 2), scales, tensor_scale)
    e4m3 = torch.float8_e4m3fn
    return Operands(problem, (64 * normal(m, k)).to(e4m3), uniform(m, k // 128), (64 * normal(n, k)).to(e4m3),
                    uniform(n // 128, k // 128), None)


def dequantized_weights(operands: Operands) -> Any:
    """G*N x K in f32, exactly; without the scale of the tensor."""
    problem = operands.problem
    if problem.kind not in BLOCK:
        scales = operands.scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
        return operands.weights.float() * scales
    return _dequantized(problem, operands.weights, operands.scales)


def dequantized_activations(operands: Operands) -> Any:
    """M x K in f32, exactly; scales of whole rows are left out."""
    problem = operands.problem
    if problem.kind in PACKED:
        return _dequantized(problem, operands.x, operands.row_scales)
    x = operands.x.float()
    return x if problem.kind in BLOCK else x * operands.row_scales.repeat_interleave(128, 1)


def bf16_weights(operands: Operands) -> Any:
    """With the scale of the tensor."""
    weights = dequantized_weights(operands)
    if operands.tensor_scale is not None:
        weights *= operands.tensor_scale
    return weights.to(torch.bfloat16)


def bf16_activations(operands: Operands) -> Any:
    return dequantized_activations(operands).to(torch.bfloat16) if operands.problem.kind in PACKED else operands.x


def e4m3_weights(operands: Operands) -> Any:
    """Weights in e4m3: of MXFP4 with their scales, of other formats without."""
    if operands.weights.dtype == torch.uint8:
        return dequantized_weights(operands).to(torch.float8_e4m3fn)
    return operands.weights


def _dequantized(problem: Problem, packed: Any, scales: Any) -> Any:
    values = torch.tensor(E2M1 + tuple(-v for v in E2M1), device=packed.device)
    codes = torch.stack((packed & 15, packed >> 4), -1).view(packed.shape[0], -1)
    return values[codes.int()] * scales.view(scale_type(problem)).float().repeat_interleave(BLOCK[problem.kind], 1)


def scale_type(problem: Problem) -> Any:
    """The type of the scales of blocks of 4-bit numbers."""
    return torch.float8_e4m3fn if problem.kind.endswith("nvfp4") else torch.float8_e8m0fnu


def reference(operands: Operands) -> Any:
    """The result in f32, M x N; rows of no group are NaN, which `difference` leaves out."""
    problem, x = operands.problem, dequantized_activations(operands)
    weights = dequantized_weights(operands)
    per_group = problem.m // problem.groups
    result = torch.full((problem.m, problem.n), float("nan"), device=x.device)
    for group in range(problem.groups):
        begin, rows = group * per_group, problem.used[group] if problem.used else per_group
        part = weights[group * problem.n:(group + 1) * problem.n]
        result[begin:begin + rows] = x[begin:begin + rows] @ part.t()
    if operands.tensor_scale is not None:
        result *= operands.tensor_scale
    if problem.kind == "e4m3_mxfp4":
        result *= operands.row_scales
    return result


def difference(result: Any, expected: Any) -> float:
    """The root of the mean squared error, relative to that of the expected elements; infinite where
    an element is not a number or far off, so that a wrong tile cannot hide in a large matrix."""
    used = ~expected.isnan()
    result, expected = result.float()[used], expected[used]
    size = expected.square().mean().sqrt()
    error = (result - expected).abs()
    if not bool(torch.isfinite(error).all()) or bool((error > 0.125 * size + 0.0625 * expected.abs()).any()):
        return float("inf")
    return float(error.square().mean().sqrt() / size)
