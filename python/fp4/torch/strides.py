"""Passes the rows of a matrix to kernels: as they are, or in a copy on the same device."""

from __future__ import annotations

import torch

#: Bytes of which the address of a row must be a multiple: TMA and wide loads need it.
_UNIT = 16


def flat_rows(x: torch.Tensor) -> torch.Tensor:
    """[..., K] as a matrix [M, K]. The result is a view if the leading strides are those of one
    pitch, such as `h[:, -1:, :]`, and otherwise a copy."""
    return x if x.dim() == 2 else x.reshape(-1, x.shape[-1])


def has_rows(x: torch.Tensor) -> bool:
    """Returns True if kernels can read the rows of a matrix in memory where they are: adjacent
    elements, rows at one distance, all at multiples of 16 bytes."""
    rows, columns = x.shape
    pitch, step = x.stride()
    return ((step == 1 or columns == 1)
            and (rows <= 1 or (pitch >= columns and pitch * x.itemsize % _UNIT == 0))
            and x.data_ptr() % _UNIT == 0)


def placed(x: torch.Tensor) -> torch.Tensor:
    """The matrix `x`, or a copy of it where kernels with fp4.strided cannot read its rows."""
    if x.is_contiguous():
        return x if x.data_ptr() % _UNIT == 0 else x.clone(memory_format=torch.contiguous_format)
    return x if has_rows(x) else x.contiguous()


def placed_alike(*matrices: torch.Tensor) -> tuple[list[torch.Tensor], bool]:
    """The matrices, of one shape and dtype, for a kernel that reads all of them with fp4.strided or
    none, and whether it can: copies without gaps have rows at multiples of 16 bytes too."""
    first = matrices[0]
    if first.shape[1] * first.itemsize % _UNIT:
        return [dense(x) for x in matrices], False
    return [placed(x) for x in matrices], True


def placed_heads(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """The tokens x heads x columns of `x` for a kernel with fp4.strided, and whether it has gaps; a
    copy without gaps where the kernel cannot read them."""
    places = [stride * x.itemsize for stride in x.stride()[:2]]
    is_placed = (x.stride(2) == 1 and x.data_ptr() % _UNIT == 0 and
                 all(place % _UNIT == 0 and place >= x.shape[2] * x.itemsize for place in places))
    return (x, True) if is_placed and not x.is_contiguous() else (dense(x), False)


def matrix_of_tokens(x: torch.Tensor) -> torch.Tensor | None:
    """The matrix of tokens of [B, S, H, D], or of packed [T, H, D], for a kernel with fp4.strided:
    rows with all heads of a token, at one distance. None where a tensor has no such rows."""
    x = x.unsqueeze(0) if x.dim() == 3 else x
    batches, tokens, heads, elements = x.shape
    batch, pitch, head, step = x.stride()
    rows, columns = batches * tokens, heads * elements
    pitch = columns if rows <= 1 else batch if tokens == 1 else pitch
    is_placed = (step == 1 and (heads == 1 or head == elements) and pitch >= columns
                 and (batches == 1 or batch == tokens * pitch))
    if not is_placed:
        return None
    matrix = x.as_strided((rows, columns), (pitch, 1))
    return matrix if has_rows(matrix) else None


def placed_tokens(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """The matrix of tokens of `x` for a kernel with fp4.strided, and whether it has gaps; else `x`,
    or a copy without gaps."""
    matrix = None if x.is_contiguous() else matrix_of_tokens(x)
    return (dense(x), False) if matrix is None else (matrix, True)


def dense(x: torch.Tensor) -> torch.Tensor:
    """The matrix `x`, or a copy of it where its rows do not follow one another."""
    if x.is_contiguous() and x.data_ptr() % _UNIT == 0:
        return x
    return x.clone(memory_format=torch.contiguous_format)


def padded(x: torch.Tensor, columns: int) -> torch.Tensor:
    """A matrix with zeros behind its columns, `columns` in all; `x` itself where it has them."""
    missing = columns - x.shape[1]
    return torch.nn.functional.pad(x, (0, missing)) if missing else x


def padded_rows(x: torch.Tensor, multiple: int) -> torch.Tensor:
    """A matrix with rows of zeros behind its own, a multiple of `multiple` in all."""
    missing = -x.shape[0] % multiple
    return torch.nn.functional.pad(x, (0, 0, 0, missing)) if missing else x
