"""fp4.checkpoints: stacks of experts as ModelOpt has them, and block scales that are damaged."""

import unittest
from typing import Any

from programs import torch
from test_checkpoints import Checkpoints, by_blocks, decoded, e4m3, packed, tensors

if torch is not None:
    import fp4.torch as ft

    try:
        import fp4.checkpoints as ck
    except ImportError:
        ck = None

E, R, K = 3, 48, 64


def stack(transposed: bool) -> "tuple[dict[str, Any], Any]":
    """Experts as ModelOpt exports those of gpt-oss: parameters of one module, [E, K/2, R]."""
    q, s = packed(E * R, K).view(E, R, K // 2), e4m3(E * R, K // 16).view(E, R, K // 16)
    scale = torch.tensor(0.37 / 2688)
    numbers = by_blocks(q, s.float() * scale)
    if transposed:
        q = q.transpose(1, 2).contiguous()
        s = s.view(torch.uint8).transpose(1, 2).contiguous().view(torch.float8_e4m3fn)
    name = "mlp.experts.gate_up_proj"
    return ({name: q, f"{name}_weight_scale": s, f"{name}_weight_scale_2": scale,
             f"{name}_input_scale": torch.tensor(0.01), f"{name}_bias": torch.ones(E, R)}, numbers)


class Stacks(Checkpoints):
    def test_parameters_of_one_module(self) -> None:
        """One scale of the tensor for all experts, and linear layers in the same file."""
        name = "mlp.experts.gate_up_proj"
        for transposed in (False, True):
            content, numbers = stack(transposed)
            both = {**content, **{f"q_proj{key[1:]}": value
                                  for key, value in tensors("modelopt")[0].items()
                                  if key.startswith("a.")}}
            with ck.open(self.save(both)) as checkpoint:
                self.assertEqual(sorted(checkpoint), [name, "q_proj"])
                self.assertEqual(repr(checkpoint[name]),
                                 f"Entry('{name}', 3 experts of 48x64 nvfp4)")
                self.assertEqual(checkpoint.others, (f"{name}_bias",))
                for expert in range(E):
                    self.same(decoded(checkpoint.read(name, expert=expert)), numbers[expert])
                self.assertEqual(checkpoint.input_scale(name).value, content[f"{name}_input_scale"])

    def test_matrices_behind_each_other(self) -> None:
        content = stack(False)[0]
        q, s = (content[f"mlp.experts.gate_up_proj{end}"] for end in ("", "_weight_scale"))
        for level in (torch.tensor([0.01]), torch.tensor([0.01, 0.02, 0.03]),
                      torch.tensor([0.01, 0.02, 0.03]).view(E, 1, 1)):
            file = {"a.weight": q, "a.weight_scale": s, "a.weight_scale_2": level}
            with ck.open(self.save(file)) as checkpoint:
                for expert in range(E):
                    factor = level.reshape(-1)[expert if level.numel() > 1 else 0]
                    self.same(decoded(checkpoint.read("a", expert=expert)),
                              by_blocks(q[expert], s[expert].float() * factor))
        file["a.weight_scale_2"] = torch.ones(2)
        with self.refused("'a.weight_scale_2' must be one F32, or 3, one for each expert, but is"):
            ck.open(self.save(file))

    def test_deepseek(self) -> None:
        content, numbers = tensors("deepseek")
        config = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
        with ck.open(self.save(content, **config)) as checkpoint:
            self.assertEqual((checkpoint.layout.name, list(checkpoint), checkpoint.others),
                             ("deepseek", ["a"], ("b.scale", "b.weight")))  # FP8 is not read
            self.same(decoded(checkpoint.read("a")), numbers)


class Damage(Checkpoints):
    def test_block_scales_that_are_none(self) -> None:
        for layout, byte, kind in (("modelopt", 0x7F, "E4M3"), ("modelopt", 0xFF, "E4M3"),
                                   ("modelopt", 0x9A, "E4M3"), ("compressed-tensors", 0x7F, "E4M3"),
                                   ("deepseek", 0xFF, "E8M0"), ("gpt-oss", 0xFF, "E8M0")):
            content = tensors(layout)[0]
            name = next(key for key in content if key.startswith("a") and key.endswith(
                (".weight_scale", ".scale", "_scales")))
            whole = content[name].view(torch.uint8)
            matrix = whole if whole.dim() == 2 else whole[1]
            matrix[5, 1] = matrix[7, 0] = byte
            expert = None if whole.dim() == 2 else 1
            where = "" if expert is None else " of expert 1"
            path = self.save(content)
            with ck.open(path) as checkpoint:
                with self.refused(
                        rf"tensor '{name}'{where} must have {kind} scales that are numbers and not "
                        rf"negative, but \[5, 1\] is the byte {byte:#x}, and 1 more are wrong\n"
                        r"note: .*check_scales=False"):
                    checkpoint.read("a", expert=expert)
                if expert is not None:
                    checkpoint.read("a", expert=0)  # which is not damaged
            with ck.open(path, check_scales=False) as checkpoint:
                weight = checkpoint.read("a", expert=expert)
                self.assertEqual(weight.scales.view(torch.uint8)[5, 1], byte)

    def test_what_is_no_damage(self) -> None:
        """Zero of either sign, the largest number, and the ends of E8M0."""
        content = tensors("modelopt")[0]
        scales = content["a.weight_scale"].view(torch.uint8)
        scales[0, 0], scales[0, 1], scales[0, 2] = 0, 0x80, 0x7E
        with ck.open(self.save(content)) as checkpoint:
            self.assertTrue(decoded(checkpoint.read("a")).isfinite().all())
        content = tensors("deepseek")[0]
        content["a.scale"].view(torch.uint8)[0] = torch.tensor([0, 0xFE], dtype=torch.uint8)
        with ck.open(self.save(content)) as checkpoint:
            checkpoint.read("a")


class Written(Checkpoints):
    def test_what_quantize_makes_by_default(self) -> None:
        """The scale of the tensor is an amax: the layout's own scale of it decodes to the same
        numbers but for a rounding of float32. Tiled scales are stored linear."""
        torch.manual_seed(2)
        for layout in ("modelopt", "compressed-tensors"):
            weight = ft.quantize(torch.randn(130, 64, dtype=torch.bfloat16))
            self.assertEqual(weight.layout, "tiled_128x4")
            ck.write(self.path, {"a": weight}, layout)
            with ck.open(self.path) as checkpoint:
                found = decoded(checkpoint.read("a"))
            expected = ft.dequantize(weight, torch.float32)
            self.assertLess(((found - expected) / expected).nan_to_num().abs().max(), 2.0 ** -21)
            mx = ft.quantize(torch.randn(130, 64, dtype=torch.bfloat16), format="mxfp4")
            ck.write(self.path, {"a": mx}, layout)
            with ck.open(self.path, layout=layout) as checkpoint:
                self.same(decoded(checkpoint.read("a")), ft.dequantize(mx, torch.float32))

    def test_merged_weights_keep_their_scales(self) -> None:
        parts = [ft.quantize(torch.randn(rows, 64, dtype=torch.bfloat16) * factor)
                 for rows, factor in ((48, 1), (16, 5), (80, 0.1))]
        whole = ck.merge(parts)
        self.assertEqual((whole.shape, whole.amax.shape), ((144, 64), (144,)))
        self.same(ft.dequantize(whole, torch.float32),
                  torch.cat([ft.dequantize(part, torch.float32) for part in parts]))
        same = ck.merge([parts[0], parts[0]])
        self.assertEqual(same.amax.dim(), 0)
        with self.refused("must have one K, format, recipe and device, but"):
            ck.merge([parts[0], ft.quantize(torch.ones(4, 32))])


if __name__ == "__main__":
    unittest.main()
