"""Attention whose values are the first elements of keys, and the FlashMLA function of it: as plain
torch computes it in f32, and judged by its reference."""

import unittest
from typing import Any

import fp4
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.compat.flash_mla import flash_mla_with_kvcache, get_mla_metadata

KEY, VALUE = 192, 128


def random(*shape: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randn(*shape).bfloat16()


def plain(query: Any, cache: Any, scale: float) -> "tuple[Any, Any]":
    """One sequence: queries [Sq, Hq, D] that end with the last row of [S, D]."""
    scores = torch.einsum("shd,td->hst", query.float(), cache.float()) * scale
    hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(len(cache) - len(query) + 1)
    scores = scores.masked_fill(hidden, -torch.inf)
    return (torch.einsum("hst,td->shd", scores.softmax(-1), cache[:, :VALUE].float()),
            scores.logsumexp(-1).T)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class LatentAttention(unittest.TestCase):
    def setUp(self) -> None:
        self.device = fp4.Device("sim", target="sm_90a", check="strict")

    def test_equals_plain_torch(self) -> None:
        query, cache = random(2, 1, 16, KEY), random(2, 100, 1, KEY, seed=1)
        with ft.simulator(self.device, verify=True):
            got = ft.attention(query, cache, None, latent=VALUE, causal=True, scale=0.1)
        for i in range(2):
            want, _ = plain(query[i], cache[i, :, 0], 0.1)
            torch.testing.assert_close(got[i].float(), want, rtol=2e-2, atol=1e-2)

    def test_fake_has_the_shape(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            query, cache = (torch.empty(2, *x, KEY).bfloat16() for x in ((1, 16), (96, 1)))
            got, lse = ft.attention(query, cache, None, latent=VALUE, return_lse=True)
        self.assertEqual((got.shape, lse.shape), ((2, 1, 16, VALUE), (2, 1, 16)))

    def test_flash_mla(self) -> None:
        query, cache = random(2, 2, 16, KEY), random(6, 64, 1, KEY, seed=1)
        pages = torch.tensor([[5, 0, 3], [1, 4, 2]], dtype=torch.int32)
        lengths = torch.tensor([150, 64], dtype=torch.int32)
        with ft.simulator(self.device, verify=True):
            got, lse = flash_mla_with_kvcache(query, cache, pages, lengths, VALUE,
                                              *get_mla_metadata(lengths, 16, 1), causal=True)
        for i, length in enumerate(lengths.tolist()):
            rows = cache[pages[i].long()].flatten(0, 2)[:length]
            want, sums = plain(query[i], rows, KEY ** -0.5)
            torch.testing.assert_close(got[i].float(), want, rtol=2e-2, atol=1e-2)
            torch.testing.assert_close(lse[i].T, sums, rtol=1e-3, atol=1e-3)

    def test_flash_mla_of_bytes(self) -> None:
        query, cache = random(2, 2, 16, KEY), random(6, 64, 1, KEY, seed=1)
        of_query, of_keys = torch.tensor([0.5]), torch.tensor(0.25)
        bytes_of = lambda x, scale: (x.float() / scale).to(torch.float8_e4m3fn)  # noqa: E731
        query, cache = bytes_of(query, of_query), bytes_of(cache, of_keys)
        pages = torch.tensor([[5, 0, 3], [1, 4, 2]], dtype=torch.int32)
        lengths = torch.tensor([150, 64], dtype=torch.int32)
        with ft.simulator(self.device, verify=True):
            got, lse = flash_mla_with_kvcache(query, cache, pages, lengths, VALUE, causal=True,
                                              descale_q=of_query, descale_k=of_keys)
        self.assertEqual(got.dtype, torch.bfloat16)
        for i, length in enumerate(lengths.tolist()):
            rows = cache[pages[i].long()].flatten(0, 2)[:length].float() * of_keys
            want, sums = plain(query[i].float() * of_query, rows, KEY ** -0.5)
            torch.testing.assert_close(got[i].float(), want, rtol=6e-2, atol=3e-2)
            torch.testing.assert_close(lse[i].T, sums, rtol=1e-3, atol=1e-3)

    def test_wrong_arguments(self) -> None:
        query, cache = random(1, 1, 16, KEY), random(1, 64, 1, KEY)
        for value, latent in ((None, 0), (cache, VALUE), (None, KEY + 1)):
            with self.assertRaisesRegex(fp4.UsageError, "'latent' must be from 1 to the 192"):
                ft.attention(query, cache, value, latent=latent)
        table, lengths = torch.zeros(1, 1, dtype=torch.int32), torch.ones(1, dtype=torch.int32)
        packed = torch.zeros(1, 64, 1, 656, dtype=torch.uint8)
        for more, words in (({"is_fp8_kvcache": True, "k_cache": packed},
                             "'is_fp8_kvcache' of 656 bytes a token has no kernel here"),
                            ({"descale_q": torch.ones(1)}, "'descale_k' must come together"),
                            ({"descale_q": torch.ones(1), "descale_k": torch.ones(1)},
                             "beside queries of float8_e4m3fn, but got bfloat16"),
                            ({"indices": table}, "'indices' has no kernel here"),
                            ({"head_dim_v": 0}, "'head_dim_v' must be from 1 to the 192 elements")):
            with self.assertRaisesRegex(fp4.UsageError, words):
                flash_mla_with_kvcache(query, block_table=table, cache_seqlens=lengths,
                                       **{"k_cache": cache, "head_dim_v": VALUE, **more})


if __name__ == "__main__":
    unittest.main()
