"""Linear layers: one that is trained in NVFP4, and one whose weight is stored in 4 bits."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ..errors import UsageError
from . import functional as fp4
from . import recipes
from .buffers import ScaledBuffers
from .damage import check_weight
from .planned import planned
from .scaled import SCALE_DTYPES, Scaled
from .stored_weight import StoredWeight, converted, refuse_reset
from .strides import padded_rows
from .weight_only import moved_scale

_ops = torch.ops.fp4
#: Parts of a layer's input that may have an amax of their own.
ACTIVATIONS = ("token", "tensor")
#: Six tensors: codes, scales and amax, and those of the transpose.
_Both = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@dataclasses.dataclass(frozen=True)
class NVFP4Training:
    """The way in which a linear layer is trained in NVFP4: TransformerEngine's NVFP4BlockScaling.

    Attributes:
        hadamard: transform dY and X along M before the matmul of WGrad, to spread outliers.
        stochastic_rounding: of dY; without it gradients are rounded to nearest.
        square_weights: blocks of 16 x 16 for W, so that FProp and DGrad see the same values.
        recipe: of the scales (docs/reference/recipes.md).
    """

    hadamard: bool = True
    stochastic_rounding: bool = True
    square_weights: bool = True
    recipe: str = "transformer_engine"


class Linear(torch.nn.Linear):
    """torch.nn.Linear that is computed and trained in NVFP4.

        FProp  Y = X W^T     X rounded to nearest, W in blocks of 16 x 16
        DGrad  dX = dY W     dY rounded stochastically
        WGrad  dW = dY^T X   dY rounded stochastically, both transformed along M

    Parameters and state_dict are those of torch.nn.Linear. For the backward pass the
    layer keeps X^T and W^T in 4 bits.

    The layer takes x [..., in_features] in bfloat16, or under torch.autocast what it converts to
    bfloat16. The weight has any floating-point dtype, and its gradient has it too. y has the dtype
    of x and is rounded once, after the bias. in_features and out_features are multiples of 16. If W
    needs a gradient, rows of zeros make the number of rows a multiple of 16.

    Random bits come from torch's generator in the backward pass: torch.manual_seed repeats them.

    Args:
        training: the parts of the recipe that are on.
    """

    _kept: list[torch.Tensor] | None = None  #: by keep_weights

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: torch.dtype | None = None, *,
                 training: NVFP4Training | None = None) -> None:
        check_features(in_features, out_features)
        super().__init__(in_features, out_features, bias, device, dtype)
        self.recipe = training or NVFP4Training()

    @classmethod
    def from_linear(cls, source: torch.nn.Linear, training: NVFP4Training | None = None) -> Linear:
        """A layer with the parameters of `source`, which are shared."""
        check_features(source.in_features, source.out_features)
        with torch.device("meta"):
            found = cls(source.in_features, source.out_features, source.bias is not None,
                        training=training)
        found.weight, found.bias = source.weight, source.bias
        return found.train(source.training)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        x = _input(input, self.in_features)
        recipe = self.recipe
        if torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad):
            if x.dtype != torch.bfloat16:
                raise UsageError(f"'input' must be bfloat16 for training, but got "
                                 f"{str(x.dtype)[6:]}", "use torch.autocast, or x.bfloat16()")
            rows = x.shape[0]  # of which WGrad, which quantizes along them, needs whole blocks
            if self.weight.requires_grad:
                x = padded_rows(x, 16)
            y = _train(x, self.weight, self.bias, recipe.recipe, recipe.hadamard,
                       recipe.stochastic_rounding, recipe.square_weights,
                       _shared(input, x.dtype, recipe, self.weight.requires_grad),
                       *self._quantized())
            if x.shape[0] != rows:  # the gradient of a slice is a copy
                y = y[:rows]
        else:
            a = _quantize(x, None, recipe.recipe, False, False, True, False)
            b = self._quantized() or _quantize(self.weight.detach(), None, recipe.recipe, False,
                                               recipe.square_weights, True, False)
            y = _product(a[:3], b[:3], self.bias, recipe.recipe, x.dtype)
        return y.view(*input.shape[:-1], self.out_features)

    def _quantized(self) -> tuple[torch.Tensor, ...]:
        """The quantized weight of keep_weights, which the first call makes, or nothing: codes,
        scales, the amax of W and of W^T, codes and scales of W^T."""
        if self._kept is None:
            return ()
        if not self._kept and not is_dynamo_compiling():
            recipe = self.recipe
            self._kept += _quantize(self.weight.detach(), None, recipe.recipe, False,
                                    recipe.square_weights, True, True)[:5]
        return tuple(self._kept)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}


@contextlib.contextmanager
def keep_weights(model: torch.nn.Module) -> Iterator[None]:
    """Meanwhile each fp4.torch.Linear of `model` quantizes its weight once, in its first call.

        with fp4.torch.keep_weights(model):
            for batch in batches:                  # micro-batches, whose gradients accumulate
                loss_of(model, batch).backward()
        optimizer.step()

    Activation checkpoints use the same quantized weights. Weights must not change meanwhile, and a
    CUDA graph must be one of the whole block. W and W^T stay in 4 bits, also where FSDP2 shards a
    weight again. Calls that torch.compile traces quantize every time.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, Linear)]
    before = [layer._kept for layer in layers]
    for layer in layers:
        layer._kept = [] if layer._kept is None else layer._kept
    try:
        yield
    finally:
        for layer, kept in zip(layers, before):
            layer._kept = kept


