"""fp4.torch.MoE with activations of E4M3 beside MXFP4: what the layer computes is the arithmetic of
rows that are quantized twice, in one program."""

import copy
import unittest
from typing import Any
from unittest import mock

import fp4
from programs import torch
from test_torch_linear import compiled_once
from test_torch_moe import MODELS, SIZE, E, H, parameter, router_of, shared
from test_torch_ops import matrix

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution, mixture_programs
    from fp4.torch.experts import activated
    from fp4.torch.mixture import operands
    from fp4.torch.router import chosen
    from fp4.torch.shards import Part, experts_of_rank
    from fp4.torch.w4a8 import rounded, unpacked


def experts_of(activation: str = "silu", *, hidden: int = H, size: int = SIZE, first: int = 0,
               count: int = E) -> Any:
    """The experts `first` to `first` + `count` of all, with biases as those of gpt-oss."""
    here, has_biases = slice(first, first + count), activation == "gpt_oss"

    def bias(columns: int, seed: int) -> Any:
        return torch.nn.Parameter(parameter(E, columns, seed=seed)[here].clone(),
                                  requires_grad=False) if has_biases else None

    up = ft.WeightOnlyExperts.from_stack(
        parameter(E, size, hidden, seed=1)[here], bias(size, 2),
        gate=parameter(E, size, hidden, seed=3)[here], gate_bias=bias(size, 4),
        activation=activation, format="mxfp4", w4a8=True)
    down = ft.WeightOnlyExperts.from_stack(parameter(E, hidden, size, seed=5)[here],
                                           bias(hidden, 6), format="mxfp4", w4a8=True)
    return ft.RoutedExperts(up, down, first=first, total=E)


def weight_of(layer: Any, packed: Any, expert: int) -> Any:
    tiles = packed.shape[0] // layer.experts
    found = unpacked(packed[expert * tiles:(expert + 1) * tiles],
                     (layer.out_features, layer.in_features))
    return ft.dequantize(found, torch.float32)[:, :layer.in_features]


def straight_through(x: Any) -> Any:
    """The numbers of quantized rows, with the gradient of x."""
    return x + (rounded(x) - x).detach()


def by_hand(layer: Any, x: Any, quantize: Any) -> Any:
    """Computes what the layer does in float32 by torch, token by token. `quantize` gives the
    numbers of both quantized matrices."""
    experts = layer.experts
    up, down = experts.gate_up, experts.down
    weights, ids = chosen(layer.router(x), layer.router.rule, layer.router.correction)
    y = torch.zeros(x.shape[0], experts.hidden_size)
    for token in range(x.shape[0]):
        row = quantize(x[token:token + 1])
        for expert, weight in zip(ids[token].tolist(), weights[token]):
            here = expert - experts.first
            if not 0 <= here < experts.num_experts:
                continue
            sums = [row @ weight_of(up, packed, here).T
                    for packed in (up.gate_packed, up.packed)]
            if up.bias is not None:
                sums = [one + bias[here].float() for one, bias in
                        zip(sums, (up.gate_bias, up.bias))]
            hidden = activated(*sums, up.gate).to(x.dtype)
            each = quantize(hidden) @ weight_of(down, down.packed, here).T
            if down.bias is not None:
                each += down.bias[here].float()
            y[token] += weight * each[0].to(x.dtype).float()
        if layer.shared is not None:
            y[token] += layer.shared(x[token:token + 1])[0].float()
    return y


