"""Linear layers of 16-bit activations and 4-bit weights that are prepacked (W4A16), and their
operations:

    prepack(data, scales, format) -> packed [N/128, K/64, bytes]
    unprepack(packed)             -> data, linear scales
    weight_mm(x, packed, alpha?, bias?) -> [M, N]

A tile of `packed` has 4608 bytes in NVFP4 and 4352 in MXFP4, so its size tells the format.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..errors import UsageError
from . import functional as fp4
from . import programs, recipes, weight_programs
from .damage import check_weight
from .execution import run
from .ops import _operation
from .scaled import SCALE_DTYPES, Scaled
from .stored_weight import StoredWeight, converted, refuse_reset

_ops = torch.ops.fp4
_Pair = tuple[torch.Tensor, torch.Tensor]
#: Of weights without a scale of the tensor.
_ONE_LEVEL = {"nvfp4": "torchao_1level", "mxfp4": "ocp_floor"}

#===--- Operations -----------------------------------------------------===#


def _prepack(data: torch.Tensor, scales: torch.Tensor, format: str) -> torch.Tensor:
    program = partial(weight_programs.prepacker, data.shape[0], 2 * data.shape[1], format)
    packed: torch.Tensor = run(program, data, scales, target=weight_programs.TARGET)
    return packed.view(torch.uint8)


def _prepack_fake(data: torch.Tensor, scales: torch.Tensor, format: str) -> torch.Tensor:
    size = next(size for size, name in weight_programs.FORMATS.items() if name == format)
    return data.new_empty((data.shape[0] // 128, data.shape[1] // 32, size), dtype=torch.uint8)


def _unprepack(packed: torch.Tensor) -> _Pair:
    program = partial(weight_programs.unprepacker, *_facts(packed))
    result: _Pair = run(program, packed, target=weight_programs.TARGET)
    return result


def _unprepack_fake(packed: torch.Tensor) -> _Pair:
    rows, columns, format = _facts(packed)
    return (packed.new_empty((rows, columns // 2), dtype=torch.float4_e2m1fn_x2),
            packed.new_empty((rows, columns // recipes.BLOCKS[format]),
                             dtype=SCALE_DTYPES[format]))


def _weight_mm(x: torch.Tensor, packed: torch.Tensor, alpha: torch.Tensor | None,
               bias: torch.Tensor | None) -> torch.Tensor:
    rows, columns, format = _facts(packed)
    if x.dim() != 2 or x.shape[1] != columns:
        raise UsageError(f"'x' must have the shape [M, {columns}], but got {list(x.shape)}",
                         "flatten the leading dimensions; K is the columns of the weights")
    element = _element(x.dtype, format)
    if not x.shape[0]:
        return x.new_empty((0, rows))
    plan = weight_programs.choose_plan(x.shape[0], rows, columns, _processors(x.device))
    what = weight_programs.Product(
        rows, columns, element, format, plan, -1 if alpha is None else alpha.dim(),
        "" if bias is None else programs.ELEMENTS[bias.dtype])
    result: torch.Tensor = run(
        partial(weight_programs.product, what), x, packed,
        alpha if alpha is None or not alpha.dim() else alpha.view(1, -1),
        None if bias is None else bias.view(1, -1), target=weight_programs.TARGET)
    return result


def _weight_mm_fake(x: torch.Tensor, packed: torch.Tensor, alpha: torch.Tensor | None,
                    bias: torch.Tensor | None) -> torch.Tensor:
    return x.new_empty((x.shape[0], _facts(packed)[0]))


def _facts(packed: torch.Tensor) -> tuple[int, int, str]:
    """Rows, columns and the format of prepacked weights."""
    size = int(packed.shape[-1]) if packed.dim() == 3 else 0
    if size not in weight_programs.FORMATS:
        raise UsageError("'packed' must have the shape [N/128, K/64, 4608 or 4352], but got "
                         f"{list(packed.shape)}", "torch.ops.fp4.prepack makes it")
    rows, columns = weight_programs.TILE
    return (int(packed.shape[0]) * rows, int(packed.shape[1]) * columns,
            weight_programs.FORMATS[size])


def _element(dtype: torch.dtype, format: str) -> str:
    names = {torch.bfloat16: "bf16"} | ({torch.float16: "f16"} if format == "nvfp4" else {})
    if dtype not in names:
        wants = " or ".join(str(kind)[6:] for kind in names)
        raise UsageError(f"'input' must be {wants} beside weights of {format}, but got "
                         f"{str(dtype)[6:]}", "nothing is converted; use torch.autocast, or "
                         "pass x.bfloat16()")
    return names[dtype]


@functools.cache
def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return weight_programs.PROCESSORS
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


prepack = _operation("prepack(Tensor data, Tensor scales, str format) -> Tensor", _prepack,
                     _prepack_fake)
unprepack = _operation("unprepack(Tensor packed) -> (Tensor, Tensor)", _unprepack, _unprepack_fake)
weight_mm = _operation(
    "weight_mm(Tensor x, Tensor packed, Tensor? alpha, Tensor? bias) -> Tensor", _weight_mm,
    _weight_mm_fake)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, packed, alpha, bias = inputs
    ctx.save_for_backward(packed, alpha)
    ctx.bias_dtype = None if bias is None else bias.dtype


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    dx = db = None
    if ctx.needs_input_grad[0]:
        dx = dy @ fp4.dequantize(_unpacked(*ctx.saved_tensors), dy.dtype)
    if ctx.needs_input_grad[3]:
        db = dy.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
    return dx, None, None, db


weight_mm.register_autograd(_backward, setup_context=_keep)


class _Transformed(torch.autograd.Function):
    """weight_mm within torch.func.grad and the like, which do not take a registered gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        result: torch.Tensor = _ops.weight_mm(*inputs)
        return result

    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)


