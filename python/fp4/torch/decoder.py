"""Decoding with a model of transformers whose linear layers are weight-only: the fewest launches,
and a cache that advances on the device."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..errors import UsageError
from . import decoder_programs, programs, weight_programs
from .alike import facts_of
from .attend_programs import Attention
from .decoder_layers import (
    Fallbacks,
    Layer,
    check_model,
    family_of,
    layers_of,
    size_of_heads,
)
from .decoder_programs import Heads
from .execution import run_into
from .norm_programs import Norm
from .paged_cache import PagedCache
from .rotation_programs import Rotation
from .shards import WHOLE, Share
from .weight_only import WeightOnlyLinear, multiply_into

if TYPE_CHECKING:
    from ..dist.exchange import Exchange
    from ..dist.groups import Group

_Graph = tuple[torch.cuda.CUDAGraph, torch.Tensor]
#: Stands for a row that no head has, whatever is added to it.
_NOWHERE = -(2**62)


class Decoder:
    """A causal language model of transformers and its cache, for `sequences` sequences.

        fp4.torch.quantize_(model, weight_only=True)
        decoder = fp4.torch.Decoder(model, sequences=2, tokens=4096)
        print(decoder.generate(ids, 100))            # ids [2, S], greedy

        logits = decoder.prefill(ids)                # or step by step: [2, vocabulary]
        decoder.capture(steps=8)                     # on a GPU: CUDA graphs of 1 and 8 steps
        for _ in range(100):
            logits = decoder.step()                  # of decoder.token, the best of the logits

    A layer has 8 launches: the residual and RMSNorm; queries, keys and values by one matmul; their
    norm, where there is one, their rotation and the cache; attention; its output; the residual and
    RMSNorm; the gated unit of two matmuls; what is behind it, or in place of these two the program
    of a mixture of experts (MoE). Embeddings, routers and the head are those of the model.
    Positions and lengths are on the device, and a captured step advances them, so that
    graphs can be replayed without the host.

    Each value that a kernel gives is rounded once, where transformers rounds after each operation,
    and rotations have cosines and sines in float32. So logits are nearer to those of the model in
    float32 (python/tests/test_torch_decoder.py), and not the same bits.

    With `group` ranks share one decoder: each has some heads and their cache, and some columns of
    the gated unit, or some experts, to which it sends the tokens that chose them and no others. All
    ranks make it of the same model, call it alike, and have the logits. The kernel of the next norm
    adds their float32 parts in the order of ranks, and rounds once. So all have the bits of one
    process with these parts, however parts travel.

    Attributes:
        token: int64 [sequences], the token that the next step reads.
        caches: a PagedCache for each layer; they share lengths and pages.
        fallbacks: layers that run by torch, and why; empty unless `allow_fallback` is on.
        exchange: the way of parts between ranks, its `name` and `reason`; None without a group.

    Args:
        model: a Llama, Mistral, Mixtral, Qwen2, Qwen3, Qwen3-MoE, gpt-oss or Gemma 3 (text) of
            transformers with a language head, in bfloat16, whose layers are WeightOnlyLinear and
            RoutedExperts (`quantize_`, or a checkpoint). The decoder shares its weights:
            projections of queries, keys and values become parts of one.
        sequences: that are decoded at a time, all with prompts of one length.
        tokens: of each sequence for which the caches have room, at most.
        page_tokens: tokens of a page.
        allow_fallback: run layers without a kernel by torch, list them in `fallbacks`, and warn;
            not with `group`.
        group: of ranks that share the decoder, whose number divides the key heads; None where this
            process has all of it. An fp4.dist.exchange.Exchange says how parts travel.

    Raises:
        UsageError: a model that a decoder does not run, or layers without a kernel. The message
            names them. With `group`, sizes that ranks cannot share, or other arguments or
            weights than those of rank 0.
    """

    def __init__(self, model: Any, sequences: int, tokens: int, *, page_tokens: int = 64,
                 allow_fallback: bool = False, group: Group | Exchange = None,
                 expert_parallel: bool = True) -> None:
        arguments: dict[str, Any] = {"sequences": sequences, "tokens": tokens,
                                     "page_tokens": page_tokens, "allow_fallback": allow_fallback,
                                     "expert_parallel": expert_parallel}
        self.exchange = None if group is None else _exchange(group, model, arguments)
        with contextlib.nullcontext() if self.exchange is None else self.exchange.together():
            self._make(model, **arguments)

    def _make(self, model: Any, sequences: int, tokens: int, page_tokens: int,
              allow_fallback: bool, expert_parallel: bool) -> None:
        self._config = check_model(model)
        fallbacks = Fallbacks()
        device = model.model.norm.weight.device
        share = WHOLE if self.exchange is None else Share(self.exchange.rank, self.exchange.ranks,
                                                          expert_parallel)
        self._layers = layers_of(model, self._config, fallbacks, share)
        if allow_fallback and share.ranks > 1:
            raise UsageError("'allow_fallback' must be off with 'group', but is on",
                             "layers of torch are not shared: quantize all of them")
        if not allow_fallback:
            fallbacks.refuse()
        self.fallbacks = fallbacks.reasons
        if self.fallbacks:
            warnings.warn(f"{len(self.fallbacks)} layers of the decoder run by torch: "
                          f"{', '.join(self.fallbacks)}", stacklevel=3)
        self._embeddings, self._norm = model.model.embed_tokens, model.model.norm.weight.detach()
        self._head = share.head(model.lm_head)
        self._is_head_shared = self._head is not model.lm_head
        self.token = torch.zeros(sequences, dtype=torch.int64, device=device)
        heads = *share.heads(self._config), size_of_heads(self._config)
        self._places = _Places(heads, sequences, tokens, page_tokens, device)
        self.caches = self._places.caches(len(self._layers))
        self._angles = {kind: _angles(model.model.rotary_emb, kind, self._places.heads[2],
                                      self._places.tokens, device)
                        for kind in {layer.kind for layer in self._layers}}
        self._family = family_of(self._config)
        self._graph: _Graph | None = None  # of a step, and its logits
        self._several: _Graph | None = None  # of some steps, and the tokens that they choose
        self._used = 0

    @property
    def used(self) -> int:
        """Tokens that each sequence has."""
        return self._used

    def truncate(self, count: int = 0) -> None:
        """Forgets the tokens of all sequences but the first `count` of each.

        Raises:
            UsageError: the sequences have fewer.
        """
        if not 0 <= count <= self._used:
            raise UsageError(f"'count' must be up to {self._used}, the tokens that there are, but "
                             f"got {count}", "truncate() forgets all")
        self._places.move(count)
        self._used = count

    @torch.no_grad()
    def prefill(self, ids: torch.Tensor) -> torch.Tensor:
        """Appends the tokens int64 [sequences, S] of all sequences, and returns the logits
        [sequences, vocabulary] of the last ones. `token` becomes the best of them. A kernel of
        attention is compiled for each S that was not seen before.

        Raises:
            UsageError: other tokens, or no room for them.
        """
        sequences = len(self.token)
        if ids.dim() != 2 or ids.shape[0] != sequences or ids.dtype != torch.int64 or (
                not ids.shape[1]):
            raise UsageError(f"'ids' must be int64 of shape [{sequences}, S], but got "
                             f"{str(ids.dtype)[6:]} of shape {list(ids.shape)}",
                             "all sequences have prompts of one length")
        self._take(ids.shape[1])
        return self._run(ids)

    @torch.no_grad()
    def step(self, token: torch.Tensor | None = None) -> torch.Tensor:
        """Appends `token`, int64 [sequences], or without it the token that the last call chose,
        and returns its logits [sequences, vocabulary]. The next step overwrites the logits of a
        captured one."""
        if token is not None:
            if token.shape != self.token.shape or token.dtype != torch.int64:
                raise UsageError(f"'token' must be int64 of shape {list(self.token.shape)}, but "
                                 f"got {str(token.dtype)[6:]} of shape {list(token.shape)}",
                                 "pass one token of each sequence")
            self.token.copy_(token)
        self._take(1)
        if self._graph is None:
            return self._run(self.token[:, None])
        graph, logits = self._graph
        graph.replay()
        return logits

    @torch.no_grad()
    def generate(self, ids: torch.Tensor, count: int) -> torch.Tensor:
        """Appends `ids` [sequences, S] and then `count` tokens, each the best behind those before
        it. Returns the tokens, int64 [sequences, count]; nothing else waits for the device."""
        self.prefill(ids)
        first = self.token.clone()[:, None]
        return torch.cat((first, self.advance(count - 1)), 1) if count > 1 else first

    @torch.no_grad()
    def advance(self, count: int) -> torch.Tensor:
        """Makes `count` steps, and returns the tokens that they choose, [sequences, count]."""
        if count < 1:
            raise UsageError(f"'count' must be at least 1, but got {count}", "a step has one token")
        self._check_room(count)
        found: list[torch.Tensor] = []
        while len(found) < count:
            several = self._several
            if several is None or len(found) + len(several[1]) > count:
                self.step()
                found.append(self.token.clone())
                continue
            self._take(len(several[1]))
            several[0].replay()
            found += several[1].clone()
        return torch.stack(found, 1)

    @torch.no_grad()
    def capture(self, steps: int = 1) -> None:
        """Makes the step one CUDA graph, which later calls of `step` replay. The caches keep the
        tokens that they have.

        Args:
            steps: of one more graph, which `advance` and `generate` replay.

        Raises:
            UsageError: the model is not on a GPU, its exchange is none of a graph, or there is no
                room for a token.
        """
        if steps < 1:
            raise UsageError(f"'steps' must be at least 1, but got {steps}", "1 is one step")
        if self.exchange is not None and not self.exchange.can_capture:
            raise UsageError("the exchange of a captured step must be peer memory or nccl, but is "
                             f"{self.exchange.name}", "make an NCCL group, or do not capture steps")
        if self.token.device.type != "cuda":
            raise UsageError(f"the model must be on a GPU, but is on {self.token.device}",
                             "a step on the CPU runs as it is")
        self._graph = self._several = None
        self._check_room(1)
        token = self.token.clone()
        side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # what is behind the tokens of a cache may have any numbers
                self._run(self.token[:, None])
                self._places.move(self._used)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = self._captured(lambda: self._run(self.token[:, None]))
        if steps > 1:
            self._several = self._captured(lambda: self._chosen(steps))
        self.token.copy_(token)

    def _captured(self, call: Callable[[], torch.Tensor]) -> _Graph:
        """A graph of `call`, and its result."""
        graph = torch.cuda.CUDAGraph()
        # Threads of a process group ask for events meanwhile.
        mode = "global" if self.exchange is None else "thread_local"
        with torch.cuda.graph(graph, capture_error_mode=mode):
            result = call()
        return graph, result

    def _chosen(self, steps: int) -> torch.Tensor:
        """The tokens that steps choose, [steps, sequences]."""
        found = []
        for _ in range(steps):
            self._run(self.token[:, None])
            found.append(self.token.clone())
        return torch.stack(found)

    def _check_room(self, count: int) -> None:
        if self._used + count > self._places.tokens:
            raise UsageError(f"there must be room for {count} more tokens, but {self._used} of "
                             f"{self._places.tokens} are used",
                             "make a Decoder with more 'tokens', or call truncate()")

    def _take(self, count: int) -> None:
        self._check_room(count)
        self._used += count

    # ===--- A pass through the layers ------------------------------------=== #

    def _run(self, ids: torch.Tensor) -> torch.Tensor:
        """The logits of the last of `ids` [sequences, S]."""
        sequences, count = ids.shape
        places = self._places.begin(count)
        h = self._embeddings(ids).view(sequences * count, -1)
        y, _ = self._normed((h,), None, self._layers[0].norm)
        for number, layer in enumerate(self._layers):
            a = self._attended(layer, self.caches[number], y, places, count)
            parts = self._parts("out", layer.out, a)
            y, h = self._normed(parts, h, layer.norm_behind, layer.norm_of_out)
            d = self._parts("down", layer.down, y if layer.unit is None else layer.unit(y))
            if number + 1 < len(self._layers):
                y, h = self._normed(d, h, self._layers[number + 1].norm, layer.norm_of_mlp)
        self._places.end(count)
        if count > 1:
            h, *last = (x.view(sequences, count, -1)[:, -1].contiguous() for x in (h, *d))
            d = tuple(last)
        y, _ = self._normed(d, h, self._norm, self._layers[-1].norm_of_mlp)
        logits = self._logits(y)
        self.token.copy_(_best(logits))
        return logits

    def _parts(self, slot: str, layer: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The results of a layer whose columns ranks share, whose sum is that of the layer; or its
        one result."""
        if self.exchange is None:
            return (layer(x),)
        shape = len(x), self._config.hidden_size
        part = self.exchange.place(slot, shape, torch.float32, x.device)
        if isinstance(layer, WeightOnlyLinear):
            multiply_into(part, layer, x)
        else:
            layer._write_into(part, x)
        return self.exchange.parts(slot, part)

    def _logits(self, y: torch.Tensor) -> torch.Tensor:
        """The logits of all rows of the head."""
        if self.exchange is None or not self._is_head_shared:
            logits: torch.Tensor = self._head(y)
            return logits
        head: Any = self._head
        part = self.exchange.place("logits", (len(y), head.out_features), y.dtype, y.device)
        if isinstance(head, WeightOnlyLinear):
            multiply_into(part, head, y)
        else:
            part.copy_(head(y))
        return torch.cat(self.exchange.parts("logits", part), 1)

    def _normed(self, parts: tuple[torch.Tensor, ...], residual: torch.Tensor | None,
                weight: torch.Tensor,
                before: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """The norm of x + residual, and the sum; of x alone, which is the sum then. x is the sum of
        its parts, where they are in float32. With `before`, the weight of its own norm, x is normed
        first."""
        rows, columns = parts[0].shape
        what = Norm(columns, "bf16", "rms", self._config.rms_norm_eps, "bf16",
                    offset=self._family.offset, residual="" if residual is None else "rounded",
                    before=before is not None, is_normed_rounded=self._family.rounds_first,
                    parts=len(parts) if parts[0].dtype == torch.float32 else None)
        y, total = (weight.new_empty(rows, columns) for _ in range(2))
        if residual is None:
            run_into(decoder_programs.norm, (what,), (y,), *parts, weight)
            return y, parts[0]
        run_into(decoder_programs.norm, (what,), (y, total), *parts, residual, before, weight)
        return y, total

    def _attended(self, layer: Layer, cache: PagedCache, y: torch.Tensor,
                  places: tuple[torch.Tensor, ...], count: int) -> torch.Tensor:
        """Attention of new tokens whose normed rows are `y`, [tokens, heads * D]."""
        positions, *rows = places
        heads, key_heads, size = self._places.heads
        norm = None if layer.head_weights is None else Norm(
            size, "bf16", "rms", self._config.rms_norm_eps, "bf16", offset=self._family.offset,
            is_normed_rounded=self._family.rounds_first)
        angles = self._angles[layer.kind]
        rotation = Rotation(heads + 2 * key_heads, size, "bf16", angles.shape[1], "f32",
                            False, norm, has_head_weights=norm is not None)
        what = Heads(rotation, len(y) * heads, cache.key.numel() // size)
        query = y.new_empty(len(y) * heads, size)
        run_into(decoder_programs.heads, (what,),
                 (query, cache.key.view(-1, size), cache.value.view(-1, size)),
                 layer.qkv(y).view(len(y), -1, size), positions, angles, layer.head_weights,
                 *rows)
        query = query.view(len(self.token), count, heads, size)
        found = torch.empty_like(query)
        window = layer.window if (layer.window or 0) < self._places.tokens else None
        shape = Attention(tuple(query.shape), tuple(cache.key.shape), tuple(cache.value.shape),
                          programs.ELEMENTS[query.dtype], layer.scale,
                          count > 1 or window is not None, True, cache.pages.shape[1],
                          window=window,
                          of_heads=() if layer.sinks is None else ("sinks",))
        run_into(decoder_programs.attention, (shape,), (found,), query, cache.key, cache.value,
                 cache.lengths, cache.pages, layer.sinks, target=weight_programs.TARGET)
        return found.view(len(y), heads * size)


class _Places:
    """The places of tokens and heads in the caches of all layers, on the device.

    Attributes:
        heads: of queries, of keys, and elements of a head.
        tokens: for which a sequence has room.
    """

    def __init__(self, heads: tuple[int, int, int], sequences: int, tokens: int, page_tokens: int,
                 device: torch.device) -> None:
        self.heads = heads
        self._first = PagedCache(sequences, tokens, key_heads=heads[1], elements=heads[2],
                                 page_tokens=page_tokens, device=device)
        pages = self._first.pages.shape[1]
        self.tokens = pages * page_tokens
        # Slots of the tokens of a sequence: its pages never change.
        self._slots = torch.arange(sequences * self.tokens, device=device).view(sequences, -1)
        self._positions = torch.zeros(sequences, 1, dtype=torch.int64, device=device)
        self._patterns = self._rows_of_heads(device)
        self._queries: dict[int, torch.Tensor] = {}  # by numbers of tokens

    def caches(self, layers: int) -> list[PagedCache]:
        first = self._first
        _, key_heads, size = self.heads
        found = [first]
        while len(found) < layers:
            other = PagedCache(len(first.pages), self.tokens, key_heads=key_heads, elements=size,
                               page_tokens=first.key.shape[1], device=first.key.device)
            other.pages, other.lengths = first.pages, first.lengths
            found.append(other)
        return found

    def _rows_of_heads(self, device: torch.device) -> torch.Tensor:
        """[2, 1, heads]: what is added to the first row of a slot for a head of a token, among keys
        and among values."""
        heads, key_heads, _ = self.heads
        rows = torch.full((2, 1, heads + 2 * key_heads), _NOWHERE, dtype=torch.int64)
        rows[0, 0, heads:heads + key_heads] = torch.arange(key_heads)
        rows[1, 0, heads + key_heads:] = torch.arange(key_heads)
        return rows.to(device)

    def _rows_of_queries(self, tokens: int) -> torch.Tensor:
        heads, key_heads, _ = self.heads
        device = self._slots.device
        rows = torch.full((tokens, heads + 2 * key_heads), _NOWHERE, dtype=torch.int64,
                          device=device)
        rows[:, :heads] = torch.arange(tokens * heads, device=device).view(tokens, heads)
        return rows.flatten()

    def begin(self, count: int) -> tuple[torch.Tensor, ...]:
        """Positions of `count` more tokens of each sequence, and the rows of their heads among
        queries, keys and values. Lengths have the tokens then."""
        self._first.lengths += count
        positions = self._positions
        if count > 1:
            positions = positions + torch.arange(count, device=positions.device)
        slots = self._slots.gather(1, positions).view(1, -1, 1)
        keys, values = torch.add(self._patterns, slots, alpha=self.heads[1]).flatten(1)
        tokens = positions.numel()
        if tokens not in self._queries:
            self._queries[tokens] = self._rows_of_queries(tokens)
        return positions.flatten(), self._queries[tokens], keys, values

    def end(self, count: int) -> None:
        self._positions += count

    def move(self, count: int) -> None:
        """Gives all sequences so many tokens."""
        self._first.lengths.fill_(count)
        self._positions.fill_(count)


def _exchange(group: Any, model: Any, arguments: dict[str, Any]) -> Exchange:
    """The way of parts between the ranks of `group`, with room for those of a step. Ranks agree on
    the decoder before: memory that they share must have one size."""
    from ..dist.exchange import Collectives, Exchange, exchange_of
    weights: Any = getattr(model, "parameters", list)
    device = next((weight.device for weight in weights()), torch.device("cpu"))
    plain = group if isinstance(group, Exchange) else Collectives(group, device)
    with plain.together():
        check_model(model)
        facts = facts_of(model, arguments)
    plain.agree(facts)
    config, sequences = model.config, arguments["sequences"]
    rooms = {"out": 4 * sequences * config.hidden_size, "down": 4 * sequences * config.hidden_size,
             "logits": 2 * sequences * config.vocab_size}
    return exchange_of(group, rooms, device)


def _best(logits: torch.Tensor) -> torch.Tensor:
    """The places of the largest of each row. Few threads of torch.argmax read a row, so that parts
    of rows come first: 8 us for one row of 128,256 in place of 37 on an H200."""
    parts = math.gcd(logits.shape[1], 512)
    if parts < 16:
        return logits.argmax(-1)
    values, places = logits.view(len(logits), parts, -1).max(-1)
    part = values.argmax(-1, keepdim=True)
    return (places.gather(1, part) + part * (logits.shape[1] // parts)).flatten()


def _angles(rotary: Any, kind: str, size: int, tokens: int, device: torch.device) -> torch.Tensor:
    """[tokens, size]: cosines, then sines, of the first half of a head in float32, of layers of one
    kind where kinds have angles of their own."""
    places = torch.arange(tokens, device=device)[None]
    kinds = (kind,) if kind else ()
    with torch.no_grad():
        cosines, sines = rotary(torch.empty(0, dtype=torch.float32, device=device), places, *kinds)
    half = size // 2  # some rotations repeat it
    return torch.cat([cosines[0, :, :half], sines[0, :, :half]], -1).float().contiguous()
