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
        mlp: the gated unit and the projection behind it, or a mixture of experts.
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
    mlp: _Call
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


def layers_of(model: Any, config: Any, fallbacks: Fallbacks) -> list[Layer]:
    """The layers of the model. The layers that it has read the tiles of those that are merged."""
    reader = _Reader(config, fallbacks)
    return [reader.layer(f"model.layers.{number}", layer, _window_of(config, number))
            for number, layer in enumerate(model.model.layers)]


class _Reader:
    def __init__(self, config: Any, fallbacks: Fallbacks) -> None:
        self.config, self.fallbacks = config, fallbacks

    def layer(self, name: str, layer: Any, window: int | None) -> Layer:
        attention = layer.self_attn
        sinks = getattr(attention, "sinks", None)
        qkv = self.together(f"{name}.self_attn",
                            {part: getattr(attention, part)
                             for part in ("q_proj", "k_proj", "v_proj")})
        names = ["input_layernorm", "post_attention_layernorm"]
        if hasattr(layer, "pre_feedforward_layernorm"):
            names = ["input_layernorm", "pre_feedforward_layernorm", "post_attention_layernorm",
                     "post_feedforward_layernorm"]
        weights = [_weight_of(f"{name}.{one}", getattr(layer, one), self.config) for one in names]
        norm, norm_behind, *others = weights
        of_out, of_mlp = others or (None, None)
        return Layer(norm, qkv, _head_weights(attention, self.config),
                     self.one(f"{name}.self_attn.o_proj", attention.o_proj), norm_behind,
                     self.mlp(f"{name}.mlp", layer.mlp), float(attention.scaling), window,
                     None if sinks is None else sinks.detach().float(), of_out, of_mlp,
                     attention.layer_type if family_of(self.config).has_kinds else "")

    def one(self, name: str, layer: torch.nn.Module) -> _Call:
        if not isinstance(layer, WeightOnlyLinear):
            self.fallbacks.reasons[name] = f"is a {type(layer).__name__}"
        return layer

    def together(self, name: str, parts: dict[str, Any]) -> _Call:
        """Layers of one input as one call."""
        before = len(self.fallbacks.reasons)
        calls = [self.one(f"{name}.{part}", layer) for part, layer in parts.items()]
        if len(self.fallbacks.reasons) == before:
            try:
                merged = merge_linears(*parts.values())
                share_tiles(merged, *parts.values())
                return merged
            except UsageError as error:
                self.fallbacks.reasons[name] = f"cannot be merged: {error.message}"
        return lambda x: torch.cat([call(x) for call in calls], -1)

    def mlp(self, name: str, mlp: Any) -> _Call:
        """A gated unit and the projection behind it, or a mixture of experts."""
        if isinstance(mlp, MoE) or hasattr(mlp, "experts"):
            return self.mixture(name, mlp)
        unit, down = self.unit(name, mlp), self.one(f"{name}.down_proj", mlp.down_proj)
        return lambda x: down(unit(x))

    def mixture(self, name: str, block: Any) -> _Call:
        """A mixture of experts that returns no weights, whether the block does or not."""
        if isinstance(block.experts, RoutedExperts):
            try:
                made = block if isinstance(block, MoE) else MoE.from_block(block)
                return MoE(made.router, made.experts, made.shared)
            except UsageError as error:
                self.fallbacks.reasons[name] = f"is no layer of experts: {error.message}"
        else:
            self.fallbacks.reasons[f"{name}.experts"] = f"is a {type(block.experts).__name__}"
        return lambda x: _first(block(x[None]))[0]

    def unit(self, name: str, mlp: Any) -> _Call:
        """The gated unit of an MLP."""
        before = len(self.fallbacks.reasons)
        gate = self.one(f"{name}.gate_proj", mlp.gate_proj)
        up = self.one(f"{name}.up_proj", mlp.up_proj)
        activation = str(getattr(self.config, "hidden_activation", None) or getattr(
            self.config, "hidden_act", "silu"))
        if activation not in _ACTIVATIONS:
            self.fallbacks.reasons[name] = (f"has the activation {activation}, and not one of "
                                            f"{', '.join(_ACTIVATIONS)}")
        if len(self.fallbacks.reasons) == before:
            try:
                return WeightOnlyGate(mlp.gate_proj, mlp.up_proj, _ACTIVATIONS[activation])
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


def _head_weights(attention: Any, config: Any) -> torch.Tensor | None:
    """The weights of RMSNorm of heads: those of values, which are stored as they are, are 1."""
    norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
    if norms[0] is None or norms[1] is None:
        return None
    query, key = (_weight_of(name, norm, config) for name, norm in zip(("q_norm", "k_norm"), norms))
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    return torch.cat([query.expand(heads, -1), key.expand(key_heads, -1),
                      torch.ones_like(key).expand(key_heads, -1)])
