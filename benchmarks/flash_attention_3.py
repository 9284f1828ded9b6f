"""FlashAttention-3 as a peer: the extension that vLLM's wheels have, in vllm/vllm_flash_attn.

The file `_vllm_fa3_C.abi3.so` is loaded from the folder of a benchmark, where the person who runs
it puts it; it must be built for the PyTorch that runs. Without the file there is no such peer. This
build takes packed sequences alone, so that sequences of one length are given as packed ones.
"""
import functools
import os

FILE = "_vllm_fa3_C.abi3.so"


@functools.cache
def operation(folder):
    """The operation of the file in `folder`, or None where there is no file."""
    path = os.path.join(folder, FILE)
    if not os.path.exists(path):
        return None
    import torch
    torch.ops.load_library(path)
    return torch.ops._vllm_fa3_C.fwd.default


def offsets_of(tensor):
    """The first token of each sequence of [batch, tokens, ...], and the end."""
    import torch
    return torch.arange(tensor.shape[0] + 1, dtype=torch.int32, device=tensor.device) * tensor.shape[1]


def call_batch(forward, q, k, v, causal, scales=()):
    """A function without arguments: attention of matrices [batch, tokens, heads, elements]. Scales
    of e4m3 are those of q, k and v, f32 [batch, heads of k]."""
    packed = call(forward, *(x.flatten(0, 1) for x in (q, k, v)), causal, offsets=offsets_of(q), longest=q.shape[1],
                  key_offsets=offsets_of(k), longest_keys=k.shape[1], scales=scales)
    shape = (*q.shape[:-1], v.shape[-1])
    return lambda: packed().view(shape)


def call_paged(forward, q, k, v, lengths, pages):
    """A function without arguments: attention of `q`, [batch, tokens, heads, elements], over keys
    of `pages` (i32); `k` and `v` are [pages, tokens of a page, heads, elements]."""
    return call(forward, q.flatten(0, 1), k, v, True, offsets=offsets_of(q), longest=q.shape[1], lengths=lengths,
                longest_keys=pages.shape[1] * k.shape[1], pages=pages)


def call_latent(forward, q, cache, values, lengths, pages, scale):
    """As call_paged, of a latent cache [pages, tokens of a page, 1, elements]: its first elements,
    so many as `values`, are values, and products of queries and keys are those of two parts."""
    parts = [x.split([values, x.shape[-1] - values], -1) for x in (q.flatten(0, 1), cache)]
    return call(forward, parts[0][1], parts[1][1], parts[1][0], True, offsets=offsets_of(q), longest=q.shape[1],
                lengths=lengths, longest_keys=pages.shape[1] * cache.shape[1], pages=pages,
                of_values=parts[0][0].contiguous(), scale=scale)


def call(forward, q, k, v, causal, *, offsets, longest, key_offsets=None, longest_keys=None, lengths=None, pages=None,
         scales=(), of_values=None, scale=None):
    """A function without arguments: attention of packed sequences [tokens, heads, elements] that
    begin at `offsets` (i32), the longest of which has `longest` tokens. Keys begin at
    `key_offsets`, or are in pages. Values are keys of queries `of_values`, too."""
    import torch
    window = (-1, 0 if causal else -1)
    result = q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=torch.bfloat16)
    before = (None, None, of_values, result, offsets, key_offsets, None, None, lengths)
    lengths_and_pages = (longest, longest_keys or longest, pages)
    nothing = (None,) * 5  # places of batches, left paddings, rotations
    tail = (True, None, 0, None, 0, None, 1, 0, None)  # interleaved, schedule, splits, packing, SMs, sinks, ranks

    def run():
        return forward(q, k, v, *before, *lengths_and_pages, *nothing, *(scales or (None,) * 3), scale or q.shape[-1] ** -0.5, causal, *window, 0.0, *tail)[0]
    return run
