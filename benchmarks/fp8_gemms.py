#!/usr/bin/env python3
"""Times torch._scaled_mm of e4m3 operands with one scale per tensor: M x K activations, N x K
weights.

  fp8_gemms.py M N K

Prints the median of 20 replays of a CUDA graph of calls; operands change between calls, so that the
L2 cache holds none of them.
"""
import statistics
import sys

import torch


def main():
    rows, columns, depth = map(int, sys.argv[1:])
    sets = max(2, min(24, (240 << 20) // ((rows + columns) * depth)))
    e4m3 = torch.float8_e4m3fn
    operands = [(torch.randn(rows, depth, device="cuda").to(e4m3),
                 torch.randn(columns, depth, device="cuda").to(e4m3).t()) for _ in range(sets)]
    one = torch.ones((), device="cuda")

    def multiply(a, b):
        return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for a, b in operands:
            multiply(a, b)
    torch.cuda.synchronize()
    repeats = max(1, 20 // sets)
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            for a, b in operands:
                multiply(a, b)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(25):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * begin.elapsed_time(end) / (repeats * sets))
    median = statistics.median(times[5:])
    print(f"fp8_{rows}_{columns}x{depth} torch fp8 per tensor {median:.2f} us, "
          f"{2e-6 * rows * columns * depth / median:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
