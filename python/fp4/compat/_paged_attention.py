"""FlashInfer's wrappers of attention over a paged cache.

`plan` makes a block table and lengths of FlashInfer's lists of pages, and `run` passes them on to
fp4.torch.attention. With use_cuda_graph, later plans write to the memory of the first one, which
has room for as many pages of a sequence as `kv_indices` can have in all.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import torch

from ..errors import UsageError
from ..torch.attend import attention
from ._operands import check_tensor, eager, into, refuse

_LOG2E = 1.4426950408889634


@dataclasses.dataclass
class _Plan:
    """The part of a plan that `run` takes."""

    lengths: torch.Tensor
    pages: torch.Tensor
    page_size: int
    heads: tuple[int, int]  #: of queries, and of keys and values
    dtype: torch.dtype
    causal: bool
    scale: float
    softcap: float | None
    window_left: int
    slopes: torch.Tensor | None
    #: Offsets of packed queries; None where each sequence has `tokens` of them.
    offsets: torch.Tensor | None = None
    tokens: int = 1


class _Paged:
    """The part that both wrappers have in common."""

    _plan: _Plan | None = None

    def _begin(self, workspace: torch.Tensor, kv_layout: str, use_cuda_graph: bool,
               indices: torch.Tensor | None) -> None:
        check_tensor(workspace, "float_workspace_buffer")
        if kv_layout not in ("NHD", "HND"):
            raise UsageError(f"argument 'kv_layout' must be 'NHD' or 'HND', but got {kv_layout!r}",
                             "tokens are in front of heads, or behind them")
        if use_cuda_graph and indices is None:
            raise UsageError("a buffer for the indices of pages must be given with "
                             "use_cuda_graph=True, but got none",
                             "its size is the most pages that a batch has")
        self._device, self._kv_layout, self._graph = workspace.device, kv_layout, use_cuda_graph
        self._most_pages = 0 if indices is None else indices.numel()

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._graph

    def _keep(self, plan: _Plan) -> None:
        """Keeps a plan, in the memory of the first one where a graph reads it."""
        before = self._plan
        if self._graph and before is not None:
            for name in ("lengths", "pages", "offsets"):
                old, new = getattr(before, name), getattr(plan, name)
                if old is None and new is None:
                    continue
                if old is None or new is None or old.shape != new.shape:
                    raise UsageError("a plan for a CUDA graph must have the sequences of the first "
                                     f"one, but '{name}' has another shape",
                                     "make a wrapper for each number of sequences")
                setattr(plan, name, old.copy_(new))
        self._plan = plan

    def _tables(self, indptr: torch.Tensor, indices: torch.Tensor, last_page_len: torch.Tensor,
                page_size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The lengths of sequences, and their pages, as many as a power of two."""
        for name, tensor in (("indptr", indptr), ("indices", indices),
                             ("last_page_len", last_page_len)):
            check_tensor(tensor, name)
            if tensor.dim() != 1 or tensor.dtype not in (torch.int32, torch.int64):
                raise UsageError(f"argument '{name}' must be a list of int32, but got "
                                 f"{tensor.dtype} of shape {list(tensor.shape)}", "")
        begin = indptr.cpu().long()
        counts = begin.diff()
        if counts.numel() != last_page_len.numel() or not counts.numel() or begin[0] != 0 or (
                counts < 0).any() or begin[-1] > indices.numel():
            raise UsageError("argument 'indptr' must have the begin of each sequence in 'indices', "
                             f"and the end of the last one, but got {begin.tolist()} beside "
                             f"{indices.numel()} indices and {last_page_len.numel()} lengths",
                             "it has one number more than 'last_page_len'")
        most = self._most_pages if self._graph else max(1, int(counts.max()))
        width = 1 << (most - 1).bit_length()
        place = torch.arange(width)
        known = torch.cat([indices.cpu().int(), torch.zeros(1, dtype=torch.int32)])
        at = torch.where(place < counts[:, None], begin[:-1, None] + place, indices.numel())
        lengths = torch.where(counts > 0, (counts - 1) * page_size + last_page_len.cpu(), 0)
        return lengths.int().to(self._device), known[at].to(self._device)

    def _planned(self, tables: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
                 heads: tuple[int, int], head_dim: int, page_size: int, *, causal: bool, dtype: Any,
                 **options: Any) -> _Plan:
        position, rope = options.get("pos_encoding_mode", "NONE"), options.get("rope_scale")
        refuse(position not in ("NONE", "ALIBI") or rope is not None,
               f"'pos_encoding_mode' {position!r} with 'rope_scale' {rope!r}",
               "fp4.torch.rotate turns queries and keys before they are stored")
        result = options.get("o_data_type")
        refuse(result is not None and dtype_of(result) != dtype_of(dtype),
               f"'o_data_type' {result!r}", "results are of the type of queries")
        lengths, pages = self._tables(*tables, page_size)
        softcap, scale = options.get("logits_soft_cap"), options.get("sm_scale")
        return _Plan(lengths, pages, page_size, heads, dtype_of(dtype), causal,
                     1 / math.sqrt(head_dim) if scale is None else scale, softcap or None,
                     options.get("window_left", -1),
                     slopes_of(heads[0], self._device) if position == "ALIBI" else None)

    def _attend(self, q: torch.Tensor, cache: Any, options: dict[str, Any]) -> Any:
        plan = self._plan
        if plan is None:
            raise UsageError("'run' must come behind 'plan'", "call wrapper.plan(...) first")
        check_tensor(q, "q")
        if q.dim() != 3 or q.dtype != plan.dtype or q.shape[1] != plan.heads[0]:
            raise UsageError(f"argument 'q' must be {plan.dtype} of {plan.heads[0]} heads, as "
                             f"planned, but got {q.dtype} of shape {list(q.shape)}",
                             "pass q_data_type and num_qo_heads of 'q' to plan")
        rows = plan.lengths.numel() * plan.tokens
        if plan.offsets is None and q.shape[0] != rows:
            raise UsageError(f"argument 'q' must have the {rows} rows that were planned, but has "
                             f"{q.shape[0]}", f"it has {plan.tokens} for each sequence")
        window = options.get("window_left")
        window = plan.window_left if window is None else window
        refuse(window >= 0 and not plan.causal, "'window_left' without causal=True")
        refuse(plan.slopes is not None and options["return_lse"], "'return_lse' with ALIBI",
               "FlashInfer counts distances from the first query")
        (key, value), step = separated(cache, "paged_kv_cache")
        scales, _ = separated(options["kv_cache_sf"], "kv_cache_sf")
        factors: Any = (None, None)
        if key.dtype != q.dtype:
            factors = tuple(factor_of(1.0 if x is None else x, q.device)
                            for x in (options["k_scale"], options["v_scale"]))
        scale = plan.scale * (1.0 if options["q_scale"] is None else float(options["q_scale"]))
        for name in ("k_scale", "v_scale"):
            refuse(key.dtype == q.dtype and options[name] not in (None, 1.0),
                   f"'{name}' of a cache of {key.dtype}")
        query = q if plan.offsets is not None else q.reshape(-1, plan.tokens, *q.shape[1:])
        results: Any = attention(
            query, key, value, causal=plan.causal, scale=scale, softcap=plan.softcap,
            window=window + 1 if window >= 0 else None, sinks=options["sinks"],
            lengths=plan.lengths, pages=plan.pages * step if step > 1 else plan.pages,
            kv_layout=self._kv_layout, cu_seqlens_q=plan.offsets, alibi_slopes=plan.slopes,
            key_scales=scales[0], value_scales=scales[1], key_factors=factors[0],
            value_factors=factors[1], return_lse=options["return_lse"])
        result, lse = results if options["return_lse"] else (results, None)
        result = result.reshape(*q.shape[:-1], result.shape[-1])
        if options["out"] is not None:
            result = into(options["out"], result)
        if lse is None:
            return result
        lse = lse.reshape(q.shape[:-1])
        if options.get("lse_base", "log2") == "log2":
            lse = lse * _LOG2E
        if options.get("lse_layout", "NH") == "HN":
            lse = lse.transpose(0, 1).contiguous()
        return result, lse if options["lse"] is None else into(options["lse"], lse, "lse")


