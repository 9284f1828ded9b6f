"""A small transformer that learns Python's reference manual, in bfloat16 and in NVFP4.

    python examples/python/train.py --device cuda --steps 1000
    python examples/python/train.py --size 64 --layers 1 --batch 1 --context 32 --steps 3

The text is that of `help()`, pydoc_data.topics, which every Python has; a token is a byte. All
linear layers of the blocks are trained with TransformerEngine's NVFP4 recipe (fp4.torch.Linear);
embeddings and the head stay as they are. The two models begin with the same weights and see the
same batches. Weights are float32, and torch.autocast makes activations bfloat16.
"""

import argparse
import copy
import math
import sys
import time
from typing import Any

import fp4.torch
import torch
from torch import Tensor
from torch.nn import functional as F


def text() -> Tensor:
    """The manual as bytes, int64."""
    from pydoc_data.topics import topics

    return torch.tensor(list("\n".join(topics[name] for name in sorted(topics)).encode()))


class Block(torch.nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (torch.nn.LayerNorm(size) for _ in range(2))
        self.qkv = torch.nn.Linear(size, 3 * size, bias=False)
        self.out = torch.nn.Linear(size, size, bias=False)
        self.up = torch.nn.Linear(size, 4 * size, bias=False)
        self.down = torch.nn.Linear(4 * size, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, size = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(
            2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, size))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(torch.nn.Module):
    """Bytes [B, L] to logits [B, L, 256]."""

    def __init__(self, size: int, layers: int, context: int) -> None:
        super().__init__()
        self.bytes = torch.nn.Embedding(256, size)
        self.positions = torch.nn.Embedding(context, size)
        self.blocks = torch.nn.ModuleList(Block(size, max(1, size // 64)) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(size)
        self.head = torch.nn.Linear(size, 256, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.02)
        for block in self.blocks:
            for layer in (block.out, block.down):
                torch.nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * layers))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.bytes(ids) + self.positions.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def in_nvfp4(model: Model) -> Model:
    """A copy whose blocks are trained in NVFP4."""
    made = copy.deepcopy(model)
    fp4.torch.quantize_(made, lambda layer, name: name != "head", training=True)
    return made


class Batches:
    """Random windows of the text, [batch, context + 1]; the same for the same seed. The last
    twentieth of the text is for validation."""

    def __init__(self, data: Tensor, batch: int, context: int, device: str) -> None:
        split = len(data) * 19 // 20
        self.parts = {"train": data[:split], "valid": data[split:]}
        self.batch, self.context, self.device = batch, context, device

    def draw(self, part: str, generator: torch.Generator) -> Tensor:
        data = self.parts[part]
        begins = torch.randint(len(data) - self.context - 1, (self.batch, 1), generator=generator)
        return data[begins + torch.arange(self.context + 1)].to(self.device)


def loss_of(model: Any, window: Tensor) -> Tensor:
    with torch.autocast(window.device.type, torch.bfloat16):
        logits = model(window[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), window[:, 1:].flatten())


def validate(model: Any, batches: Batches, count: int = 8) -> float:
    generator = torch.Generator().manual_seed(99)
    with torch.no_grad():
        losses = [loss_of(model, batches.draw("valid", generator)) for _ in range(count)]
    return float(torch.stack(losses).mean())


def train(model: Any, batches: Batches, steps: int, every: int,
          rate: float = 1e-3) -> "list[tuple[int, float, float]]":
    """(step, mean training loss since the last row, validation loss) at every `every` steps."""
    generator = torch.Generator().manual_seed(1)
    torch.manual_seed(2)  # of stochastic rounding
    optimizer = torch.optim.AdamW(model.parameters(), rate, (0.9, 0.95), weight_decay=0.1)
    warmup = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(
        (step + 1) / warmup, 0.1 + 0.45 * (1 + math.cos(math.pi * step / steps))))
    curve, recent = [], []
    for step in range(1, steps + 1):
        loss = loss_of(model, batches.draw("train", generator))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        recent.append(loss.detach())
        if step % every == 0 or step == steps:
            curve.append((step, float(torch.stack(recent).mean()), validate(model, batches)))
            recent = []
    return curve


def parse(arguments: "list[str]") -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, default in (("size", 512), ("layers", 6), ("batch", 32), ("context", 256),
                          ("steps", 1000), ("every", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args(arguments)


def build(options: argparse.Namespace) -> "tuple[dict[str, Any], Batches]":
    """Makes the two models with the same weights, and the batches."""
    torch.manual_seed(0)
    model = Model(options.size, options.layers, options.context).to(options.device)
    batches = Batches(text(), options.batch, options.context, options.device)
    return {"bf16": model, "NVFP4": in_nvfp4(model)}, batches


def main(arguments: "list[str]") -> "dict[str, list[tuple[int, float, float]]]":
    options = parse(arguments)
    models, batches = build(options)
    parameters = sum(parameter.numel() for parameter in models["bf16"].parameters())
    print(f"{parameters / 1e6:.2f} M parameters, {options.batch * options.context} tokens a step, "
          f"{len(batches.parts['train'])} bytes of text, on {options.device}")
    curves = {}
    for name, model in models.items():
        begin = time.perf_counter()
        curves[name] = train(model, batches, options.steps, options.every)
        print(f"{name}: {time.perf_counter() - begin:.1f} s")
    print(f"{'step':>6} {'bf16':>8} {'NVFP4':>8} {'bf16 valid':>11} {'NVFP4 valid':>12}")
    for (step, loss, valid), (_, loss4, valid4) in zip(curves["bf16"], curves["NVFP4"]):
        print(f"{step:6} {loss:8.4f} {loss4:8.4f} {valid:11.4f} {valid4:12.4f}")
    return curves


if __name__ == "__main__":
    main(sys.argv[1:])
