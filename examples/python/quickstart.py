"""Y = X * W^T in NVFP4 on the CPU: the simulator executes the PTX of sm_100a, and Y is checked."""

import pathlib

import fp4
import numpy as np

example = pathlib.Path(__file__).resolve().parent.parent / "nvfp4_linear.mlir"
linear = fp4.compile(example, dims={"N": 128, "K": 256})

rng = np.random.default_rng(0)
x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in [(96, 256), (128, 256)])
bf16 = [(value.view(np.uint32) >> 16).astype(np.uint16) for value in (x, w)]  # or ml_dtypes, torch
y = (linear(*bf16, verify=True).view(np.uint16).astype(np.uint32) << 16).view(np.float32)

print(f"{len(linear.kernels)} kernels for {linear.target}; Y equals the reference model")
print(f"distance to the fp32 product: {np.linalg.norm(y - x @ w.T) / np.linalg.norm(x @ w.T):.3f}")
