"""Attention of fp4.torch: as plain torch computes it in f32, within the rounding of bf16, and
judged by its reference."""

import unittest
from typing import Any

import fp4
from programs import torch

if torch is not None:
    import fp4.torch as ft


def heads(*shape: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randn(*shape).bfloat16()


def plain(query: Any, key: Any, value: Any, causal: bool, scale: "float | None") -> Any:
    """Attention in f32, with masks that end with the last key."""
    q, k, v = (x.float().transpose(1, 2) for x in (query, key, value))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        mask = mask.tril(k.shape[2] - q.shape[2])
    result = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return result.transpose(1, 2)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Attention(unittest.TestCase):
    def check(self, query: Any, key: Any, value: Any, causal: bool = False,
              scale: "float | None" = None) -> None:
        device = fp4.Device("sim", target="sm_90a", check="strict")
        with ft.simulator(device, verify=True):
            got = ft.attention(query, key, value, causal=causal, scale=scale)
        self.assertEqual(got.dtype, query.dtype)
        expected = plain(query, key, value, causal, scale)
        torch.testing.assert_close(got.float(), expected, rtol=2e-2, atol=1e-2)

    def test_equals_plain_torch(self) -> None:
        self.check(heads(1, 33, 4, 64), heads(1, 70, 2, 64, seed=1), heads(1, 70, 2, 128, seed=2))
        self.check(heads(2, 20, 1, 64), heads(2, 32, 1, 64, seed=1), heads(2, 32, 1, 64, seed=2),
                   causal=True, scale=0.5)

    def test_strides(self) -> None:
        qkv = heads(1, 16, 3, 2, 64)
        self.check(*qkv.unbind(2), causal=True)

    def test_no_queries(self) -> None:
        got = ft.attention(heads(1, 0, 2, 64), heads(1, 8, 2, 64), heads(1, 8, 2, 128))
        self.assertEqual(list(got.shape), [1, 0, 2, 128])

    def test_operator(self) -> None:
        arguments = (heads(1, 4, 1, 64), heads(1, 8, 1, 64), heads(1, 8, 1, 64), 0.125, False)
        torch.library.opcheck(torch.ops.fp4.attention.default, arguments)

    def test_refusals(self) -> None:
        q = heads(1, 4, 1, 64)
        for arguments, text in (((q[0], q, q), "'query' must be batches x tokens x heads"),
                                ((q, q.float(), q), "'key' must be bfloat16 or float16 as 'query'"),
                                ((q.float(), q, q), "'query' must be bfloat16 or float16")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                ft.attention(*arguments)
        with self.assertRaisesRegex(fp4.CompileError, "heads of 64, 128, 192 or 256 elements"):
            ft.attention(*[heads(1, 4, 1, 96)] * 3)
        with self.assertRaisesRegex(fp4.CompileError, "must have the 8 tokens of operand 'key'"):
            ft.attention(q, heads(1, 8, 1, 64), q)


if __name__ == "__main__":
    unittest.main()
