"""fp4.torch.WeightOnlyExperts: bits, rows of no expert, graphs, copies, and what is refused."""

import copy
import itertools
import unittest
from typing import Any

import fp4
from programs import torch
from test_torch_linear import compiled_once
from test_torch_ops import matrix

if torch is not None:
    import fp4.torch as ft
    from fp4.torch import expert_programs
    from fp4.torch.experts import activated

E, N, K = 3, 128, 192
OFFSETS = [2, 7, 7, 24]  # of 26 rows: the second expert has none


def offsets(rows: list[int] = OFFSETS) -> Any:
    return torch.tensor(rows)


def weights(seed: int, format: str = "nvfp4") -> Any:
    return [ft.quantize(matrix(N, K, seed + e), format=format) for e in range(E)]


def parameter(value: Any) -> Any:
    return torch.nn.Parameter(value)


def experts(format: str = "nvfp4", **options: Any) -> Any:
    return ft.WeightOnlyExperts(weights(1, format), parameter(matrix(E, N, 7)),
                                gates=weights(4, format), gate_bias=parameter(matrix(E, N, 8)),
                                **options)


def sums(x: Any, some: Any, bias: Any = None) -> Any:
    """x W^T + bias of each expert, in float64; zero in rows of none."""
    y = torch.zeros(x.shape[0], N, dtype=torch.float64)
    for e, (begin, end) in enumerate(itertools.pairwise(OFFSETS)):
        y[begin:end] = x[begin:end].double() @ ft.dequantize(some[e], torch.float32).double().T
        if bias is not None:
            y[begin:end] += bias[e].double()
    return y


