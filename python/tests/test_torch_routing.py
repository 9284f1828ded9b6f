"""The choice of experts of fp4.torch: ids and weights are those of plain torch, and tokens in the
order of their experts go through a layer of experts. Each call is one kernel, compiled once for any
number of tokens."""

import unittest
from typing import Any

import fp4
import one_kernel
from graph_recorder import GraphRecorder
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import execution, routing_programs

#: Options of the routers of models, with experts and experts of a token.
ROUTERS = {
    "mixtral": (8, 2, {"scores": "logits", "renormalize": "softmax"}),
    "gpt_oss": (128, 4, {"scores": "logits", "renormalize": "softmax"}),
    "qwen3": (128, 8, {"renormalize": "sum"}),
    "softmax": (60, 6, {"factor": 16.0}),
    "llama4": (16, 1, {"scores": "sigmoid"}),
    "sigmoid": (384, 8, {"scores": "sigmoid", "renormalize": "sum", "factor": 2.827}),
    "one": (32, 1, {"renormalize": "sum", "factor": 0.5, "eps": 1e-20}),
    "only": (32, 1, {"scores": "logits", "renormalize": "softmax"}),
    "deepseek_v3": (256, 8, {"scores": "sigmoid", "renormalize": "sum", "num_groups": 8,
                             "top_groups": 4, "factor": 2.5, "eps": 1e-20}),
}


def logits_of(tokens: int, experts: int, dtype: Any = None, seed: int = 0) -> Any:
    """Distinct numbers in each row, which exp() keeps distinct."""
    torch.manual_seed(seed)
    order = torch.rand(tokens, experts).argsort(-1)
    return ((order - experts / 2) / 16).to(dtype or torch.bfloat16)


def routed(logits: Any, k: int, *, scores: str = "softmax", renormalize: str = "none",
           bias: Any = None, num_groups: int = 1, top_groups: int = 1, factor: float = 1.0,
           eps: float = 0.0) -> "tuple[Any, Any]":
    """The router in plain torch."""
    x = logits.float()
    s = {"softmax": lambda: x.softmax(-1), "sigmoid": x.sigmoid, "logits": lambda: x}[scores]()
    chosen = s if bias is None else s + bias.float()
    if num_groups > 1:
        groups = chosen.view(x.shape[0], num_groups, -1)
        best = groups.topk(2, -1).values.sum(-1).topk(top_groups, -1).indices
        mask = torch.zeros(x.shape[0], num_groups, dtype=torch.bool).scatter_(1, best, True)
        chosen = groups.masked_fill(~mask[..., None], -torch.inf).view_as(chosen)
    ids = chosen.topk(k, -1).indices
    w = s.gather(1, ids)
    if renormalize == "softmax":
        w = w.softmax(-1)
    w = w * factor
    if renormalize == "sum":
        w = w / (s.gather(1, ids).sum(-1, keepdim=True) + eps)
    return w, ids.int()


def ordered(ids: Any, experts: int, first: int = 0, multiple: int = 1) -> "tuple[Any, Any, Any]":
    """Tokens in the order of experts, in plain torch."""
    flat = ids.flatten().long() - first
    is_local = (flat >= 0) & (flat < experts)
    key = torch.where(is_local, flat, experts)
    counts = torch.bincount(key, minlength=experts + 1)[:experts]
    padded = (counts + multiple - 1) // multiple * multiple
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), padded.cumsum(0)))
    order = key.argsort(stable=True)
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    rows = torch.full((flat.numel(),), -1, dtype=torch.int64)
    tokens = torch.zeros(flat.numel() + experts * (multiple - 1), dtype=torch.int64)
    pairs = order[:int(is_local.sum())]
    ofs = offsets[key[pairs]] + torch.arange(pairs.numel()) - begin[key[pairs]]
    rows[pairs] = ofs
    tokens[ofs] = pairs // ids.shape[1]
    return offsets, rows.view(ids.shape), tokens


