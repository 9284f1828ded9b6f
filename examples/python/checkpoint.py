"""An NVFP4 checkpoint as vLLM loads it: opened, loaded into a model, compared, and written again.

The checkpoint is made here, so that the example needs no download. CPU tensors run in the
simulator; on a Hopper GPU call model.cuda().
"""

import pathlib
import tempfile

import fp4.checkpoints
import fp4.torch
import torch


class Perceptron(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(128, 256, dtype=torch.bfloat16)
        self.down = torch.nn.Linear(256, 128, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.silu(self.up(x)))


def published(folder: pathlib.Path) -> Perceptron:
    """Quantizes a model and writes it as compressed-tensors does; returns it before that."""
    torch.manual_seed(0)
    original = Perceptron()
    stored = Perceptron()
    stored.load_state_dict(original.state_dict())
    fp4.torch.quantize_(stored, weight_only=True)
    fp4.checkpoints.save(stored, folder, "compressed-tensors")
    return original


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "model-nvfp4"
    original = published(path)

    with fp4.checkpoints.open(path) as checkpoint:
        print(checkpoint)
        weight = checkpoint.read("up")  # an fp4.torch.Scaled
        print(weight, fp4.torch.dequantize(weight).shape)

    with torch.device("meta"):
        model = Perceptron()
    report = fp4.checkpoints.load_into(model, path, weight_only=True)
    print(report)  # a line for each layer

    x = torch.randn(4, 128, dtype=torch.bfloat16)
    with torch.no_grad():
        y, expected = model(x).float(), original(x).float()
    error = (y - expected).norm() / expected.norm()
    print(f"relative error of 4 bits: {error:.3f}")
    assert error < 0.2

    fp4.checkpoints.save(model, path / "again", "modelopt")  # for a program that reads ModelOpt's
