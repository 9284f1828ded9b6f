"""The quantizers of fp4.compat for groups of rows against those of each group alone."""

import unittest

import fp4
from compat_formulas import data, same
from programs import torch

if torch is not None:
    from fp4.compat import flashinfer, vllm


@unittest.skipIf(torch is None, "torch is not installed")
class Experts(unittest.TestCase):
    """Quantizers of the rows of experts against those of each expert alone."""

    def test_vllm(self) -> None:
        offsets, rows = [0, 5, 5, 150, 158], 160  # an expert without tokens, and two rows of none
        x, g = data(rows, 96), torch.tensor([3.5, 1.0, 80.0, 2.0 ** 9])
        places = [0, 128, 128, 384, 512]
        codes, scales = vllm.scaled_fp4_experts_quant(
            x, g, torch.tensor(offsets, dtype=torch.int32),
            torch.tensor(places, dtype=torch.int32), 2)
        self.assertEqual((codes.dtype, tuple(codes.shape)), (torch.uint8, (rows, 48)))
        self.assertEqual((scales.dtype, tuple(scales.shape)), (torch.float8_e4m3fn, (640, 8)))
        for expert, begin in enumerate(offsets[:-1]):
            end = offsets[expert + 1]
            if begin == end:
                continue
            alone = vllm.scaled_fp4_quant(x[begin:end].contiguous(), g[expert])
            same(self, codes[begin:end], alone[0])
            first = places[expert]
            same(self, scales[first:first + alone[1].shape[0]], alone[1])
        with self.assertRaisesRegex(fp4.UsageError, "grouped tiled_128x4 scales"):
            vllm.cutlass_scaled_fp4_mm(codes, codes, scales, scales, g[0], torch.bfloat16)

    def test_vllm_refuses_offsets_that_are_wrong(self) -> None:
        x, g = data(40, 64), torch.ones(2)
        good = torch.tensor([0, 20, 40]), torch.tensor([0, 128, 256])
        vllm.scaled_fp4_experts_quant(x, g, *good, 1)
        with self.assertRaisesRegex(fp4.UsageError, "blockscale_offsets' must be the sums"):
            vllm.scaled_fp4_experts_quant(x, g, good[0], torch.tensor([0, 128, 128]), 1)
        with self.assertRaisesRegex(fp4.UsageError, "expert_offsets' must be int32 or int64"):
            vllm.scaled_fp4_experts_quant(x, g, good[0][:2], good[1], 1)
        with self.assertRaisesRegex(fp4.UsageError, "must not exceed the 40 rows"):
            vllm.scaled_fp4_experts_quant(x, g, torch.tensor([0, 20, 41]), good[1], 1)

    def test_flashinfer(self) -> None:
        batch, rows, columns = 3, 130, 96
        x = torch.stack([data(rows, columns, seed) for seed in range(batch)])
        g = torch.tensor([3.5, 80.0, 2.0 ** 9])
        mask = torch.tensor([130, 0, 7], dtype=torch.int32)
        codes, scales = flashinfer.scaled_fp4_grouped_quantize(x, mask, g)
        self.assertEqual(tuple(codes.shape), (rows, columns // 2, batch))
        self.assertEqual((scales.dtype, tuple(scales.shape)),
                         (torch.float8_e4m3fn, (32, 4, 2, 4, 2, batch)))
        both = flashinfer.nvfp4_batched_quantize(x, g[:1])
        self.assertEqual(tuple(both[1].shape), (batch, 256 * 8))
        for i in range(batch):
            alone = flashinfer.nvfp4_quantize(x[i], g[i])
            same(self, codes[:, :, i].contiguous(), alone[0])
            same(self, scales[..., i].permute(2, 4, 0, 1, 3).contiguous(), alone[1])
            alone = flashinfer.nvfp4_quantize(x[i], g[0])
            same(self, both[0][i], alone[0])
            same(self, both[1][i], alone[1])
        with self.assertRaisesRegex(fp4.UsageError, "a' must be a batch of matrices"):
            flashinfer.nvfp4_batched_quantize(x[0], g[:1])
        with self.assertRaisesRegex(fp4.UsageError, "mask' must be int32"):
            flashinfer.scaled_fp4_grouped_quantize(x, mask.to(torch.int64), g)


if __name__ == "__main__":
    unittest.main()
