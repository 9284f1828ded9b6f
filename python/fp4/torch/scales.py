"""The scale of a whole NVFP4 tensor, which three families of libraries write in three ways.

    amax            fp4, TransformerEngine                    the largest magnitude
    decode scale    torch, torchao, ModelOpt                  amax / 2688: data are multiplied by it
    encode scale    FlashInfer, vLLM, SGLang, compressed-     2688 / amax: numbers are multiplied by
                    tensors                                   it before they are encoded

2688 is 6 * 448, the largest element times the largest block scale. Each function computes by the
rule of a recipe, tensor_scale in docs/reference/recipes.md, on the device of its argument.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..errors import UsageError
from .recipes import computes_in_bf16, range_of, tensor_scale_rule


def decode_scale_of(amax: torch.Tensor, recipe: str) -> torch.Tensor:
    """About amax / 2688, as `recipe` computes it. `amax` is what Scaled.amax holds."""
    rule = tensor_scale_rule(recipe)
    if rule == "supplied_decode":
        return amax
    if rule in ("supplied", "reciprocal", "reciprocal_or_one"):
        return encode_scale_of(amax, recipe).reciprocal()
    if rule == "decode_multiply":
        return amax * _range(amax, recipe).reciprocal()
    return amax / _range(amax, recipe)


def encode_scale_of(amax: torch.Tensor, recipe: str) -> torch.Tensor:
    """About 2688 / amax, as `recipe` computes it: the last bits differ, and so does what becomes of
    a tensor of zeros, for which it is 1 or infinite. `amax` is what Scaled.amax holds."""
    rule, most = tensor_scale_rule(recipe), _range(amax, recipe)
    if rule == "supplied":
        return amax
    if rule == "supplied_decode":
        return amax.reciprocal()
    if rule == "reciprocal":
        return most * amax.reciprocal()
    if rule == "reciprocal_or_one":
        dtype = torch.bfloat16 if computes_in_bf16(recipe) else torch.float32
        inverse = amax.clamp(min=torch.finfo(torch.float32).tiny).reciprocal().to(dtype)
        scale = (most * inverse.float()).to(dtype).float()
        return torch.where(scale.isfinite(), scale, 1.0)
    scale = most / amax
    if rule in ("guarded_divide", "positive_divide"):
        scale = scale.clamp(max=torch.finfo(torch.float32).max)
    is_guarded = rule in ("guarded_divide", "positive_divide", "divide_unless_zero")
    return torch.where((amax == 0) | (scale == 0), 1.0, scale) if is_guarded else scale


def _range(amax: torch.Tensor, recipe: str) -> torch.Tensor:
    # A tensor and not a number: PyTorch on CUDA divides by a number with its reciprocal.
    return torch.full_like(amax, range_of(recipe))


def amax_of_decode_scale(scale: torch.Tensor, recipe: str = "transformer_engine") -> torch.Tensor:
    """The amax whose decode scale is `scale`, to the last bit.

    A UsageError refuses a `scale` that is no quotient amax / 2688 of fp32.
    """
    _check_scale(scale, "the decode scale")
    found = _amax_near(scale * range_of(recipe), scale, decode_scale_of, recipe)
    return _expect(found, scale, f"the decode scale must be amax / {range_of(recipe):g}")


def amax_of_encode_scale(scale: torch.Tensor, recipe: str = "transformer_engine") -> torch.Tensor:
    """The amax whose encode scale is `scale`, to the last bit; a UsageError where there is none.
    The encode scale of an amax that 2688 / amax was computed of always has one."""
    _check_scale(scale, "the encode scale")
    found = _amax_near(_range(scale, recipe) / scale, scale, encode_scale_of, recipe)
    return _expect(found, scale, f"the encode scale must be {range_of(recipe):g} / amax")


def _amax_near(guess: torch.Tensor, scale: torch.Tensor,
               scale_of: Callable[[torch.Tensor, str], torch.Tensor], recipe: str) -> torch.Tensor:
    """The number within two places of `guess` that has this scale, else NaN."""
    bits = guess.contiguous().view(torch.int32)
    result = torch.full_like(guess, float("nan"))
    for step in (0, 1, -1, 2, -2):
        near = (bits + step).view(torch.float32)
        found = result.isnan() & (scale_of(near, recipe) == scale)
        result = torch.where(found, near, result)
    return result


def _expect(amax: torch.Tensor, scale: torch.Tensor, what: str) -> torch.Tensor:
    if bool(amax.isnan().any()):
        raise UsageError(f"{what} of an fp32 amax, but got {scale.tolist()}",
                         "no amax has this scale: keep the scale itself, with "
                         "Scaled.from_decode_scale or from_encode_scale")
    return amax


def _check_scale(scale: torch.Tensor, what: str) -> None:
    if scale.dtype != torch.float32:
        raise UsageError(f"{what} must be float32, but got {str(scale.dtype)[6:]}",
                         "a conversion could round it")
    if bool((~scale.isfinite() | (scale < 0)).any()):
        raise UsageError(f"{what} must be finite and not negative, but got {scale.tolist()}")
