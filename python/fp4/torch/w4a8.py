"""Linear layers of E4M3 activations and MXFP4 weights that are prepacked for them (W4A8), and their
operations:

    prepack_bytes(data, scales)  -> packed [N/128, K/128, 8704]
    unprepack_bytes(packed)      -> data, linear scales
    byte_mm(x, scales?, packed, bias?, rows, dtype, batch_invariant) -> [M, rows]

Without scales, x has floats, of which the program makes E4M3 with a float32 scale for each row. N
and K are whole tiles. The weights beyond the `rows` of the layer, and beyond the columns of x, are
zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError
from . import functional as fp4
from . import programs, recipes, weight_programs
from .damage import check_weight
from .execution import run
from .operation import Operation
from .row_results import ScaledFP8
from .scaled import SCALE_DTYPES, Scaled
from .stored_weight import StoredWeight, converted, refuse_reset
from .strides import dense, flat_rows, padded, placed
from .weight_only import (
    _check_bias,
    check_sizes,
    codes_of,
    first_of,
    quantized,
    row_of,
    tiles_of,
    times_weight,
    whole_codes,
)

_Pair = tuple[torch.Tensor, torch.Tensor]
_FORMAT, _BLOCK = "mxfp4", recipes.BLOCKS["mxfp4"]
#: Scale blocks of a row of a tile, and how many powers of two their scales may be apart.
_BLOCKS, _RANGE = weight_programs.BYTE_COLUMNS // _BLOCK, 11

#===--- Operations -----------------------------------------------------===#


def _prepack(data: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return tiles_of(data, scales, weight_programs.BYTE_TILE)


def _prepack_fake(data: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return data.new_empty(((data.shape[0] + 127) // 128, (data.shape[1] + 63) // 64,
                           weight_programs.BYTE_TILE), dtype=torch.uint8)


def _unprepack(packed: torch.Tensor) -> _Pair:
    return codes_of(packed, *known_sizes(packed.shape))


def _unprepack_fake(packed: torch.Tensor) -> _Pair:
    rows, columns = _sizes_of(packed.shape)
    return (packed.new_empty((rows, columns // 2), dtype=torch.float4_e2m1fn_x2),
            packed.new_empty((rows, columns // _BLOCK), dtype=SCALE_DTYPES[_FORMAT]))


def _byte_mm(x: torch.Tensor, scales: torch.Tensor | None, packed: torch.Tensor,
             bias: torch.Tensor | None, rows: int, dtype: torch.dtype,
             batch_invariant: bool = False) -> torch.Tensor:
    check_sizes(x, rows, *known_sizes(packed.shape), weight_programs.BYTE_COLUMNS)
    _check_elements(x, scales, dtype)
    if not x.shape[0]:
        return x.new_empty((0, rows), dtype=dtype)
    depth = weight_programs.whole_blocks(x.shape[1], _FORMAT)
    if x.shape[1] != depth:
        x = padded(x.view(torch.uint8) if scales is not None else x, depth).view(x.dtype)
    facts = (rows, depth, "" if scales is not None else programs.ELEMENTS[x.dtype],
             "" if bias is None else programs.ELEMENTS[bias.dtype], dtype,
             "fixed" if batch_invariant else "fastest")
    y: torch.Tensor = run(_product, facts, placed(x), packed,
                          None if scales is None else dense(scales), row_of(bias, rows),
                          target=weight_programs.TARGET)
    return y


def _product(rows: int, columns: int, given: str, bias: str, result: torch.dtype, split_k: str,
             target: str) -> programs.Runnable:
    return weight_programs.product(weight_programs.Product(
        rows, columns, "f8E4M3FN", _FORMAT, -1, bias, programs.ELEMENTS[result], split_k, given),
        target)


def _byte_mm_fake(x: torch.Tensor, scales: torch.Tensor | None, packed: torch.Tensor,
                  bias: torch.Tensor | None, rows: int, dtype: torch.dtype,
                  batch_invariant: bool = False) -> torch.Tensor:
    return x.new_empty((x.shape[0], rows), dtype=dtype)


def _sizes_of(shape: torch.Size) -> tuple[int, int]:
    """Rows and columns of prepacked weights of this shape, which a graph may have as symbols."""
    if len(shape) != 3 or int(shape[2]) != weight_programs.BYTE_TILE:
        raise UsageError(f"'packed' must have the shape [N/128, K/128, {weight_programs.BYTE_TILE}]"
                         f", but got {list(shape)}", "torch.ops.fp4.prepack_bytes makes it")
    return int(shape[0]) * weight_programs.TILE[0], int(shape[1]) * weight_programs.BYTE_COLUMNS


#: Sizes of tensors in memory, whose shapes are numbers (see _sizes_of).
known_sizes = functools.lru_cache(maxsize=4096)(_sizes_of)


def _check_elements(x: torch.Tensor, scales: torch.Tensor | None, dtype: torch.dtype) -> None:
    """Floats without scales, or E4M3 with one for each row."""
    if dtype not in programs.ELEMENTS:
        raise UsageError(f"'dtype' must be bfloat16, float16 or float32, but got {str(dtype)[6:]}",
                         "it is that of the result")
    if scales is None and x.dtype not in programs.ELEMENTS:
        raise UsageError("'x' must be bfloat16, float16 or float32 where it has no scales, but got "
                         f"{str(x.dtype)[6:]}",
                         "pass ScaledFP8, whose rows have a scale each, for E4M3")
    if scales is None:
        return
    if x.dtype != torch.float8_e4m3fn:
        raise UsageError(f"'x' must be float8_e4m3fn beside scales, but got {str(x.dtype)[6:]}",
                         "leave the scales out, and the program quantizes rows")
    if scales.dtype != torch.float32 or tuple(scales.shape) != (x.shape[0], 1):
        raise UsageError(f"'scales' must be float32 of shape [{x.shape[0]}, 1], but got "
                         f"{str(scales.dtype)[6:]} of shape {list(scales.shape)}",
                         "rows have one scale each: rms_norm_quantize(..., format='fp8_row')")


prepack = Operation("prepack_bytes(Tensor data, Tensor scales) -> Tensor", _prepack, _prepack_fake)
unprepack = Operation("unprepack_bytes(Tensor packed) -> (Tensor, Tensor)", _unprepack,
                      _unprepack_fake)
byte_mm = Operation(
    "byte_mm(Tensor x, Tensor? scales, Tensor packed, Tensor? bias, int rows, ScalarType dtype, "
    "bool batch_invariant=False) -> Tensor", _byte_mm, _byte_mm_fake)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, _, packed, bias, rows = inputs[:5]
    ctx.save_for_backward(packed)
    ctx.shape, ctx.dtype = (rows, x.shape[1]), x.dtype
    ctx.bias_dtype = None if bias is None else bias.dtype


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    dx = db = None
    packed, = ctx.saved_tensors
    if ctx.needs_input_grad[0]:
        dx = times_weight(dy, unpacked(packed, ctx.shape))[:, :ctx.shape[1]].to(ctx.dtype)
    if ctx.needs_input_grad[3]:
        db = dy.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
    return dx, None, None, db, None, None, None


byte_mm.register_autograd(_backward, setup_context=_keep)


def unpacked(packed: torch.Tensor, shape: tuple[int, int]) -> Scaled:
    """The weights of `shape` with linear scales, with the zeros that fill the last block."""
    rows, columns = shape[0], weight_programs.whole_blocks(shape[1], _FORMAT)
    data, scales = first_of(unprepack.overload(packed), rows, columns, _FORMAT)
    return Scaled(data, scales, None, (rows, columns), _FORMAT, "linear", "ocp_floor")


def rounded(x: torch.Tensor) -> torch.Tensor:
    """The numbers that rows of E4M3 with a scale each have for x, in float32."""
    scales = x.float().abs().amax(1, keepdim=True).clamp(min=1e-4) / 448
    return (x.float() / scales).to(torch.float8_e4m3fn).float() * scales


def packed_tiles(weights: Scaled) -> torch.Tensor:
    """The prepacked tiles of MXFP4 with linear scales, whose last block is filled up with zeros."""
    tiles: torch.Tensor = prepack.overload(whole_codes(weights), weights.scales)
    return tiles


def check_range(weights: Scaled, name: str = "weight") -> None:
    """Refuses rows that E4M3 has no power of two for, whose tiles would be NaN."""
    rows, columns = weights.scales.shape[0], -(-weights.scales.shape[1] // _BLOCKS) * _BLOCKS
    codes = weights.data.view(torch.uint8) & 0x77
    codes = torch.nn.functional.pad(codes, (0, columns * _BLOCK // 2 - codes.shape[1]))
    is_set = codes.view(rows, columns, _BLOCK // 2).amax(-1) > 0
    powers = torch.nn.functional.pad(weights.scales.view(torch.uint8).int(),
                                     (0, columns - weights.scales.shape[1]))
    tiles = (rows, columns // _BLOCKS, _BLOCKS)
    most = torch.where(is_set, powers, 0).view(tiles).amax(-1)
    least = torch.where(is_set, powers, 255).view(tiles).amin(-1)
    wide = (most - least > _RANGE).nonzero()
    if len(wide):
        row, tile = wide[0].tolist()
        raise UsageError(f"'{name}' must have scales at most 2^{_RANGE} apart in 128 columns of a "
                         f"row, but those of row {row} from column {128 * tile} on are "
                         f"2^{int(most[row, tile] - least[row, tile])} apart",
                         "set its smallest blocks to zero, or use WeightOnlyLinear")


#===--- The layer ------------------------------------------------------===#


class W4A8Linear(torch.nn.Linear):
    """A linear layer of E4M3 activations and weights stored in MXFP4 (W4A8).

    Each row of x is quantized to E4M3 with a float32 scale, its amax over 448. Sums of 128 columns
    are added in fp32, multiplied by the scale of the row, the bias is added in fp32, and y is
    rounded once, to the dtype of x.

    x is [..., in_features] in bfloat16, float16 or float32, of any strides, which torch.autocast
    converts; or ScaledFP8 [M, in_features] with a scale for each row, whose y is bfloat16.
    Devices and `batch_invariant` are those of WeightOnlyLinear.

    The gradient of x is dY times the dequantized weight; it passes straight through the quantizer.

    Attributes:
        packed: uint8 [ceil(out_features/128), ceil(in_features/128), 8704]; the last tiles are
            filled up with zeros.
        bias: [out_features] or None.
        weight_dtype: the dtype that `weight` has.

    Args:
        weight: MXFP4 [out_features, in_features], in any recipe and layout. No weight is rounded:
            the scales of nonzero blocks in 128 columns of a row must be at most 2^11 apart.
        bias: bfloat16, float16 or float32.
    """

    packed: torch.Tensor
    bias: torch.nn.Parameter | None  # type: ignore[assignment]

    def __init__(self, weight: Scaled, bias: torch.nn.Parameter | None = None, *,
                 batch_invariant: bool = False) -> None:
        torch.nn.Module.__init__(self)
        self.batch_invariant = bool(batch_invariant)
        fp4._check_scaled(weight, "weight")
        if weight.format != _FORMAT:
            raise UsageError(f"'weight' must be mxfp4 beside activations of E4M3, but got "
                             f"{weight.format}", "WeightOnlyLinear takes weights of nvfp4")
        self.out_features, self.in_features = weight.shape
        _check_bias(bias, self.out_features, weight.device)
        self.weight_dtype = torch.bfloat16 if bias is None else bias.dtype
        linear = fp4.swizzle(weight, "linear")
        check_range(linear)
        self.register_buffer("packed", packed_tiles(linear))
        self.register_parameter("bias", bias)

    @classmethod
    def from_linear(cls, source: torch.nn.Linear, *, recipe: str = "", check: bool = True,
                    batch_invariant: bool = False) -> W4A8Linear:
        """A layer with the weight of `source`, quantized to MXFP4, and its bias. `check` looks for
        weights that are NaN or infinite."""
        if check:
            check_weight(source.weight)
        made = cls(quantized(source.weight, _FORMAT, recipe), source.bias,
                   batch_invariant=batch_invariant)
        made.in_features = source.in_features
        made.weight_dtype = source.weight.dtype
        return made.train(source.training)

    @property
    def weight(self) -> torch.Tensor:  # type: ignore[override]
        """The weight [out_features, in_features], a StoredWeight."""
        return StoredWeight(self._dequantized, (self.out_features, self.in_features),
                            self.weight_dtype, self.packed.device)

    def _dequantized(self, dtype: torch.dtype) -> torch.Tensor:
        return fp4.dequantize(self.unpack(), dtype)[:, :self.in_features]

    def reset_parameters(self) -> None:
        refuse_reset(self)

    def unpack(self) -> Scaled:
        """The weights with linear scales."""
        return unpacked(self.packed, (self.out_features, self.in_features))

    def forward(self, input: torch.Tensor | ScaledFP8) -> torch.Tensor:
        if isinstance(input, ScaledFP8):
            data, scales = input
            return self._multiply(data, scales, torch.bfloat16)
        fp4._check_input(input, "input")
        if torch.is_autocast_enabled(input.device.type):
            input = input.to(torch.get_autocast_dtype(input.device.type))
        y = self._multiply(flat_rows(input), None, input.dtype)
        return y if input.dim() == 2 else y.view(*input.shape[:-1], self.out_features)

    def _multiply(self, x: torch.Tensor, scales: torch.Tensor | None,
                  dtype: torch.dtype) -> torch.Tensor:
        if x.shape[-1] != self.in_features:
            raise UsageError(f"'input' must have {self.in_features} columns, but got the shape "
                             f"{list(x.shape)}", "K is the in_features of the layer")
        if x.device != self.packed.device:
            fp4._check_devices(input=x, weight=self.packed)
        y: torch.Tensor = byte_mm.overload(x, scales, self.packed, self.bias, self.out_features,
                                           dtype, self.batch_invariant)
        return y

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> W4A8Linear:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.weight_dtype = converted(self.weight_dtype, fn)
        return self

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")