@unittest.skipIf(torch is None, "torch is not installed")
class Experts(unittest.TestCase):
    def test_sums_that_are_exact_are_those_of_torch(self) -> None:
        exact = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
        torch.manual_seed(2)
        matrices = exact[torch.randint(8, (E, N, K))]
        matrices[:, :, ::16] = 6.0
        some = [ft.quantize(weight, format="mxfp4") for weight in matrices]
        bias = torch.randint(-8, 8, (E, N)).float()
        x = torch.randint(-2, 3, (26, K)).bfloat16()
        with torch.no_grad():
            y = ft.WeightOnlyExperts(some, parameter(bias))(x, offsets())
        self.assertTrue(torch.equal(y, sums(x, some, bias).bfloat16()))
        self.assertTrue(y[2:7].any() and y[7:24].any())
        self.assertFalse(y[:2].any() or y[24:].any())

    def test_gates_are_those_of_torch(self) -> None:
        x = matrix(26, K, 5)
        up, gate = (sums(x, weights(seed), bias) for seed, bias in
                    ((1, matrix(E, N, 7)), (4, matrix(E, N, 8))))
        g, u = gate.clamp(max=7), up.clamp(-7, 7)
        inside = torch.zeros(26, 1).bool()
        inside[2:24] = True
        gelu = torch.nn.functional.gelu(gate, approximate="tanh")
        for activation, expected in (("silu", torch.nn.functional.silu(gate) * up),
                                     ("gelu_tanh", gelu * up),
                                     ("gpt_oss", g * torch.sigmoid(1.702 * g) * (u + 1))):
            with self.subTest(activation=activation), torch.no_grad():
                y = experts(activation=activation)(x, offsets())
                torch.testing.assert_close(y.double(), expected.where(inside, 0), rtol=0.01,
                                           atol=0.01)

    def test_numbers_of_the_activation(self) -> None:
        x = matrix(26, K, 5)
        up, gate = (sums(x, weights(seed), bias) for seed, bias in
                    ((1, matrix(E, N, 7)), (4, matrix(E, N, 8))))
        inside = torch.zeros(26, 1).bool()
        inside[2:24] = True
        g, u = gate.clamp(max=1.5), up.clamp(-1.5, 1.5)
        for options, expected in (
                ({"activation": "gpt_oss", "limit": 1.5, "alpha": 1.1},
                 g * torch.sigmoid(1.1 * g) * (u + 1)),
                ({"limit": 1.5}, torch.nn.functional.silu(g) * u),
                ({"alpha": 0.5}, gate * torch.sigmoid(0.5 * gate) * up)):
            with self.subTest(**options), torch.no_grad():
                y = experts(**options)(x, offsets())
                torch.testing.assert_close(y.double(), expected.where(inside, 0), rtol=0.01,
                                           atol=0.01)

    def test_no_number_of_rows_compiles_a_program(self) -> None:
        made, program = experts(), expert_programs.product
        with torch.no_grad():
            made(matrix(26, K), offsets())
            compiled = program.cache_info().misses
            for rows in (1, 24, 25, 200):  # around 8 and 64 rows of each
                x, ends = matrix(rows, K), [0, rows // 3, rows // 2, rows]
                y = made(x, offsets(ends))
                for begin, end in itertools.pairwise(ends):
                    alone = [0 if edge <= begin else end - begin for edge in ends]
                    self.assertTrue(torch.equal(y[begin:end], made(x[begin:end], offsets(alone))))
            self.assertEqual(program.cache_info().misses, compiled)

    def test_forms_of_offsets_and_rows(self) -> None:
        made, x = experts(), matrix(26, K)
        ranges = torch.tensor([[2, 7], [7, 7], [7, 24]])
        with torch.no_grad():
            y = made(x, offsets())
            self.assertTrue(torch.equal(made(x, offsets().int()), y))
            self.assertTrue(torch.equal(made(x, ranges.int()), y))
            self.assertTrue(torch.equal(made(x, torch.stack((ranges, ranges), -1)[..., 0]), y))
            ends = made(x, offsets([0, 7, 7, 24]))
            self.assertTrue(torch.equal(made(x, offsets([7, 7, 24])), ends))
            self.assertTrue(torch.equal(ends[2:], y[2:]))
            wide = matrix(26, K + 24)
            for part in (wide[:, 8:8 + K], wide[:, 1:1 + K], wide[:, :K].clone().t().clone().t()):
                self.assertTrue(torch.equal(made(part, offsets()),
                                            made(part.clone(
                                                memory_format=torch.contiguous_format), offsets())))
            stack = matrix(E * 5, K).view(E, 5, K)
            each = made(stack)
            self.assertEqual(each.shape, (E, 5, N))
            self.assertTrue(torch.equal(each.view(-1, N), made(stack.view(-1, K),
                                                               offsets([0, 5, 10, 15]))))

    def test_any_sizes(self) -> None:
        some = [ft.quantize(matrix(40, 80, e)) for e in range(E)]
        bias = parameter(matrix(E, 40, 9))
        made = ft.WeightOnlyExperts(some, bias, gates=some, gate_bias=bias)
        x = matrix(26, 80)
        with torch.no_grad():
            y = made(x, offsets())
        for e, (begin, end) in enumerate(itertools.pairwise(OFFSETS)):
            up = x[begin:end].double() @ ft.dequantize(some[e], torch.float32).double().T
            up = up + bias[e].double()
            torch.testing.assert_close(y[begin:end].double(), torch.nn.functional.silu(up) * up,
                                       rtol=0.01, atol=0.02)
        self.assertFalse(y[:2].any() or y[24:].any())

    def test_stacks_of_weights(self) -> None:
        stack = torch.stack([matrix(N, K, 1 + e) for e in range(E)])
        made = ft.WeightOnlyExperts.from_stack(stack, gate=stack.transpose(1, 2).clone().mT)
        other = ft.WeightOnlyExperts(weights(1), gates=weights(1))
        for name in ("packed", "gate_packed", "alpha", "gate_alpha"):
            self.assertTrue(torch.equal(getattr(made, name), getattr(other, name)))

    def test_float16_beside_mxfp4(self) -> None:
        made, wide = experts("mxfp4", activation="gpt_oss"), matrix(26, K, 5).half()
        with torch.no_grad():
            y, other = made(wide, offsets()), made(wide.bfloat16(), offsets())
        self.assertEqual(y.dtype, torch.float16)
        torch.testing.assert_close(y.float(), other.float(), rtol=0.05, atol=0.05)
        self.assertFalse(y[:2].any() or y[24:].any())

    def test_gradients(self) -> None:
        x, dy = matrix(26, K, 5), matrix(26, N, 6)
        for format, options in (("nvfp4", {}), ("mxfp4", {"activation": "gpt_oss", "limit": 1.0})):
            made = experts(format, **options)
            x = x.detach().requires_grad_()
            made(x, offsets()).backward(dy)
            expected = x.detach().float().requires_grad_()
            biases = [b.detach().float().requires_grad_() for b in (made.bias, made.gate_bias)]
            parts = []
            for e, (begin, end) in enumerate(itertools.pairwise(OFFSETS)):
                up, gate = (expected[begin:end] @ ft.dequantize(some[e], torch.float32).T + bias[e]
                            for some, bias in ((weights(1, format), biases[0]),
                                               (weights(4, format), biases[1])))
                parts.append(activated(gate, up, made.gate))
            torch.cat(parts).backward(dy[2:24].float())
            for found, wanted in ((x, expected), (made.bias, biases[0]),
                                  (made.gate_bias, biases[1])):
                error = (found.grad.float() - wanted.grad).norm() / wanted.grad.norm()
                self.assertLess(error.item(), 0.01)
        plain = ft.WeightOnlyExperts(weights(1))
        x = x.detach().requires_grad_()
        plain(x, offsets()).backward(dy)
        torch.testing.assert_close(
            x.grad[7:24], dy[7:24] @ ft.dequantize(weights(1)[2]), rtol=0, atol=0)
        self.assertFalse(x.grad[:2].any() or x.grad[24:].any())

    def test_every_target_has_the_bits_of_the_reference_model(self) -> None:
        for target in ("sm_90a", "sm_100a", "sm_103a", "sm_120a"):
            device = fp4.Device("sim", target=target, check="strict", policy="random", seed=3)
            with (self.subTest(target=target), device, ft.simulator(device, verify=True),
                  torch.no_grad()):
                experts()(matrix(26, K).half(), offsets())
                experts("mxfp4", activation="gpt_oss")(matrix(26, K), offsets([0, 1, 26, 26]))
                ft.WeightOnlyExperts(weights(1))(matrix(70, K), offsets([0, 69, 70, 70]))

    def test_opcheck(self) -> None:
        made = experts()
        found = torch.library.opcheck(torch.ops.fp4.expert_mm.default, (
            matrix(26, K), made.packed, offsets(), made.alpha, made.bias.detach(),
            made.gate_packed, made.gate_alpha, made.gate_bias.detach(), "silu", None, 1.5, N))
        self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_graphs(self) -> None:
        made = experts()
        graphed, graphs = compiled_once(made)
        with torch.no_grad():
            for rows in (26, 30):
                x = matrix(rows, K)
                self.assertTrue(torch.equal(graphed(x, offsets()), made(x, offsets())))
        self.assertEqual(len(graphs), 1)

    def test_copies_files_and_conversions(self) -> None:
        made, x = experts(), matrix(26, K)
        other = ft.WeightOnlyExperts(weights(11), parameter(matrix(E, N, 9)), gates=weights(14),
                                     gate_bias=parameter(matrix(E, N, 9)))
        other.load_state_dict(made.state_dict())
        half = copy.deepcopy(made).half()
        self.assertEqual((half.alpha.dtype, half.gate_alpha.dtype, half.bias.dtype),
                         (torch.float32, torch.float32, torch.float16))
        with torch.no_grad():
            self.assertTrue(torch.equal(other(x, offsets()), made(x, offsets())))
            with torch.autocast("cpu", torch.bfloat16):
                self.assertTrue(torch.equal(made(x.float(), offsets()), made(x, offsets())))
            self.assertEqual(made(x[:0], offsets([0, 0, 0, 0])).shape, (0, N))

    def test_what_is_refused(self) -> None:
        made, x = experts(), matrix(26, K)
        rows = ft.quantize(matrix(N, K), per_row=True)
        wide = ft.quantize(matrix(256, K))
        with torch.no_grad():
            for said, call in (
                    ("must not decrease, but group 1 begins at row 7 and ends at row 5",
                     lambda: made(x, offsets([2, 7, 5, 24]))),
                    ("must not exceed the 26 rows of the matrix",
                     lambda: made(x, offsets([2, 7, 7, 27]))),
                    ("must be int64 or int32 of shape \\[4\\], \\[3\\] or \\[3, 2\\], but got "
                     "float32 of shape \\[4\\]", lambda: made(x, offsets().float())),
                    ("but got int64 of shape \\[2\\]", lambda: made(x, offsets([0, 26]))),
                    ("'offsets' must say which rows each of 3 experts has, but there are none",
                     lambda: made(x)),
                    ("'limit' must be a positive number, but got -1", lambda: experts(limit=-1.0)),
                    ("'alpha' must come with 'gates'",
                     lambda: ft.WeightOnlyExperts(weights(1), alpha=2.0)),
                    ("must have the shape \\[M, 192\\], but got \\[26, 64\\]",
                     lambda: made(matrix(26, 64), offsets())),
                    ("must be bfloat16 or float16 beside weights of nvfp4, but got float32",
                     lambda: made(x.float(), offsets())),
                    ("a matrix for each expert, but there is none",
                     lambda: ft.WeightOnlyExperts([])),
                    ("of one shape, format and device, but weights\\[0\\] is .*128x192.* and "
                     "weights\\[1\\] is .*256x192",
                     lambda: ft.WeightOnlyExperts([weights(1)[0], wide])),
                    ("one amax for each expert, .* but weights\\[0\\] has \\[128\\]",
                     lambda: ft.WeightOnlyExperts([rows])),
                    ("'gates' must be as 'weights', which are 3 of .*, but got 2 of",
                     lambda: ft.WeightOnlyExperts(weights(1), gates=weights(4)[:2])),
                    ("'gate_bias' must come with 'gates'",
                     lambda: ft.WeightOnlyExperts(weights(1), gate_bias=made.gate_bias)),
                    ("'bias' must be .* of shape \\[3, 128\\], but got bfloat16 of shape \\[128\\]",
                     lambda: ft.WeightOnlyExperts(weights(1), parameter(matrix(1, N)[0]))),
                    ("'activation' must be one of silu, gpt_oss, gelu_tanh, but got 'gelu'",
                     lambda: experts(activation="gelu"))):
                with self.subTest(said=said), self.assertRaisesRegex(fp4.UsageError, said):
                    call()


if __name__ == "__main__":
    unittest.main()