class QuantizedLinear(torch.nn.Linear):
    """A linear layer whose weight is stored in NVFP4 or MXFP4, and is not trained. The input is
    quantized with the recipe of the weight, each row with its own amax, so that no row of a batch
    changes another one.

    The gradient of x is dY times the dequantized weight, in the dtype of dY.

    Attributes:
        scaled: an fp4.torch.ScaledBuffers; its value is [out_features, in_features].
        bias: [out_features] or None.
        input_amax: float32 scalar, for recipes that take one or of a calibration, or None.
        activations: what has an amax where there is no input_amax: "token" (each row) or "tensor"
            (all rows together; TransformerEngine's way, one number for a batch).
        weight_dtype: the dtype that `weight` has.
    """

    bias: torch.nn.Parameter | None  # type: ignore[assignment]
    input_amax: torch.Tensor | None

    def __init__(self, weight: Scaled, bias: torch.nn.Parameter | None = None,
                 input_amax: torch.Tensor | None = None, *, activations: str = "token") -> None:
        torch.nn.Module.__init__(self)
        if activations not in ACTIVATIONS:
            raise UsageError(f"'activations' must be token or tensor, but got {activations!r}")
        self.out_features, self.in_features = weight.shape
        fp4.check_bias(bias, self.out_features)
        self.activations = activations
        self.weight_dtype = torch.bfloat16 if bias is None else bias.dtype
        self.scaled = ScaledBuffers(fp4.swizzle(weight))
        self.register_parameter("bias", bias)
        self.register_buffer("input_amax", input_amax)

    @classmethod
    def from_linear(cls, source: torch.nn.Linear, *, format: str = "nvfp4", recipe: str = "",
                    square: bool = False, activations: str = "token",
                    check: bool = True) -> QuantizedLinear:
        """A layer with the weight of `source`, quantized, and its bias. `check` looks for weights
        that are NaN or infinite."""
        check_features(source.in_features, None, recipes.BLOCKS[recipes.check_format(format)])
        if check:
            check_weight(source.weight)
        weight = fp4.quantize(source.weight, format=format, recipe=recipe, square=square)
        made = cls(weight, source.bias, activations=activations).train(source.training)
        made.weight_dtype = source.weight.dtype
        return made

    @property
    def weight(self) -> torch.Tensor:  # type: ignore[override]
        """The weight [out_features, in_features], a StoredWeight."""
        return StoredWeight(lambda dtype: fp4.dequantize(self.unpack(), dtype),
                            (self.out_features, self.in_features), self.weight_dtype,
                            self.scaled.get_buffer("data").device)

    def unpack(self) -> Scaled:
        """The weight with its scales."""
        return self.scaled.value

    def reset_parameters(self) -> None:
        refuse_reset(self)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """y [..., out_features] of input [..., in_features], in the dtype of input."""
        matrix = self._modules["scaled"]
        assert isinstance(matrix, ScaledBuffers)
        buffers: dict[str, Any] = matrix._buffers
        _, format, layout, recipe = matrix._facts
        call = _quantized if is_dynamo_compiling() else _planned_quantized
        y: torch.Tensor = call(input, self._parameters["bias"], buffers["data"], buffers["scales"],
                               buffers["amax"], self._buffers["input_amax"], self.in_features,
                               self.out_features, format, layout, recipe,
                               self.activations == "token")
        return y

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> QuantizedLinear:
        amax = self.input_amax
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.input_amax = moved_scale(amax, fn)
        self.weight_dtype = converted(self.weight_dtype, fn)
        return self

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, activations={self.activations}")