@unittest.skipIf(torch is None, "torch is not installed")
class Routing(unittest.TestCase):
    def setUp(self) -> None:
        execution._programs.clear()
        self.compiled = one_kernel.watch(self, routing_programs, routing_programs.route,
                                         routing_programs.expert_order)

    def check(self, found: Any, expected: Any) -> None:
        self.assertEqual([value.dtype for value in found], [torch.float32, torch.int32])
        self.assertTrue(torch.equal(found[1], expected[1]))
        torch.testing.assert_close(found[0], expected[0], rtol=2e-6, atol=1e-30)

    def test_routers_of_models(self) -> None:
        for name, (experts, k, options) in ROUTERS.items():
            for dtype in (torch.bfloat16, torch.float32):
                with self.subTest(name, dtype=dtype):
                    options = dict(options)
                    if "deepseek" in name or name == "sigmoid":
                        options["bias"] = (torch.arange(experts) % 7 / 64).to(dtype)
                    x = logits_of(5, experts, dtype)
                    self.check(ft.route(x, k, **options), routed(x, k, **options))

    def test_ties_and_special_numbers(self) -> None:
        x = torch.zeros(2, 64)
        x[1, 7], x[1, 9], x[1, 40], x[1, 3] = torch.nan, torch.inf, -0.0, -torch.nan
        weights, ids = ft.route(x, 6, scores="logits")
        self.assertEqual(ids.tolist(), [[0, 1, 2, 3, 4, 5], [3, 7, 9, 0, 1, 2]])
        self.assertEqual(weights[1, 2:].tolist(), [torch.inf, 0, 0, 0])
        self.assertTrue(weights[1, :2].isnan().all())

    def test_strides_and_rows(self) -> None:
        wide = logits_of(9, 96)
        for x in (wide[:, 16:48], wide[::2, :32], wide.t()[:32].t(), wide[:0, :32], wide[:1, :32],
                  wide[1:2, 8:40]):
            with self.subTest(shape=x.shape, strides=x.stride()):
                self.check(ft.route(x, 3), routed(x, 3))

    def test_order_of_experts(self) -> None:
        for tokens, k, experts, first, multiple in ((37, 8, 64, 0, 1), (300, 2, 8, 0, 128),
                                                    (5, 1, 512, 0, 8), (41, 6, 16, 24, 4),
                                                    (0, 2, 4, 0, 8), (1, 16, 1, 3, 1)):
            with self.subTest(tokens=tokens, k=k, experts=experts, first=first):
                torch.manual_seed(tokens)
                ids = torch.randint(-1, max(8, experts + first + 4), (tokens, k)).int()
                found = ft.permute_tokens(ids, experts, first=first, multiple=multiple)
                for one, other in zip(found, ordered(ids, experts, first, multiple)):
                    self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
                    self.assertTrue(torch.equal(one, other))

    def test_against_the_reference_model(self) -> None:
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            for experts, k, options in ROUTERS.values():
                _, ids = ft.route(logits_of(3, experts), k, **options)
                ft.permute_tokens(ids, experts, multiple=16)

    def test_layer_of_experts(self) -> None:
        """Tokens go to their experts and back: the sums are those of plain torch, also those of
        two parts of the experts."""
        tokens, experts, k, columns = 21, 8, 2, 64
        torch.manual_seed(1)
        x = torch.randn(tokens, columns).to(torch.bfloat16)
        matrices = torch.randn(experts, columns, columns) / 8
        logits = logits_of(tokens, experts)
        weights, ids = ft.route(logits, k, scores="logits", renormalize="softmax")

        def sums(first: int, count: int) -> Any:
            order = ft.permute_tokens(ids, count, first=first, multiple=16)
            values = ft.dequantize(ft.gather_quantize(x, order.tokens, format="mxfp4")).float()
            y = torch.full((values.shape[0], columns), torch.nan)  # nobody reads other rows
            for expert in range(count):
                at = slice(int(order.offsets[expert]), int(order.offsets[expert + 1]))
                y[at] = values[at] @ matrices[first + expert]
            return ft.combine(y, order.rows, weights)
        found = sums(0, experts)
        each = ft.dequantize(ft.quantize(x, format="mxfp4")).float()
        expert_weights, expert_ids = routed(logits, k, scores="logits", renormalize="softmax")
        expected = torch.stack([
            sum(w * (each[t] @ matrices[e]) for w, e in zip(expert_weights[t], expert_ids[t]))
            for t in range(tokens)])
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(sums(0, 3) + sums(3, 5), found, rtol=1e-6, atol=1e-6)

    def test_opcheck(self) -> None:
        x, bias = logits_of(4, 32), torch.rand(32)
        ids = torch.tensor([[1, 0], [2, 2]], dtype=torch.int32)
        for name, arguments in (
                ("route", (x, None, 4, "softmax", "sum", 1, 1, 1.0, 0.0)),
                ("route", (x[:, :16], bias[:16], 2, "sigmoid", "none", 4, 2, 2.5, 0.0)),
                ("permute_tokens", (ids, 4, 0, 8)),
                ("permute_tokens", (ids, 4, 0, 8, 9)),
                ("permute_tokens", (ids[:0], 4, 1, 1))):
            with self.subTest(name):
                found = torch.library.opcheck(getattr(torch.ops.fp4, name).default, arguments)
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_one_graph(self) -> None:
        def function(x: Any, y: Any) -> Any:
            weights, ids = ft.route(x, 2, renormalize="sum")
            order = ft.permute_tokens(ids, 16, multiple=4)
            rows = y.index_select(0, order.tokens)
            return ft.combine(rows, order.rows, weights), order.offsets

        graphs = GraphRecorder()

        fast = torch.compile(function, backend=graphs, fullgraph=True, dynamic=True)
        for tokens in (5, 12):
            x, y = logits_of(tokens, 16), torch.randn(tokens, 32)
            for found, expected in zip(fast(x, y), function(x, y)):
                self.assertTrue(torch.equal(found, expected))
            torch.testing.assert_close(fast(x, y)[0], y, rtol=1e-5, atol=1e-5)
        self.assertEqual(len(graphs), 1)

    def test_one_program_for_all_tokens(self) -> None:
        for tokens in (1, 2, 0, 5, 43):
            x = logits_of(tokens, 16)
            weights, ids = ft.route(x, 4)
            self.check((weights, ids), routed(x, 4))
            ft.permute_tokens(ids, 16)
        self.assertEqual(len(self.compiled), 2)

    def test_no_gradient(self) -> None:
        x = logits_of(4, 16, torch.float32).requires_grad_()
        with self.assertRaisesRegex(fp4.UsageError, "fp4.route has no gradient"):
            ft.route(x, 2)[0].sum().backward()

    def test_what_is_refused(self) -> None:
        x, ids = logits_of(4, 32), torch.zeros(4, 2, dtype=torch.int32)
        for function, message in (
                (lambda: ft.route(x.double(), 2), "'logits' must be bfloat16, float16 or"),
                (lambda: ft.route(x[0], 2), "'logits' must be a matrix of 1 to 512 columns, but"),
                (lambda: ft.route(torch.randn(2, 513), 2), "'logits' must be a matrix of 1 to 512"),
                (lambda: ft.route(x, 0), "'k' must be 1 to 16, but got 0"),
                (lambda: ft.route(x, 17), "'k' must be 1 to 16, but got 17"),
                (lambda: ft.route(x[:, :4], 5), "'k' must be 1 to 4, but got 5"),
                (lambda: ft.route(x, 2, scores="tanh"), "'scores' must be softmax, sigmoid, logit"),
                (lambda: ft.route(x, 2, renormalize="l2"), "'renormalize' must be none, sum, soft"),
                (lambda: ft.route(x, 2, bias=torch.rand(31)), r"'bias' must be .* \[32\], but got"),
                (lambda: ft.route(x, 2, num_groups=33), "'num_groups' must be 1 to 32, but got 33"),
                (lambda: ft.route(x, 2, num_groups=3), "'num_groups' must make groups of a power"),
                (lambda: ft.route(x, 2, num_groups=4, top_groups=5), "'top_groups' must be 1 to 4"),
                (lambda: ft.route(x, 9, num_groups=4), "'top_groups' must be so many groups of 8"),
                (lambda: ft.route(x, 2, factor=1e39), "'factor' must be a number that f32 has"),
                (lambda: ft.permute_tokens(ids.long(), 4), "'ids' must be int32 of shape"),
                (lambda: ft.permute_tokens(ids[0], 4), "'ids' must be int32 of shape"),
                (lambda: ft.permute_tokens(ids.expand(4, 2).repeat(131073, 1), 4),
                 "'ids' must have at most 1048576 numbers, but got"),
                (lambda: ft.permute_tokens(ids, 513), "'experts' must be 1 to 512, but got 513"),
                (lambda: ft.permute_tokens(ids, 4, first=-1), "'first' must be 0 to 2147483647"),
                (lambda: ft.permute_tokens(ids, 4, multiple=0), "'multiple' must be 1 to 1024"),
                (lambda: ft.permute_tokens(ids, 4, first=2, total=5), "'total' must be 6 to")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()
        for name, call in (("bias", lambda: ft.route(x, 2, bias=[1.0])),
                           ("ids", lambda: ft.permute_tokens([1], 4))):
            with self.assertRaisesRegex(TypeError, f"'{name}' must be a torch.Tensor, but got li"):
                call()
