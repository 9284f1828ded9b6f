"""The layers of a model of transformers as a decoder runs them: which are merged, which have a
kernel, and what keeps one from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError
from .merged import WeightOnlyGate, merge_linears, share_tiles
from .moe import MoE
from .routed import RoutedExperts
from .shards import Share
from .weight_only import WeightOnlyLinear

_Call = Callable[[torch.Tensor], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Family:
    """The facts about models of one `model_type`.

    Attributes:
        rounds_first: RMSNorm rounds the normed value before it multiplies by its weight.
        offset: what RMSNorm adds to its weight, or None.
        has_kinds: layers have angles by their kind.
    """

    rounds_first: bool = True
    offset: float | None = None
    has_kinds: bool = False


#: Models whose layers are: RMSNorm, attention with rotated heads, its residual, RMSNorm, a gated
#: unit or a mixture of experts, its residual. Gemma has an RMSNorm in front of each residual too.
FAMILIES = {**dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe"),
                            Family()),
            "gpt_oss": Family(rounds_first=False),
            "gemma3_text": Family(rounds_first=False, offset=1.0, has_kinds=True)}
#: Activations of gated units by the names of transformers.
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh"}
#: Kinds of rotary embeddings whose angles depend on the position alone.
_ROTATIONS = ("default", "linear", "llama3", "yarn", "proportional")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer of a decoder.

    Attributes:
        norm, norm_behind: weights of RMSNorm before attention and before the gated unit.
        qkv: [T, K] -> the heads of queries, keys and values, one behind the other.
        head_weights: of RMSNorm of heads, [heads of queries, keys and values, D], or None.
        out: the projection behind attention.
        unit: the gated unit, or None.
        down: the projection behind it, or a mixture of experts.
        scale: of attention.
        window: the last keys that a token sees, its own included; None where it sees all.
        sinks: float32 [heads], a logit of each head that takes part in its softmax, or None.
        norm_of_out, norm_of_mlp: weights of RMSNorm of what is added to the residual, or None.
        kind: the kind of the layer, by which its angles are chosen, where a model has several.
    """

    norm: torch.Tensor
    qkv: _Call
    head_weights: torch.Tensor | None
    out: _Call
    norm_behind: torch.Tensor
    unit: _Call | None
    down: _Call
    scale: float
    window: int | None = None
    sinks: torch.Tensor | None = None
    norm_of_out: torch.Tensor | None = None
    norm_of_mlp: torch.Tensor | None = None
    kind: str = ""