def check_features(columns: int, rows: int | None, block: int = 16) -> None:
    """A UsageError for sizes of a layer that have no kernel; `rows` is None where any number has
    one."""
    wants, found = f"in_features must be a multiple of {block}", str(columns)
    if rows is not None:
        wants, found = f"{wants} and out_features of 16", f"{columns} and {rows}"
    if columns % block or (rows is not None and rows % 16):
        raise UsageError(f"{wants}, but got {found}", "leave this layer as it is")


def _input(x: torch.Tensor, columns: int) -> torch.Tensor:
    """x as a contiguous matrix, in the dtype of torch.autocast where that is on."""
    if x.shape[-1] != columns:
        raise UsageError(f"'input' must have {columns} columns, but got the shape {list(x.shape)}")
    if torch.is_autocast_enabled(x.device.type):
        x = x.to(torch.get_autocast_dtype(x.device.type))
    return x.reshape(-1, columns).contiguous()


def _shared(input: torch.Tensor, dtype: torch.dtype, recipe: NVFP4Training,
            needs_weight: bool) -> list[torch.Tensor] | None:
    """Returns the list for X in 4 bits, an attribute of the input that layers such as those of Q, K
    and V share: the first of them fills it. None for a leaf, and while a CUDA graph is captured:
    these may get other elements without a new version."""
    if is_dynamo_compiling() or type(input) is not torch.Tensor or input.is_leaf:
        return None
    stream = None
    if input.is_cuda:
        if torch.cuda.is_current_stream_capturing():
            return None
        stream = torch.cuda.current_stream(input.device)
    key = (input._version, dtype, recipe.recipe, recipe.hadamard, needs_weight, stream)
    known: Any = input.__dict__.get("_fp4_quantized")
    if known is None or known[0] != key:
        known = input.__dict__["_fp4_quantized"] = (key, [])
    found: list[torch.Tensor] = known[1]
    return found


class _Training(torch.autograd.Function):
    """The three matmuls of a linear layer."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
                recipe: str, hadamard: bool, stochastic: bool, square: bool,
                shared: list[torch.Tensor] | None, *kept: torch.Tensor) -> torch.Tensor:
        needs_x, needs_weight, _ = ctx.needs_input_grad[:3]
        ctx.recipe, ctx.hadamard, ctx.stochastic = recipe, hadamard, stochastic
        ctx.dtypes = x.dtype, weight.dtype, None if bias is None else bias.dtype
        ctx.shape = weight.shape
        qx: Any = shared or _quantize(x, None, recipe, hadamard, False, True, needs_weight)
        if shared is not None and not shared:
            shared += qx
        qw = (*kept, *kept[2:3]) or _quantize(weight, None, recipe, False, square, True, needs_x)
        ctx.num_kept = len(kept)
        ctx.save_for_backward(*qx[3:], *qw[3:])
        return _product(qx[:3], qw[:3], bias, recipe, x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        dy = gradients[0].contiguous()
        saved, recipe = ctx.saved_tensors, ctx.recipe
        dx = dw = None
        if not dy.shape[0]:  # an expert without tokens: the sums have no terms
            dx = dy.new_zeros(0, ctx.shape[1], dtype=ctx.dtypes[0])
            dw = dy.new_zeros(ctx.shape, dtype=ctx.dtypes[1])
        elif needs_x or needs_weight:
            rng = fp4.random_state(dy.device) if ctx.stochastic else None
            q = _quantize(dy, rng, recipe, ctx.hadamard, False, needs_x, needs_weight)
            dx = _product(q[:3], saved[3:], None, recipe, ctx.dtypes[0]) if needs_x else None
            dw = _product(q[3:], saved[:3], None, recipe, ctx.dtypes[1]) if needs_weight else None
        db = _bias_gradient(dy, ctx.dtypes[2], needs_bias)
        return dx, dw, db, *(None,) * (5 + ctx.num_kept)


class _Frozen(torch.autograd.Function):
    """A matmul with a weight that is stored in 4 bits. The part that saves tensors is separate from
    the part that computes, as the transforms of torch.func need it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, bias: torch.Tensor | None, data: torch.Tensor,
                scales: torch.Tensor, amax: torch.Tensor | None, input_amax: torch.Tensor | None,
                facts: tuple[Any, ...], per_token: bool) -> torch.Tensor:
        _, format, _, recipe = facts
        number = fp4.amax_for(x, format, recipe, input_amax, per_token and input_amax is None)
        q, s = _ops.quantize(x, number, None, format, recipe, "tiled_128x4", False, False, None)
        result: torch.Tensor = _ops.scaled_mm(q, s, number, data, scales, amax, bias, format,
                                              recipe, recipe, x.dtype)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, bias, data, scales, amax, _, facts, _ = inputs
        ctx.save_for_backward(data, scales, amax)
        ctx.facts, ctx.dtype = facts, None if bias is None else bias.dtype

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        dy, dx = gradients[0], None
        if ctx.needs_input_grad[0]:
            dx = dy @ fp4.dequantize(Scaled(*ctx.saved_tensors, *ctx.facts), dy.dtype)
        return (dx, _bias_gradient(dy, ctx.dtype, ctx.needs_input_grad[1]), *(None,) * 6)


