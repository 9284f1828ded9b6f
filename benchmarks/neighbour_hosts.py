#!/usr/bin/env python3
"""Time of the host: calls of fp4.torch and fp4.compat with 64 rows of 7168 elements.

  benchmarks/neighbour_hosts.py pack BUILD FOLDER     compiles the programs for an H200
  benchmarks/neighbour_hosts.py run FOLDER [--json=FILE]

`run` needs an H200 and PyTorch, and no compiler. Calls are medians of batches that take turns, as
in benchmarks/models/host.py; calls that are `held` run their Python code each time. Each is
compared with its results with the records held before it is timed. No two arguments share memory,
because such calls have no record.
"""
import os
import statistics
import sys
import time

import kit

GPUS = ("sm_90a/h200",)
ROWS, COLUMNS, HEADS, HEAD, EXPERTS = 64, 7168, 8, 128, 128
COUNT, ROUNDS = 200, 30


def calls(device, torch):
    """Functions by name; those of caches and results that are given write them."""
    import fp4.torch as ours
    from fp4.compat import vllm
    plain = {"device": device, "dtype": torch.bfloat16}
    matrix = lambda *shape: torch.randn(*(shape or (ROWS, COLUMNS)), **plain)
    x, wide, weight, numbers = matrix(), matrix(ROWS, 2 * COLUMNS), matrix(COLUMNS), torch.arange(ROWS, device=device)
    amax, logits, table = torch.tensor(6.0, device=device), matrix(ROWS, EXPERTS), torch.randn(4096, HEAD, device=device)
    heads = matrix(ROWS, COLUMNS // HEAD, HEAD)
    ids = torch.randint(EXPERTS, (ROWS, 8), device=device, dtype=torch.int32)
    labels = torch.randint(COLUMNS, (ROWS,), device=device)
    keys, factors = matrix(ROWS, 2, HEADS, HEAD), [torch.ones(1, device=device) for _ in "kv"]
    caches = [torch.zeros(256, 16, HEADS, HEAD, **plain) for _ in "kv"]
    codes = [torch.zeros(256, 16, HEADS, HEAD, device=device, dtype=torch.uint8) for _ in "kv"]
    query, key, value = matrix(1, 128, HEADS, HEAD), matrix(1, 128, HEADS, HEAD), matrix(1, 128, HEADS, HEAD)
    out = torch.empty_like(query)
    cache = lambda to, name: vllm.reshape_and_cache_flash(keys[:, 0], keys[:, 1], *to, numbers, name, *factors)
    return {
        "torch.nn.functional.rms_norm": lambda: torch.nn.functional.rms_norm(x, (COLUMNS,), weight),
        "torch.rms_norm": lambda: ours.rms_norm(x, weight),
        "torch.rms_norm_quantize, NVFP4": lambda: ours.rms_norm_quantize(x, weight, amax=amax),
        "torch.silu_and_mul_quantize, MXFP8": lambda: ours.silu_and_mul_quantize(wide, format="mxfp8_e4m3"),
        "torch.rotate": lambda: ours.rotate(heads, table, numbers),
        "torch.route": lambda: ours.route(logits, 8, renormalize="sum"),
        "torch.permute_tokens": lambda: ours.permute_tokens(ids, EXPERTS),
        "torch.gather_quantize, MXFP4": lambda: ours.gather_quantize(x, numbers, format="mxfp4"),
        "torch.cross_entropy": lambda: ours.cross_entropy(x, labels, reduction="none"),
        "torch.reshape_and_cache": lambda: ours.reshape_and_cache(keys[:, 0], keys[:, 1], numbers, *caches),
        "vllm.reshape_and_cache_flash": lambda: cache(caches, "auto"),
        "vllm.reshape_and_cache_flash, FP8": lambda: cache(codes, "fp8"),
        "torch.attention": lambda: ours.attention(query, key, value),
        "torch.attention, with out": lambda: ours.attention(query, key, value, out=out)}, (*caches, *codes)


def pack(build, folder):
    kit.begin(folder, __file__)
    kit.copy_package(build, folder)
    os.environ.update(FP4_LIBRARY=os.path.join(os.path.abspath(build), "lib", "libfp4.so"),
                      FP4_CACHE=os.path.join(os.path.abspath(folder), "cache"))
    sys.path.insert(0, os.path.abspath(folder))
    import torch
    from fp4.torch import execution
    with torch.no_grad(), execution.collecting() as found:
        for call in calls("cpu", torch)[0].values():
            call()
    kit.assemble(found, GPUS)


def tensors_of(results, torch):
    if isinstance(results, torch.Tensor):
        return [results]
    if not isinstance(results, tuple):
        results = tuple(vars(results).values()) if hasattr(results, "__dict__") else ()
    return [tensor for result in results for tensor in tensors_of(result, torch)]


def verify(name, call, written, torch):
    """Fails where a repeated call gives other bits than its Python code."""
    from fp4.torch import planned

    def found():
        for tensor in written:
            tensor.zero_()
        return [tensor.view(torch.uint8).clone() if tensor.dim() else tensor.clone()
                for tensor in (*tensors_of(call(), torch), *written)]
    with planned.held():
        expected = found()
    found()
    if not all(map(torch.equal, expected, found())):
        raise RuntimeError(f"{name} differs where it is repeated")


def times_of(functions, torch):
    """The times of each function, whose calls the host issues; batches take turns."""
    times = {name: [] for name in functions}
    for number in range(ROUNDS + 2):
        for name, function in functions.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(COUNT):
                function()
            if number >= 2:
                times[name].append((time.perf_counter() - begin) * 1e6 / COUNT)
    return {name: statistics.median(found) for name, found in times.items()}


def measure(folder):
    os.environ["FP4_CACHE"] = os.path.join(folder, "cache")
    torch = kit.open_package(folder)
    from fp4.torch import planned
    with torch.no_grad():
        functions, written = calls("cuda", torch)
        for name, function in functions.items():
            verify(name, function, written, torch)
        repeated = times_of(functions, torch)
        with planned.held():
            held = times_of({name: function for name, function in functions.items() if "functional" not in name}, torch)
    for name, microseconds in repeated.items():
        yield {"call": name, "host_microseconds": round(microseconds, 2), "held": round(held[name], 2) if name in held else None}


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
