"""The routed experts of a transformer: from a module that holds them as 3-D parameters to one that
has them in 4 bits.

transformers keeps the experts of a layer in one module, of which gpt-oss and Mixtral are two kinds:

    | | gpt-oss | Mixtral and most others |
    |---|---|---|
    | gate_up_proj | [experts, hidden, 2 * intermediate] | [experts, 2 * intermediate, hidden] |
    | gates and ups | in turns | one half behind the other |
    | down_proj | [experts, intermediate, hidden] | [experts, hidden, intermediate] |
    | biases | gate_up_proj_bias, down_proj_bias | none |

Parameters and results of the gate decide which one a module is, not its name.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import torch

from ..errors import UsageError
from . import functional as fp4
from . import recipes
from .expert_programs import ACTIVATIONS
from .experts import WeightOnlyExperts, activated, gate_of
from .fp8_experts import FP8Experts
from .mixture import operands, routed_experts, routed_into
from .routing import MOST_EXPERTS, MOST_OF_TOKEN
from .scaled import Scaled


class RoutedExperts(torch.nn.Module):
    """The experts of a layer, in the place of a module of transformers: each token goes to the
    experts that a router chose, and what they give is added, times the router's weights, in fp32.

    A call is one program, and the host waits for nothing. Torch does what is around the matmuls
    where gradients are recorded, for float16 beside MXFP4, and for more than 16 experts of a token
    or 512 here.

    Attributes:
        gate_up: WeightOnlyExperts or FP8Experts with gates, [hidden_size] to [intermediate_size].
        down: the same kind, [intermediate_size] to [hidden_size].
        num_experts: that are here.
        first, total: these are the experts `first` to first + num_experts of `total`; the others,
            of other ranks, add nothing here.

    Raises:
        UsageError: experts or numbers that do not fit.
    """

    #: The part that was read of a checkpoint, (dim, rank, ranks) as shards.of_experts says it.
    part: tuple[int, int, int] | None = None

    def __init__(self, gate_up: WeightOnlyExperts | FP8Experts,
                 down: WeightOnlyExperts | FP8Experts, *, first: int = 0,
                 total: int | None = None) -> None:
        super().__init__()
        if gate_up.gate is None or (gate_up.experts, gate_up.out_features) != (
                down.experts, down.in_features):
            raise UsageError("'gate_up' must have gates, and as many experts and columns as 'down' "
                             f"takes, but got {gate_up} and {down}")
        if gate_up.format != down.format:
            raise UsageError(f"'down' must have the format of 'gate_up', {gate_up.format}, but got "
                             f"{down.format}")
        if gate_up.w4a8 != down.w4a8:
            raise UsageError("'down' must be of w4a8 where 'gate_up' is, but got "
                             f"{gate_up} and {down}")
        self.gate_up, self.down = gate_up, down
        self.num_experts = gate_up.experts
        self.hidden_size, self.intermediate_size = gate_up.in_features, gate_up.out_features
        self.first, self.total = first, self.num_experts if total is None else total
        if self.total < self.num_experts:
            raise UsageError(f"'total' must be at least {self.num_experts}, the experts that are "
                             f"here, but got {self.total}",
                             "'total' is the number of experts of all ranks")
        if not 0 <= first <= self.total - self.num_experts:
            raise UsageError(f"'first' must be 0 to {self.total - self.num_experts}, but got "
                             f"{first}", f"these are {self.num_experts} of {self.total} experts")

    def forward(self, hidden_states: torch.Tensor, top_k_index: torch.Tensor,
                top_k_weights: torch.Tensor,
                shared: torch.Tensor | None = None) -> torch.Tensor:
        """[..., hidden_size] like hidden_states.

        Args:
            hidden_states: [..., hidden_size] of T tokens.
            top_k_index: integers [T, k], the experts of each token. A number below 0, or of
                `total` or more, is no expert; its weight does not count.
            top_k_weights: [T, k]; or [T, total], of which those of the chosen experts count.
            shared: like hidden_states, what shared experts give; it is added in fp32.

        Raises:
            UsageError: tensors of other sizes or devices.
        """
        if hidden_states.shape[-1:] != (self.hidden_size,):
            raise UsageError(f"'hidden_states' must be [..., {self.hidden_size}], but got "
                             f"{list(hidden_states.shape)}")
        x = hidden_states.reshape(-1, self.hidden_size)
        index = top_k_index.reshape(-1, top_k_index.shape[-1])
        if len(index) != len(x):
            raise UsageError(f"'top_k_index' must be [{len(x)}, k], a row for each token, but got "
                             f"{list(top_k_index.shape)}")
        weights = self._weights(index, top_k_weights)
        if shared is not None:
            shared = shared.reshape(x.shape)
        if self.is_one_program(x, weights, shared) and index.shape[1] <= MOST_OF_TOKEN and (
                self.num_experts <= MOST_EXPERTS):
            fp4._check_devices(hidden_states=x, weight=self.gate_up.packed, top_k_index=index,
                               top_k_weights=weights, shared=shared)
            if index.dtype != torch.int32:  # no number becomes that of another expert
                index = index.clamp(-1, self.total).to(torch.int32)
            total: torch.Tensor = routed_experts.overload(
                x, index, weights.float(), shared, self.total,
                *operands(self.gate_up, self.down), self.first)
        else:
            total = self._composed(x, index, weights, shared)
        return total.view(hidden_states.shape)

    def _write_into(self, out: torch.Tensor, x: torch.Tensor, ids: torch.Tensor,
                   weights: torch.Tensor) -> None:
        """Writes the sums of x [T, hidden_size] into `out`, in the dtype of x or float32, to which
        they are rounded once. `ids` are int32 and `weights` float32, [T, k]. Nothing is recorded
        for gradients."""
        if self.is_one_program(x, weights) and ids.shape[1] <= MOST_OF_TOKEN and (
                self.num_experts <= MOST_EXPERTS):
            routed_into(out, x, ids, weights, self.total, *operands(self.gate_up, self.down),
                        self.first)
        else:
            out.copy_(self(x, ids, weights))

    def _weights(self, index: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """The weights [T, k] of the chosen experts."""
        weights = weights.reshape(-1, weights.shape[-1])
        if weights.shape == index.shape:
            return weights
        if list(weights.shape) != [len(index), self.total]:
            raise UsageError(f"'top_k_weights' must be {list(index.shape)} or "
                             f"[{index.shape[0]}, {self.total}], but got "
                             f"{list(weights.shape)}",
                             "there is a weight for each expert of a token")
        return weights.gather(1, index.to(torch.int64).clamp(0, self.total - 1))

    def _local(self, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers of experts from `first` on, and a mask of those that are here."""
        local = index - self.first
        return local, (local >= 0) & (local < self.num_experts) & (index < self.total)

    def is_one_program(self, *tensors: torch.Tensor | None) -> bool:
        """Returns True where a call with x and others may be a program: nothing is recorded or
        converted."""
        x = tensors[0]
        assert x is not None
        if x.dtype not in (torch.bfloat16, torch.float16) or (
                x.dtype == torch.float16 and self.gate_up.format == "mxfp4"
                and not self.gate_up.w4a8) or (
                torch.is_autocast_enabled(x.device.type)):
            return False
        parameters = (self.gate_up.bias, self.gate_up.gate_bias, self.down.bias)
        return not torch.is_grad_enabled() or not any(
            tensor is not None and tensor.requires_grad for tensor in (*tensors, *parameters))

    def _composed(self, x: torch.Tensor, index: torch.Tensor, weights: torch.Tensor,
                  shared: torch.Tensor | None) -> torch.Tensor:
        """The sums [T, hidden_size], with gradients."""
        if isinstance(self.gate_up, FP8Experts) or isinstance(self.down, FP8Experts):
            raise UsageError("experts of fp8_block128 must be called in one program, but torch is "
                             "around the matmuls here",
                             "call them under torch.no_grad(), without autocast, with x in "
                             "bfloat16 or float16 and up to 16 experts of a token")
        local, chosen = self._local(index)
        expert, order = torch.where(chosen, local, self.num_experts).reshape(-1).sort(stable=True)
        edges = torch.arange(self.num_experts + 1, device=x.device, dtype=expert.dtype)
        offsets = torch.searchsorted(expert, edges)
        y = self.down(self.gate_up(x[order // index.shape[1]], offsets), offsets)
        back = torch.empty_like(order).scatter_(0, order, torch.arange(
            order.shape[0], device=order.device))
        each = y[back].view(*index.shape, self.hidden_size).float()
        total: torch.Tensor = (each * torch.where(chosen, weights.float(), 0.0)[..., None]).sum(1)
        return (total if shared is None else total + shared.float()).to(y.dtype)

    def extra_repr(self) -> str:
        place = "" if self.total == self.num_experts else (
            f", first={self.first}, total={self.total}")
        return (f"num_experts={self.num_experts}, hidden_size={self.hidden_size}, "
                f"intermediate_size={self.intermediate_size}{place}")


@dataclasses.dataclass(frozen=True)
class _Layout:
    """The way in which a module stores its experts.

    Attributes:
        transposed: weights are [experts, in_features, out_features].
        in_turns: rows of gates and of ups are in turns, gates first; else gates are the first half.
        activation, limit, alpha: as WeightOnlyExperts has them.
    """

    transposed: bool
    in_turns: bool
    activation: str
    limit: float | None
    alpha: float | None

    def halves(self, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Gates and ups along dimension 1."""
        if self.in_turns:
            return tensor[:, 0::2], tensor[:, 1::2]
        half = tensor.shape[1] // 2
        return tensor[:, :half], tensor[:, half:]


def holds_experts(module: torch.nn.Module) -> bool:
    """Returns True if `module` has the experts of a layer as 3-D parameters gate_up_proj and
    down_proj."""
    found = (getattr(module, name, None) for name in ("gate_up_proj", "down_proj"))
    return all(isinstance(item, torch.Tensor) and item.dim() == 3 for item in found)


def experts_from(module: Any, *, format: str = "nvfp4", recipe: str = "",
                 w4a8: bool = False) -> RoutedExperts:
    """The experts of a module of transformers, such as GptOssExperts or MixtralExperts, quantized;
    its forward takes the same arguments.

        layer.mlp.experts = fp4.torch.experts_from(layer.mlp.experts, format="mxfp4")

    Args:
        module: has gate_up_proj, down_proj, and perhaps their biases.
        format, recipe: of the weights, as in `quantize`.
        w4a8: as WeightOnlyExperts has it.
    """
    recipes.check_format(format)
    layout = _layout_of(module)
    gate_up, down = module.gate_up_proj.detach(), module.down_proj.detach()
    if layout.transposed:
        gate_up, down = gate_up.transpose(1, 2), down.transpose(1, 2)
    gates, ups = layout.halves(gate_up)
    biases = _parameter(module, "down_proj_bias")
    gate_bias = up_bias = None
    both = _parameter(module, "gate_up_proj_bias")
    if both is not None:
        gate_bias, up_bias = (torch.nn.Parameter(half.clone(), both.requires_grad)
                              for half in layout.halves(both.detach()))
    made = RoutedExperts(
        WeightOnlyExperts.from_stack(
            ups, up_bias, gate=gates, gate_bias=gate_bias, format=format, recipe=recipe,
            activation=layout.activation, limit=layout.limit, alpha=layout.alpha, w4a8=w4a8),
        WeightOnlyExperts.from_stack(down, biases, format=format, recipe=recipe, w4a8=w4a8))
    return made.train(module.training)


def experts_of(module: Any, gates: Sequence[Scaled], ups: Sequence[Scaled],
               downs: Sequence[Scaled], *, gate_up_bias: torch.Tensor | None = None,
               down_bias: torch.Tensor | None = None,
               columns: slice = slice(None)) -> RoutedExperts:
    """Makes experts as experts_from does, of matrices that are quantized already and of biases as
    the module has them, of which those of gates and ups have these intermediate `columns`."""
    layout = _layout_of(module)
    gate_bias = up_bias = None
    if gate_up_bias is not None:
        gate_bias, up_bias = (torch.nn.Parameter(half[:, columns].clone(), False)
                              for half in layout.halves(gate_up_bias))
    bias = None if down_bias is None else torch.nn.Parameter(down_bias, False)
    made = RoutedExperts(
        WeightOnlyExperts(ups, up_bias, gates=gates, gate_bias=gate_bias,
                          activation=layout.activation, limit=layout.limit, alpha=layout.alpha),
        WeightOnlyExperts(downs, bias))
    return made.train(module.training)


def gate_and_up(module: Any, weight: Scaled) -> tuple[Scaled, Scaled]:
    """The rows of gates and of ups of a matrix [2 * I, H] in the order that the module has."""
    layout, linear = _layout_of(module), fp4.swizzle(weight, "linear")
    data, scales = (tuple(half[0].contiguous() for half in layout.halves(bytes_of[None]))
                    for bytes_of in (linear.data.view(torch.uint8),
                                     linear.scales.view(torch.uint8)))
    shape = (linear.shape[0] // 2, linear.shape[1])
    gate, up = (Scaled(*tensors, linear.amax, shape, linear.format, "linear", linear.recipe)
                for tensors in zip(data, scales))
    return gate, up


def _parameter(module: torch.nn.Module, name: str) -> torch.nn.Parameter | None:
    found = getattr(module, name, None)
    return found if isinstance(found, torch.nn.Parameter) else None


def _layout_of(module: Any) -> _Layout:
    name = type(module).__name__
    if not holds_experts(module):
        raise UsageError(f"'module' must have gate_up_proj and down_proj of three dimensions, but "
                         f"{name} has not",
                         "make a WeightOnlyExperts of its weights with from_stack")
    up, down = module.gate_up_proj.shape, module.down_proj.shape
    fits = {transposed: pair for transposed, pair in (
        (False, (2 * down[2], down[1])), (True, (down[2], 2 * down[1])))}
    found = [transposed for transposed, pair in fits.items() if tuple(up[1:]) == pair]
    if up[0] != down[0] or not found:
        raise UsageError("'module' must have gate_up_proj [experts, 2 * I, H] and down_proj "
                         f"[experts, H, I], or both transposed, but {name} has {list(up)} and "
                         f"{list(down)}", "make a WeightOnlyExperts of its weights with from_stack")
    if getattr(module, "has_post_expert_norm", False):
        raise UsageError(f"'module' must have no norm behind its experts, but {name} has one",
                         "leave this module as it is")
    return _Layout(found[0], *_activation_of(module))


def _activation_of(module: torch.nn.Module) -> tuple[bool, str, float | None, float | None]:
    """Returns True if gates and ups are in turns, and the activation with its numbers: the choice
    that gives what the module's own gate computes."""
    limit, alpha = (_number(module, name) for name in ("limit", "alpha"))
    generator = torch.Generator().manual_seed(1)
    sums = torch.randn(64, 8, generator=generator, dtype=torch.float32, device="cpu")
    sums *= max(4.0, 2 * (limit or 0.0))
    expected = _gate_of(module, sums)
    options = itertools.product((False, True), ACTIVATIONS, dict.fromkeys((None, limit)),
                                dict.fromkeys((None, alpha)))
    for in_turns, activation, *numbers in options:
        layout = _Layout(False, in_turns, activation, *numbers)
        gate, up = layout.halves(sums)
        y = activated(gate, up, gate_of(activation, *numbers))
        if y.shape == expected.shape and torch.allclose(y, expected, rtol=1e-4, atol=1e-4):
            return in_turns, activation, numbers[0], numbers[1]
    raise UsageError(f"'module' must have one of the activations {', '.join(ACTIVATIONS)}, but "
                     f"that of {type(module).__name__} is another one",
                     "leave this module as it is")


def _number(module: torch.nn.Module, name: str) -> float | None:
    found = getattr(module, name, None)
    return float(found) if isinstance(found, (int, float)) and found > 0 else None


def _gate_of(module: Any, sums: torch.Tensor) -> torch.Tensor:
    """Applies the module's own gate to sums [rows, 2 * columns]. Modules without _apply_gate have
    act_fn of the first half, or are gpt-oss of transformers before 5."""
    with torch.no_grad():
        if hasattr(module, "_apply_gate"):
            result: torch.Tensor = module._apply_gate(sums)
            return result
        if hasattr(module, "act_fn"):
            gate, up = sums.chunk(2, dim=-1)
            return module.act_fn(gate) * up  # type: ignore[no-any-return]
    numbers = _number(module, "limit"), _number(module, "alpha")
    gate, up = _Layout(False, True, "gpt_oss", *numbers).halves(sums)
    if None in numbers:
        raise UsageError(f"'module' must say what its gate computes, but {type(module).__name__} "
                         "has neither _apply_gate nor act_fn nor alpha and limit",
                         "make a WeightOnlyExperts of its weights with from_stack")
    return activated(gate, up, gate_of("gpt_oss", *numbers))
