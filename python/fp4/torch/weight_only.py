"""Linear layers of 16-bit activations and 4-bit weights that are prepacked (W4A16), and their
operations:

    prepack(data, scales, format) -> packed [N/128, K/64, bytes]
    unprepack(packed)             -> data, linear scales
    weight_mm(x, packed, alpha?, bias?, rows, batch_invariant) -> [M, rows]

A tile of `packed` has 4608 bytes in NVFP4 and 4352 in MXFP4, so its size tells the format. N and K
are whole tiles. The weights beyond the `rows` of the layer, and beyond the columns of x, are zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ..errors import UsageError
from . import functional as fp4
from . import programs, recipes, weight_programs
from .damage import check_weight
from .execution import run, run_into
from .operation import Operation
from .planned import planned
from .programs import Runnable
from .scaled import SCALE_DTYPES, Scaled
from .stored_weight import StoredWeight, converted, refuse_reset
from .strides import dense, flat_rows, padded, placed

_Pair = tuple[torch.Tensor, torch.Tensor]
#: Recipes of weights without a scale of the tensor.
_ONE_LEVEL = {"nvfp4": "torchao_1level", "mxfp4": "ocp_floor"}

#===--- Operations -----------------------------------------------------===#


def tiles_of(data: torch.Tensor, scales: torch.Tensor, size: int) -> torch.Tensor:
    """Codes and linear scales as tiles of `size` bytes."""
    packed: torch.Tensor = run(weight_programs.prepacker,
                               (data.shape[0], 2 * data.shape[1], size), data, scales,
                               target=weight_programs.TARGET)
    return packed.view(torch.uint8)


def codes_of(packed: torch.Tensor, rows: int, columns: int) -> _Pair:
    """Codes and linear scales of all rows and columns of tiles."""
    result: _Pair = run(weight_programs.unprepacker, (rows, columns, int(packed.shape[2])), packed,
                        target=weight_programs.TARGET)
    return result


def _prepack(data: torch.Tensor, scales: torch.Tensor, format: str) -> torch.Tensor:
    return tiles_of(data, scales, weight_programs.tile_bytes(format))


def _prepack_fake(data: torch.Tensor, scales: torch.Tensor, format: str) -> torch.Tensor:
    size = weight_programs.tile_bytes(format)
    return data.new_empty(((data.shape[0] + 127) // 128, (data.shape[1] + 31) // 32, size),
                          dtype=torch.uint8)


def _unprepack(packed: torch.Tensor) -> _Pair:
    return codes_of(packed, *known_facts(packed.shape)[:2])


def _unprepack_fake(packed: torch.Tensor) -> _Pair:
    rows, columns, format = facts_of(packed.shape)
    return (packed.new_empty((rows, columns // 2), dtype=torch.float4_e2m1fn_x2),
            packed.new_empty((rows, columns // recipes.BLOCKS[format]),
                             dtype=SCALE_DTYPES[format]))


def _weight_mm(x: torch.Tensor, packed: torch.Tensor, alpha: torch.Tensor | None,
               bias: torch.Tensor | None, rows: int,
               batch_invariant: bool = False) -> torch.Tensor:
    n, columns, format = known_facts(packed.shape)
    split_k = "fixed" if batch_invariant else "fastest"
    check_sizes(x, rows, n, columns, weight_programs.TILE[1])
    if not x.shape[0]:
        return x.new_empty((0, rows))
    depth = weight_programs.whole_blocks(x.shape[1], format)
    if x.shape[1] != depth:
        x = padded(x, depth)
    if x.dtype == torch.float16 and format == "mxfp4":
        return _in_two_parts(x, packed, bias, rows, split_k)
    rank = -1 if alpha is None else alpha.dim()
    facts = (rows, depth, element_of(x.dtype, format), format, rank,
             "" if bias is None else programs.ELEMENTS[bias.dtype], x.dtype, split_k)
    y: torch.Tensor = run(_product, facts, placed(x), packed,
                          row_of(alpha, rows) if rank > 0 else alpha, row_of(bias, rows),
                          target=weight_programs.TARGET)
    return y


def _product(rows: int, columns: int, element: str, format: str, alpha_rank: int, bias: str,
             result: torch.dtype, split_k: str, target: str) -> Runnable:
    return weight_programs.product(weight_programs.Product(
        rows, columns, element, format, alpha_rank, bias, programs.ELEMENTS[result], split_k),
        target)


def multiply_into(out: torch.Tensor, layer: WeightOnlyLinear, x: torch.Tensor) -> None:
    """Writes layer(x) of a matrix in bfloat16 into `out`, [M, out_features] in bfloat16 or
    float32. The sums are rounded once, to its dtype."""
    depth = weight_programs.whole_blocks(layer.in_features, layer.format)
    alpha, bias, rows = layer.alpha, layer.bias, layer.out_features
    rank = -1 if alpha is None else alpha.dim()
    facts = (rows, depth, element_of(x.dtype, layer.format), layer.format, rank,
             "" if bias is None else programs.ELEMENTS[bias.dtype], out.dtype,
             "fixed" if layer.batch_invariant else "fastest")
    run_into(_product, facts, (out,), placed(padded(x, depth) if x.shape[1] != depth else x),
             layer.packed, row_of(alpha, rows) if rank > 0 else alpha,
             None if bias is None else row_of(bias.detach(), rows),
             target=weight_programs.TARGET)


def _in_two_parts(x: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None,
                  rows: int, split_k: str) -> torch.Tensor:
    """The matmul of float16 and MXFP4, whose exponents only bfloat16 has: a float16 is exactly the
    sum of two bfloat16, whose matmuls are added in fp32."""
    format = facts_of(packed.shape)[2]
    facts = (rows, x.shape[1], "bf16", format, -1, "", torch.float32, split_k)
    sums: torch.Tensor = run(_product, facts, in_bf16(x).flatten(0, 1), packed,
                             target=weight_programs.TARGET)
    y = sums.view(2, -1, rows).sum(0)
    return (y if bias is None else y.add_(bias)).to(x.dtype)


def in_bf16(x: torch.Tensor) -> torch.Tensor:
    """Two matrices of bfloat16, one behind the other, whose sum is `x` exactly. The second matrix
    has zeros for numbers that are not finite."""
    large = x.bfloat16()
    small = torch.where(x.isfinite(), x.float() - large.float(), 0.0)
    return torch.stack((large, small.bfloat16()))


def row_of(values: torch.Tensor | None, size: int) -> torch.Tensor | None:
    """A vector of `size` numbers as a matrix of one row."""
    return None if values is None else dense(values.reshape(1, size))


def _weight_mm_fake(x: torch.Tensor, packed: torch.Tensor, alpha: torch.Tensor | None,
                    bias: torch.Tensor | None, rows: int,
                    batch_invariant: bool = False) -> torch.Tensor:
    return x.new_empty((x.shape[0], rows))


def facts_of(shape: torch.Size) -> tuple[int, int, str]:
    """Rows, columns and the format of prepacked weights of this shape, which a graph may have as
    symbols."""
    size = int(shape[-1]) if len(shape) == 3 else 0
    if size not in weight_programs.FORMATS:
        raise UsageError("'packed' must have the shape [N/128, K/64, 4608 or 4352], but got "
                         f"{list(shape)}", "torch.ops.fp4.prepack makes it")
    rows, columns = weight_programs.TILE
    return int(shape[0]) * rows, int(shape[1]) * columns, weight_programs.FORMATS[size]


#: Facts of tensors in memory, whose shapes are numbers (see facts_of).
known_facts = functools.lru_cache(maxsize=4096)(facts_of)


def check_sizes(x: torch.Tensor, rows: int, n: int, columns: int, tile_columns: int) -> None:
    """Refuses sizes of a product beyond the N and K of prepacked weights, or short of a tile."""
    if x.dim() != 2 or not columns - tile_columns < x.shape[1] <= columns:
        raise UsageError(f"'x' must have the shape [M, {columns}], or up to {tile_columns - 1} "
                         f"columns fewer where the weights have fewer, but got {list(x.shape)}",
                         "flatten the leading dimensions; K is the columns of the weights")
    if not n - weight_programs.TILE[0] < rows <= n:
        raise UsageError(f"'rows' must be {n}, the rows of the weights, or up to 127 fewer, but "
                         f"got {rows}", "it is the out_features of the layer")


def element_of(dtype: torch.dtype, format: str) -> str:
    """The MLIR name of what activations of this dtype are multiplied as."""
    if dtype not in (torch.bfloat16, torch.float16):
        raise UsageError(f"'input' must be bfloat16 or float16 beside weights of {format}, but got "
                         f"{str(dtype)[6:]}", "nothing is converted; use torch.autocast, or "
                         "pass x.bfloat16()")
    return programs.ELEMENTS[dtype]


prepack = Operation("prepack(Tensor data, Tensor scales, str format) -> Tensor", _prepack,
                    _prepack_fake)
unprepack = Operation("unprepack(Tensor packed) -> (Tensor, Tensor)", _unprepack, _unprepack_fake)
weight_mm = Operation(
    "weight_mm(Tensor x, Tensor packed, Tensor? alpha, Tensor? bias, int rows, "
    "bool batch_invariant=False) -> Tensor",
    _weight_mm, _weight_mm_fake)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, packed, alpha, bias, rows = inputs[:5]
    ctx.save_for_backward(packed, alpha)
    ctx.shape = rows, x.shape[1]
    ctx.bias_dtype = None if bias is None else bias.dtype


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    dx = db = None
    packed, alpha = ctx.saved_tensors
    if ctx.needs_input_grad[0]:
        dx = times_weight(dy, unpacked(packed, alpha, ctx.shape))[:, :ctx.shape[1]]
    if ctx.needs_input_grad[3]:
        db = dy.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
    return dx, None, None, db, None, None


weight_mm.register_autograd(_backward, setup_context=_keep)


class _Transformed(torch.autograd.Function):
    """weight_mm within torch.func.grad and the like, which do not take a registered gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        result: torch.Tensor = weight_mm.overload(*inputs)
        return result

    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)


