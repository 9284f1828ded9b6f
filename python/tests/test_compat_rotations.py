"""Rotations of fp4.compat against the formulas of FlashInfer and vLLM, in which each product and
each sum is rounded. Every comparison is of bits."""

import unittest
from typing import Any

import fp4
import norm_formulas
import one_kernel
import rotation_formulas as formulas
from programs import torch

if torch is not None:
    from fp4.compat import flashinfer, vllm
    from fp4.torch import rotation_programs


def operands(dtype: Any, columns: int = 64, size: int = 64) -> "tuple[Any, Any, Any, Any]":
    """Rows of three heads of q, one of k and one of v, a table, and positions."""
    qkv = norm_formulas.data(5, 5 * columns, 1, dtype)
    torch.manual_seed(3)
    return (qkv, *qkv[:, :4 * columns].split([3 * columns, columns], 1),
            torch.randn(11, size)), torch.randint(11, (5,))


@unittest.skipIf(torch is None, "torch is not installed")
class Rotations(unittest.TestCase):
    def setUp(self) -> None:
        self.compiled = one_kernel.watch(self, rotation_programs, rotation_programs.rotation)

    def same(self, found: Any, expected: Any) -> None:
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        self.assertTrue(torch.equal(found.nan_to_num(7).contiguous().view(torch.uint8),
                                    expected.nan_to_num(7).contiguous().view(torch.uint8)))

    def rotated(self, x: Any, table: Any, at: Any, columns: int, is_neox: bool) -> Any:
        heads = x.reshape(at.numel(), -1, columns)
        return formulas.rotated(heads, table, at.reshape(-1), interleaved=not is_neox).view(x.shape)

    def test_flashinfer(self) -> None:
        for dtype, columns, size in ((torch.bfloat16, 64, 64), (torch.float16, 128, 64)):
            (_, q, k, table), at = operands(dtype, columns, size)
            for is_neox in (True, False):
                with self.subTest(dtype=dtype, is_neox=is_neox):
                    expected = [self.rotated(x, table, at, columns, is_neox) for x in (q, k)]
                    found = flashinfer.apply_rope_with_cos_sin_cache(at.int(), q, k, columns, table,
                                                                     is_neox)
                    for one, other in zip(found, expected):
                        self.same(one, other)
                    whole = torch.cat((q, k), 1)
                    parts = whole.split([q.shape[1], k.shape[1]], 1)
                    self.assertIsNone(flashinfer.apply_rope_with_cos_sin_cache_inplace(
                        at, *parts, columns, table, is_neox=is_neox))
                    self.same(whole, torch.cat(expected, 1))

    def test_vllm(self) -> None:
        for dtype, table_dtype in ((torch.bfloat16, torch.float32), (torch.float16, torch.float16),
                                   (torch.float32, torch.float32)):
            (qkv, q, k, table), at = operands(dtype, 64, 32)
            table = table.to(table_dtype)
            for is_neox in (True, False):
                with self.subTest(dtype=dtype, is_neox=is_neox):
                    expected = [self.rotated(x, table, at, 64, is_neox) for x in (q, k)]
                    given = qkv.clone()
                    parts = given.split([3 * 64, 64, 64], 1)
                    self.assertIsNone(vllm.rotary_embedding(at, parts[0], parts[1], 64, table,
                                                            is_neox))
                    self.same(given, torch.cat((*expected, qkv[:, 4 * 64:]), 1))
                    alone = q.contiguous().view(1, 5, 3, 64)
                    vllm.rotary_embedding(at[None], alone, None, 64, table, is_neox)
                    self.same(alone.view(5, -1), expected[0])

    def test_vllm_behind_norms(self) -> None:
        for dtype, table_dtype, size in ((torch.bfloat16, torch.bfloat16, 64),
                                         (torch.float16, torch.float32, 32)):
            (qkv, q, k, table), at = operands(dtype, 64, size)
            table, weights = table.to(table_dtype), torch.randn(2, 64).to(dtype)
            for is_neox in (True, False):
                with self.subTest(dtype=dtype, is_neox=is_neox):
                    expected = []
                    for x, weight in zip((q, k), weights):
                        h = x.reshape(-1, 64).float()
                        mean = norm_formulas.row_sum(h * h) / 64
                        r = 1 / norm_formulas.root(mean + torch.tensor(1e-5))
                        h = (h * (r * weight.float())).view(5, -1, 64)
                        y = formulas.rotated(h, table, at, interleaved=not is_neox, dtype=dtype)
                        expected.append(y.view(x.shape))
                    given = qkv.clone()
                    self.assertIsNone(vllm.fused_qk_norm_rope(
                        given, 3, 1, 1, 64, 1e-5, weights[0], weights[1], table, is_neox, at))
                    self.same(given, torch.cat((*expected, qkv[:, 4 * 64:]), 1))
        self.assertEqual(len(self.compiled), 4)

    def test_rows(self) -> None:
        """One program for any number of tokens."""
        (qkv, _, _, table), _ = operands(torch.bfloat16)
        for tokens in (5, 1, 0):
            x, at = qkv[:tokens, :192].clone(), torch.arange(tokens)
            expected = self.rotated(x, table, at, 64, True) if tokens else x.clone()
            vllm.rotary_embedding(at, x, None, 64, table, True)
            self.same(x, expected)
            vllm.fused_qk_norm_rope(x, 1, 1, 1, 64, 1e-6, *torch.ones(2, 64).bfloat16(), table,
                                    True, at)
        self.assertEqual(len(self.compiled), 3)  # the heads of one token have no gaps

    def test_what_is_refused(self) -> None:
        (qkv, q, k, table), at = operands(torch.bfloat16)
        rope = flashinfer.apply_rope_with_cos_sin_cache
        w = torch.ones(64).bfloat16()
        for function, message in (
                (lambda: rope(at, q.float(), k, 64, table), "'query' must be bfloat16 or float16"),
                (lambda: rope(at, q, k, 60, table), "'query' must have heads of 60 columns for"),
                (lambda: rope(at[:3], q, k, 64, table), "'query' must have heads of 64 columns"),
                (lambda: rope(at, q, k[:3], 64, table), "'key' must have heads of 64 columns for"),
                (lambda: rope(at, q, k, 32, table), "'cos_sin_cache' must have at most 32 columns"),
                (lambda: rope(at, q, k, 64, table.half()), "'cos_sin_cache' must be float32, but"),
                (lambda: rope(at, q, k, 64, table[:, :3]), "matrix with an even number of columns"),
                (lambda: rope(at.float(), q, k, 64, table), "'positions' must be int64 or int32"),
                (lambda: rope(at[None], q, k, 64, table), "'positions' must have 1 dimensions, b"),
                (lambda: vllm.rotary_embedding(at.int(), q, k, 64, table, True),
                 "'positions' must be int64, but got"),
                (lambda: vllm.rotary_embedding(at, q, k, 64, table, True, 8),
                 "rope_dim_offset = 8 has no kernel here"),
                (lambda: vllm.rotary_embedding(at, q, k, 64, table, True, inverse=True),
                 "inverse has no kernel here"),
                (lambda: vllm.fused_qk_norm_rope(qkv, 2, 1, 1, 64, 1e-5, w, w, table, True, at),
                 r"'qkv' must be contiguous and of shape \[5, 256\], but got"),
                (lambda: vllm.fused_qk_norm_rope(qkv, 3, 1, 1, 64, 1e-5, w, w.half(), table, True,
                                                 at), r"'k_weight' must be bfloat16 of shape \[64"),
                (lambda: vllm.fused_qk_norm_rope(qkv, 3, 1, 1, 64, 1e40, w, w, table, True, at),
                 "'eps' must be a number that f32 has")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()
        with self.assertRaisesRegex(TypeError, "'key' must be a torch tensor, but got list"):
            rope(at, q, [1.0], 64, table)
