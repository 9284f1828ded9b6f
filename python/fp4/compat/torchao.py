"""torchao's NVFP4 and MXFP4 tensors, of torchao 0.18.0 (torchao/prototype/mx_formats).

`per_tensor_scale` is torchao's decode scale d = amax / 2688 (per_tensor_amax_to_scale).

Quantizers have the bits of torchao in eager mode on the device of the tensor
(docs/reference/recipes.md, recipes torchao and torchao_cuda), and not those of torch.compile or
use_triton_kernel.

A matmul follows torchao too: the sum of the tensor core is rounded to the dtype of the operands
first, then multiplied by the product of the tensor scales in that dtype, then the bias is added.
fp4.torch applies the tensor scales before the only rounding.

NVFP4Tensor and MXTensor are no subclasses of torch.Tensor: of the operators of torch they have
torch.nn.functional.linear.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..errors import UsageError
from ._layouts import LINEAR, TILED, expect, note, padded
from ._operands import check_input, check_tensor, eager, refuse, rows_of, scalar, type_of
from ._programs import dequantizer, element, product, quantizer, swizzler, target

__all__ = [
    "KernelPreference", "MXFP8Dim0CastKernelChoice", "MXTensor", "NVFP4Tensor",
    "ScaleCalculationMode", "nvfp4_quantize", "per_tensor_amax_to_scale", "to_mx",
]

BLOCK_SIZE_DEFAULT = 32
_INPUTS = (torch.bfloat16, torch.float32)


class ScaleCalculationMode(enum.Enum):
    """The rule by which the exponent of an MX block follows from its amax."""

    FLOOR = "floor"
    RCEIL = "rceil"
    CEIL = "ceil"
    EVEN = "even"


class KernelPreference(str, enum.Enum):
    """The implementation that computes matmuls of MX tensors. The quantizer does not depend on the
    preference."""

    AUTO = "auto"
    EMULATED = "emulated"


class MXFP8Dim0CastKernelChoice(enum.Enum):
    """The implementation that casts to MXFP8; for MXFP4 there is one choice."""

    TORCH = "torch"


def per_tensor_amax_to_scale(amax: torch.Tensor) -> torch.Tensor:
    """The decode scale f32(amax) / 2688 of a tensor with this amax, by torch."""
    return amax.to(torch.float32) / 2688.0


@eager
def nvfp4_quantize(
    data_hp: torch.Tensor,
    block_size: int = 16,
    per_tensor_scale: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes a matrix to NVFP4.

    Args:
        data_hp: bf16 or f32 [..., K], K a multiple of 16.
        block_size: 16.
        per_tensor_scale: one f32. Without it blocks have one level of scales.

    Returns:
        Linear E4M3 scales [..., K/16], of at least 2^-6; and codes, uint8 [..., K/2].
    """
    codes, scales = _quantize(data_hp, block_size, per_tensor_scale, LINEAR)
    return note(scales.view(*data_hp.shape[:-1], -1), LINEAR, *_matrix(data_hp, 16),
                "nvfp4_quantize"), codes