class Fallbacks:
    """The layers of a model that run without a kernel of fp4: their names, and why."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def refuse(self) -> None:
        """A UsageError that names the layers, if there are any."""
        if not self.reasons:
            return
        first = "; ".join(f"'{name}' {reason}" for name, reason in list(self.reasons.items())[:3])
        more = len(self.reasons) - 3
        count = "a layer has" if len(self.reasons) == 1 else f"{len(self.reasons)} layers have"
        raise UsageError(f"{count} no kernel: {first}" + (f"; and {more} more" if more > 0 else ""),
                         "fp4.torch.quantize_(model, weight_only=True) makes layers that have "
                         "kernels, and allow_fallback=True runs the others by torch")


def check_model(model: Any) -> Any:
    """The configuration of a model that a decoder runs, or a UsageError that says why it runs
    none."""
    config = getattr(model, "config", None)
    family = getattr(config, "model_type", None)
    if family not in FAMILIES or not hasattr(model, "lm_head"):
        raise UsageError(f"'model' must be a causal language model of {', '.join(FAMILIES)}, but "
                         f"is a {type(model).__name__}"
                         + (f" of {family}" if family else ""),
                         "fp4.torch.quantize_ serves other models, layer by layer")
    dtypes = {parameter.dtype for parameter in model.parameters()
              if parameter.is_floating_point()}
    if dtypes - {torch.bfloat16}:
        names = ", ".join(sorted(str(dtype)[6:] for dtype in dtypes))
        raise UsageError(f"'model' must be bfloat16, but its parameters are {names}",
                         "call model.bfloat16() before it is quantized")
    rotary = getattr(model.model.rotary_emb, "rope_type", "default")
    for kind in rotary.values() if isinstance(rotary, dict) else (rotary,):
        if kind not in _ROTATIONS:
            raise UsageError(f"'model' must have rotary embeddings of {', '.join(_ROTATIONS)}, but "
                             f"has {kind}", "its angles depend on the length, which the device has")
    for name in ("final_logit_softcapping", "attn_logit_softcapping"):
        if getattr(config, name, None) is not None:
            raise UsageError(f"'model' must have no {name}, but has {getattr(config, name)}",
                             "fp4.torch.quantize_ serves other models, layer by layer")
    if getattr(config, "use_bidirectional_attention", False):
        raise UsageError("'model' must be causal, but its tokens see those behind them",
                         "fp4.torch.quantize_ serves other models, layer by layer")
    return config


def layers_of(model: Any, config: Any, fallbacks: Fallbacks, share: Share) -> list[Layer]:
    """The layers of the model, or a rank's part of them. The layers of the model read the tiles of
    those that are merged, if one rank has all."""
    share.check(config)
    reader = _Reader(config, fallbacks, share)
    return [reader.layer(f"model.layers.{number}", layer, _window_of(config, number))
            for number, layer in enumerate(model.model.layers)]


class _Reader:
    def __init__(self, config: Any, fallbacks: Fallbacks, share: Share) -> None:
        self.config, self.fallbacks, self.share = config, fallbacks, share

    def layer(self, name: str, layer: Any, window: int | None) -> Layer:
        attention, prefix = layer.self_attn, f"{name}.self_attn"
        sinks = getattr(attention, "sinks", None)
        sizes = rows_of_heads(self.config)
        qkv = self.together(prefix, {
            part: self.share.rows(f"{prefix}.{part}", getattr(attention, part), size)
            for part, size in zip(("q_proj", "k_proj", "v_proj"), sizes)})
        out = self.one(f"{prefix}.o_proj",
                       self.share.columns(f"{prefix}.o_proj", attention.o_proj, sizes[0]))
        unit, down = self.mlp(f"{name}.mlp", layer.mlp)
        norm, norm_behind, of_out, of_mlp = self.norms(name, layer)
        return Layer(norm, qkv, _head_weights(attention, self.config, self.share), out,
                     norm_behind, unit, down, float(attention.scaling), window,
                     None if sinks is None else self.share.own(sinks.detach().float()), of_out,
                     of_mlp, attention.layer_type if family_of(self.config).has_kinds else "")

    def norms(self, name: str, layer: Any) -> tuple[Any, Any, Any, Any]:
        """The weights of RMSNorm: before attention, before the unit, and of what is added to the
        residual behind each, or None."""
        names = ["input_layernorm", "post_attention_layernorm"]
        if hasattr(layer, "pre_feedforward_layernorm"):
            names = ["input_layernorm", "pre_feedforward_layernorm", "post_attention_layernorm",
                     "post_feedforward_layernorm"]
        weights = [_weight_of(f"{name}.{one}", getattr(layer, one), self.config) for one in names]
        norm, norm_behind, of_out, of_mlp = (*weights, None, None)[:4]
        return norm, norm_behind, of_out, of_mlp

    def one(self, name: str, layer: Any) -> _Call:
        if not isinstance(layer, WeightOnlyLinear):
            self.fallbacks.reasons[name] = f"is a {type(layer).__name__}"
        call: _Call = layer
        return call

    def together(self, name: str, parts: dict[str, Any]) -> _Call:
        """Layers of one input as one call."""
        before = len(self.fallbacks.reasons)
        calls = [self.one(f"{name}.{part}", layer) for part, layer in parts.items()]
        if len(self.fallbacks.reasons) == before:
            try:
                merged = merge_linears(*parts.values())
                if self.share.ranks == 1:
                    share_tiles(merged, *parts.values())
                return merged
            except UsageError as error:
                self.fallbacks.reasons[name] = f"cannot be merged: {error.message}"
        return lambda x: torch.cat([call(x) for call in calls], -1)

    def mlp(self, name: str, mlp: Any) -> tuple[_Call | None, _Call]:
        """A gated unit and the projection behind it, or none and a mixture of experts."""
        if isinstance(mlp, MoE) or hasattr(mlp, "experts"):
            return None, self.mixture(name, mlp)
        inner = self.config.intermediate_size
        parts = [self.share.rows(f"{name}.{part}", getattr(mlp, part), inner)
                 for part in ("gate_proj", "up_proj")]
        down = self.share.columns(f"{name}.down_proj", mlp.down_proj, inner)
        return self.unit(name, mlp, *parts), self.one(f"{name}.down_proj", down)

    def mixture(self, name: str, block: Any) -> _Call:
        """A mixture of experts that returns no weights, whether the block does or not."""
        if isinstance(block.experts, RoutedExperts):
            experts = self.share.experts(f"{name}.experts", block.experts)
            try:
                made = block if isinstance(block, MoE) else MoE.from_block(block)
                return MoE(made.router, experts, None if self.share.rank else made.shared)
            except UsageError as error:
                self.fallbacks.reasons[name] = f"is no layer of experts: {error.message}"
        else:
            self.fallbacks.reasons[f"{name}.experts"] = f"is a {type(block.experts).__name__}"
        return lambda x: _first(block(x[None]))[0]

    def unit(self, name: str, mlp: Any, gate_part: Any, up_part: Any) -> _Call:
        """The gated unit of an MLP."""
        before = len(self.fallbacks.reasons)
        gate, up = self.one(f"{name}.gate_proj", gate_part), self.one(f"{name}.up_proj", up_part)
        activation = str(getattr(self.config, "hidden_activation", None) or getattr(
            self.config, "hidden_act", "silu"))
        if activation not in _ACTIVATIONS:
            self.fallbacks.reasons[name] = (f"has the activation {activation}, and not one of "
                                            f"{', '.join(_ACTIVATIONS)}")
        if len(self.fallbacks.reasons) == before:
            try:
                return WeightOnlyGate(gate_part, up_part, _ACTIVATIONS[activation])
            except UsageError as error:
                self.fallbacks.reasons[name] = f"cannot be one kernel: {error.message}"
        return lambda x: mlp.act_fn(gate(x)) * up(x)


def _first(results: Any) -> torch.Tensor:
    y: torch.Tensor = results[0] if isinstance(results, tuple) else results
    return y


def family_of(config: Any) -> Family:
    return FAMILIES[config.model_type]


def _window_of(config: Any, number: int) -> int | None:
    """The window of a layer. Without a list of kinds all layers have one, if the model has."""
    kinds = getattr(config, "layer_types", None)
    has_window = (kinds[number] == "sliding_attention" if kinds
                  else getattr(config, "use_sliding_window", True))
    window: int | None = getattr(config, "sliding_window", None)
    return window if has_window else None


def _weight_of(name: str, norm: Any, config: Any) -> torch.Tensor:
    """The weight of an RMSNorm with the epsilon of all."""
    epsilon = getattr(norm, "variance_epsilon", getattr(norm, "eps", None))
    if epsilon is None or epsilon != config.rms_norm_eps:
        raise UsageError(f"'{name}' must be an RMSNorm with the epsilon of the configuration, "
                         f"{config.rms_norm_eps}, but is a {type(norm).__name__} with {epsilon}",
                         "fp4.torch.quantize_ serves other models, layer by layer")
    weight: torch.Tensor = norm.weight.detach()
    return weight


def size_of_heads(config: Any) -> int:
    """The elements of a head."""
    size: int = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads)
    return size


def rows_of_heads(config: Any) -> tuple[int, int, int]:
    """Rows of the projections of queries, keys and values of all ranks."""
    size = size_of_heads(config)
    keys = config.num_key_value_heads * size
    return config.num_attention_heads * size, keys, keys


def _head_weights(attention: Any, config: Any, share: Share) -> torch.Tensor | None:
    """The weights of RMSNorm of heads: those of values, which are stored as they are, are 1."""
    norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
    if norms[0] is None or norms[1] is None:
        return None
    query, key = (_weight_of(name, norm, config) for name, norm in zip(("q_norm", "k_norm"), norms))
    heads, key_heads = share.heads(config)
    return torch.cat([query.expand(heads, -1), key.expand(key_heads, -1),
                      torch.ones_like(key).expand(key_heads, -1)])
