"""Gradients of attention of fp4.torch: as plain torch computes them in f32, within the rounding of
bf16, and judged by their reference."""

import unittest
from typing import Any

import fp4
from programs import torch
from test_torch_attention import heads, plain, with_sinks
from test_torch_packed import SEQUENCES, packed

if torch is not None:
    import fp4.torch as ft


def leaves(*tensors: Any) -> "list[Any]":
    return [x.detach().clone().requires_grad_() for x in tensors]


@unittest.skipIf(torch is None, "PyTorch is not installed")
class AttentionBackward(unittest.TestCase):
    def check(self, attend: Any, expect: Any, *tensors: Any) -> None:
        """The gradients of both for one gradient of the output."""
        mine, theirs = leaves(*tensors), leaves(*(x.float() for x in tensors))
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            output = attend(*mine)
            gradient = heads(*output.shape, seed=9)
            output.backward(gradient)
        expect(*theirs).nan_to_num().backward(gradient.float())
        for x, y in zip(mine, theirs):
            self.assertEqual((x.grad.dtype, x.grad.shape), (x.dtype, x.shape))
            torch.testing.assert_close(x.grad.float(), y.grad.nan_to_num(), rtol=3e-2, atol=3e-2)

    def test_equals_plain_torch(self) -> None:
        tensors = (heads(2, 33, 4, 64), heads(2, 70, 2, 64, seed=1), heads(2, 70, 2, 128, seed=2))
        self.check(ft.attention, lambda q, k, v: plain(q, k, v, False, None), *tensors)
        self.check(lambda q, k, v: ft.attention(q, k, v, causal=True, scale=0.1),
                   lambda q, k, v: plain(q, k, v, True, 0.1), *tensors)

    def test_heads_of_other_sizes(self) -> None:
        """Heads of 96, and heads whose gradients of keys and of values two kernels add up."""
        for elements in (96, 256):
            tensors = [heads(1, 20, 2, elements),
                       *(heads(1, 30, 1, elements, seed=i) for i in (1, 2))]
            self.check(lambda q, k, v: ft.attention(q, k, v, causal=True, scale=0.1),
                       lambda q, k, v: plain(q, k, v, True, 0.1), *tensors)

    def test_strides(self) -> None:
        """Views of one tensor, and a gradient that is a view."""
        mine, theirs = leaves(heads(1, 16, 3, 2, 64), heads(1, 16, 3, 2, 64).float())
        gradient = heads(1, 2, 16, 64, seed=9)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            ft.attention(*mine.unbind(2), causal=True).backward(gradient.transpose(1, 2))
        plain(*theirs.unbind(2), True, None).backward(gradient.transpose(1, 2).float())
        torch.testing.assert_close(mine.grad.float(), theirs.grad, rtol=3e-2, atol=3e-2)

    def test_windows_and_sinks(self) -> None:
        sinks = torch.randn(4)
        self.check(lambda q, k, v: ft.attention(q, k, v, causal=True, window=7, sinks=sinks),
                   lambda q, k, v: with_sinks(q, k, v, sinks, window=7)[0],
                   heads(1, 40, 4, 64), heads(1, 40, 2, 64, seed=1), heads(1, 40, 2, 64, seed=2))

    def test_softcap(self) -> None:
        sinks = torch.full((4,), -torch.inf)
        self.check(lambda q, k, v: ft.attention(q, k, v, causal=True, softcap=1.5, window=9),
                   lambda q, k, v: with_sinks(q, k, v, sinks, window=9, softcap=1.5)[0],
                   heads(1, 40, 4, 64), heads(1, 40, 2, 64, seed=1), heads(1, 40, 2, 64, seed=2))

    def gradients(self, gradient: Any, *tensors: Any, **options: Any) -> "list[Any]":
        """Gradients of attention for one gradient of the output."""
        mine = leaves(*tensors)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            ft.attention(*mine, **options).backward(gradient)
        return [x.grad for x in mine]

    def test_packed_sequences(self) -> None:
        """Each sequence has the bits that it has by itself, and what no query sees has zeros."""
        query, key, value, *offsets = packed()
        names = dict(zip(("cu_seqlens_q", "cu_seqlens_k"), offsets))
        gradient = heads(*query.shape, seed=9)
        self.gradients(gradient, query, key, value, **names)
        got = self.gradients(gradient, query, key, value, causal=True, softcap=3.0, **names)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            output, lse = ft.attention(query, key, value, causal=True, softcap=3.0, return_lse=True,
                                       **names)
        of_queries, of_keys = (x.tolist() for x in offsets)
        for i, (queries, keys) in enumerate(SEQUENCES):
            ours, theirs = (slice(x[i], x[i + 1]) for x in (of_queries, of_keys))
            parts = [x[rows] for x, rows in zip(got, (ours, theirs, theirs))]
            if not queries or not keys:
                self.assertFalse(any(x.any() for x in parts))
                continue
            with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
                alone = torch.ops.fp4.attention_backward(
                    query[None, ours], key[None, theirs], value[None, theirs],
                    *(x[None, ours] for x in (output, lse, gradient)), 0.125, True, None, 3.0)
            for part, expected in zip(parts, alone):
                self.assertTrue(torch.equal(part, expected[0]))

    def test_packed_strides(self) -> None:
        """Packed views of one tensor."""
        mine, theirs = leaves(heads(40, 3, 2, 64), heads(40, 3, 2, 64))
        offsets = torch.tensor([0, 7, 40], dtype=torch.int32)
        gradient = heads(40, 2, 64, seed=9)
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            ft.attention(*mine.unbind(1), cu_seqlens_q=offsets, cu_seqlens_k=offsets,
                         causal=True).backward(gradient)
        q, k, v = leaves(*theirs.detach().unbind(1))
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            ft.attention(q, k, v, cu_seqlens_q=offsets, cu_seqlens_k=offsets,
                         causal=True).backward(gradient)
        self.assertTrue(torch.equal(mine.grad, torch.stack([q.grad, k.grad, v.grad], 1)))

    def test_scaled_dot_product_attention(self) -> None:
        """Queries behind the last key, which torch aligns with the first one."""
        def attend(q: Any, k: Any, v: Any) -> Any:
            return ft.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

        def expect(q: Any, k: Any, v: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, enable_gqa=True)
        for tokens in (24, 20):  # sequences of one head share keys where both have as many tokens
            self.check(attend, expect, heads(1, 4, tokens, 64), heads(1, 2, 20, 64, seed=1),
                       heads(1, 2, 20, 64, seed=2))

    def test_sequences_that_share_keys(self) -> None:
        """Two heads of each of two sequences share the keys of one."""
        query, key = heads(4, 20, 4, 64), heads(2, 33, 2, 64, seed=1)
        self.check(lambda q, k: ft.attention(q, k, k, causal=True),
                   lambda q, k: plain(q, *(k.repeat_interleave(2, 0) for _ in "kv"), True, None),
                   query, key)

    def test_queries_without_keys(self) -> None:
        query, key = leaves(heads(1, 5, 1, 64), heads(1, 2, 1, 64, seed=1))
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            ft.attention(query, key, key, causal=True).float().sum().backward()
        self.assertFalse(query.grad[:, :3].any())
        self.assertTrue(query.grad[:, 4].any() and key.grad.any())

    def test_empty(self) -> None:
        query, key = leaves(heads(1, 3, 1, 64), heads(1, 0, 1, 64))
        with ft.simulator(fp4.Device("sim", target="sm_90a", check="strict"), verify=True):
            ft.attention(query, key, key).float().sum().backward()
        self.assertFalse(query.grad.any())
        self.assertEqual(key.grad.shape, key.shape)

    def test_opcheck(self) -> None:
        query, key = heads(1, 3, 2, 64), heads(1, 5, 1, 64, seed=1)
        with ft.simulator(fp4.Device("sim", target="sm_90a"), verify=False):
            output, lse = ft.attention(query, key, key, return_lse=True)
            inputs = (query, key, key, output, lse, output, 0.125, True)
            torch.library.opcheck(torch.ops.fp4.attention_backward.default, inputs)
            packed = (*(x[0] for x in inputs[:6]), 0.125, True, None, None,
                      *[torch.tensor([0, n], dtype=torch.int32) for n in (3, 5)])
            torch.library.opcheck(torch.ops.fp4.attention_backward.default, packed)
            torch.library.opcheck(torch.ops.fp4.attention_lse.default,
                                  (*leaves(query, key, key), None, None, 0.125, True))

    def test_without_logarithms(self) -> None:
        """The operation that has no second result computes its logarithms again."""
        query, key = leaves(heads(1, 3, 2, 64), heads(1, 5, 1, 64, seed=1))
        with ft.simulator(fp4.Device("sim", target="sm_90a"), verify=False):
            torch.ops.fp4.attention(query, key, key, None, None, 0.125, True).sum().backward()
            first = query.grad.clone()
            query.grad = None
            ft.attention(query, key, key, causal=True, scale=0.125).sum().backward()
        self.assertTrue(torch.equal(first, query.grad) and first.any())

    def test_refuses_what_has_no_gradient(self) -> None:
        query, key = leaves(heads(1, 4, 2, 64), heads(1, 5, 1, 64, seed=1))
        lengths = torch.tensor([5], dtype=torch.int32)
        sinks = torch.zeros(2, requires_grad=True)
        for name, given in (("lengths", lengths), ("sinks", sinks),
                            ("alibi_slopes", torch.ones(2))):
            with ft.simulator(fp4.Device("sim", target="sm_90a"), verify=False):
                output = ft.attention(query, key, key, **{name: given})
                with self.assertRaisesRegex(fp4.UsageError, f"has no gradient with '{name}'"):
                    output.sum().backward()
                ft.attention(query, key, key).sum().backward()

    def test_refuses_slopes_of_packed_sequences(self) -> None:
        query, key = leaves(heads(4, 2, 64), heads(4, 1, 64, seed=1))
        offsets = torch.tensor([0, 1, 4], dtype=torch.int32)
        with ft.simulator(fp4.Device("sim", target="sm_90a"), verify=False):
            for slopes in (torch.ones(2), None):
                output = ft.attention(query, key, key, cu_seqlens_q=offsets, cu_seqlens_k=offsets,
                                      alibi_slopes=slopes)
                if slopes is None:
                    output.sum().backward()
                    continue
                with self.assertRaisesRegex(fp4.UsageError, "no gradient with 'alibi_slopes'"):
                    output.sum().backward()

    def test_refuses_heads_without_kernels(self) -> None:
        query, key = leaves(heads(1, 4, 1, 48), heads(1, 5, 1, 48, seed=1))
        with (ft.simulator(fp4.Device("sim", target="sm_90a"), verify=False),
              self.assertRaisesRegex(fp4.CompileError, "kernels for heads of multiples of 32")):
            ft.attention(query, key, key).sum().backward()


if __name__ == "__main__":
    unittest.main()
