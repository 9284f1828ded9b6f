"""The choice of experts of fp4.compat, beside the routers of test_torch_routing in plain torch."""

import unittest
from typing import Any

import fp4
import one_kernel
from programs import torch
from test_torch_routing import logits_of, routed

if torch is not None:
    from fp4.compat import flashinfer, vllm
    from fp4.torch import routing_programs

DEEPSEEK = {"renormalize": "sum", "num_groups": 8, "top_groups": 4, "factor": 2.5, "eps": 1e-20}


def aligned_slowly(ids: Any, experts: int, block: int, table: Any, size: int) -> "list[list[int]]":
    """Lists of pairs, of the experts of blocks, of the total, and of pairs with a place."""
    pairs = ids.flatten().tolist()
    of = [i if table is None or i >= experts else int(table[i]) for i in pairs]
    places: list[int] = []
    blocks: list[int] = []
    for expert in range(experts):
        found = [pair for pair, found in enumerate(of) if found == expert]
        found += [len(pairs)] * (-len(found) % block)
        places += found
        blocks += [expert] * (len(found) // block)
    return [places + [len(pairs)] * (size - len(places)),
            blocks + [-1] * (size // block + 1 - len(blocks)), [len(places)],
            [pair if 0 <= of[pair] < experts else -1 for pair in range(len(pairs))]]


@unittest.skipIf(torch is None, "torch is not installed")
class Choice(unittest.TestCase):
    def setUp(self) -> None:
        self.compiled = one_kernel.watch(self, routing_programs, routing_programs.route)

    def same(self, weights: Any, ids: Any, expected: "tuple[Any, Any]") -> None:
        self.assertTrue(torch.equal(ids.int(), expected[1]))
        torch.testing.assert_close(weights, expected[0], rtol=1e-5, atol=1e-7)

    def results(self, tokens: int, k: int, dtype: Any) -> "tuple[Any, Any]":
        return torch.full((tokens, k), 7.0), torch.full((tokens, k), 7, dtype=dtype)

    def test_flashinfer(self) -> None:
        bias = torch.linspace(-0.2, 0.2, 256)
        for tokens, dtype in ((5, torch.int32), (33, torch.int64)):
            logits, (weights, ids) = logits_of(tokens, 256), self.results(tokens, 8, dtype)
            self.assertIsNone(flashinfer.fused_topk_deepseek(logits, bias, 8, 4, 8, 2.5, weights,
                                                             ids))
            self.same(weights, ids, routed(logits, 8, scores="sigmoid", bias=bias, **DEEPSEEK))

    def test_softmax(self) -> None:
        bias = torch.linspace(0.02, -0.02, 64)
        for added in (None, bias):
            for renormalize in (False, True):
                with self.subTest(renormalize=renormalize, bias=added is not None):
                    logits, (weights, ids) = logits_of(9, 64), self.results(9, 6, torch.int32)
                    places = torch.empty(9, 6, dtype=torch.int32)
                    vllm.topk_softmax(weights, ids, places, logits, renormalize, added)
                    self.same(weights, ids, routed(
                        logits, 6, bias=added, renormalize="sum" if renormalize else "none"))
                    self.assertEqual(places[4].tolist(), [4, 13, 22, 31, 40, 49])

    def test_groups(self) -> None:
        bias = torch.linspace(-0.2, 0.2, 256)
        for function, name in ((0, "logits"), (1, "sigmoid")):
            logits = logits_of(7, 256, torch.float32)
            if function == 0:
                logits = logits.sigmoid()
            expected = routed(logits, 8, scores=name, bias=bias, **DEEPSEEK)
            found = vllm.grouped_topk(logits, 8, 4, 8, True, 2.5, bias, function)
            self.same(*found, expected)
            plain = {**DEEPSEEK, "renormalize": "none", "eps": 0.0}
            found = vllm.grouped_topk(logits, 8, 4, 8, False, 2.5, bias, function)
            self.same(*found, routed(logits, 8, scores=name, bias=bias, **plain))

    def test_aligned(self) -> None:
        """Pairs by expert, in blocks: some ids have no expert, and some experts no pair."""
        for tokens, k, experts, block, mapped in ((4, 3, 5, 4, False), (33, 2, 7, 16, True),
                                                  (1, 1, 3, 8, False), (70, 4, 40, 1, True)):
            with self.subTest(tokens=tokens, block=block, mapped=mapped):
                ids = torch.randint(experts + mapped, (tokens, k), dtype=torch.int64)
                table = torch.arange(experts, dtype=torch.int32)
                table[1] = -1
                size = tokens * k + experts * (block - 1)
                results = [torch.full((n,), 7, dtype=torch.int32) for n in (size, size // block + 1,
                                                                            1)]
                scattered = torch.full((tokens * k, 1), 7, dtype=torch.int32)
                self.assertIsNone(vllm.moe_align_block_size(
                    ids if mapped else ids.int(), experts, block, *results,
                    table if mapped else None, scattered))
                expected = aligned_slowly(ids, experts, block, table if mapped else None, size)
                for found, wanted in zip((*results, scattered[:, 0]), expected):
                    self.assertEqual(found.tolist(), wanted)

    def test_aligned_ids_of_64_bits(self) -> None:
        """2^32 + 1 is no expert, although its lower half is one."""
        results = [torch.full((n,), 7, dtype=torch.int32) for n in (14, 4, 1)]
        vllm.moe_align_block_size(torch.tensor([[2**32 + 1, 2]]), 3, 4, *results)
        self.assertEqual(results[0].tolist()[:4], [1, 2, 2, 2])
        self.assertEqual(results[2].tolist(), [4])

    def test_aligned_refusals(self) -> None:
        ids, whole = torch.zeros(4, 2, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
        align, one = vllm.moe_align_block_size, torch.zeros(1, dtype=torch.int32)
        align(ids, 3, 4, whole[:17], whole[:5], one)
        for call, text in (
                (lambda: align(ids, 3, 4, whole[:16], whole[:5], one),
                 "'sorted_token_ids' must have at least 17 numbers, but got int32 of shape"),
                (lambda: align(ids, 3, 4, whole[:17], whole[:4], one),
                 "'experts_ids' must have at least 5 numbers, but got int32 of shape"),
                (lambda: align(ids.float(), 3, 4, whole, whole, one), "'topk_ids' must be int32"),
                (lambda: align(ids, 3, 4, whole.long(), whole, one),
                 "'sorted_token_ids' must be int32 of shape"),
                (lambda: align(ids, 3, 4, whole, whole[None], one),
                 "'experts_ids' must be a vector"),
                (lambda: align(ids, 3, 4, whole, whole, one, one), "'expert_map' must be int32 of"),
                (lambda: align(ids, 3, 4, whole, whole, one, None, whole),
                 "'scatter_idx' must be int32 of shape"),
                (lambda: align(ids, 3, 2048, whole, whole, one), "'multiple' must be 1 to 1024")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                call()

    def test_refusals(self) -> None:
        logits, bias = logits_of(4, 64), torch.zeros(64)
        weights, ids = self.results(4, 8, torch.int32)
        places = torch.empty(4, 8, dtype=torch.int32)
        deepseek = flashinfer.fused_topk_deepseek
        for call, text in (
                (lambda: deepseek(logits, bias, 8, 4, 8, 1.0, weights[:3], ids),
                 r"'topk_values' must be float32 of shape \[4, 8\], but got float32 of shape"),
                (lambda: deepseek(logits, bias, 8, 4, 8, 1.0, weights, ids.float()),
                 "'topk_indices' must be int32 or int64 or uint32 of shape"),
                (lambda: deepseek(logits, bias, 8, 4, 8, 1.0, weights, ids, True, ids),
                 "'routing_replay_out' has no kernel here\nnote: copy 'topk_indices' instead"),
                (lambda: deepseek(logits, bias, 8, 4, 8, 1.0, weights, ids, backend="cake"),
                 "'backend' 'cake' has no kernel here"),
                (lambda: vllm.topk_softmax(weights, ids, places, logits, is_padding=ids[:, 0]),
                 "'is_padding' has no kernel here"),
                (lambda: deepseek(logits, bias, 5, 4, 8, 1.0, weights, ids), "'num_groups' must"),
                (lambda: vllm.grouped_topk(logits, 8, 4, 8, True, 1.0, bias, 2),
                 "'scoring_func' must be 0 or 1, but got 2"),
                (lambda: vllm.topk_softmax(weights, ids[0], places, logits),
                 "'topk_ids' must be a matrix, but got int32 of shape"),
                (lambda: vllm.topk_softmax(weights, ids, places.long(), logits),
                 "'token_expert_indices' must be int32 of shape")):
            with self.assertRaisesRegex(fp4.UsageError, text):
                call()
        with self.assertRaisesRegex(TypeError, "'scores' must be a torch tensor, but got list"):
            deepseek([1.0], bias, 8, 4, 8, 1.0, weights, ids)


if __name__ == "__main__":
    unittest.main()
