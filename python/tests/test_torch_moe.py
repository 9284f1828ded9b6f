"""fp4.torch.MoE: a layer of experts from its router to its sums is that of plain torch, in one
program, for routers and activations of models, parts of experts, and what all tokens share."""

import copy
import dataclasses
import unittest
from typing import Any
from unittest import mock

import fp4
from programs import optional, torch
from test_torch_linear import compiled_once
from test_torch_ops import matrix

transformers = optional("transformers")
if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution, mixture_programs
    from fp4.torch.mixture import operands
    from fp4.torch.router import Rule, chosen, router_from
    from fp4.torch.shards import Part, Share, experts_of_rank

E, H, SIZE = 8, 64, 96
#: Rules of models, with whether scores have a correction, and the activation of experts.
MODELS = {
    "mixtral": ({"k": 2, "scores": "logits", "renormalize": "softmax"}, False, "silu"),
    "qwen3": ({"k": 4, "renormalize": "sum"}, False, "silu"),
    "gpt_oss": ({"k": 4, "scores": "logits", "renormalize": "softmax"}, False, "gpt_oss"),
    "llama4": ({"k": 1, "scores": "sigmoid"}, False, "silu"),
    "deepseek_v3": ({"k": 3, "scores": "sigmoid", "renormalize": "sum", "num_groups": 4,
                     "top_groups": 2, "factor": 2.5, "eps": 1e-20}, True, "silu"),
}


