"""A causal language model whose weights, activations or caches have the numbers of a format, and
the distance from the model without."""
import contextlib
import dataclasses
import math

import torch
from formats import CACHES, INPUTS, WEIGHTS
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

PART = 256  # positions whose logits are in memory at a time


@dataclasses.dataclass(frozen=True)
class Variant:
    """A choice of formats for tensors; "" is bf16.

    Attributes:
        weights, inputs: of the linear layers but the head.
        head: of the weights of the head.
        embeddings: those of the head are also the embeddings.
        stored: weights are those of the checkpoint with this name.
    """

    name: str
    weights: str = ""
    inputs: str = ""
    cache: str = ""
    head: str = ""
    embeddings: bool = False
    stored: str = ""


def of_weights():
    yield Variant("bf16")
    yield Variant("fp8 blocks", "fp8 blocks")
    for format in ("nvfp4", "nvfp4, four over six", "mxfp4", "mxfp4, rceil"):
        yield Variant(format, format)
    yield Variant("nvfp4 5 bits", stored="nvfp4-5-bits")
    yield Variant("nvfp4, head nvfp4", "nvfp4", head="nvfp4")
    yield Variant("nvfp4, head and embeddings nvfp4", "nvfp4", head="nvfp4", embeddings=True)
    yield Variant("nvfp4 w4a8", "nvfp4", "fp8")
    yield Variant("mxfp4 w4a8", "mxfp4", "mxfp8")
    yield Variant("nvfp4 w4a4", "nvfp4", "nvfp4")
    yield Variant("nvfp4 w4a4, rotated", "nvfp4, rotated", "nvfp4, rotated")
    yield Variant("mxfp4 w4a4", "mxfp4", "mxfp4")


def of_caches():
    for format in CACHES:
        yield Variant(format, cache=format)


# ===--- A model with other numbers ---------------------------------------=== #


class Subject:
    """A model in float32, whose weights begin as those of bf16.

    Attributes:
        linears: the layers whose weights have formats, by their names.
        errors: {layer: (sum of squares of differences, sum of squares)} of results of attention.
    """

    def __init__(self, model):
        self.model = model
        self.linears = {name: layer for name, layer in model.named_modules()
                        if isinstance(layer, torch.nn.Linear) and name != "lm_head"}
        self.originals = {name: layer.weight.data for name, layer in self.linears.items()}
        self.table = model.lm_head.weight.data
        self.errors, self._cache = {}, None
        ALL_ATTENTION_FUNCTIONS.register("cached", self._attention)
        ALL_MASK_ATTENTION_FUNCTIONS.register("cached", ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
        model.set_attn_implementation("cached")

    def _attention(self, module, query, key, value, mask, **options):
        plain = ALL_ATTENTION_FUNCTIONS["sdpa"]
        result, _ = plain(module, query, key, value, mask, **options)
        if self._cache is None:
            return result, None
        key, value = (self._cache(x.flatten(0, 2)).view(x.shape) for x in (key, value))
        found, _ = plain(module, query, key, value, mask, **options)
        old = self.errors.get(module.layer_idx, (0.0, 0.0))
        new = (found - result).square().sum().item(), result.square().sum().item()
        self.errors[module.layer_idx] = old[0] + new[0], old[1] + new[1]
        return found, None

    @contextlib.contextmanager
    def put(self, variant, stored):
        """Meanwhile the model is the variant. Yields the weights of its head."""
        weights = WEIGHTS[variant.weights].numbers if variant.weights else None
        hooks, self.errors = [], {}
        self._cache = CACHES[variant.cache].numbers if variant.cache else None
        for name, layer in self.linears.items():
            if weights or name in stored:
                layer.weight.data = stored[name] if name in stored else weights(self.originals[name])
            if variant.inputs:
                hooks.append(layer.register_forward_pre_hook(_quantizing(INPUTS[variant.inputs])))
        head = WEIGHTS[variant.head].numbers(self.table) if variant.head else self.table
        if variant.embeddings:
            self.model.model.embed_tokens.weight.data = head
        try:
            yield head
        finally:
            for hook in hooks:
                hook.remove()
            for name, layer in self.linears.items():
                layer.weight.data = self.originals[name]
            self.model.model.embed_tokens.weight.data = self.table
            self._cache = None

    def hidden(self, tokens):
        return hidden_of(self.model, tokens)


def hidden_of(model, tokens):
    """[windows, length, size] in front of the head."""
    return torch.cat([model.model(row[None], use_cache=False).last_hidden_state for row in tokens])


def _quantizing(numbers):
    def hook(layer, given):
        x, = given
        return numbers(x.flatten(0, -2)).view(x.shape).to(x.dtype),
    return hook


# ===--- Distances --------------------------------------------------------=== #


class Scores:
    """Sums over positions of what a head says about the token behind them."""

    def __init__(self):
        self.loss = self.divergence = 0.0
        self.same = self.count = 0

    def add(self, mine, plain, targets):
        """Adds log probabilities [positions, vocabulary] beside those of the model in bf16."""
        self.loss -= mine.gather(1, targets[:, None]).double().sum().item()
        self.divergence += (plain.exp() * (plain - mine)).sum(1).double().sum().item()
        self.same += (mine.argmax(1) == plain.argmax(1)).sum().item()
        self.count += len(targets)

    def row(self):
        return {"perplexity": math.exp(self.loss / self.count), "divergence": self.divergence / self.count,
                "same": self.same / self.count}


def score(hidden, head, plain, table, tokens):
    """Scores of all windows, and of the first, of a model by its hidden states and its head, beside
    one with other hidden states and the head `table`. The last tokens of windows are in front of
    none."""
    all, first = Scores(), None
    for mine, other, row in zip(hidden, plain, tokens):
        for begin in range(0, len(row) - 1, PART):
            part = slice(begin, min(begin + PART, len(row) - 1))
            expected = torch.log_softmax(other[part].float() @ table.t(), 1)
            found = torch.log_softmax((mine[part] @ head.t()).float(), 1)
            all.add(found, expected, row[1:][part])
        first = first or all.row()
    return all.row(), first


def errors_of(subject):
    """The relative error of the results of attention by layer."""
    return {layer: math.sqrt(difference / all) for layer, (difference, all) in sorted(subject.errors.items())}


def bits_of(variant, subject, stored):
    """The mean bits of the weights of the linear layers; those that a checkpoint keeps have 16."""
    if not variant.stored:
        return WEIGHTS[variant.weights].bits if variant.weights else 16.0
    sizes = {name: weight.numel() for name, weight in subject.originals.items()}
    packed = sum(sizes[name] for name in stored)
    return 16.0 - (16.0 - WEIGHTS["nvfp4"].bits) * packed / sum(sizes.values())
