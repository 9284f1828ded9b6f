"""Quantized matrices: 4-bit elements, their block scales, and what is needed to read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree

from ..errors import UsageError
from . import recipes
from .scales import decode_scale_of, encode_scale_of

_DATA_DTYPES = (torch.float4_e2m1fn_x2, torch.uint8)
SCALE_DTYPES = {"nvfp4": torch.float8_e4m3fn, "mxfp4": torch.float8_e8m0fnu}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Scaled:
    """A matrix of R x K numbers in NVFP4 or MXFP4. K is the axis of a matmul's sum: the blocks of
    16 or 32 elements that share a scale lie along it.

    A Scaled is a record and not a tensor: no operation of torch decodes it by accident.
    torch.compile, deepcopy, torch.save and torch.load (also with weights_only) take it. A module
    keeps it as an fp4.torch.ScaledBuffers, whose state_dict holds the tensors.

    Attributes:
        data: [R, K/2] float4_e2m1fn_x2 or uint8, the even column in the low nibble.
        scales: float8_e4m3fn (NVFP4) or float8_e8m0fnu (MXFP4), or uint8 with their bytes. Linear
            scales are [R, ceil(K/block)], tiled ones [ceil(R/128), ceil(ceil(K/block)/4), 512].
        amax: float32 scalar, or [R] with one for each row; None where the recipe has no scale of
            the tensor (MXFP4). With `tensor_scale = supplied` in the recipe it is the encode scale,
            with `supplied_decode` the decode scale.
        format: "nvfp4" or "mxfp4".
        layout: of the scales, "linear" or "tiled_128x4" (docs/reference/semantics.md).
        recipe: how the numbers were quantized and are decoded (docs/reference/recipes.md).
        shape: (R, K), in elements. R may be 0.
    """

    data: torch.Tensor
    scales: torch.Tensor
    amax: torch.Tensor | None
    shape: tuple[int, int]
    format: str = "nvfp4"
    layout: str = "tiled_128x4"
    recipe: str = ""

    def __post_init__(self) -> None:
        recipes.check_format(self.format)
        recipes.check_layout(self.layout)
        object.__setattr__(self, "recipe", self.recipe or recipes.DEFAULT_RECIPES[self.format])
        object.__setattr__(self, "shape", tuple(self.shape))
        # Fake tensors in a graph have the shapes that an operation gave them: nothing to find out.
        if not torch.compiler.is_compiling():
            _check(self)

    @classmethod
    def from_decode_scale(cls, data: torch.Tensor, scales: torch.Tensor, scale: torch.Tensor,
                          **members: Any) -> Scaled:
        """A matrix of torch, torchao or ModelOpt, which keep amax / 2688. The scale is kept as it
        is: the recipe is `modelopt, tensor_scale = supplied_decode` unless one is named."""
        return cls._with_scale(data, scales, scale, members, "modelopt", "supplied_decode")

    @classmethod
    def from_encode_scale(cls, data: torch.Tensor, scales: torch.Tensor, scale: torch.Tensor,
                          **members: Any) -> Scaled:
        """A matrix of FlashInfer, vLLM, SGLang or compressed-tensors, which keep 2688 / amax. The
        scale is kept as it is: the recipe is `vllm, tensor_scale = supplied` unless one is
        named."""
        return cls._with_scale(data, scales, scale, members, "vllm", "supplied")

    @classmethod
    def _with_scale(cls, data: torch.Tensor, scales: torch.Tensor, scale: torch.Tensor,
                    members: dict[str, Any], recipe: str, rule: str) -> Scaled:
        """A matrix whose tensor scale has been computed, by a recipe that has `rule` for it."""
        members.setdefault("recipe", f"{recipe}, tensor_scale = {rule}")
        if recipes.tensor_scale_rule(members["recipe"]) != rule:
            raise UsageError(f"'recipe' must have tensor_scale = {rule}, but got "
                             f"{members['recipe']!r}",
                             f"append ', tensor_scale = {rule}' to it")
        return cls(data, scales, scale.reshape(_scalar_or_rows(scale)), **members)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (),
                           named: Any = None) -> Any:
        del types, arguments, named
        name = getattr(function, "__name__", function)
        raise UsageError(f"torch's '{name}' does not take an fp4.torch.Scaled",
                         "fp4.torch.linear multiplies two of them, and fp4.torch.dequantize(x) "
                         "gives a tensor")

    @property
    def block(self) -> int:
        """Elements that share a scale: 16 or 32."""
        return recipes.BLOCKS[self.format]

    @property
    def device(self) -> torch.device:
        """The device of all of its tensors."""
        return self.data.device

    @property
    def decode_scale(self) -> torch.Tensor | None:
        """amax / 2688 by the rule of the recipe."""
        return None if self.amax is None else decode_scale_of(self.amax, self.recipe)

    @property
    def encode_scale(self) -> torch.Tensor | None:
        """2688 / amax by the rule of the recipe."""
        return None if self.amax is None else encode_scale_of(self.amax, self.recipe)

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """data, scales, and amax if there is one."""
        return (self.data, self.scales) + (() if self.amax is None else (self.amax,))

    @property
    def nbytes(self) -> int:
        """Bytes of data, scales and amax together."""
        return sum(tensor.nbytes for tensor in self.tensors)

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> Scaled:
        """Returns the matrix on `device`. There is no conversion to another dtype: dequantize()."""
        if isinstance(device, torch.dtype):
            raise UsageError(f"a Scaled has no conversion to {str(device)[6:]}",
                             "call fp4.torch.dequantize(x, dtype)")
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def cpu(self) -> Scaled:
        """Returns the matrix on the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | None = None) -> Scaled:
        """Returns the matrix on a GPU; None is torch's current device."""
        return self.to("cuda" if device is None else f"cuda:{device}")

    def clone(self) -> Scaled:
        """A copy with memory of its own."""
        return self._map(torch.Tensor.clone)

    def same(self, other: Scaled) -> bool:
        """Returns True if the two matrices have the same bytes and the same facts about them."""
        return (self._facts() == other._facts() and len(self.tensors) == len(other.tensors) and
                all(torch.equal(_bytes(one), _bytes(two))
                    for one, two in zip(self.tensors, other.tensors)))

    def _facts(self) -> tuple[Any, ...]:
        return self.shape, self.format, self.layout, self.recipe

    def _map(self, function: Any) -> Scaled:
        amax = None if self.amax is None else function(self.amax)
        return Scaled(function(self.data), function(self.scales), amax, *self._facts())

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (f"Scaled({rows}x{columns} {self.format}, {self.layout}, recipe='{self.recipe}', "
                f"device='{self.device}')")


