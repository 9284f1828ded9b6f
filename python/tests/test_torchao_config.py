"""fp4 as a configuration of torchao's quantize_, with the package itself.

    pip install torchao
"""

import copy
import unittest
from typing import Any

import fp4
from programs import optional, torch

_TORCHAO = optional("torchao.quantization") if torch is not None else None

if _TORCHAO is not None:
    import fp4.torch as ft
    from fp4.torchao import FP4WeightOnlyConfig


def perceptron() -> Any:
    torch.manual_seed(4)
    return torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(),
                               torch.nn.Linear(96, 32, bias=False)).bfloat16()


@unittest.skipIf(_TORCHAO is None, "torch or torchao is not installed")
class Config(unittest.TestCase):
    def check(self, options: "dict[str, Any]", names: "set[str]", config: Any = None,
              **arguments: Any) -> Any:
        """torchao's quantize_ gives the layers of fp4's in the places `names`."""
        made = perceptron()
        expected = copy.deepcopy(made)
        _TORCHAO.quantize_(made, config or FP4WeightOnlyConfig(**options), **arguments)
        ft.quantize_(expected, lambda layer, name: name in names, weight_only=True, **options)
        one, two = made.state_dict(), expected.state_dict()
        self.assertEqual(list(one), list(two))
        for key, value in one.items():
            self.assertTrue(torch.equal(value, two[key]), key)
        x = torch.randn(3, 64).bfloat16()
        with torch.no_grad():
            self.assertTrue(torch.equal(made(x), expected(x)))
        return made

    def test_layers(self) -> None:
        for options in ({}, {"format": "mxfp4"}, {"recipe": "torchao"},
                        {"batch_invariant": True}):
            with self.subTest(**options):
                made = self.check(options, {"0", "2"})
                before = list(made)
                _TORCHAO.quantize_(made, FP4WeightOnlyConfig())  # again: they stay
                self.assertEqual([id(layer) for layer in made], [id(layer) for layer in before])

    def test_filters(self) -> None:
        self.check({}, {"2"}, filter_fn=lambda layer, name: name == "2")
        chosen = _TORCHAO.FqnToConfig({"0": FP4WeightOnlyConfig(format="mxfp4")})
        self.check({"format": "mxfp4"}, {"0"}, config=chosen, filter_fn=None)

    def test_errors(self) -> None:
        with self.assertRaisesRegex(fp4.UsageError, "'format' must be nvfp4 or mxfp4"):
            FP4WeightOnlyConfig(format="fp8")
        with self.assertRaisesRegex(fp4.UsageError, "must be torch.nn.Linear, but one is a GELU"):
            _TORCHAO.quantize_(perceptron(), FP4WeightOnlyConfig(),
                               filter_fn=lambda layer, name: name == "1")
        bad = perceptron()
        with torch.no_grad():
            bad[0].weight[1, 2] = float("nan")
        with self.assertRaisesRegex(fp4.UsageError, r"must be finite, but \[1, 2\] is nan"):
            _TORCHAO.quantize_(bad, FP4WeightOnlyConfig())


if __name__ == "__main__":
    unittest.main()
