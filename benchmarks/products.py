#!/usr/bin/env python3
"""Times torch.nn.functional.linear in bf16 for ROWS x K activations and N x K weights.

  products.py ROWS [NxK]            8192x8192 where it is left out

Prints the median of 50 calls; operands change between calls, so that the L2 cache holds none of
them.
"""
import statistics
import sys

import torch


def main():
    rows, sets = int(sys.argv[1]), 4
    n, k = map(int, (sys.argv[2] if sys.argv[2:] else "8192x8192").split("x"))
    weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    inputs = [torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for i in range(60):
        begin.record()
        torch.nn.functional.linear(inputs[i % sets], weights[i % sets])
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * begin.elapsed_time(end))
    median = statistics.median(times[10:])
    print(f"{rows} {n}x{k} torch bf16 {median:.2f} us, {2e-6 * rows * n * k / median:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