class BatchDecodeWithPagedKVCacheWrapper(_Paged):
    """Attention of the last queries of each sequence, as many of each.

    Caches are pairs, or tensors [N, 2, ...] that are contiguous, of bfloat16, float16,
    float8_e4m3fn, or uint8 codes of NVFP4 with `kv_cache_sf`. Workspaces, backends and split sizes
    have no effect.
    """

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
        paged_kv_indptr_buffer: torch.Tensor | None = None,
        paged_kv_indices_buffer: torch.Tensor | None = None,
        paged_kv_last_page_len_buffer: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: list[Any] | None = None,
    ) -> None:
        refuse(jit_args is not None, "'jit_args'")
        self._begin(float_workspace_buffer, kv_layout, use_cuda_graph, paged_kv_indices_buffer)

    @eager
    def plan(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        *deprecated_positional_args: Any,
        **kwargs: Any,
    ) -> None:
        """Takes the pages of each sequence: `indices` from `indptr[b]` up to `indptr[b + 1]`.
        Names behind `page_size` are pos_encoding_mode ("NONE" or "ALIBI"), window_left,
        logits_soft_cap, q_data_type, sm_scale and q_len_per_req; others have no effect."""
        names = ("pos_encoding_mode", "window_left", "logits_soft_cap", "q_data_type",
                 "kv_data_type", "o_data_type", "data_type", "sm_scale", "rope_scale")
        kwargs = {**dict(zip(names, deprecated_positional_args)), **kwargs}
        tokens = kwargs.get("q_len_per_req", 1)
        refuse(bool(kwargs.get("window_right", 0)), "'window_right' other than 0")
        refuse(kwargs.get("is_causal") not in (None, tokens > 1), "'is_causal'")
        dtype = kwargs.get("data_type") or kwargs.get("q_data_type") or "float16"
        plan = self._planned((indptr, indices, last_page_len), (num_qo_heads, num_kv_heads),
                             head_dim, page_size, causal=True, dtype=dtype, **kwargs)
        plan.tokens = tokens
        self._keep(plan)

    @eager
    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        q_len_per_req: int | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        kv_cache_sf: Any = None,
    ) -> Any:
        """Attention of `q` [B * q_len_per_req, Hq, D], and with `return_lse` logarithms of base
        2."""
        refuse(bool(args) or skip_softmax_threshold_scale_factor is not None,
               "further arguments, or a threshold for powers that are skipped,")
        return self._attend(q, paged_kv_cache, {
            "q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale, "out": out, "lse": lse,
            "return_lse": return_lse, "window_left": window_left, "sinks": sinks,
            "kv_cache_sf": kv_cache_sf})

    begin_forward = plan
    forward = run


