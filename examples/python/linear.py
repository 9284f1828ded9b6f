"""A torch model whose linear layers have 4-bit weights, on a CPU in the simulator."""

import fp4.torch
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
model = model.to(torch.bfloat16)
x = torch.randn(4, 256, dtype=torch.bfloat16)
exact = model(x)
print(fp4.torch.quantize_(model, weight_only=True))  # a line for each layer: format, bytes
print("relative error:", ((model(x) - exact).norm() / exact.norm()).item())
