"""FlashInfer's wrappers of attention over a paged cache.

`plan` makes a block table and lengths of FlashInfer's lists of pages, and `run` passes them on to
fp4.torch.attention. With use_cuda_graph, later plans write to the memory of the first one, which
has room for as many pages of a sequence as `kv_indices` can have in all.
"""

from __future__ import annotations

import difflib
import functools
import math
from typing import Any

import torch

from ..errors import UsageError
from ..torch.attend import attention
from ..torch.strides import matrix_of_tokens
from ._attention_plans import Plan, check_count, check_heads, tables_of
from ._operands import check_tensor, eager, into, refuse

_LOG2E = 1.4426950408889634

#: FlashInfer's order of the arguments of a plan for decoding behind `page_size`.
_OPTIONS = ("pos_encoding_mode", "window_left", "logits_soft_cap", "q_data_type", "kv_data_type",
            "o_data_type", "data_type", "sm_scale", "rope_scale", "rope_theta", "non_blocking",
            "block_tables", "seq_lens", "fixed_split_size", "disable_split_kv", "q_len_per_req")
_ONLY_NAMED = ("window_right", "is_causal")


class _Paged:
    """The part that both wrappers have in common."""

    _plan: Plan | None = None

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
        self._most_pages = indices.numel() if use_cuda_graph and indices is not None else None

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._graph

    def _keep(self, plan: Plan) -> None:
        """Keeps a plan, in the memory of the first one where a graph reads it."""
        if self._graph and self._plan is not None:
            plan.keep(self._plan)
        self._plan = plan

    def _planned(self, lists: tuple[Any, Any, Any], prefix: str, heads: tuple[Any, Any],
                 sizes: tuple[Any, Any], page_size: Any, *, causal: bool, dtype: Any,
                 **options: Any) -> Plan:
        """A plan of lists whose names have a prefix, and of heads of `sizes` elements."""
        position, rope = options.get("pos_encoding_mode", "NONE"), options.get("rope_scale")
        refuse(position not in ("NONE", "ALIBI") or rope is not None,
               f"'pos_encoding_mode' {position!r} with 'rope_scale' {rope!r}",
               "fp4.torch.rotate turns queries and keys before they are stored")
        result = options.get("o_data_type")
        refuse(result is not None and dtype_of(result) != dtype_of(dtype),
               f"'o_data_type' {result!r}", "results are of the type of queries")
        softcap, scale = options.get("logits_soft_cap") or None, options.get("sm_scale")
        refuse(position == "ALIBI" and softcap is not None, "'logits_soft_cap' with ALIBI",
               "FlashInfer adds slopes in front of the cap, fp4 behind it")
        window = options.get("window_left")
        both = check_heads(*heads)
        head_dim, value_dim = (check_count(x, "head_dim") for x in sizes)
        lengths, pages, last = tables_of(lists, prefix, check_count(page_size, "page_size"),
                                         self._most_pages)
        return Plan(lengths.to(self._device), pages.to(self._device), last, page_size, both,
                    head_dim, value_dim, dtype_of(dtype), causal,
                    1 / math.sqrt(head_dim) if scale is None else scale, softcap,
                    -1 if window is None else window,
                    slopes_of(both[0], self._device) if position == "ALIBI" else None)

    def _attend(self, q: torch.Tensor, cache: Any, options: dict[str, Any]) -> Any:
        plan = self._plan
        if plan is None:
            raise UsageError("'run' must come behind 'plan'", "call wrapper.plan(...) first")
        plan.check_query(q)
        window = options.get("window_left")
        window = plan.window_left if window is None else window
        refuse(window >= 0 and not plan.causal, "'window_left' without causal=True")
        refuse(plan.slopes is not None and options["return_lse"], "'return_lse' with ALIBI",
               "FlashInfer counts distances from the first query")
        (key, value), step = separated(cache, "paged_kv_cache")
        plan.check_cache((key, value), (key.shape[0] + step - 1) // step, self._kv_layout)
        scales, _ = separated(options["kv_cache_sf"], "kv_cache_sf")
        factors = factors_of(options, q, key)
        scale = plan.scale * (1.0 if options["q_scale"] is None else float(options["q_scale"]))
        query = q if plan.offsets is not None else q.reshape(-1, plan.tokens, *q.shape[1:])
        results: Any = attention(
            query, key, value, causal=plan.causal, scale=scale, softcap=plan.softcap,
            window=window + 1 if window >= 0 else None, sinks=options["sinks"],
            lengths=plan.lengths, pages=plan.pages * step if step > 1 else plan.pages,
            kv_layout=self._kv_layout, cu_seqlens_q=plan.offsets, alibi_slopes=plan.slopes,
            key_scales=scales[0], value_scales=scales[1], key_factors=factors[0],
            value_factors=factors[1], return_lse=options["return_lse"],
            out=place_of(options["out"], query, plan.value_dim))
        return finished(q, results, options)


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
        logits_soft_cap, q_data_type, sm_scale and q_len_per_req; others that FlashInfer has are
        without effect."""
        kwargs = named(deprecated_positional_args, kwargs)
        tokens = check_count(kwargs.get("q_len_per_req", 1), "q_len_per_req")
        refuse(bool(kwargs.get("window_right", 0)), "'window_right' other than 0")
        refuse(kwargs.get("is_causal") not in (None, tokens > 1), "'is_causal'")
        dtype = kwargs.get("q_data_type") or kwargs.get("data_type") or "float16"
        plan = self._planned((indptr, indices, last_page_len), "", (num_qo_heads, num_kv_heads),
                             (head_dim, head_dim), page_size, causal=True, dtype=dtype, **kwargs)
        plan.tokens, plan.rows = tokens, tokens * plan.lengths.numel()
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
        if self._plan is not None and q_len_per_req not in (None, self._plan.tokens):
            raise UsageError(f"argument 'q_len_per_req' must be {self._plan.tokens}, as planned, "
                             f"but got {q_len_per_req!r}", "leave it out, or pass it to plan")
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
        plan = self._planned(
            (paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len), "paged_kv_",
            (num_qo_heads, num_kv_heads),
            (head_dim_qk, head_dim_qk if head_dim_vo is None else head_dim_vo), page_size,
            causal=causal, dtype=q_data_type, pos_encoding_mode=pos_encoding_mode,
            sm_scale=sm_scale, window_left=window_left, logits_soft_cap=logits_soft_cap,
            rope_scale=rope_scale, o_data_type=o_data_type)
        plan.spread(qo_indptr, "qo_indptr", uniform_q_len, self._graph)
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
                             f"but got {lse_base!r} and {lse_layout!r}",
                             "tokens are in front of heads, or behind them")
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
        for one in cache:
            check_tensor(one, name)
        return (cache[0], cache[1]), 1
    check_tensor(cache, name)
    if cache.dim() != 5 or cache.shape[1] != 2 or not cache.is_contiguous():
        raise UsageError(f"argument '{name}' must be a pair, or contiguous of shape [N, 2, ...], "
                         f"but got the shape {list(cache.shape)}",
                         "pass (cache[:, 0], cache[:, 1]), which may be copied")
    pages = cache.flatten(0, 1)
    return (pages[:-1], pages[1:]), 2


def named(positional: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a plan for decoding behind `page_size`, all by name."""
    given = dict(zip(_OPTIONS, positional))
    if len(positional) > len(_OPTIONS) or given.keys() & options.keys():
        twice = ", ".join(sorted(given.keys() & options.keys()))
        raise UsageError(f"plan must have at most {len(_OPTIONS)} arguments behind 'page_size', "
                         f"each once, but got {len(positional)}"
                         + (f", and {twice} by name too" if twice else ""), "pass them by name")
    known = (*_OPTIONS, *_ONLY_NAMED)
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            raise UsageError(f"plan must have arguments that FlashInfer's has, but got '{name}'",
                             f"did you mean '{close[0]}'?" if close else "leave it out")
    return {**given, **options}


def place_of(out: Any, query: torch.Tensor, elements: int) -> torch.Tensor | None:
    """`out` with the tokens of a query, where kernels can write it; else None, and it gets a
    copy."""
    shape = (*query.shape[:-1], elements)
    dtype = torch.float16 if query.dtype == torch.float16 else torch.bfloat16
    is_place = (isinstance(out, torch.Tensor) and out.dtype == dtype and out.dim() == 3
                and out.device == query.device and not query.requires_grad
                and list(out.shape) == [math.prod(shape[:-2]), *shape[-2:]])
    place = out.unflatten(0, shape[:-2]) if is_place else None
    return None if place is None or matrix_of_tokens(place) is None else place


def finished(q: torch.Tensor, results: Any, options: dict[str, Any]) -> Any:
    """The results of attention in the shapes of `q`, where the options say."""
    result, lse = results if options["return_lse"] else (results, None)
    result = result.reshape(*q.shape[:-1], result.shape[-1])
    if options["out"] is not None:
        out = options["out"]
        is_there = isinstance(out, torch.Tensor) and out.data_ptr() == result.data_ptr()
        result = out if is_there else into(out, result)
    if lse is None:
        return result
    lse = lse.reshape(q.shape[:-1])
    if options.get("lse_base", "log2") == "log2":
        lse = lse * _LOG2E
    if options.get("lse_layout", "NH") == "HN":
        lse = lse.transpose(0, 1).contiguous()
    return result, lse if options["lse"] is None else into(options["lse"], lse, "lse")


def factors_of(options: dict[str, Any], q: torch.Tensor, key: torch.Tensor) -> list[Any]:
    """The decode scales of keys and values, or none where they are no codes."""
    names = ("k_scale", "v_scale")
    if key.dtype != q.dtype:
        return [factor_of(options[name], name, q.device) for name in names]
    for name in names:
        given = options[name]
        is_many = isinstance(given, torch.Tensor) and given.numel() != 1
        refuse(is_many or (given is not None and bool(given != 1.0)),
               f"'{name}' of a cache of {key.dtype}")
    return [None, None]


def factor_of(given: Any, name: str, device: torch.device) -> torch.Tensor:
    """A decode scale in the memory of a device. A tensor is read by kernels, whenever they run."""
    if isinstance(given, torch.Tensor):
        return given.to(device, torch.float32).reshape(-1)
    if given is not None and not isinstance(given, (int, float)):
        raise UsageError(f"argument '{name}' must be a number or a tensor, but got {given!r}",
                         "it is a decode scale of codes")
    number = 1.0 if given is None else float(given)
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return _filled.__wrapped__(number, device)  # its memory is filled when the graph runs
    return _filled(number, device)


@functools.lru_cache(maxsize=256)
def _filled(number: float, device: torch.device) -> torch.Tensor:
    return torch.full((1,), number, dtype=torch.float32, device=device)


def slopes_of(heads: int, device: torch.device) -> torch.Tensor:
    """The slopes of ALiBi (Press, Smith and Lewis): powers of 2 ** (-8 / n), n the power of two up
    to the heads, and for the heads behind these every second power of 2 ** (-4 / n)."""
    n = 1 << (heads.bit_length() - 1)
    exponents = [-8 * (i + 1) / n for i in range(n)]
    exponents += [-4 * (2 * i + 1) / n for i in range(heads - n)]
    return torch.tensor([2.0 ** x for x in exponents], dtype=torch.float32, device=device)