def scale_shape(shape: Sequence[int], format: str, layout: str) -> tuple[int, ...]:
    """The shape of the block scales of an R x K matrix."""
    rows, columns = shape
    blocks = -(-columns // recipes.BLOCKS[format])
    if layout == "linear":
        return rows, blocks
    return -(-rows // 128), -(-blocks // 4), 512


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _scalar_or_rows(scale: torch.Tensor) -> tuple[int, ...]:
    """Other packages write a scalar as [1], and scales of rows as [R, 1]."""
    return () if scale.numel() == 1 else (scale.numel(),)


def _check(scaled: Scaled) -> None:
    rows, columns = _check_shape(scaled)
    _check_member(scaled.data, "data", _DATA_DTYPES, (rows, columns // 2),
                  "two elements share a byte; transpose before you quantize")
    note = "use fp4.torch.swizzle to change the layout"
    if scaled.layout != "linear":
        note = ("the tiles are blocks of 512 bytes; pass scales.reshape(ceil(R/128), -1, 512) if "
                "the bytes are tiled already")
    _check_member(scaled.scales, "scales", (SCALE_DTYPES[scaled.format], torch.uint8),
                  scale_shape(scaled.shape, scaled.format, scaled.layout), note)
    expects = recipes.has_tensor_scale(scaled.format, scaled.recipe)
    if expects != (scaled.amax is not None):
        raise UsageError(f"'amax' must be {'a float32 scalar' if expects else 'None'} for recipe "
                         f"'{scaled.recipe}' of {scaled.format}, but got "
                         f"{'None' if expects else 'a tensor'}")
    if scaled.amax is not None:
        shape = () if scaled.amax.dim() == 0 else (rows,)
        _check_member(scaled.amax, "amax", (torch.float32,), shape, "")
    devices = {str(tensor.device) for tensor in scaled.tensors}
    if len(devices) > 1:
        raise UsageError("all tensors must be on one device, but got "
                         f"{' and '.join(sorted(devices))}")


def _check_shape(scaled: Scaled) -> tuple[int, int]:
    shape = scaled.shape
    if len(shape) != 2 or shape[0] < 0 or shape[1] < 1:
        raise UsageError(f"'shape' must be (rows, columns), but got {shape}",
                         "flatten the leading dimensions")
    block = 2 if scaled.format == "nvfp4" else scaled.block
    if shape[1] % block:
        raise UsageError(f"the columns must be a multiple of {block}, but got {shape[1]}")
    return shape


def _check_member(tensor: Any, name: str, dtypes: Sequence[torch.dtype], shape: Sequence[int],
                  note: str) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"'{name}' must be a torch.Tensor, but got {type(tensor).__name__}")
    if tensor.dtype not in dtypes:
        raise UsageError(f"'{name}' must be {' or '.join(str(kind)[6:] for kind in dtypes)}, but "
                         f"got {str(tensor.dtype)[6:]}", "nothing is converted; uint8 is the bytes")
    if tuple(tensor.shape) != tuple(shape):
        raise UsageError(f"'{name}' must have the shape {list(shape)}, but got "
                         f"{list(tensor.shape)}", note)
    if not tensor.is_contiguous():
        raise UsageError(f"'{name}' must be contiguous and row-major, but has strides "
                         f"{tensor.stride()}", "no copy is made" + (f". {note}" if note else ""))


def _flatten(scaled: Scaled) -> tuple[list[Any], tuple[Any, ...]]:
    return [scaled.data, scaled.scales, scaled.amax], scaled._facts()


def _unflatten(tensors: Any, facts: tuple[Any, ...]) -> Scaled:
    result = object.__new__(Scaled)  # transforms put other things than tensors into the leaves
    names = ("data", "scales", "amax", "shape", "format", "layout", "recipe")
    for name, value in zip(names, (*tensors, *facts)):
        object.__setattr__(result, name, value)
    return result


_pytree.register_pytree_node(Scaled, _flatten, _unflatten,
                             serialized_type_name="fp4.torch.Scaled")
torch.serialization.add_safe_globals([Scaled])