class BatchPrefillWithPagedKVCacheWrapper(_Paged):
    """Attention of packed queries over a paged cache.

    Caches are as for BatchDecodeWithPagedKVCacheWrapper. Codes need as many queries of each
    sequence, and no CUDA graph without `uniform_q_len`. Workspaces, backends and split sizes have
    no effect.
    """

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: torch.Tensor | None = None,
        paged_kv_indptr_buf: torch.Tensor | None = None,
        paged_kv_indices_buf: torch.Tensor | None = None,
        paged_kv_last_page_len_buf: torch.Tensor | None = None,
        custom_mask_buf: torch.Tensor | None = None,
        mask_indptr_buf: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: list[Any] | None = None,
        jit_kwargs: dict[str, Any] | None = None,
        variant_owns_mask: bool = False,
    ) -> None:
        refuse(jit_args is not None or jit_kwargs is not None or variant_owns_mask, "'jit_args'")
        refuse(custom_mask_buf is not None or mask_indptr_buf is not None, "a mask of bits")
        self._begin(float_workspace_buffer, kv_layout, use_cuda_graph, paged_kv_indices_buf)

    @eager
    def plan(
        self,
        qo_indptr: torch.Tensor,
        paged_kv_indptr: torch.Tensor,
        paged_kv_indices: torch.Tensor,
        paged_kv_last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: int | None = None,
        custom_mask: torch.Tensor | None = None,
        packed_custom_mask: torch.Tensor | None = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        sm_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
        o_data_type: Any = None,
        non_blocking: bool = True,
        prefix_len_ptr: torch.Tensor | None = None,
        token_pos_in_items_ptr: torch.Tensor | None = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: torch.Tensor | None = None,
        seq_lens: torch.Tensor | None = None,
        seq_lens_q: torch.Tensor | None = None,
        block_tables: torch.Tensor | None = None,
        max_token_per_sequence: int | None = None,
        max_sequence_kv: int | None = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        uniform_q_len: int | None = None,
    ) -> None:
        """Takes the queries of each sequence, from `qo_indptr[b]` up to `qo_indptr[b + 1]`, and its
        pages."""
        refuse(custom_mask is not None or packed_custom_mask is not None, "a mask of bits")
        refuse(use_fp16_qk_reduction, "'use_fp16_qk_reduction'")
        refuse(prefix_len_ptr is not None or token_pos_in_items_ptr is not None
               or max_item_len_ptr is not None, "scores of several items")
        refuse(pos_encoding_mode == "ALIBI" and not causal, "'ALIBI' without causal=True")
        check_tensor(qo_indptr, "qo_indptr")
        plan = self._planned(
            (paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len),
            (num_qo_heads, num_kv_heads), head_dim_qk, page_size, causal=causal, dtype=q_data_type,
            pos_encoding_mode=pos_encoding_mode, sm_scale=sm_scale, window_left=window_left,
            logits_soft_cap=logits_soft_cap, rope_scale=rope_scale, o_data_type=o_data_type)
        counts = set(qo_indptr.cpu().diff().tolist())
        is_uniform = len(counts) == 1 and counts != {0} and (
            not self._graph or counts == {uniform_q_len})
        if is_uniform:
            plan.tokens = counts.pop()
        else:
            plan.offsets = qo_indptr.to(self._device, torch.int32)
        self._keep(plan)

    @eager
    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: Any = None,
        k_scale: Any = None,
        v_scale: Any = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        lse_base: str = "log2",
        lse_layout: str = "NH",
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        kv_cache_sf: Any = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        use_fp16_softmax: bool | None = None,
        uses_spcompress: bool | None = None,
    ) -> Any:
        """Attention of `q` [qo_indptr[-1], Hq, D], and with `return_lse` logarithms of base
        `lse_base`."""
        refuse(bool(args) or skip_softmax_threshold_scale_factor is not None
               or bool(use_fp16_softmax) or bool(uses_spcompress),
               "further arguments, or powers that are skipped or of float16,")
        if lse_base not in ("log2", "ln") or lse_layout not in ("NH", "HN"):
            raise UsageError("'lse_base' must be 'log2' or 'ln', and 'lse_layout' 'NH' or 'HN', "
                             f"but got {lse_base!r} and {lse_layout!r}", "")
        return self._attend(q, paged_kv_cache, {
            "q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale, "out": out, "lse": lse,
            "return_lse": return_lse, "lse_base": lse_base, "lse_layout": lse_layout,
            "window_left": window_left, "sinks": sinks, "kv_cache_sf": kv_cache_sf})

    begin_forward = plan
    forward = run


