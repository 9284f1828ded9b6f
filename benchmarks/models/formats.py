"""The numbers that tensors have in fp4's formats: fp4.torch and compiled quantizers on the device
of the tensor, which is the simulator for tensors of the CPU, with the same bits.

Each function takes a matrix and returns its numbers in float32."""
import dataclasses
import functools
from collections.abc import Callable

import fp4
import fp4.torch
import torch
from fp4.torch import execution, programs

Numbers = Callable[[torch.Tensor], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Format:
    """A format: its numbers, and the bits of an element with its share of the scales."""

    numbers: Numbers
    bits: float


def four_bits(format, recipe=""):
    def numbers(x):
        return fp4.torch.dequantize(fp4.torch.quantize(x.bfloat16(), format=format, recipe=recipe, layout="linear"),
                                    torch.float32)
    return numbers


def rotated(x):
    """NVFP4 of groups of 128 behind a Hadamard transform, which matmuls do not notice where both
    operands have it. The numbers are those of the transformed matrix."""
    return four_bits("nvfp4")(turned(x))


def turned(x):
    return fp4.torch.hadamard(x.bfloat16().contiguous(), -1, size=128)


@functools.lru_cache
def quantizer(format, columns, blocks, scales, recipe, square, target):
    """(x [M, columns]) -> elements in E4M3, scales."""
    side = "block = array<i64: 128, 128>, " if square else ""
    rows = "?" if not square else str(square)
    given, data = f"tensor<{rows}x{columns}xbf16>", f"tensor<{rows}x{columns}xf8E4M3FN>"
    shape = f"tensor<{rows if not square else square // 128}x{blocks}x{scales}>"
    dims = ', fp4.dims = ["M", ""]' if not square else ""
    return programs.compile_text(f"""func.func @numbers(%x: {given} {{fp4.name = "x"{dims}}})
    -> ({data} {{fp4.name = "q"}}, {shape} {{fp4.name = "s"}}) {{
  %q, %s = fp4.quantize %x {{{side}format = #fp4.format<{format}>, recipe = #fp4.recipe<{recipe}>}}
      : ({given}) -> ({data}, {shape})
  return %q, %s : {data}, {shape}
}}
""", target)


def mxfp8(x):
    rows = x.bfloat16().contiguous()
    data, scales = execution.run(quantizer, ("mxfp8_e4m3", x.shape[1], x.shape[1] // 32, "f8E8M0FNU", "mxfp8_e4m3_floor", 0),
                                 rows, target="sm_90a")
    return data.float() * scales.float().repeat_interleave(32, 1)


def fp8_blocks(x):
    """FP8 with a scale for each 128 x 128 elements, as DeepSeek's weights have it."""
    rows = -(-x.shape[0] // 128) * 128
    padded = torch.nn.functional.pad(x.bfloat16(), (0, 0, 0, rows - x.shape[0]))
    data, scales = execution.run(quantizer, ("fp8_block128", x.shape[1], -(-x.shape[1] // 128), "f32", "fp8_deepgemm", rows),
                                 padded, target="sm_90a")
    wide = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
    return (data.float() * wide[:, :x.shape[1]])[:x.shape[0]]


def fp8_rows(x):
    """FP8 with a scale for each row: of activations, a token."""
    found = fp4.torch.gather_quantize(x.bfloat16().contiguous(), torch.arange(x.shape[0], device=x.device), format="fp8_row")
    return found.data.float() * found.scales


def cached(format, is_calibrated=False):
    """Keys or values as fp4.torch.PagedCache keeps them; with calibrated factors the largest number
    is the largest of the format."""
    largest = {"fp8": 448.0, "nvfp4": 2688.0}

    def numbers(x):
        cache = fp4.torch.PagedCache(1, len(x), key_heads=1, elements=x.shape[1], format=format, device=x.device)
        if is_calibrated:
            cache.key_factors = (x.abs().max() / largest[format]).float().reshape(1)
        rows = x.bfloat16()[None, :, None]
        cache.append(rows, rows)
        return cache.gather()[0][0, :len(x), 0].float()
    return numbers


WEIGHTS = {"nvfp4": Format(four_bits("nvfp4"), 4.5),
           "nvfp4, four over six": Format(four_bits("nvfp4", "four_over_six_squared"), 4.5),
           "mxfp4": Format(four_bits("mxfp4"), 4.25),
           "mxfp4, rceil": Format(four_bits("mxfp4", "ocp_rceil"), 4.25),
           "fp8 blocks": Format(fp8_blocks, 8 + 32 / 128 / 128),
           "nvfp4, rotated": Format(rotated, 4.5)}
INPUTS = {"nvfp4": four_bits("nvfp4"), "mxfp4": four_bits("mxfp4"), "fp8": fp8_rows, "mxfp8": mxfp8,
          "nvfp4, rotated": rotated}
CACHES = {"bf16": Format(lambda x: x.bfloat16().float(), 16), "fp8, scale 1": Format(cached("fp8"), 8),
          "fp8, scale of the tensor": Format(cached("fp8", True), 8),
          "fp8, scales of tokens": Format(fp8_rows, 8 + 32 / 256), "mxfp8": Format(mxfp8, 8.25),
          "nvfp4, scale 1": Format(cached("nvfp4"), 4.5), "nvfp4, scale of the tensor": Format(cached("nvfp4", True), 4.5),
          "mxfp4": Format(cached("mxfp4"), 4.25)}