def parameter(*sizes: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Parameter((torch.randn(sizes) * 0.3).bfloat16(), requires_grad=False)


def experts_of(activation: str = "silu", format: str = "nvfp4", *, hidden: int = H,
               size: int = SIZE, first: int = 0, count: int = E) -> Any:
    """The experts `first` to `first` + `count` of all, with biases as those of gpt-oss."""
    here, total, has_biases = slice(first, first + count), E, activation == "gpt_oss"

    def bias(columns: int, seed: int) -> Any:
        return torch.nn.Parameter(parameter(total, columns, seed=seed)[here].clone(),
                                  requires_grad=False) if has_biases else None

    up = ft.WeightOnlyExperts.from_stack(
        parameter(total, size, hidden, seed=1)[here], bias(size, 2),
        gate=parameter(total, size, hidden, seed=3)[here], gate_bias=bias(size, 4),
        activation=activation, format=format)
    down = ft.WeightOnlyExperts.from_stack(parameter(total, hidden, size, seed=5)[here],
                                           bias(hidden, 6), format=format)
    return ft.RoutedExperts(up, down, first=first, total=total)


def router_of(rule: dict[str, Any], corrects: bool = False, hidden: int = H) -> Any:
    return ft.Router(parameter(E, hidden, seed=7), Rule(**rule), bias=parameter(E, seed=8),
                     correction=torch.rand(E) / 4 if corrects else None, in_float32=corrects)


def by_hand(layer: Any, x: Any) -> Any:
    """Computes what the layer does, token by token, with the weights that it has, in float32; what
    experts give is rounded where the layer rounds it."""
    experts = layer.experts
    weights, ids = chosen(layer.router(x), layer.router.rule, layer.router.correction)
    y = torch.zeros(x.shape[0], experts.hidden_size)
    for token in range(x.shape[0]):
        for expert, weight in zip(ids[token].tolist(), weights[token].tolist()):
            here = expert - experts.first
            if not 0 <= here < experts.num_experts:
                continue
            ends = torch.zeros(experts.num_experts + 1, dtype=torch.int64)
            ends[here + 1:] = 1
            h = experts.gate_up(x[token:token + 1], ends)
            y[token] += weight * experts.down(h, ends)[0].float()
        if layer.shared is not None:
            y[token] += layer.shared(x[token:token + 1])[0].float()
    return y


def shared() -> Any:
    torch.manual_seed(9)
    return torch.nn.Linear(H, H).bfloat16()


@unittest.skipIf(torch is None, "torch is not installed")
class Mixtures(unittest.TestCase):
    def check(self, layer: Any, x: Any) -> Any:
        with torch.no_grad():
            y, expected = layer(x), by_hand(layer, x)
        self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
        torch.testing.assert_close(y.float(), expected, rtol=0.01, atol=2e-3)
        return y

    def test_routers_and_activations_of_models(self) -> None:
        x = matrix(7, H, 3)
        for name, (rule, corrects, activation) in MODELS.items():
            for format in ("nvfp4", "mxfp4"):
                with self.subTest(name, format=format):
                    layer = ft.MoE(router_of(rule, corrects), experts_of(activation, format),
                                   shared() if corrects else None)
                    self.check(layer, x)

    def test_sizes_that_are_no_whole_tiles(self) -> None:
        """2880 columns, as gpt-oss has, are no tiles of 128; 80 are no blocks of MXFP4."""
        rule, _, _ = MODELS["gpt_oss"]
        for hidden, size, format in ((2880, 96, "mxfp4"), (96, 80, "mxfp4"), (80, 40, "nvfp4")):
            with self.subTest(hidden=hidden, size=size, format=format):
                layer = ft.MoE(router_of(rule, hidden=hidden),
                               experts_of("gpt_oss", format, hidden=hidden, size=size))
                self.check(layer, matrix(3, hidden, 3))

    def test_parts_of_experts(self) -> None:
        """Experts of two ranks: what the parts give is what all give."""
        rule, corrects, _ = MODELS["deepseek_v3"]
        x, router = matrix(9, H, 3), router_of(rule, corrects)
        parts = [self.check(ft.MoE(router, experts_of(first=first, count=4)), x)
                 for first in (0, 4)]
        whole = self.check(ft.MoE(router, experts_of()), x)
        error = (parts[0].float() + parts[1].float() - whole.float()).norm() / whole.float().norm()
        self.assertLess(error.item(), 0.005)
        with torch.no_grad():
            weights, ids = chosen(router(x), router.rule, router.correction)
            for first, expected in ((0, parts[0]), (4, parts[1])):
                some = experts_of(first=first, count=4)
                self.assertTrue(torch.equal(some(x, ids, weights), expected))

    def parts_of(self, layer: Any, dim: int, ranks: int, x: Any) -> "list[Any]":
        """The float32 sums of the part of each rank: of some experts (0), or of columns (1)."""
        found = []
        for rank in range(ranks):
            part = experts_of_rank(layer.experts, Part(dim, rank, ranks))
            sums = torch.full((len(x), H), torch.nan)
            ft.MoE(layer.router, part)._write_into(sums, x)
            found.append(sums)
        return found

    def test_sums_of_parts(self) -> None:
        """Sums of k numbers in f32 differ by their order alone: by 2 (k - 1) roundings of the sum
        of magnitudes. Sums of two have the same bits. Results of columns of an expert are rounded
        to bf16 before they are added, so that the magnitudes of all parts count."""
        x = matrix(9, H, 3)
        for name, size, format in (("deepseek_v3", 96, "nvfp4"), ("gpt_oss", 256, "mxfp4"),
                                   ("mixtral", 64, "mxfp4")):
            rule, corrects, activation = MODELS[name]
            layer = ft.MoE(router_of(rule, corrects), experts_of(activation, format, size=size))
            with self.subTest(name, size=size), torch.no_grad():
                whole = torch.empty(len(x), H)
                layer._write_into(whole, x)
                self.assertTrue(torch.equal(whole.bfloat16(), layer(x)))
                most = self.magnitudes(layer, layer.experts, x)
                total = sum(self.parts_of(layer, 0, 2, x))
                bound = 2 * (rule["k"] - 1) * 2**-24 * most
                self.assertTrue(bool(((total - whole).abs() <= bound).all()))
                if rule["k"] == 2:
                    self.assertTrue(torch.equal(total, whole))
                columns = [experts_of_rank(layer.experts, Part(1, rank, 2)) for rank in range(2)]
                most = sum((self.magnitudes(layer, part, x) for part in columns), most)
                total = sum(self.parts_of(layer, 1, 2, x))
                self.assertTrue(bool(((total - whole).abs() <= 2**-8 * most).all()))
                self.assertFalse(torch.equal(total, whole))

    def magnitudes(self, layer: Any, experts: Any, x: Any) -> Any:
        """The sum of the magnitudes of what each expert of a token adds, at least."""
        weights, ids = layer._choose(x)
        each = [experts(x, ids[:, k:k + 1], weights[:, k:k + 1]).float().abs()
                for k in range(ids.shape[1])]
        return sum(each[1:], each[0]) * (1 + 2**-7)

    def test_parts_that_do_not_divide(self) -> None:
        experts = experts_of(size=80)
        for part, words in ((Part(0, 0, 3), "experts must be a multiple of the 3 ranks, but there "
                             "are 8\nnote: .* expert_parallel=False"),
                            (Part(1, 0, 2), "columns of experts must be a multiple of 32 for 2 "
                             "ranks, but there are 80\nnote: .* expert_parallel=True")):
            with self.subTest(words), self.assertRaisesRegex(fp4.UsageError, words):
                experts_of_rank(experts, part)
        self.assertEqual(experts_of_rank(experts, Part(0, 1, 2)).first, 4)
        self.assertEqual(experts_of_rank(experts_of(), Part(1, 1, 2)).intermediate_size, 48)

    def test_a_call_is_one_program(self) -> None:
        """A part has the kernels of the whole, since rows of other experts are neither sent nor
        cleared, and programs by the rows that one of its experts has: 1, or up to 8."""
        self.check_programs(experts_of(), 1)
        self.check_programs(experts_of(first=3, count=4), 2)

    def check_programs(self, experts: Any, count: int) -> None:
        rule, corrects, _ = MODELS["deepseek_v3"]
        layer, x = ft.MoE(router_of(rule, corrects), experts, shared()), matrix(5, H)
        mixture_programs.mixture.cache_clear()
        execution._programs.clear()
        with torch.no_grad(), mock.patch.object(execution, "_program",
                                                side_effect=execution._program) as programs:
            for rows in (5, 1, 4):
                layer(x[:rows])
        self.assertEqual(programs.call_count, count)
        ready = mixture_programs.mixture(programs.call_args.args[1][0], "sm_90a")
        names = [kernel.name.removeprefix("mixture_") for kernel in ready.kernels]
        self.assertEqual([name for name in names if "matmul" not in name and "groups" not in name],
                         ["top_k_0", "expert_order_0", "rows_0", "rows_1", "rows_2"])
        self.assertEqual(programs.call_args.args[1][0].first, experts.first)

    def test_composed_by_torch(self) -> None:
        """The sums are the same where gradients are recorded and torch is around the matmuls."""
        for name in ("deepseek_v3", "gpt_oss"):
            rule, corrects, activation = MODELS[name]
            layer = ft.MoE(router_of(rule, corrects), experts_of(activation), shared())
            x = matrix(6, H, 3).requires_grad_()
            y = layer(x)
            with torch.no_grad():
                torch.testing.assert_close(y.float(), layer(x).float(), rtol=0.01, atol=2e-3)
            y.sum().backward()
            self.assertTrue(x.grad.isfinite().all() and x.grad.any())

    def test_float16(self) -> None:
        rule, _, activation = MODELS["gpt_oss"]
        for format in ("nvfp4", "mxfp4"):
            layer = ft.MoE(router_of(rule).half(), experts_of(activation, format))
            x = matrix(5, H, 3).half()
            self.check(layer, x)

    def test_every_target_has_the_bits_of_the_reference_model(self) -> None:
        rule, corrects, _ = MODELS["deepseek_v3"]
        layer = ft.MoE(router_of(rule, corrects), experts_of(), shared())
        other = ft.MoE(router_of(MODELS["gpt_oss"][0]), experts_of("gpt_oss", "mxfp4"))
        for target in ("sm_90a", "sm_100a", "sm_120a"):
            device = fp4.Device("sim", target=target, check="strict", policy="random", seed=3)
            with (self.subTest(target=target), device, ft.simulator(device, verify=True),
                  torch.no_grad()):
                layer(matrix(9, H))
                other(matrix(2, H))

    def test_graphs(self) -> None:
        rule, corrects, _ = MODELS["deepseek_v3"]
        layer = ft.MoE(router_of(rule, corrects), experts_of(), shared())
        graphed, graphs = compiled_once(layer)
        counts = []
        with torch.no_grad():
            for rows in (7, 5):
                x = matrix(rows, H)
                torch.testing.assert_close(graphed(x), layer(x), rtol=0.01, atol=2e-3)
                counts.append(len(graphs))
        self.assertEqual(*counts)  # torch traces again where numbers of a rule are not integers
        calls = [node for node in graphs[-1].graph.nodes if "fp4." in str(node.target)]
        self.assertEqual([str(node.target) for node in calls], ["fp4.mixture.default"])

    def test_opcheck(self) -> None:
        rule, _, activation = MODELS["gpt_oss"]
        experts, x = experts_of(activation), matrix(3, H)
        some = (*operands(experts.gate_up, experts.down), 0)
        logits = router_of(rule)(x).detach()
        ids = torch.tensor([[0, 3], [7, 8], [1, 2]], dtype=torch.int32)
        for call, arguments in (
                ("mixture", (x, logits, torch.rand(E), x, 4, "sigmoid", "sum", 4, 2, 2.5, 0.0,
                             *some)),
                ("routed_experts", (x, ids, torch.rand(3, 2), None, E, *some)),
                ("routed_experts", (x[:0], ids[:0], torch.rand(0, 2), None, E, *some))):
            with self.subTest(call):
                found = torch.library.opcheck(getattr(torch.ops.fp4, call).default, arguments)
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_shapes_copies_and_weights(self) -> None:
        rule, _, activation = MODELS["gpt_oss"]
        layer = ft.MoE(router_of(rule), experts_of(activation), returns_weights=True)
        x = matrix(6, H, 3)
        with torch.no_grad():
            y, weights = layer(x.view(2, 3, H))
            other = copy.deepcopy(layer)
            self.assertEqual((y.shape, weights.shape), ((2, 3, H), (6, 4)))
            torch.testing.assert_close(weights.sum(-1), torch.ones(6))
            self.assertTrue(torch.equal(other(x)[0].view(2, 3, H), y))
            self.assertEqual(layer(x[:0])[0].shape, (0, H))

    def test_prepared(self) -> None:
        """The program of a block is known before a call, and there are no others; a part has one
        for each number of rows of an expert."""
        rule, _, _ = MODELS["qwen3"]
        layer, x = ft.MoE(router_of(rule), experts_of()), matrix(5, H)
        part = ft.MoE(router_of(rule), experts_of(first=4, count=4))
        block = torch.nn.Module()
        block.experts, block.top_k = experts_of(), 4
        ids = torch.zeros(5, 4, dtype=torch.int64)
        for module, count, call in (
                (torch.nn.Sequential(layer), 1, lambda: layer(x)),
                (torch.nn.Sequential(part), 5, lambda: part(x)),
                (block, 1, lambda: block.experts(x, ids, torch.zeros(5, 4)))):
            self.assertEqual(ft.prepare(module).programs, count)
            with torch.no_grad(), mock.patch.object(execution, "_program") as made:
                call()
            made.assert_not_called()

    def test_numbers_of_no_expert_count_nothing(self) -> None:
        x, layer = matrix(3, H), experts_of()
        ids = torch.tensor([[0, -1], [2, E], [-1, 2**32]])
        weights = torch.tensor([[1.0, torch.inf], [0.5, torch.nan], [1.0, 1.0]])
        alone = layer(x, ids[:, :1].clamp(0), torch.tensor([[1.0], [0.5], [0.0]]))
        self.assertTrue(torch.equal(layer(x, ids, weights), alone))
        ids = ids.clamp(-2**31, 2**31 - 1).to(torch.int32)
        self.assertTrue(torch.equal(layer(x, ids, weights), alone))
        part = experts_of(first=2, count=3)  # whose numbers are not those of all
        self.assertTrue(torch.equal(part(x, ids, weights)[1], alone[1]))
        self.assertFalse(part(x, ids, weights)[0].any())
        with torch.enable_grad():
            recorded = layer(x, ids, weights.requires_grad_())
        torch.testing.assert_close(recorded.detach(), alone, rtol=0.02, atol=0.02)
        self.assertEqual(layer(x[:0], ids[:0], weights[:0]).shape, (0, H))

    def test_a_part_that_begins_anywhere(self) -> None:
        x, ids = matrix(5, H), torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [5, 2]])
        weights = torch.rand(5, 2)
        whole = experts_of()(x, ids, weights).float()
        parts = [experts_of(first=first, count=count)(x, ids, weights).float()
                 for first, count in ((0, 2), (2, 3), (5, 3))]
        torch.testing.assert_close(sum(parts), whole, rtol=0.02, atol=0.02)

    def test_a_part_that_was_read_is_that_of_the_rank(self) -> None:
        part = experts_of(first=4, count=4)
        self.assertIs(Share().experts("mlp.experts", part), part)  # other ranks are elsewhere
        part.part = (0, 1, 2)
        self.assertIs(Share(1, 2).experts("mlp.experts", part), part)
        for share, words in ((Share(), "0 of 1 of the experts"),
                             (Share(0, 2), "0 of 2 of the experts"),
                             (Share(1, 4), "1 of 4 of the experts"),
                             (Share(1, 2, False), "1 of 2 of the columns of each expert")):
            with self.subTest(share=share), self.assertRaisesRegex(
                    fp4.UsageError, f"'mlp.experts' must be part {words}, but is part 1 of 2 of "
                    "the experts\nnote: pass load_into the share"):
                share.experts("mlp.experts", part)

    def test_rules_that_no_program_has(self) -> None:
        x = matrix(3, H)
        rule = Rule(2, num_groups=1, renormalize="sum")
        layer = ft.MoE(router_of(dataclasses.asdict(rule)), experts_of())
        want = layer(x)
        with mock.patch.object(ft.moe, "MOST_OF_TOKEN", 1):
            torch.testing.assert_close(layer(x), want, rtol=0.02, atol=0.02)

    def test_routers_whose_logits_are_no_linear_layer(self) -> None:
        class Scaled(torch.nn.Module):
            def __init__(self, scale: float) -> None:
                super().__init__()
                self.weight, self.top_k, self.scale = parameter(E, H), 2, scale

            def forward(self, x: Any) -> Any:
                logits = torch.nn.functional.linear(x, self.weight) * self.scale
                scores = logits.softmax(-1, dtype=torch.float32)
                top, ids = scores.topk(2, -1)
                return scores, top / top.sum(-1, keepdim=True), ids

        self.assertEqual(router_from(Scaled(1.0)).rule.scores, "softmax")
        with self.assertRaisesRegex(fp4.UsageError, "is another one"):
            router_from(Scaled(0.5))

    def test_what_is_refused(self) -> None:
        rule, _, _ = MODELS["qwen3"]
        experts = experts_of()
        for said, call in (
                ("'router' must have a weight \\[8, 64\\], which the experts need, but got "
                 "\\[8, 96\\]", lambda: ft.MoE(router_of(rule, hidden=96), experts)),
                ("'first' must be 0 to 4, but got 5",
                 lambda: ft.RoutedExperts(experts.gate_up, experts.down, first=5, total=E + 4)),
                ("'total' must be at least 8, the experts that are here, but got 4",
                 lambda: ft.RoutedExperts(experts.gate_up, experts.down, total=4)),
                ("'x' must be \\[..., 64\\], but got \\[2, 128\\]",
                 lambda: ft.MoE(router_of(rule), experts)(parameter(2, 2 * H))),
                ("'hidden_states' must be \\[..., 64\\], but got \\[2, 128\\]",
                 lambda: experts(parameter(2, 2 * H), torch.zeros(2, 1, dtype=torch.int64),
                                 torch.ones(2, 1))),
                ("'top_k_index' must be \\[2, k\\], a row for each token, but got \\[4, 2\\]",
                 lambda: experts(parameter(2, H), torch.zeros(4, 2, dtype=torch.int64),
                                 torch.ones(4, 2))),
                ("'correction' must have a number for each of 8 experts, but got the shape \\[4\\]",
                 lambda: ft.Router(parameter(E, H), Rule(**rule), correction=torch.zeros(4))),
                ("'block' must have experts and a router, but Linear has no modules",
                 lambda: ft.MoE.from_block(torch.nn.Linear(4, 4))),
                ("'router' must have a weight .* and top_k, but Linear has not",
                 lambda: ft.router_from(torch.nn.Linear(4, 4)))):
            with self.subTest(said=said), self.assertRaisesRegex(fp4.UsageError, said):
                call()