@unittest.skipIf(torch is None, "torch is not installed")
class Mixtures(unittest.TestCase):
    def check(self, layer: Any, x: Any) -> Any:
        """The layer has the numbers of quantized rows, but for results and codes that another order
        of sums rounds to their neighbours; those of rows that nobody quantizes are further away."""
        with torch.no_grad():
            y = layer(x)
            expected = by_hand(layer, x, rounded)
            other = by_hand(layer, x, torch.Tensor.float)
        self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
        near, far = ((y.float() - want).norm() / want.norm() for want in (expected, other))
        self.assertLess(near.item(), 0.01)
        self.assertGreater(far.item(), 0.03)
        return y

    def test_routers_and_activations_of_models(self) -> None:
        for name, (rule, corrects, activation) in MODELS.items():
            with self.subTest(name):
                self.check(ft.MoE(router_of(rule, corrects), experts_of(activation),
                                  shared() if corrects else None), matrix(7, H, 3))

    def test_float16_and_sizes_that_are_no_whole_tiles(self) -> None:
        rule, _, _ = MODELS["gpt_oss"]
        self.check(ft.MoE(router_of(rule).half(), experts_of("gpt_oss")), matrix(5, H, 3).half())
        for hidden, size in ((2880, 96), (80, 40), (192, 160)):
            with self.subTest(hidden=hidden, size=size):
                self.check(ft.MoE(router_of(rule, hidden=hidden),
                                  experts_of("gpt_oss", hidden=hidden, size=size)),
                           matrix(3, hidden, 3))

    def test_every_target_has_the_bits_of_the_reference_model(self) -> None:
        rule, corrects, _ = MODELS["deepseek_v3"]
        layers = (ft.MoE(router_of(rule, corrects), experts_of(), shared()),
                  ft.MoE(router_of(MODELS["gpt_oss"][0]), experts_of("gpt_oss")))
        for target in ("sm_90a", "sm_120a"):
            device = fp4.Device("sim", target=target, check="strict", policy="random", seed=3)
            with (self.subTest(target=target), device, ft.simulator(device, verify=True),
                  torch.no_grad()):
                for layer in layers:
                    for rows in (9, 1):
                        layer(matrix(rows, H))

    def test_no_kernel_reads_rows_that_nobody_writes(self) -> None:
        """Rows of experts of other ranks, and of no expert, are zeros for the quantizer between the
        matmuls."""
        rule, corrects, _ = MODELS["deepseek_v3"]
        x, ids = matrix(3, H), torch.tensor([[0, -1], [2, E], [-1, 3]])
        for target in ("sm_90a", "sm_120a"):
            device = fp4.Device("sim", target=target, check="strict", policy="random", seed=3)
            with self.subTest(target=target), device, ft.simulator(device), torch.no_grad():
                y = ft.MoE(router_of(rule, corrects), experts_of(first=2, count=3))(x)
                self.assertTrue(y.isfinite().all())
                y = experts_of()(x, ids, torch.tensor([[1.0, torch.nan]] * 2 + [[torch.inf, 1.0]]))
                self.assertTrue(y.isfinite().all())

    def test_a_target_without_such_experts(self) -> None:
        """sm_100a has experts with 16-bit activations, and none of E4M3."""
        layer = ft.MoE(router_of(MODELS["mixtral"][0]), experts_of())
        device = fp4.Device("sim", target="sm_100a")
        with device, ft.simulator(device), torch.no_grad(), self.assertRaisesRegex(
                fp4.UsageError, "experts with activations of E4M3 must run on one of sm_90a, "
                "sm_120a, sm_121a, but the device has sm_100a\nnote: leave out w4a8"):
            layer(matrix(2, H))

    def test_a_call_is_one_program(self) -> None:
        """Kernels are those of 16-bit activations and one more: the rows of tokens are quantized as
        they are gathered, and those between the matmuls by a kernel of their own."""
        rule, corrects, _ = MODELS["deepseek_v3"]
        layer, x = ft.MoE(router_of(rule, corrects), experts_of(), shared()), matrix(5, H)
        mixture_programs.mixture.cache_clear()
        execution._programs.clear()
        with torch.no_grad(), mock.patch.object(execution, "_program",
                                                side_effect=execution._program) as programs:
            for rows in (5, 1, 4):
                layer(x[:rows])
        self.assertEqual(programs.call_count, 1)
        ready = mixture_programs.mixture(programs.call_args.args[1][0], "sm_90a")
        names = [kernel.name.removeprefix("mixture_") for kernel in ready.kernels]
        self.assertEqual([name for name in names if "matmul" not in name and "groups" not in name],
                         ["top_k_0", "expert_order_0", "row_quantize_0", "quantize_0", "rows_0",
                          "rows_1"])

    def test_parts_of_experts(self) -> None:
        """Experts and columns of two ranks: what the parts give is what all give, but for the
        scales of rows, of which a part of the columns has its own."""
        rule, corrects, _ = MODELS["deepseek_v3"]
        x, router = matrix(9, H, 3), router_of(rule, corrects)
        for dim, size, most in ((0, SIZE, 0.005), (1, 256, 0.03), (1, 64, 0.03)):
            whole = ft.MoE(router, experts_of(size=size))
            parts = [ft.MoE(router, experts_of_rank(whole.experts, Part(dim, rank, 2)))
                     for rank in range(2)]
            with self.subTest(dim=dim, size=size), torch.no_grad():
                sums = [torch.full((len(x), H), torch.nan) for _ in range(3)]
                for layer, out in zip((whole, *parts), sums):
                    layer._write_into(out, x)
                error = (sums[1] + sums[2] - sums[0]).norm() / sums[0].norm()
                self.assertLess(error.item(), most)

    def test_composed_by_torch(self) -> None:
        """The sums are the same where gradients are recorded; those pass straight through both
        quantizers."""
        for name in ("deepseek_v3", "gpt_oss"):
            rule, corrects, activation = MODELS[name]
            layer = ft.MoE(router_of(rule, corrects), experts_of(activation), shared())
            x = matrix(6, H, 3).requires_grad_()
            y = layer(x)
            with torch.no_grad():
                torch.testing.assert_close(y.float(), layer(x).float(), rtol=0.01, atol=2e-3)
            y.sum().backward()
            other = x.detach().clone().requires_grad_()
            by_hand(layer, other, straight_through).sum().backward()
            error = (x.grad - other.grad).float().norm() / other.grad.float().norm()
            self.assertLess(error.item(), 0.02)

    def test_graphs_and_copies(self) -> None:
        rule, corrects, _ = MODELS["deepseek_v3"]
        layer = ft.MoE(router_of(rule, corrects), experts_of(), shared())
        graphed, graphs = compiled_once(layer)
        with torch.no_grad():
            for rows in (7, 5):
                x = matrix(rows, H)
                torch.testing.assert_close(graphed(x), layer(x), rtol=0.01, atol=2e-3)
            other = ft.MoE(router_of(rule, corrects), experts_of(), shared())
            other.load_state_dict(copy.deepcopy(layer).state_dict())
            self.assertTrue(torch.equal(other(x), layer(x)))
            self.assertEqual(layer(x[:0]).shape, (0, H))
        calls = [node for node in graphs[-1].graph.nodes if "fp4." in str(node.target)]
        self.assertEqual([str(node.target) for node in calls], ["fp4.mixture.default"])

    def test_opcheck(self) -> None:
        rule, _, activation = MODELS["gpt_oss"]
        experts, x = experts_of(activation), matrix(3, H)
        some = (*operands(experts.gate_up, experts.down), 0)
        ids = torch.tensor([[0, 3], [7, 8], [1, 2]], dtype=torch.int32)
        offsets = torch.tensor([0, 1, 1, 3, 3, 3, 3, 3, 3])
        up = experts.gate_up
        for call, arguments in (
                ("mixture", (x, router_of(rule)(x).detach(), None, x, 4, "logits", "softmax", 1, 1,
                             1.0, 0.0, *some)),
                ("routed_experts", (x, ids, torch.rand(3, 2), None, E, *some)),
                ("expert_mm", (x, up.packed, offsets, None, up.bias, up.gate_packed, None,
                               up.gate_bias, "gpt_oss", None, None, SIZE))):
            with self.subTest(call):
                found = torch.library.opcheck(getattr(torch.ops.fp4, call).default, arguments)
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_experts_of_a_module(self) -> None:
        """Experts of a module of transformers; their program is known before a call."""
        module = torch.nn.Module()
        module.gate_up_proj, module.down_proj = parameter(E, 2 * SIZE, H), parameter(E, H, SIZE)
        module.act_fn = torch.nn.SiLU()
        made = ft.experts_from(module, format="mxfp4", w4a8=True)
        self.assertIn("w4a8", repr(made.gate_up))
        layer = ft.MoE(router_of(MODELS["mixtral"][0]), made)
        self.assertEqual(ft.prepare(torch.nn.Sequential(layer)).programs, 1)
        with torch.no_grad(), mock.patch.object(execution, "_program") as programs:
            layer(matrix(5, H))
        programs.assert_not_called()

    def test_what_is_refused(self) -> None:
        plain, e4m3 = (ft.WeightOnlyExperts.from_stack(
            parameter(2, 64, 64), gate=parameter(2, 64, 64), format="mxfp4", w4a8=w4a8)
            for w4a8 in (False, True))
        wide = torch.full((64, 64), 6.0)
        wide[5, 32:] = 6 * 2.0**12
        weights = [ft.quantize(value, format="mxfp4") for value in (torch.ones(64, 64), wide)]
        for said, call in (
                ("'weights' must be mxfp4 beside activations of E4M3, but got nvfp4\nnote: leave "
                 "out w4a8: 16-bit activations take nvfp4, or quantize with format='mxfp4'",
                 lambda: ft.WeightOnlyExperts.from_stack(parameter(2, 64, 64), w4a8=True)),
                ("'down' must be of w4a8 where 'gate_up' is, but got",
                 lambda: ft.RoutedExperts(e4m3, plain)),
                (r"'weights\[1\]' must have scales at most 2\^11 apart in 128 columns of a row, "
                 r"but those of row 5",
                 lambda: ft.WeightOnlyExperts(weights, w4a8=True)),
                (r"'gates\[1\]' must have scales at most",
                 lambda: ft.WeightOnlyExperts(weights[:1] * 2, gates=weights, w4a8=True))):
            with self.subTest(said=said), self.assertRaisesRegex(fp4.UsageError, said):
                call()


if __name__ == "__main__":
    unittest.main()