_transformed: Callable[..., torch.Tensor] = _Transformed.apply


def _unpacked(packed: torch.Tensor, alpha: torch.Tensor | None) -> Scaled:
    rows, columns, format = _facts(packed)
    data, scales = _ops.unprepack(packed)
    if alpha is None:
        return Scaled(data, scales, None, (rows, columns), format, "linear", _ONE_LEVEL[format])
    return Scaled.from_decode_scale(data, scales, alpha, shape=(rows, columns), format=format,
                                    layout="linear")


#===--- The layer ------------------------------------------------------===#


class WeightOnlyLinear(torch.nn.Linear):
    """A linear layer of 16-bit activations and weights stored in NVFP4 or MXFP4 (W4A16): the
    activations are not quantized.

    The weights are prepacked once, in the order in which wgmma and mma.sync take them.
    They are multiplied as they are, exactly converted to the dtype of x. The fp32 sum is multiplied
    by the decode scale of the weights, the bias is added in fp32, and y is rounded once, to the
    dtype of x.

    x is [..., in_features] in bfloat16, or float16 beside NVFP4; torch.autocast converts it, and
    float32 is rounded to bfloat16 and its y comes back as float32. It is
    contiguous, or a slice of columns whose rows begin at multiples of 16 bytes. CUDA tensors need
    an sm_90a, sm_100a, sm_103a, sm_110a, sm_120a or sm_121a GPU; CPU tensors run in the simulator
    of the first. Few rows are summed in ranges of K, so the last bits of a row may depend on the
    number of rows.

    The gradient of x is dY times the dequantized weight, in the dtype of dY.

    Attributes:
        packed: uint8 [out_features/128, in_features/64, 4608 (NVFP4) or 4352 (MXFP4)].
        alpha: the decode scale of the weights, float32, a scalar or [out_features]; None where the
            recipe has no scale of the tensor.
        bias: [out_features] or None.
        weight: a StoredWeight, which is dequantized each time that it is read.
        weight_dtype: the dtype that `weight` has.

    Args:
        weight: [out_features, in_features], multiples of 128 and 64, in any recipe and layout.
        bias: bfloat16, float16 or float32.
    Raises:
        UsageError: sizes or a dtype for which there is no kernel.
    """

    packed: torch.Tensor
    alpha: torch.Tensor | None
    bias: torch.nn.Parameter | None  # type: ignore[assignment]

    def __init__(self, weight: Scaled, bias: torch.nn.Parameter | None = None) -> None:
        torch.nn.Module.__init__(self)
        fp4._check_scaled(weight, "weight")
        linear = fp4.swizzle(weight, "linear")
        self.out_features, self.in_features = weight.shape
        _check_tiles(self.out_features, self.in_features)
        _check_bias(bias, self.out_features, weight.device)
        self.format = weight.format
        self.weight_dtype = torch.bfloat16 if bias is None else bias.dtype
        scale = weight.decode_scale
        self.register_buffer("packed", _ops.prepack(
            fp4._typed(linear.data), fp4._typed(linear.scales, linear), weight.format))
        self.register_buffer("alpha", None if scale is None else scale.clone())
        self.register_parameter("bias", bias)

    @classmethod
    def from_linear(cls, source: torch.nn.Linear, *, format: str = "nvfp4", recipe: str = "",
                    square: bool = False, check: bool = True) -> WeightOnlyLinear:
        """A layer with the weight of `source`, quantized, and its bias. `check` looks for weights
        that are NaN or infinite."""
        recipes.check_format(format)
        _check_tiles(source.out_features, source.in_features)
        if check:
            check_weight(source.weight)
        weight = fp4.quantize(source.weight, format=format, recipe=recipe, square=square)
        made = cls(weight, source.bias).train(source.training)
        made.weight_dtype = source.weight.dtype
        return made

    @property
    def weight(self) -> torch.Tensor:  # type: ignore[override]
        return StoredWeight(lambda dtype: fp4.dequantize(self.unpack(), dtype),
                            (self.out_features, self.in_features), self.weight_dtype,
                            self.packed.device)

    def reset_parameters(self) -> None:
        refuse_reset(self)

    def unpack(self) -> Scaled:
        """The weights with linear scales; they decode to the numbers that products have."""
        return _unpacked(self.packed, self.alpha)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        fp4._check_input(input, "input", strided=True)
        if input.shape[-1] != self.in_features:
            raise UsageError(f"'input' must have {self.in_features} columns, but got the shape "
                             f"{list(input.shape)}", "K is the in_features of the layer")
        fp4._check_devices(input=input, weight=self.packed)
        if torch.is_autocast_enabled(input.device.type):
            input = input.to(torch.get_autocast_dtype(input.device.type))
        if input.dtype == torch.float32:  # of a model that was never converted
            return self.forward(input.bfloat16()).float()
        multiply = _transformed if torch._C._are_functorch_transforms_active() else _ops.weight_mm
        y: torch.Tensor = multiply(input.view(-1, self.in_features), self.packed, self.alpha,
                                   self.bias)
        return y.view(*input.shape[:-1], self.out_features)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> WeightOnlyLinear:
        alpha = self.alpha
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.alpha = moved_scale(alpha, fn)
        self.weight_dtype = converted(self.weight_dtype, fn)
        return self

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, format={self.format}")


def moved_scale(scale: torch.Tensor | None, fn: Callable[..., Any]) -> torch.Tensor | None:
    """What Module._apply is to make of a scale: as integers, which no conversion of floating point
    touches."""
    if scale is None:
        return None
    moved: torch.Tensor = fn(scale.view(torch.int32)).view(torch.float32)
    return moved


def _check_tiles(rows: int, columns: int) -> None:
    if rows % 128 or columns % 64:
        raise UsageError("out_features must be a multiple of 128 and in_features of 64, but got "
                         f"{rows} and {columns}",
                         "pad the weights with zeros, or use fp4.torch.QuantizedLinear")


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
