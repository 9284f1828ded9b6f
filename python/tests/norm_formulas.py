"""Norms and gates of rows, written in plain torch, for their tests."""

from typing import Any

from programs import torch


def halves(x: Any) -> Any:
    """The sum along the last dimension, a power of two: element i with i + half, and so on."""
    while x.shape[-1] > 1:
        first, second = x.chunk(2, -1)
        x = first + second
    return x.squeeze(-1)


def row_sum(x: Any) -> Any:
    """The sum of each row in the order of docs/reference/semantics.md: chunks of 16 by halves,
    segments of 32 chunks by halves, and up to 32 segments in order. Each of 32 lanes has every
    32nd of more segments in order, and lanes are added by halves."""
    full = torch.nn.functional.pad(x, (0, -x.shape[1] % 512), value=-0.0)
    segments = halves(halves(full.view(x.shape[0], full.shape[1] // 512, 32, 16)))
    if segments.shape[1] > 32:
        missing = -segments.shape[1] % 32
        lanes = torch.nn.functional.pad(segments, (0, missing), value=-0.0).unflatten(1, (-1, 32))
        sums = lanes[:, 0]
        for more in lanes.unbind(1)[1:]:
            sums = sums + more
        return torch.zeros(x.shape[0], 1) + halves(sums)[:, None]
    total = torch.zeros(x.shape[0])
    for segment in segments.unbind(1):
        total = total + segment
    return total[:, None]


def root(x: Any) -> Any:
    """The square root, rounded to float32. torch.sqrt of float32 is one unit in the last place away
    on some processors, where MKL computes it."""
    return torch.sqrt(x.double()).float()


def norm(x: Any, weight: Any = None, bias: Any = None, *, kind: str = "rms", eps: float = 1e-6,
         offset: float | None = None, is_normed_rounded: bool = False, dtype: Any = None) -> Any:
    """The norm of rows, rounded once to the dtype of `x`, or to `dtype`."""
    h, eps = x.float(), torch.tensor(eps)
    if kind == "layer":
        h = h - row_sum(h) / x.shape[1]
    y = h * (1 / root(row_sum(h * h) / x.shape[1] + eps))
    if is_normed_rounded:
        y = y.to(x.dtype).float()
    if weight is not None:
        y = y * (weight.float() if offset is None else weight.float() + offset)
    if bias is not None:
        y = y + bias.float()
    return y.to(dtype or x.dtype)


def norm_gradient(dy: Any, h: Any, dh: Any, weight: Any, kind: str, offset: float | None,
                  eps: float = 1e-5) -> "tuple[Any, Any, Any]":
    """The gradient of what a norm is of, rounded once; rstd, and mean of LayerNorm."""
    wide, g, columns = h.float(), dy.float(), h.shape[1]
    mean = row_sum(wide) / columns if kind == "layer" else None
    if mean is not None:
        wide = wide - mean
    rstd = 1 / root(row_sum(wide * wide) / columns + torch.tensor(eps))
    n = wide * rstd
    if weight is not None:
        g = g * (weight.float() if offset is None else weight.float() + offset)
    m = g if mean is None else g - row_sum(g) / columns
    z = (m - n * (row_sum(g * n) / columns)) * rstd
    if dh is not None:
        z = z + dh.float()
    return (z.to(h.dtype), rstd.squeeze(1),
            torch.empty(0) if mean is None else mean.squeeze(1))


def clamped(x: Any) -> Any:
    """E4M3 within +-448, where NaN becomes 448."""
    most = torch.tensor(448.0)
    return torch.fmax(torch.fmin(x, most), -most).to(torch.float8_e4m3fn)


def fp8_of_blocks(y: Any, block: int) -> "tuple[Any, Any]":
    """DeepGEMM's per_token_cast_to_fp8 with blocks of so many elements, the last one shorter."""
    full = torch.nn.functional.pad(y.float(), (0, -y.shape[1] % block))
    blocks = full.view(y.shape[0], -1, block)
    amax = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-4)
    scale = amax / 448
    codes = (blocks * (1 / scale)).to(torch.float8_e4m3fn).view(y.shape[0], -1)
    return codes[:, :y.shape[1]], scale.squeeze(-1)


def mxfp8(y: Any) -> "tuple[Any, Any]":
    """Codes and scales, as bytes, of OCP's rule: the exponent of the amax minus 8, a scale of NaN
    where a number is not finite."""
    blocks = y.float().view(y.shape[0], -1, 32)
    amax = blocks.abs().amax(-1)
    byte = ((amax.view(torch.int32) >> 23) - 8).clamp(min=0)
    byte = torch.where(amax.isfinite(), byte, 255).to(torch.uint8)
    factor = torch.exp2(127.0 - byte.double())[..., None]
    codes = (blocks * factor).float().clamp(-448, 448).to(torch.float8_e4m3fn)
    codes = torch.where((byte == 255)[..., None], torch.nan, codes.float())
    return codes.to(torch.float8_e4m3fn).view(y.shape), byte


def linear(tiles: Any, rows: int, columns: int) -> Any:
    """Scales in the layout tiled_128x4, as bytes of a matrix."""
    high, wide = tiles.shape[:2]
    blocks = tiles.view(torch.uint8).view(high, wide, 32, 4, 4).permute(0, 3, 2, 1, 4)
    return blocks.reshape(high * 128, wide * 4)[:rows, :columns].contiguous()


def silu_and_mul(x: Any) -> Any:
    """silu of the first half of each row, times the second half."""
    gate, up = x.float().chunk(2, 1)
    return (torch.nn.functional.silu(gate) * up).to(x.dtype)


def data(rows: int, columns: int, seed: int = 0, dtype: Any = None) -> Any:
    """Normal numbers, and rows of zeros, of large and of tiny numbers, one with an infinity and one
    with a NaN."""
    torch.manual_seed(seed)
    x = torch.randn(rows, columns)
    if rows > 5:
        x[1], x[2], x[3] = 0, x[2] * 1e15, x[3] * 1e-20
        x[4, 3], x[5, 7] = float("inf"), float("nan")
    return x.to(dtype or torch.bfloat16)