@eager
def to_mx(
    data_hp: torch.Tensor,
    elem_dtype: torch.dtype | str,
    block_size: int,
    scaling_mode: ScaleCalculationMode = ScaleCalculationMode.FLOOR,
    is_swizzled_scales: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes a matrix to MXFP4.

    Args:
        data_hp: bf16 or f32 [..., K], K a multiple of 32.
        elem_dtype: torch.float4_e2m1fn_x2.
        block_size: 32.
        scaling_mode: the rule of the exponents.
        is_swizzled_scales: scales are tiles of 128 x 4, padded with zeros.

    Returns:
        UE8M0 scales [..., K/32], or as MXTensor.to_mx has them; and codes, uint8 [..., K/2].
    """
    refuse(elem_dtype != torch.float4_e2m1fn_x2, f"elem_dtype = {elem_dtype}",
           "fp4.quantize has MXFP6 and MXFP8 as formats of their own")
    refuse(block_size != 32, f"block_size = {block_size}", "MXFP4 has blocks of 32")
    check_input(data_hp, "data_hp", _INPUTS, 32)
    layout = TILED if is_swizzled_scales else LINEAR
    recipe = f"torchao_0_18_{ScaleCalculationMode(scaling_mode.value).value}"
    program = quantizer(data_hp.shape[-1], element(data_hp.dtype), recipe, layout, "data_hp", "",
                        target(data_hp), "mxfp4")
    codes, scales = program(rows_of(data_hp))
    shape = _scale_shape(data_hp, 32, layout)
    scales = note(scales.view(torch.uint8).view(shape), layout, *_matrix(data_hp, 32), "to_mx")
    return scales.view(torch.float8_e8m0fnu), _codes(data_hp, codes)


class _Packed:
    """The attributes that a matrix of codes shares with a tensor of the numbers that they stand
    for."""

    qdata: torch.Tensor
    orig_dtype: torch.dtype

    @property
    def shape(self) -> torch.Size:
        return torch.Size((*self.qdata.shape[:-1], 2 * self.qdata.shape[-1]))

    @property
    def dtype(self) -> torch.dtype:
        return self.orig_dtype


@dataclasses.dataclass(repr=False, eq=False)
class NVFP4Tensor(_Packed):
    """A matrix in NVFP4, or a stack of them, as torchao's class of this name holds it.

    Attributes:
        qdata: codes, uint8 [M, K/2], of a stack [E, M, K/2].
        scale: E4M3, [M, K/16], or swizzled the tiles of 128 x 4 as
            [32 * ceil(M/128), 16 * ceil(K/64)]; of a stack with E in front.
        per_tensor_scale: one f32, or [E, 1, 1] with one for each matrix of a stack; or None.
    """

    qdata: torch.Tensor
    scale: torch.Tensor
    block_size: int
    orig_dtype: torch.dtype
    per_tensor_scale: torch.Tensor | None = None
    act_per_tensor_scale: torch.Tensor | None = None
    is_swizzled_scales: bool = False
    use_triton_kernel: bool = False
    act_quant_kwargs: Any = None

    @staticmethod
    @eager
    def to_nvfp4(
        data_hp: torch.Tensor,
        block_size: int = 16,
        per_tensor_scale: torch.Tensor | None = None,
        act_per_tensor_scale: torch.Tensor | None = None,
        is_swizzled_scales: bool = False,
        use_triton_kernel: bool = False,
        act_quant_kwargs: Any = None,
    ) -> NVFP4Tensor:
        """Quantizes a matrix, or the matrices of a stack.

        Args:
            data_hp: bf16 or f32 [M, K] or [E, M, K], K a multiple of 16. Swizzled scales of a stack
                need M a multiple of 128, as torchao's do.
            block_size: 16.
            per_tensor_scale: one f32, or of a stack [E, 1, 1]; None for one level of scales.
            act_per_tensor_scale, act_quant_kwargs: are kept.
            is_swizzled_scales: scales are tiles of 128 x 4, padded with zeros.
            use_triton_kernel: False.

        Raises:
            UsageError: an argument that does not fit, or an option that has no kernel here.
        """
        refuse(use_triton_kernel, "use_triton_kernel", "its formula is MSLK's; see recipe mslk")
        check_tensor(data_hp, "data_hp")
        if data_hp.dim() == 3:
            codes, scales = _stacked(data_hp, block_size, per_tensor_scale, is_swizzled_scales)
        else:
            refuse(data_hp.dim() != 2, f"a tensor of {data_hp.dim()} dimensions",
                   "pass a matrix, or a stack of matrices [E, M, K]")
            layout = TILED if is_swizzled_scales else LINEAR
            codes, scales = _quantize(data_hp, block_size, per_tensor_scale, layout)
            scales = note(scales.view(_scale_shape(data_hp, 16, layout)), layout,
                          *_matrix(data_hp, 16), "to_nvfp4")
        return NVFP4Tensor(codes, scales, block_size, data_hp.dtype, per_tensor_scale,
                           act_per_tensor_scale, is_swizzled_scales, False, act_quant_kwargs)

    def _one(self, number: int) -> NVFP4Tensor:
        """A matrix of a stack."""
        level = self.per_tensor_scale
        if level is not None and level.dim() == 3:
            level = level[number].reshape(())
        return dataclasses.replace(self, qdata=self.qdata[number], scale=self.scale[number],
                                   per_tensor_scale=level)

    @eager
    def dequantize(self, output_dtype: torch.dtype | None = None) -> torch.Tensor:
        """The matrix [M, K], code * (scale * per_tensor_scale), computed in fp32 and rounded once
        to `output_dtype`; None is the dtype that the matrix had."""
        result = self.orig_dtype if output_dtype is None else output_dtype
        layout = TILED if self.is_swizzled_scales else LINEAR
        if self.qdata.dim() == 3:
            return torch.stack([self._one(number).dequantize(result)
                                for number in range(self.qdata.shape[0])])
        rows, columns = self.shape
        scales = self._scales(layout)
        names: tuple[str, ...] = ("qdata", "scale", "per_tensor_scale")
        level = self.per_tensor_scale
        recipe = "torchao_1level" if level is None else "torchao, tensor_scale = supplied_decode"
        program = dequantizer(rows, columns, element(result), recipe, layout,
                              names[:2] if level is None else names, target(self.qdata))
        given = () if level is None else (scalar(level, names[2]),)
        values: torch.Tensor = program(self.qdata, scales, *given)
        return values

    def get_hp_scales(self) -> torch.Tensor:
        """The factor of each block in fp32, [M, K/16]: scale * per_tensor_scale."""
        refuse(self.is_swizzled_scales, "get_hp_scales of swizzled scales",
               "quantize with is_swizzled_scales = False")
        scales = self.scale.to(torch.float32)
        return scales if self.per_tensor_scale is None else self.per_tensor_scale * scales

    def _scales(self, layout: str) -> torch.Tensor:
        rows, blocks = self.shape[0], self.shape[1] // 16
        return expect(_flat(self.scale, layout, rows, blocks), layout, rows, blocks, "'scale'")

    def _tiles(self) -> torch.Tensor:
        """The scales as matmuls read them. Linear ones are tiled here, as torchao does."""
        if self.is_swizzled_scales:
            return self._scales(TILED)
        linear = self._scales(LINEAR)
        tiles: torch.Tensor = swizzler(linear.shape[1], "scale", target(linear))(linear)
        return tiles

    @classmethod
    def __torch_function__(cls, function: Callable[..., Any], types: Sequence[type],
                           arguments: Sequence[Any] = (),
                           named: Mapping[str, Any] | None = None) -> torch.Tensor:
        if function is not torch.nn.functional.linear:
            raise UsageError(f"'{function.__name__}' does not take an NVFP4Tensor",
                             "torch.nn.functional.linear does; .dequantize() gives a tensor")
        return _linear(*arguments, **(named or {}))


@eager
def _linear(input: Any, weight: Any, bias: torch.Tensor | None = None) -> torch.Tensor:
    """input weight^T in torchao's three steps: the sum rounded to the dtype of `input`, times the
    tensor scales in that dtype, plus the bias."""
    if not isinstance(input, NVFP4Tensor) or not isinstance(weight, NVFP4Tensor):
        raise UsageError("arguments 'input' and 'weight' must be NVFP4Tensors both",
                         "quantize the other with NVFP4Tensor.to_nvfp4, or call .dequantize()")
    if input.qdata.dim() != 2 or weight.qdata.dim() != 2:
        raise UsageError(f"arguments 'input' and 'weight' must be matrices, but got "
                         f"{list(input.shape)} and {list(weight.shape)}",
                         "multiply the matrices of a stack one by one")
    if input.shape[1] != weight.shape[1]:
        raise UsageError(f"arguments 'input' and 'weight' must have one K, but got "
                         f"{input.shape[1]} and {weight.shape[1]}",
                         "each is quantized along K, its last dimension")
    levels = [level for level in (input.per_tensor_scale, weight.per_tensor_scale)
              if level is not None]
    refuse(bias is not None and not levels and input.orig_dtype != torch.float32,
           "a bias without tensor scales", "torchao's matmul adds it before its only rounding")
    names = ("input", "scale of input", "weight", "scale of weight")
    program = product(weight.shape[0], input.shape[1], element(input.orig_dtype), "", names,
                      target(input.qdata))
    result: torch.Tensor = program(input.qdata, input._tiles(), weight.qdata, weight._tiles())
    if levels:
        factor = levels[0] * levels[1] if len(levels) == 2 else levels[0]
        result = result * factor.to(input.orig_dtype)
    return result if bias is None else result + bias.to(input.orig_dtype)


@dataclasses.dataclass(repr=False, eq=False)
class MXTensor(_Packed):
    """A matrix in MXFP4, as torchao's class of this name holds it.

    Attributes:
        qdata: codes, uint8 [M, K/2].
        scale: UE8M0, [M, K/32], or swizzled [32 * ceil(M/128), 16 * ceil(K/128)].
    """

    qdata: torch.Tensor
    scale: torch.Tensor
    elem_dtype: torch.dtype | str
    block_size: int
    orig_dtype: torch.dtype
    kernel_preference: KernelPreference
    act_quant_kwargs: Any
    is_swizzled_scales: bool

    @staticmethod
    @eager
    def to_mx(
        data_hp: torch.Tensor,
        elem_dtype: torch.dtype | str,
        block_size: int = BLOCK_SIZE_DEFAULT,
        scaling_mode: ScaleCalculationMode = ScaleCalculationMode.FLOOR,
        kernel_preference: KernelPreference = KernelPreference.EMULATED,
        act_quant_kwargs: Any = None,
        is_swizzled_scales: bool = False,
        mxfp8_dim0_cast_kernel_choice: MXFP8Dim0CastKernelChoice = MXFP8Dim0CastKernelChoice.TORCH,
    ) -> MXTensor:
        """Quantizes a matrix: as the function to_mx, of two dimensions."""
        refuse(data_hp.dim() != 2, f"a tensor of {data_hp.dim()} dimensions",
               "pass x.flatten(0, -2): blocks lie along the last dimension")
        scales, codes = to_mx(data_hp, elem_dtype, block_size, scaling_mode, is_swizzled_scales)
        return MXTensor(codes, scales, elem_dtype, block_size, data_hp.dtype, kernel_preference,
                        act_quant_kwargs, is_swizzled_scales)

    @eager
    def dequantize(self, output_dtype: torch.dtype | None = None) -> torch.Tensor:
        """The matrix [M, K], code * 2^(scale - 127), in `output_dtype`, bf16 or f32; None is the
        dtype that the matrix had."""
        result = self.orig_dtype if output_dtype is None else output_dtype
        refuse(result not in _INPUTS, f"output_dtype = {result}",
               "torchao multiplies in f16, where the scales overflow")
        layout = TILED if self.is_swizzled_scales else LINEAR
        rows, columns = self.shape
        scales = expect(_flat(self.scale, layout, rows, columns // 32), layout, rows, columns // 32,
                        "'scale'")
        program = dequantizer(rows, columns, element(result), "torchao_0_18_floor", layout,
                              ("qdata", "scale"), target(self.qdata), "mxfp4")
        values: torch.Tensor = program(self.qdata, scales)
        return values


def _quantize(data: torch.Tensor, block_size: int, level: torch.Tensor | None,
              layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes as rows, and E4M3 scales in the shape of the program."""
    refuse(block_size != 16, f"block_size = {block_size}", "NVFP4 has blocks of 16")
    check_input(data, "data_hp", _INPUTS, 16)
    recipe = "torchao_1level" if level is None else "torchao"
    if data.is_cuda:
        recipe += "_cuda"
    if level is not None:
        recipe += ", tensor_scale = supplied_decode"
    program = quantizer(data.shape[-1], element(data.dtype), recipe, layout, "data_hp",
                        "" if level is None else "per_tensor_scale", target(data))
    given = () if level is None else (scalar(level, "per_tensor_scale"),)
    codes, scales = program(rows_of(data), *given)
    return _codes(data, codes), scales


def _stacked(data: torch.Tensor, block_size: int, level: torch.Tensor | None,
             is_swizzled: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and E4M3 scales of the matrices of a stack, which may have scales of their own."""
    experts, rows, _ = data.shape
    if is_swizzled and rows % 128:
        raise UsageError("argument 'data_hp' must have matrices of a multiple of 128 rows beside "
                         f"swizzled scales, but got {type_of(data)}",
                         "tiles have 128 rows: pad the matrices, or take linear scales")
    if level is not None and tuple(level.shape) not in ((), (experts, 1, 1)):
        raise UsageError(f"argument 'per_tensor_scale' must be one float32, or of shape "
                         f"{[experts, 1, 1]}, but got {type_of(level)}",
                         "there is one for the stack, or one for each of its matrices")
    layout = TILED if is_swizzled else LINEAR
    parts = [_quantize(one, block_size, level if level is None or not level.dim() else
                       level[number].reshape(()), layout) for number, one in enumerate(data)]
    codes, scales = (torch.stack([part[side] for part in parts]) for side in (0, 1))
    return codes, scales.view(experts, *_scale_shape(data[0], 16, layout))


def _codes(data: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    return codes.view(torch.uint8).view(*data.shape[:-1], data.shape[-1] // 2)


def _matrix(data: torch.Tensor, block: int) -> tuple[int, int]:
    """Rows and columns of the scales of a tensor."""
    return data.numel() // data.shape[-1], data.shape[-1] // block


def _scale_shape(data: torch.Tensor, block: int, layout: str) -> tuple[int, ...]:
    """torchao counts tiled scales as 32 x 16 bytes for a tile."""
    rows, blocks = _matrix(data, block)
    if layout == LINEAR:
        return (*data.shape[:-1], blocks)
    high, wide = padded(rows, blocks)
    return (high // 4, 4 * wide)


def _flat(scales: torch.Tensor, layout: str, rows: int, blocks: int) -> torch.Tensor:
    """Tiled scales of torchao's shape, which linear ones never have, as one row."""
    high, wide = padded(rows, blocks)
    is_tiles = layout == TILED and tuple(scales.shape) == (high // 4, 4 * wide)
    return scales.reshape(-1) if is_tiles and scales.is_contiguous() else scales
