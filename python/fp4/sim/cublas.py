"""The calls of cuBLAS in Triton's tutorials, computed by torch on the CPU.

triton._C.libtriton.nvidia.cublas.CublasLt loads libcublas.so, which needs a GPU. Scripts compare
their kernels with it. Matmuls are sums in float32, rounded once to the dtype of the result.
"""

from __future__ import annotations

from typing import Any

import torch

#: The values of e2m1 by their code.
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
_Tensor = torch.Tensor


class CublasLt:
    """The interface of Triton's class: b is transposed, as in a b^T."""

    def __init__(self, workspace: Any = None) -> None:
        pass

    def matmul(self, a: _Tensor, b: _Tensor, c: _Tensor) -> None:
        """c = a b^T for a [M, K] and b [N, K] of one dtype."""
        _same_dtype(a, b)
        _store(c, a.float() @ b.float().T)

    def gemm(self, a: _Tensor, b: _Tensor, c: _Tensor, d: _Tensor, alpha: float,
             beta: float) -> None:
        """d = alpha a b^T + beta c."""
        _same_dtype(a, b)
        _store(d, alpha * (a.float() @ b.float().T) + beta * c.float())

    def block_scaled_matmul_mxfp8(self, a: _Tensor, b: _Tensor, d: _Tensor, a_scale: _Tensor,
                                  b_scale: _Tensor) -> None:
        """d = a b^T; e4m3 elements, e8m0 scales of 32 elements as 128 x 4 tiles."""
        scales = [_exponents(_rows(s.view(torch.uint8), x.shape[0], x.shape[1] // 32))
                  for x, s in ((a, a_scale), (b, b_scale))]
        _store(d, _scaled(a.float(), scales[0]) @ _scaled(b.float(), scales[1]).T)

    def block_scaled_matmul_nvfp4(self, a: _Tensor, b: _Tensor, d: _Tensor, a_scale: _Tensor,
                                  b_scale: _Tensor) -> None:
        """d = a b^T; two e2m1 elements in a byte, the even column in the low nibble, and e4m3
        scales of 16 elements as 128 x 4 tiles."""
        scales = [_rows(s, x.shape[0], x.shape[1] // 8).float()
                  for x, s in ((a, a_scale), (b, b_scale))]
        _store(d, _scaled(_unpack(a), scales[0]) @ _scaled(_unpack(b), scales[1]).T)


def _same_dtype(a: _Tensor, b: _Tensor) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"cuBLAS expects operands of one dtype, but got {a.dtype} and {b.dtype}")


def _store(to: _Tensor, value: _Tensor) -> None:
    if to.shape != value.shape:
        raise RuntimeError(f"cuBLAS expects a result of {tuple(value.shape)}, but got "
                           f"{tuple(to.shape)}")
    to.copy_(value)


def _unpack(x: _Tensor) -> _Tensor:
    codes = x.view(torch.uint8)
    table = torch.tensor(_E2M1)
    return torch.stack((table[(codes & 15).long()], table[(codes >> 4).long()]), -1).flatten(-2)


def _rows(tiled: _Tensor, rows: int, columns: int) -> _Tensor:
    """[rows, columns] of scales in tiles of 128 x 4: 32 x 4 x 4 bytes each."""
    down, across = -(-rows // 128), -(-columns // 4)
    if tiled.numel() != down * across * 512:
        raise RuntimeError(f"cuBLAS expects {down * across * 512} scales for {rows} x {columns}, "
                           f"but got {tiled.numel()}")
    tiles = tiled.reshape(down, across, 32, 4, 4)
    whole = tiles.permute(0, 3, 2, 1, 4).reshape(down * 128, across * 4)
    return whole[:rows, :columns]


def _exponents(codes: _Tensor) -> _Tensor:
    """e8m0: powers of two with bias 127; 255 is NaN."""
    value = torch.ldexp(torch.ones(codes.shape), codes.to(torch.int32) - 127)
    return torch.where(codes == 255, torch.nan, value)


def _scaled(values: _Tensor, scales: _Tensor) -> _Tensor:
    rows, blocks = scales.shape
    return (values.view(rows, blocks, -1) * scales[:, :, None]).view(rows, -1)