_transformed: Callable[..., torch.Tensor] = _Transformed.apply


def times_weight(dy: torch.Tensor, weight: Scaled) -> torch.Tensor:
    """dY times the dequantized weight, in the dtype of dY. MXFP4 has exponents that float16 has
    not, so there the matmul is that of float32."""
    if dy.dtype == torch.float16 and weight.format == "mxfp4":
        return (dy.float() @ fp4.dequantize(weight, torch.float32)).half()
    return dy @ fp4.dequantize(weight, dy.dtype)


def unpacked(packed: torch.Tensor, alpha: torch.Tensor | None, shape: tuple[int, int]) -> Scaled:
    """The weights of `shape` with linear scales, without the zeros that fill the last tiles, but
    with those that fill the last block of MXFP4, or the last pair of columns."""
    format = facts_of(packed.shape)[2]
    unit = 2 if format == "nvfp4" else recipes.BLOCKS[format]
    shape = (shape[0], -(-shape[1] // unit) * unit)
    rows, columns = shape
    data, scales = first_of(unprepack.overload(packed), rows, columns, format)
    if alpha is None:
        return Scaled(data, scales, None, shape, format, "linear", _ONE_LEVEL[format])
    return Scaled.from_decode_scale(data, scales, alpha, shape=shape, format=format,
                                    layout="linear")


def first_of(pair: _Pair, rows: int, columns: int, format: str) -> _Pair:
    """The first rows and columns of codes and their linear scales."""
    data, scales = pair
    data = data.view(torch.uint8)[:rows, :columns // 2].contiguous()
    blocks = -(-columns // recipes.BLOCKS[format])
    scales = scales.view(torch.uint8)[:rows, :blocks].contiguous().view(scales.dtype)
    return data.view(torch.float4_e2m1fn_x2), scales


def whole_codes(weights: Scaled) -> torch.Tensor:
    """The codes of a matrix whose last scale blocks are filled up with zeros."""
    codes = weights.data.view(torch.uint8)
    missing = weight_programs.whole_blocks(weights.shape[1], weights.format) // 2 - codes.shape[1]
    if missing:
        codes = torch.nn.functional.pad(codes, (0, missing))
    return codes.view(torch.float4_e2m1fn_x2)


def packed_tiles(weights: Scaled) -> torch.Tensor:
    """The prepacked tiles of a matrix with linear scales, whose last scale blocks are filled up
    with zeros."""
    tiles: torch.Tensor = prepack.overload(whole_codes(weights), weights.scales, weights.format)
    return tiles


#===--- The layer ------------------------------------------------------===#


def _linear(input: torch.Tensor, packed: torch.Tensor, alpha: torch.Tensor | None,
            bias: torch.Tensor | None, columns: int, rows: int,
            batch_invariant: bool) -> torch.Tensor:
    """y [..., rows] of input [..., columns]."""
    fp4._check_input(input, "input")
    if input.shape[-1] != columns:
        raise UsageError(f"'input' must have {columns} columns, but got the shape "
                         f"{list(input.shape)}", "K is the in_features of the layer")
    if input.device != packed.device:
        fp4._check_devices(input=input, weight=packed)
    if torch.is_autocast_enabled(input.device.type):
        input = input.to(torch.get_autocast_dtype(input.device.type))
    if input.dtype == torch.float32:  # of a model that was never converted
        return _linear(input.bfloat16(), packed, alpha, bias, columns, rows,
                       batch_invariant).float()
    transforms = torch._C._are_functorch_transforms_active()
    multiply = _transformed if transforms else weight_mm.overload
    y: torch.Tensor = multiply(flat_rows(input), packed, alpha, bias, rows, batch_invariant)
    return y if input.dim() == 2 else y.view(*input.shape[:-1], rows)


_planned_linear = planned(_linear)


class WeightOnlyLinear(torch.nn.Linear):
    """A linear layer of 16-bit activations and weights stored in NVFP4 or MXFP4 (W4A16).

    The kernel converts the prepacked weights exactly to the dtype of x. The fp32 sum is multiplied
    by the decode scale of the weights, the bias is added in fp32, and y is rounded once, to the
    dtype of x. float16 beside MXFP4 is multiplied as the exact sum of two bfloat16.

    x is [..., in_features] in bfloat16 or float16, of any strides; torch.autocast converts it, and
    float32 is rounded to bfloat16 and its y comes back as float32. CUDA tensors need an sm_90a,
    sm_100a, sm_103a, sm_107a, sm_110a, sm_120a or sm_121a GPU; CPU tensors run in the simulator of
    the first.

    Few rows may be computed with split-K, so the last bits of a row may depend on how many there
    are, unless `batch_invariant` is on.

    The gradient of x is dY times the dequantized weight, in the dtype of dY.

    Attributes:
        packed: uint8 [ceil(out_features/128), ceil(in_features/64), 4608 (NVFP4) or 4352 (MXFP4)];
            the last tiles are filled up with zeros.
        alpha: the decode scale of the weights, float32, a scalar or [out_features]; None where the
            recipe has no scale of the tensor.
        bias: [out_features] or None.
        weight_dtype: the dtype that `weight` has.

    Args:
        weight: [out_features, in_features], in any recipe and layout.
        bias: bfloat16, float16 or float32.
    """

    packed: torch.Tensor
    alpha: torch.Tensor | None
    bias: torch.nn.Parameter | None  # type: ignore[assignment]
    #: Members of the shards.Part of a checkpoint's weight that this rank has read; None: all of it.
    part: tuple[int, int, int] | None = None

    def __init__(self, weight: Scaled, bias: torch.nn.Parameter | None = None, *,
                 batch_invariant: bool = False) -> None:
        torch.nn.Module.__init__(self)
        self.batch_invariant = bool(batch_invariant)
        fp4._check_scaled(weight, "weight")
        linear = fp4.swizzle(weight, "linear")
        self.out_features, self.in_features = weight.shape
        _check_bias(bias, self.out_features, weight.device)
        self.format = weight.format
        self.weight_dtype = torch.bfloat16 if bias is None else bias.dtype
        scale = weight.decode_scale
        self.register_buffer("packed", packed_tiles(linear))
        self.register_buffer("alpha", None if scale is None else scale.clone())
        self.register_parameter("bias", bias)

    @classmethod
    def from_linear(cls, source: torch.nn.Linear, *, format: str = "nvfp4", recipe: str = "",
                    square: bool = False, check: bool = True,
                    batch_invariant: bool = False) -> WeightOnlyLinear:
        """A layer with the weight of `source`, quantized, and its bias. `check` looks for weights
        that are NaN or infinite."""
        recipes.check_format(format)
        if check:
            check_weight(source.weight)
        made = cls(quantized(source.weight, format, recipe, square), source.bias,
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
        """The weights with linear scales; they decode to the numbers that matmuls have."""
        return unpacked(self.packed, self.alpha, (self.out_features, self.in_features))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        # Not self.packed: torch.nn.Module looks in three places before it finds a buffer, and every
        # other attribute takes longer where a class has __getattr__.
        own = self.__dict__
        buffers = own["_buffers"]
        call = _linear if is_dynamo_compiling() else _planned_linear
        y: torch.Tensor = call(input, buffers["packed"], buffers["alpha"],
                               own["_parameters"]["bias"], own["in_features"], own["out_features"],
                               own["batch_invariant"])
        return y

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> WeightOnlyLinear:
        alpha = self.alpha
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.alpha = moved_scale(alpha, fn)
        self.weight_dtype = converted(self.weight_dtype, fn)
        return self

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, format={self.format}")


def layer_of_tiles(like: WeightOnlyLinear, packed: torch.Tensor, alpha: torch.Tensor | None,
                   bias: torch.Tensor | None, rows: int, columns: int) -> WeightOnlyLinear:
    """A layer of tiles that are prepacked, in the format and the mode of another layer."""
    made: WeightOnlyLinear = object.__new__(WeightOnlyLinear)
    torch.nn.Module.__init__(made)
    made.batch_invariant, made.format = like.batch_invariant, like.format
    made.weight_dtype = like.weight_dtype
    made.out_features, made.in_features = rows, columns
    made.register_buffer("packed", packed)
    made.register_buffer("alpha", alpha)
    made.register_parameter("bias", None if bias is None else torch.nn.Parameter(
        bias, requires_grad=False))
    return made.train(like.training)


def moved_scale(scale: torch.Tensor | None, fn: Callable[..., Any]) -> torch.Tensor | None:
    """Returns what Module._apply is to make of a scale: as integers, which no conversion of
    floating point touches."""
    if scale is None:
        return None
    moved: torch.Tensor = fn(scale.view(torch.int32)).view(torch.float32)
    return moved


def quantized(weight: torch.Tensor, format: str, recipe: str = "", square: bool = False) -> Scaled:
    """A matrix that is quantized, with zeros behind its columns where they end within a block."""
    block = recipes.BLOCKS[format]
    columns = -(-weight.shape[1] // block) * block
    return fp4.quantize(padded(weight.detach(), columns), format=format, recipe=recipe,
                        square=square)


def _check_bias(bias: torch.Tensor | None, size: int, device: torch.device) -> None:
    fp4.check_bias(bias, size)
    if bias is None:
        return
    if bias.dtype not in programs.ELEMENTS:
        raise UsageError("'bias' must be bfloat16, float16 or float32, but got "
                         f"{str(bias.dtype)[6:]}", "nothing is converted; pass bias.float()")
    if bias.device != device:
        raise UsageError(f"'weight' and 'bias' must be on one device, but are on {device} and "
                         f"{bias.device}", "move one of them with .to(device)")
