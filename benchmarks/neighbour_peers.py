"""Kernels of vLLM that do what some chains of neighbours.py do, where the folder has its library.

  vllm_C.so    vllm/_C.abi3.so of a wheel of vLLM, from which others than sm_90 may be cut
"""
import os

import neighbour_chains

LIBRARY = "vllm_C.so"


def load(folder, torch):
    """The operations of vLLM, or None."""
    path = os.path.join(folder, LIBRARY)
    if not os.path.exists(path):
        return None
    torch.ops.load_library(path)
    return torch.ops._C


def call(ops, kind, rows, columns, torch):
    """A function that does what the chain does, on as many bytes; None where vLLM has none. Angles
    are bf16, and a cache has keys in one half and values in the other."""
    empty = lambda dtype=torch.bfloat16: torch.empty(rows, columns, dtype=dtype, device="cuda")
    both = lambda: torch.randn(rows, 2 * columns, device="cuda", dtype=torch.bfloat16)
    one = torch.ones(1, device="cuda")
    if kind in ("silu-bf16", "gelu_tanh-bf16", "gpt_oss-bf16"):
        name = {"silu-bf16": "silu_and_mul", "gelu_tanh-bf16": "gelu_tanh_and_mul", "gpt_oss-bf16": "swigluoai_and_mul"}[kind]
        x, out = both(), empty()
        return lambda: getattr(ops, name)(out, x)
    if kind == "silu-fp8_block":
        x, out = both(), empty(torch.float8_e4m3fn)
        scales = torch.empty(rows, columns // 128, device="cuda")
        return lambda: ops.silu_and_mul_per_block_quant(out, x, scales, 128, None, False)
    heads, size = columns // neighbour_chains.HEAD, neighbour_chains.HEAD
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    positions = torch.randint(neighbour_chains.POSITIONS, (rows,), device="cuda")
    table = torch.randn(neighbour_chains.POSITIONS, size, device="cuda", dtype=torch.bfloat16)
    if kind == "rope-bf16":
        return lambda: ops.rotary_embedding(positions, x, None, size, table, True)
    if kind == "norm_rope-bf16":
        w = torch.randn(size, device="cuda", dtype=torch.bfloat16)
        return lambda: ops.fused_qk_norm_rope(x, heads, 0, 0, size, 1e-6, w, w, table, True, positions)
    if kind in ("cache-bf16", "cache-fp8"):
        dtype = torch.uint8 if kind == "cache-fp8" else torch.bfloat16
        key, value = x.view(rows, 2, heads // 2, size).unbind(1)
        caches = [torch.empty(neighbour_chains.SLOTS // 16, 16, heads // 2, size, dtype=dtype, device="cuda") for _ in range(2)]
        slots = torch.randperm(neighbour_chains.SLOTS, device="cuda")[:rows]
        name = "fp8" if kind == "cache-fp8" else "auto"
        return lambda: torch.ops._C_cache_ops.reshape_and_cache_flash(key, value, *caches, slots, name, one, one)
    return None