_train: Callable[..., torch.Tensor] = _Training.apply
_apply: Callable[..., torch.Tensor] = _Frozen.apply


def _quantized(input: torch.Tensor, bias: torch.Tensor | None, data: torch.Tensor,
               scales: torch.Tensor, amax: torch.Tensor | None, input_amax: torch.Tensor | None,
               columns: int, rows: int, format: str, layout: str, recipe: str,
               per_token: bool) -> torch.Tensor:
    """y [..., rows] of input [..., columns]; data and scales are bytes."""
    y = _apply(_input(input, columns), bias, data.view(torch.float4_e2m1fn_x2),
               scales.view(SCALE_DTYPES[format]), amax, input_amax,
               ((rows, columns), format, layout, recipe), per_token)
    return y.view(*input.shape[:-1], rows)


_planned_quantized = planned(_quantized)


def _bias_gradient(dy: torch.Tensor, dtype: torch.dtype | None, needed: bool) -> Any:
    return dy.sum(0, dtype=torch.float32).to(dtype) if needed else None


def _quantize(x: torch.Tensor, rng: torch.Tensor | None, recipe: str, hadamard: bool, square: bool,
              rowwise: bool, columnwise: bool) -> _Both:
    """Quantizes x and x^T in 4 bits, the latter transformed along M with `hadamard`. Results that
    are not wanted are empty."""
    number = column_number = amax = None
    if hadamard and columnwise:
        number, column_number = _ops.hadamard_amax(x, fp4.SIGN_MASK)
    else:
        number = column_number = _ops.amax(x, False)
    mask = fp4.SIGN_MASK if hadamard and columnwise else None
    empty = x.new_empty(0)
    if rowwise and columnwise:
        amax = column_number if mask is not None else None
        q, s, qt, st = _ops.quantize_both(x, number, amax, rng, "nvfp4", recipe, square, mask)
        return q, s, number, qt, st, column_number
    if rowwise:
        q, s = _ops.quantize(x, number, rng, "nvfp4", recipe, "tiled_128x4", square, False, None)
        return q, s, number, empty, empty, empty
    q, s = _ops.quantize(x, column_number, rng, "nvfp4", recipe, "tiled_128x4", square, True, mask)
    return empty, empty, empty, q, s, column_number


def _product(a: Any, b: Any, bias: torch.Tensor | None, recipe: str,
             dtype: torch.dtype) -> torch.Tensor:
    result: torch.Tensor = _ops.scaled_mm(a[0], a[1], a[2], b[0], b[1], b[2], bias, "nvfp4",
                                          recipe, recipe, dtype)
    return result
