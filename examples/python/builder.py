"""A linear layer with a ReLU, built without MLIR text: Y = relu(X * W^T) in NVFP4."""

import fp4
import numpy as np

builder = fp4.Builder()
f = builder.function("linear_relu")
x = f.argument("x", ("M", 256), "bf16")  # the rows are known when the function is called
w = f.argument("w", (128, 256), "bf16")
qx = f.quantize(x, "nvfp4", amax=f.amax(x), layout="tiled_128x4")
qw = f.quantize(w, "nvfp4", amax=f.amax(w), layout="tiled_128x4")
y = f.matmul(qx, qw, alpha=f.matmul_alpha(qx, qw), epilogue=["relu"])
f.returns(y=y)
linear_relu = fp4.compile(builder)

rng = np.random.default_rng(0)
values = [rng.standard_normal(shape, dtype=np.float32) for shape in [(96, 256), (128, 256)]]
bf16 = [(value.view(np.uint32) >> 16).astype(np.uint16) for value in values]
result = linear_relu(*bf16, verify=True)  # in the simulator; compared with the reference model
bits = np.asarray(result).view(np.uint16)

print(builder)
print(f"{linear_relu.manifest.find('linear_relu')}: equal to the reference, "
      f"{(bits == 0).mean():.0%} zeros")