@unittest.skipIf(torch is None or transformers is None, "transformers is not installed")
class Blocks(unittest.TestCase):
    """Blocks of transformers, beside the same blocks whose experts alone are replaced."""

    def check(self, block: Any, *, returns_weights: bool = False) -> Any:
        torch.manual_seed(1)
        for value in (*block.parameters(), *block.buffers()):
            value.data = torch.randn(value.shape).to(value.dtype) / value.shape[-1]**0.5
        block = block.bfloat16().eval()
        block.experts = ft.experts_from(block.experts)
        torch.set_default_dtype(torch.bfloat16)  # as where a model is made
        made, x = ft.MoE.from_block(block), matrix(6, 64, 3).view(2, 3, 64)
        torch.set_default_dtype(torch.float32)
        with torch.no_grad():
            found, expected = made(x), block(x)
        self.assertEqual(isinstance(found, tuple), returns_weights)
        if returns_weights:
            torch.testing.assert_close(found[1], expected[1].float(), rtol=0.01, atol=0.01)
            found, expected = found[0], expected[0]
        torch.testing.assert_close(found.float(), expected.float(), rtol=0.03, atol=0.03)
        self.assertGreater(expected.abs().max().item(), 0.1)
        return made

    def config(self, name: str, **sizes: Any) -> Any:
        return getattr(transformers, name)(vocab_size=64, hidden_size=64, **sizes)

    def test_mixtral(self) -> None:
        from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
        made = self.check(MixtralSparseMoeBlock(self.config(
            "MixtralConfig", intermediate_size=96, num_local_experts=4)))
        self.assertEqual(made.router.rule, Rule(2, "softmax", "sum"))

    def test_gpt_oss(self) -> None:
        from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
        made = self.check(GptOssMLP(self.config(
            "GptOssConfig", intermediate_size=96, num_local_experts=8, num_experts_per_tok=4)),
            returns_weights=True)
        self.assertEqual(made.router.bias.shape, (8,))

    def test_qwen(self) -> None:
        from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock
        from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock
        sizes = {"moe_intermediate_size": 96, "num_experts": 8, "num_experts_per_tok": 4}
        self.check(Qwen3MoeSparseMoeBlock(self.config("Qwen3MoeConfig", **sizes)))
        made = self.check(Qwen2MoeSparseMoeBlock(self.config(
            "Qwen2MoeConfig", shared_expert_intermediate_size=32, **sizes)))
        self.assertIsInstance(made.shared, ft.moe.GatedShared)

    def test_deepseek_v3(self) -> None:
        from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
        made = self.check(DeepseekV3MoE(self.config(
            "DeepseekV3Config", moe_intermediate_size=96, n_routed_experts=16, n_group=4,
            topk_group=2, num_experts_per_tok=4, n_shared_experts=1, routed_scaling_factor=2.5)))
        self.assertEqual((made.router.rule, made.router.in_float32),
                         (Rule(4, "sigmoid", "sum", 4, 2, 2.5, made.router.eps), True))

    def test_a_block_that_computes_something_else(self) -> None:
        from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

        class Twice(Qwen3MoeSparseMoeBlock):  # type: ignore[misc, valid-type, unused-ignore]
            def forward(self, x: Any) -> Any:
                return 2 * super().forward(x)

        config = self.config("Qwen3MoeConfig", moe_intermediate_size=96, num_experts=8,
                             num_experts_per_tok=4)
        with self.assertRaisesRegex(fp4.UsageError, "but Twice gives something else"):
            ft.MoE.from_block(Twice(config))


if __name__ == "__main__":
    unittest.main()