def dtype_of(dtype: Any) -> torch.dtype:
    """A dtype, or that of a name."""
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype):
        raise UsageError(f"a data type must be a torch.dtype or its name, but got {dtype!r}",
                         "pass torch.bfloat16")
    return found


def separated(cache: Any, name: str) -> tuple[tuple[Any, Any], int]:
    """Keys and values of a pair, or of a tensor [N, 2, ...], in which a page of values lies behind
    each page of keys: then every second page of one list, of which values leave out the first."""
    if cache is None:
        return (None, None), 1
    if isinstance(cache, (tuple, list)) and len(cache) == 2:
        return (cache[0], cache[1]), 1
    check_tensor(cache, name)
    if cache.dim() != 5 or cache.shape[1] != 2 or not cache.is_contiguous():
        raise UsageError(f"argument '{name}' must be a pair, or contiguous of shape [N, 2, ...], "
                         f"but got the shape {list(cache.shape)}",
                         "pass (cache[:, 0], cache[:, 1]), which may be copied")
    pages = cache.flatten(0, 1)
    return (pages[:-1], pages[1:]), 2


@functools.lru_cache(maxsize=256)
def factor_of(number: float, device: torch.device) -> torch.Tensor:
    """A decode scale in the memory of a device."""
    return torch.full((1,), float(number), dtype=torch.float32, device=device)


def slopes_of(heads: int, device: torch.device) -> torch.Tensor:
    """The slopes of ALiBi (Press, Smith and Lewis): powers of 2 ** (-8 / n), n the power of two up
    to the heads, and for the heads behind these every second power of 2 ** (-4 / n)."""
    n = 1 << (heads.bit_length() - 1)
    exponents = [-8 * (i + 1) / n for i in range(n)]
    exponents += [-4 * (2 * i + 1) / n for i in range(heads - n)]
    return torch.tensor([2.0 ** x for x in exponents], dtype=torch.float32, device=device)
