"""fp4.torch.MoE of FP8Experts: weights of E4M3 with scales of blocks, as DeepSeek-V3 has them, and
rows that are quantized twice, in one program."""

import copy
import unittest
from typing import Any
from unittest import mock

import fp4
from programs import torch
from test_torch_linear import compiled_once
from test_torch_moe import MODELS, E, parameter, router_of
from test_torch_ops import matrix

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution, mixture_programs
    from fp4.torch.experts import activated
    from fp4.torch.mixture import operands
    from fp4.torch.router import chosen
    from fp4.torch.shards import Part, experts_of_rank

H, SIZE = 256, 128


def blocks_of(rows: int, columns: int, seed: int) -> Any:
    """Weights of E4M3 [E, rows, columns], the scales of their blocks, and the numbers."""
    whole = parameter(E, rows, columns, seed=seed).float()
    tiles = whole.view(E, rows // 128, 128, columns // 128, 128)
    scales = tiles.abs().amax((2, 4)) / 448
    codes = (tiles / scales[:, :, None, :, None]).to(torch.float8_e4m3fn)
    numbers = codes.float() * scales[:, :, None, :, None]
    return codes.view(whole.shape), scales, numbers.view(whole.shape)


def experts_of(activation: str = "silu") -> Any:
    up, down = blocks_of(2 * SIZE, H, 1), blocks_of(H, SIZE, 5)
    made = ft.RoutedExperts(ft.FP8Experts(*up[:2], activation=activation), ft.FP8Experts(*down[:2]))
    made.numbers = up[2], down[2]
    return made


def rounded(x: Any) -> Any:
    """The numbers of E4M3 with a scale for 128 columns, in float32."""
    parts = x.float().view(len(x), -1, 128)
    scales = parts.abs().amax(2, keepdim=True).clamp(min=1e-4) / 448
    return ((parts / scales).to(torch.float8_e4m3fn).float() * scales).view(x.shape)


def by_hand(layer: Any, x: Any, quantize: Any) -> Any:
    """Computes what the layer does in float32 by torch, token by token."""
    experts = layer.experts
    (ups, downs), gate = experts.numbers, experts.gate_up.gate
    weights, ids = chosen(layer.router(x), layer.router.rule, layer.router.correction)
    y = torch.zeros(x.shape)
    for token in range(x.shape[0]):
        row = quantize(x[token:token + 1])
        for expert, weight in zip(ids[token].tolist(), weights[token]):
            sums = (row @ ups[expert].T).to(x.dtype).float()
            hidden = activated(sums[:, :SIZE], sums[:, SIZE:], gate).to(x.dtype)
            y[token] += weight * (quantize(hidden) @ downs[expert].T)[0].to(x.dtype).float()
    return y


@unittest.skipIf(torch is None, "torch is not installed")
class Mixtures(unittest.TestCase):
    def layer(self, name: str = "deepseek_v3", activation: str = "silu") -> Any:
        rule, corrects, _ = MODELS[name]
        return ft.MoE(router_of(rule, corrects, H), experts_of(activation))

    def test_numbers(self) -> None:
        """The layer has the numbers of quantized rows, but for sums, and so scales and their codes,
        that another order rounds to their neighbours; those of rows that nobody quantizes are
        further away."""
        for name, activation in (("deepseek_v3", "silu"), ("qwen3", "gpt_oss"),
                                 ("llama4", "gelu_tanh")):
            for dtype in (torch.bfloat16, torch.float16):
                layer, x = self.layer(name, activation), matrix(7, H, 3).to(dtype)
                layer.router.to(dtype)
                with self.subTest(name, dtype=dtype), torch.no_grad():
                    y = layer(x)
                    self.assertEqual((y.shape, y.dtype), (x.shape, dtype))
                    near, far = ((y.float() - want).norm() / want.norm() for want in (
                        by_hand(layer, x, rounded), by_hand(layer, x, torch.Tensor.float)))
                    self.assertLess(near.item(), 0.015)
                    self.assertGreater(far.item(), 0.03)

    def test_every_target_has_the_bits_of_the_reference_model(self) -> None:
        layer = self.layer()
        for target in ("sm_90a", "sm_100a", "sm_120a"):
            device = fp4.Device("sim", target=target, check="strict", policy="random", seed=3)
            with (self.subTest(target=target), device, ft.simulator(device, verify=True),
                  torch.no_grad()):
                for rows in (9, 1):
                    layer(matrix(rows, H))

    def test_a_call_is_one_program(self) -> None:
        layer, x = self.layer(), matrix(5, H)
        mixture_programs.mixture.cache_clear()
        execution._programs.clear()
        with torch.no_grad(), mock.patch.object(execution, "_program",
                                                side_effect=execution._program) as programs:
            for rows in (5, 1, 4):
                layer(x[:rows])
            self.assertEqual(layer(x[:0]).shape, (0, H))
        self.assertEqual(ft.prepare(torch.nn.Sequential(layer)).programs, 1)
        self.assertEqual(programs.call_count, 1)
        ready = mixture_programs.mixture(programs.call_args.args[1][0], "sm_90a")
        names = [kernel.name.removeprefix("mixture_") for kernel in ready.kernels]
        # Gates of few rows and of many have a quantizer each, and sums of rows, too.
        self.assertEqual([name for name in names if "matmul" not in name and "groups" not in name],
                         ["top_k_0", "expert_order_0", "row_quantize_0", "row_quantize_1",
                          "row_quantize_2", "rows_0", "rows_1"])

    def test_parts_of_experts(self) -> None:
        """No kernel reads rows of other experts, which nobody writes."""
        layer, x = self.layer(), matrix(9, H, 3)
        device = fp4.Device("sim", target="sm_90a", check="strict", policy="random", seed=3)
        with device, ft.simulator(device), torch.no_grad():
            sums = [torch.full((len(x), H), torch.nan) for _ in range(3)]
            layer._write_into(sums[0], x)
            for rank in range(2):
                part = experts_of_rank(layer.experts, Part(0, rank, 2))
                ft.MoE(layer.router, part)._write_into(sums[1 + rank], x)
        error = (sums[1] + sums[2] - sums[0]).norm() / sums[0].norm()
        self.assertLess(error.item(), 1e-6)

    def test_graphs_and_copies(self) -> None:
        layer = self.layer()
        graphed, graphs = compiled_once(layer)
        with torch.no_grad():
            for rows in (7, 5):
                x = matrix(rows, H)
                torch.testing.assert_close(graphed(x), layer(x), rtol=0.01, atol=2e-3)
            other = copy.deepcopy(layer).bfloat16()
            other.load_state_dict(layer.state_dict())
            self.assertTrue(torch.equal(other.experts(x, *self.chosen(x)),
                                        layer.experts(x, *self.chosen(x))))
        calls = [node for node in graphs[-1].graph.nodes if "fp4." in str(node.target)]
        self.assertEqual([str(node.target) for node in calls], ["fp4.mixture.default"])

    def chosen(self, x: Any) -> "tuple[Any, Any]":
        ids = torch.arange(2 * len(x)).view(-1, 2) % E
        return ids, torch.full((len(x), 2), 0.5)

    def test_opcheck(self) -> None:
        experts, x = experts_of(), matrix(3, H)
        some = (*operands(experts.gate_up, experts.down), 0)
        ids, weights = self.chosen(x)
        for call, arguments in (
                ("mixture", (x, torch.randn(3, E), None, None, 2, "softmax", "sum", 1, 1, 1.0, 0.0,
                             *some)),
                ("routed_experts", (x, ids.int(), weights, None, E, *some))):
            with self.subTest(call):
                found = torch.library.opcheck(  # schemas are compared by products of E4M3
                    getattr(torch.ops.fp4, call).default, arguments, test_utils=(
                        "test_autograd_registration", "test_faketensor",
                        "test_aot_dispatch_dynamic"))
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_what_is_refused(self) -> None:
        codes, scales, _ = blocks_of(2 * SIZE, H, 1)
        experts, x = experts_of(), matrix(3, H)
        for said, call in (
                ("'weight' must be float8_e4m3fn .* rows a multiple of 256 and columns of 128, but "
                 r"got float8_e4m3fn \[8, 128, 256\]\nnote: pad rows",
                 lambda: ft.FP8Experts(codes[:, :128], scales[:, :1], activation="silu")),
                ("'weight' must be float8_e4m3fn .* but got bfloat16",
                 lambda: ft.FP8Experts(codes.bfloat16(), scales)),
                (r"'scales' must be float32 \[8, 2, 2\], one for each block, but got float32 "
                 r"\[8, 1, 2\]", lambda: ft.FP8Experts(codes, scales[:, :1])),
                ("'activation' must be one of silu, gpt_oss, gelu_tanh, but got 'relu'",
                 lambda: ft.FP8Experts(codes, scales, activation="relu")),
                ("experts of fp8_block128 must be called in one program.*\nnote: call them under "
                 r"torch.no_grad\(\)", lambda: experts(x.requires_grad_(), *self.chosen(x))),
                ("must be called as a part of RoutedExperts", lambda: experts.down(x)),
                ("'gate_up' must have gates", lambda: ft.RoutedExperts(experts.down, experts.down)),
                ("must be shared by whole experts",
                 lambda: experts_of_rank(experts, Part(1, 0, 2))),
                ("must be a multiple of the 3 ranks", lambda: experts_of_rank(experts,
                                                                               Part(0, 0, 3)))):
            with self.subTest(said=said), self.assertRaisesRegex(fp4.UsageError, said):
                call()


if __name__ == "__main__":
    unittest.main()
