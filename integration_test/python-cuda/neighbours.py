"""The neighbours of GEMMs for operations.py: norms, gates, rotations, caches, routing, losses, and
the gradients of these, as functions of a matrix of bfloat16, [rows, 1024]."""

import functools
from collections.abc import Callable
from typing import Any

import fp4.torch as ops
import torch
from fp4.torch import slots

HEAD, POSITIONS, PAGE = 128, 64, 16
FORMATS = ("nvfp4", "mxfp4", "mxfp8_e4m3", "fp8_block128", "fp8_row")


@functools.cache
def _drawn(device: Any, dtype: Any, seed: int, most: int, *shape: int) -> Any:
    """Normal numbers, or integers below `most`, the same on each device. Graphs read them: no copy
    from the host is captured."""
    generator = torch.Generator().manual_seed(seed)
    drawn = (torch.randint(most, shape, generator=generator) if most
             else torch.randn(*shape, generator=generator))
    return drawn.to(dtype).to(device)


def numbers(x: Any, *shape: int, dtype: Any = torch.bfloat16) -> Any:
    return _drawn(x.device, dtype, 5, 0, *shape)


def integers(x: Any, most: int, *shape: int, dtype: Any = torch.int64) -> Any:
    return _drawn(x.device, dtype, 6, most, *shape)


def amax(x: Any, format: str) -> Any:
    return torch.full((), 3.5, device=x.device) if format == "nvfp4" else None


def heads(x: Any) -> Any:
    return x.view(x.shape[0], -1, HEAD)


def angles(x: Any) -> "tuple[Any, Any]":
    return numbers(x, POSITIONS, HEAD, dtype=torch.float32), integers(x, POSITIONS, x.shape[0])


def cache(x: Any, format: str) -> "list[Any]":
    """A cache with the heads of `x` as keys and values."""
    dtype, scale, packed, block, _ = slots._FORMATS.get(format, (x.dtype, None, 1, 0, ""))
    shape = (-(-2 * len(x) // PAGE), PAGE, x.shape[1] // HEAD)
    size = HEAD * torch.empty(0, dtype=dtype).itemsize // packed
    new = functools.partial(torch.zeros, dtype=torch.uint8, device=x.device)
    codes = [new(*shape, size).view(dtype) for _ in "kv"]
    scales = [None if scale is None else new(*shape, HEAD // block).view(scale) for _ in "kv"]
    factor = torch.full((1,), 0.5, device=x.device) if format in slots._HAVE_FACTOR else None
    places = 2 * torch.arange(len(x), device=x.device) - 1
    ops.reshape_and_cache(heads(x), heads(x).flip(0), places, *codes, format=format,
                          key_scales=scales[0], value_scales=scales[1], key_factor=factor,
                          value_factor=factor)
    return codes + [value for value in scales if value is not None]


def route(x: Any, **options: Any) -> Any:
    return ops.route(x[:, :64], 4, **options)


def deepseek(x: Any) -> Any:
    return route(x, scores="sigmoid", renormalize="sum", bias=numbers(x, 64), num_groups=8,
                 top_groups=4, factor=2.5, eps=1e-20)


def normed(x: Any, kind: str, format: str, **options: Any) -> Any:
    """Codes, scales, elements and residual."""
    norm = ops.rms_norm_quantize if kind == "rms" else ops.layer_norm_quantize
    given = amax(x, format) if "per_row" not in options else None
    return norm(x, numbers(x, x.shape[1]), residual=x.flip(0), format=format, amax=given, **options)


def labels(x: Any) -> Any:
    return integers(x, x.shape[1], len(x), dtype=torch.int32)


def losses(x: Any) -> Any:
    return torch.ops.fp4.cross_entropy(x, labels(x))


def backward(x: Any, kind: str) -> Any:
    return torch.ops.fp4.norm_backward(x.flip(0), x, x, numbers(x, x.shape[1]), kind, 1e-5, None)


def operations() -> "dict[str, Callable[[Any], Any]]":
    found: dict[str, Callable[[Any], Any]] = {}
    for kind in ("rms", "layer"):
        for format in FORMATS:
            found[f"{kind}_norm_quantize, {format}"] = (
                lambda x, k=kind, f=format: normed(x, k, f, keep=True))
        found[f"{kind}_norm_quantize, per row"] = lambda x, k=kind: normed(
            x, k, "nvfp4", per_row=True)
        found[f"{kind}_norm_quantize, stochastic"] = lambda x, k=kind: normed(
            x, k, "nvfp4", rounding="stochastic", rng=integers(x, 9, 2))
        found[f"norm_backward, {kind}"] = lambda x, k=kind: backward(x, k)
    found["rms_norm"] = lambda x: ops.rms_norm(x, numbers(x, x.shape[1]), weight_offset=1.0)
    found["layer_norm"] = lambda x: ops.layer_norm(x, residual=x)
    for activation in ("silu", "gelu_tanh", "gpt_oss"):
        found[f"silu_and_mul_quantize, {activation}"] = lambda x, a=activation: (
            ops.silu_and_mul_quantize(x, activation=a, amax=amax(x, "nvfp4")))
    for format in FORMATS[1:]:
        found[f"silu_and_mul_quantize, {format}"] = lambda x, f=format: (
            ops.silu_and_mul_quantize(x, format=f))
    found["silu_and_mul"] = ops.silu_and_mul
    found["silu_and_mul_backward"] = lambda x: torch.ops.fp4.silu_and_mul_backward(
        x[:, :512].contiguous(), x)
    for interleaved in (False, True):
        found[f"rotate{', interleaved' if interleaved else ''}"] = lambda x, i=interleaved: (
            ops.rotate(heads(x), *angles(x), interleaved=i))
    found["rotate, QK-norm"] = lambda x: ops.rotate(heads(x), *angles(x), weight=numbers(x, HEAD))
    for format in ("nvfp4", "mxfp8_e4m3", "fp8_row"):
        found[f"rotate_quantize, {format}"] = lambda x, f=format: ops.rotate_quantize(
            heads(x), *angles(x), weight=numbers(x, HEAD), format=f, amax=amax(x, f))
    for format in ("", *slots._FORMATS):
        found[f"reshape_and_cache, {format or 'bf16'}"] = lambda x, f=format: cache(x, f)
    for format in ("nvfp4", "mxfp8_e4m3", "fp8_block128"):
        found[f"gather_quantize, {format}"] = lambda x, f=format: ops.gather_quantize(
            x, integers(x, len(x), 2 * len(x)), format=f, amax=amax(x, f))
    found["combine"] = lambda x: ops.combine(
        x, integers(x, len(x), len(x), 4), numbers(x, len(x), 4, dtype=torch.float32))
    found["route, softmax"] = lambda x: route(x, renormalize="sum")
    found["route, softmax of the chosen"] = lambda x: route(
        x, scores="logits", renormalize="softmax")
    found["route, DeepSeek-V3"] = deepseek
    found["permute_tokens"] = lambda x: ops.permute_tokens(
        integers(x, 64, len(x), 4, dtype=torch.int32), 64, multiple=16)
    found["cross_entropy"] = losses
    found["cross_entropy_backward"] = lambda x: torch.ops.fp4.cross_entropy_backward(
        x, labels(x), losses(x)[1], numbers(x, len(x), dtype=torch.float32))
    return {f"fp4.torch.{name}": call for name, call in found.items()}
