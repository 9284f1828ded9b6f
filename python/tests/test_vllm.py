"""fp4.vllm inside vLLM's own classes on the CPU: its registry, its linear layers and their loaders,
and the contracts of its methods. vLLM's own extension and its kernels are not used."""

import inspect
import types
import unittest
from typing import Any
from unittest import mock

import fp4
from programs import ROOT, torch
from test_torch_ops import matrix

if torch is not None:
    import fp4.torch as ft

#: Sections of config.json of checkpoints.
SECTIONS: dict[str, dict[str, Any]] = {
    "compressed-tensors, nvfp4": {
        "quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*router.*"],
        "config_groups": {"group_0": {
            "weights": {"type": "float", "num_bits": 4, "group_size": 16},
            "input_activations": {"type": "float", "num_bits": 4}}}},
    "compressed-tensors, mxfp4": {
        "quant_method": "compressed-tensors", "ignore": ["lm_head"],
        "config_groups": {"group_0": {
            "weights": {"type": "float", "num_bits": 4, "group_size": 32}}}},
    "modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4",
                 "ignore": ["lm_head", "model.layers.*.router"]},
    "gpt-oss": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.embed_tokens"]},
}


def skip_reason() -> str:
    if torch is None:
        return "torch is not installed"
    try:
        import fp4.vllm
        fp4.vllm.register()
    except ImportError as error:
        return f"vllm cannot be imported: {error}"
    return ""


REASON = skip_reason()


def quantized(rows: int, columns: int, format: str, seed: int) -> Any:
    return ft.swizzle(ft.quantize(matrix(rows, columns, seed), format=format), "linear")


class EntryPoint(unittest.TestCase):
    def test_packages_have_it(self) -> None:
        """The wheel that has fp4.vllm names it to vLLM."""
        for folder in (ROOT, ROOT / "packages" / "fp4-runtime"):
            text = (folder / "pyproject.toml").read_text()
            self.assertIn('[project.entry-points."vllm.general_plugins"]\n'
                          'fp4 = "fp4.vllm:register"\n', text)


class Schemes(unittest.TestCase):
    """The sections of checkpoints, without vLLM."""

    def scheme(self, targets: "list[str]", ignore: "list[str]") -> Any:
        from fp4.vllm._scheme import scheme_of
        weights = {"type": "float", "num_bits": 4, "group_size": 16}
        return scheme_of({"quant_method": "compressed-tensors", "ignore": ignore,
                          "config_groups": {"group_0": {"targets": targets, "weights": weights}}})

    def test_targets(self) -> None:
        qkv = [f"m.layers.0.self_attn.{name}_proj" for name in "qkv"]
        whole, down = "m.layers.0.self_attn.qkv_proj", "m.layers.0.mlp.down_proj"
        for targets, ignore, kept in (
                (["Linear"], [], (False, False)), (["Linear"], [down], (False, True)),
                (["FusedMoE"], [], (True, True)), (["FusedMoE", down], [], (True, False)),
                (["re:.*mlp.*"], [], (True, False)), (["re:.*[qkv]_proj"], [], (False, True)),
                ([whole], [], (False, True)), ([down], ["re:.*q_proj$"], (True, False))):
            with self.subTest(targets=targets, ignore=ignore):
                found = self.scheme(targets, ignore)
                self.assertEqual((found.stays(whole, qkv), found.stays(down, [down])), kept)
        experts = "m.layers.0.mlp.experts"
        for targets, kept in ((["Linear"], False), ([r"re:.*experts\.\d+\.w1"], False),
                              (["re:.*self_attn.*"], True), ([experts], False),
                              (["FusedMoE"], False), (["FusedMoE", "re:.*self_attn.*"], False)):
            self.assertEqual(self.scheme(targets, []).stays_experts(experts), kept)
        for target in ("Linear", "FusedMoE"):
            self.assertTrue(self.scheme([target], [experts]).stays_experts(experts))
        with self.assertRaisesRegex(fp4.UsageError, "must all be in 4 bits or none.*v_proj stays"):
            self.scheme(["re:.*[qk]_proj"], []).stays(whole, qkv)
        with self.assertRaisesRegex(fp4.UsageError, "'targets' of .* but have Conv2d\nnote: leave"):
            self.scheme(["Conv2d"], [])

    def test_caches(self) -> None:
        from fp4.vllm._scheme import scheme_of
        scheme = {"type": "float", "num_bits": 8, "strategy": "tensor"}
        section = SECTIONS["compressed-tensors, nvfp4"]
        self.assertEqual(scheme_of(section).cache, "")
        self.assertEqual(scheme_of({**section, "kv_cache_scheme": scheme}).cache, "fp8")
        for wrong in ({"strategy": "attn_head"}, {"num_bits": 4}, {"symmetric": False}):
            with self.assertRaisesRegex(fp4.UsageError, "'kv_cache_scheme' must have floats of 8 "
                                                        "bits with one .*\nnote: leave out"):
                scheme_of({**section, "kv_cache_scheme": {**scheme, **wrong}})
        for algorithm, cache in (("FP8", "fp8"), ("NVFP4", "nvfp4"), (None, "")):
            found = scheme_of({**SECTIONS["modelopt"], "kv_cache_quant_algo": algorithm})
            self.assertEqual(found.cache, cache)


@unittest.skipIf(bool(REASON), REASON)
class Plugin(unittest.TestCase):
    def setUp(self) -> None:
        from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
        context = set_current_vllm_config(VllmConfig(device_config=DeviceConfig("cpu")))
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        alone = types.SimpleNamespace(world_size=1, rank_in_group=0)  # no process group is there
        group = mock.patch("vllm.distributed.parallel_state._TP", alone)
        group.start()
        self.addCleanup(group.stop)

    def config(self, name: str) -> Any:
        from fp4.vllm._config import FP4Config
        return FP4Config.from_config(SECTIONS[name])

    def test_registration(self) -> None:
        import fp4.vllm
        from vllm.model_executor.layers.quantization import (
            QUANTIZATION_METHODS,
            get_quantization_config,
        )
        fp4.vllm.register()  # a second time, as in each of vLLM's processes
        self.assertEqual(QUANTIZATION_METHODS.count("fp4"), 1)
        found = get_quantization_config("fp4")
        for name, section in SECTIONS.items():
            with self.subTest(name):
                self.assertEqual(found.override_quantization_method(section, "fp4"), "fp4")
                self.assertIsNone(found.override_quantization_method(section, None))
                self.assertEqual(found.from_config(section).get_name(), "fp4")

    def test_methods_have_the_signatures_of_vllm(self) -> None:
        from fp4.vllm._experts import ExpertsMethod
        from fp4.vllm._linear import FP4LinearMethod
        from vllm.model_executor.layers.fused_moe.fused_moe_method_base import FusedMoEMethodBase
        from vllm.model_executor.layers.linear import LinearMethodBase
        for ours, theirs, names in (
                (FP4LinearMethod, LinearMethodBase, ("create_weights", "apply")),
                (ExpertsMethod, FusedMoEMethodBase, ("create_weights", "apply"))):
            self.assertFalse(ours.__abstractmethods__)
            for name in names:
                self.assertEqual(list(inspect.signature(getattr(ours, name)).parameters),
                                 list(inspect.signature(getattr(theirs, name)).parameters))

    def test_linear_layers(self) -> None:
        """Two projections as one layer, each with a scale of its own, by vLLM's loaders."""
        from vllm.model_executor.layers.linear import MergedColumnParallelLinear
        x = matrix(5, 64, 3)
        for name in ("compressed-tensors, nvfp4", "compressed-tensors, mxfp4", "modelopt"):
            config = self.config(name)
            names, format = config.scheme.names, config.scheme.format
            config.packed_modules_mapping = {"gate_up_proj": ["gate_proj", "up_proj"]}
            layer = MergedColumnParallelLinear(
                64, [96, 32], bias=False, quant_config=config, disable_tp=True,
                params_dtype=torch.bfloat16, prefix="model.layers.0.mlp.gate_up_proj")
            parts = [quantized(rows, 64, format, seed) for rows, seed in ((96, 1), (32, 2))]
            for shard, part in enumerate(parts):
                stored = {names.weight: part.data.view(torch.uint8),
                          "weight_scale": part.scales if format == "nvfp4"
                          else part.scales.view(torch.uint8)}
                if names.scale:
                    decode = part.decode_scale
                    stored[names.scale] = 1 / decode if names.is_encode else decode
                if names.input:
                    stored[names.input] = torch.tensor(1.0)
                for called, value in stored.items():
                    parameter = getattr(layer, called)
                    parameter.weight_loader(parameter, value, shard)
            layer.quant_method.process_weights_after_loading(layer)
            with self.subTest(name), torch.no_grad():
                y = layer(x)[0]
                expected = torch.cat([ft.WeightOnlyLinear(part)(x) for part in parts], -1)
                torch.testing.assert_close(y, expected, rtol=0.01, atol=0.01)
                self.assertEqual({called for called, _ in layer.named_parameters()},
                                 {"packed", "alpha"} if names.scale else {"packed"})

    def test_layers_that_stay(self) -> None:
        from fp4.vllm._linear import FP4LinearMethod
        from vllm.model_executor.layers.linear import ReplicatedLinear, UnquantizedLinearMethod
        layer = ReplicatedLinear(64, 64, disable_tp=True, params_dtype=torch.bfloat16)
        for name, prefix, kind in (
                ("compressed-tensors, nvfp4", "model.layers.0.o_proj", FP4LinearMethod),
                ("compressed-tensors, nvfp4", "lm_head", UnquantizedLinearMethod),
                ("compressed-tensors, nvfp4", "model.layers.0.router", UnquantizedLinearMethod),
                ("modelopt", "model.layers.3.router", UnquantizedLinearMethod),
                ("modelopt", "model.layers.3.down_proj", FP4LinearMethod),
                ("gpt-oss", "model.layers.0.o_proj", UnquantizedLinearMethod)):
            with self.subTest(name, prefix=prefix):
                self.assertIsInstance(self.config(name).get_quant_method(layer, prefix), kind)
        config = self.config("modelopt")
        config.packed_modules_mapping = {"qkv_proj": ["q_proj", "lm_head"]}
        with self.assertRaisesRegex(fp4.UsageError, "must all be in 4 bits or none"):
            config.get_quant_method(layer, "qkv_proj")

    def test_scales_of_keys_and_values(self) -> None:
        """An attention of vLLM, whose own kernels are not made, has parameters for the scales that
        a checkpoint states, and none for others."""
        from fp4.vllm._config import FP4Config
        from vllm.model_executor.layers.attention import Attention, attention
        fp8 = {"type": "float", "num_bits": 8, "strategy": "tensor", "symmetric": True}
        for name, more, has_scales in (
                ("modelopt", {"kv_cache_quant_algo": "FP8"}, True),
                ("modelopt", {"kv_cache_scheme": {"type": "float", "num_bits": 8}}, True),
                ("compressed-tensors, nvfp4", {"kv_cache_scheme": fp8}, True),
                ("compressed-tensors, nvfp4", {"kv_cache_scheme": None}, False)):
            with self.subTest(name, more=more):
                config = FP4Config.from_config({**SECTIONS[name], **more})
                self.assertEqual(config.kv_cache_scheme is not None, has_scales)
                layer = Attention.__new__(Attention)
                torch.nn.Module.__init__(layer)
                layer.kv_cache_dtype = "fp8"
                attention._init_kv_cache_quant(layer, config, "model.layers.0.self_attn.attn")
                self.assertEqual(hasattr(layer, "k_scale"), has_scales)
                if has_scales:
                    for parameter, value in ((layer.k_scale, 0.5), (layer.v_scale, 0.25)):
                        parameter.weight_loader(parameter, torch.tensor([value]))
                    layer.quant_method.process_weights_after_loading(layer)
                self.assertEqual((layer._k_scale_float, layer._v_scale_float),
                                 (0.5, 0.25) if has_scales else (1.0, 1.0))

    def experts(self, name: str, activation: Any, **options: Any) -> Any:
        """A layer with the attributes of vLLM's RoutedExperts, whose method has made its
        parameters."""
        from fp4.vllm._experts import ExpertsMethod
        layer: Any = torch.nn.Module()
        layer.activation, layer.apply_router_weight_on_input = activation, False
        layer.swiglu_limit = layer.swiglu_alpha = None
        layer.global_num_experts, layer.local_num_experts = 8, 4
        placement = torch.full((8,), -1, dtype=torch.int32)
        placement[4:] = torch.arange(4)
        layer.expert_map_manager = types.SimpleNamespace(expert_map=placement)
        vars(layer).update(options)
        method = ExpertsMethod(self.config(name).scheme,
                               types.SimpleNamespace(activation=activation))
        method.create_weights(layer, 4, 64, 96, torch.bfloat16, weight_loader=None)
        return layer, method

    def test_names_of_layers_that_stay_are_those_of_vllm(self) -> None:
        from fp4.vllm._config import FP4Config
        from vllm.model_executor.models.utils import WeightsMapper
        section = dict(SECTIONS["modelopt"], exclude_modules=["model.visual*", "lm_head"])
        config = FP4Config.from_config({key: value for key, value in section.items()
                                        if key != "ignore"})
        config.apply_vllm_mapper(WeightsMapper(orig_to_new_prefix={"model.visual": "visual"}))
        self.assertTrue(config.scheme.stays("visual.blocks.0.qkv", ["visual.blocks.0.qkv"]))
        self.assertTrue(config.scheme.stays("lm_head", ["lm_head"]))
        down = "model.layers.0.mlp.down_proj"
        self.assertFalse(config.scheme.stays(down, [down]))

    def test_numbers_of_activations(self) -> None:
        from fp4.vllm._experts import _with_numbers
        from vllm.model_executor.layers.fused_moe.activation import MoEActivation

        def found(beta: Any, alpha: Any) -> Any:
            layer = types.SimpleNamespace(activation=MoEActivation.SWIGLUOAI_UNINTERLEAVE,
                                          swiglu_limit=7.0, swiglu_alpha=alpha, swiglu_beta=beta)
            return _with_numbers(layer, "gpt_oss")

        self.assertEqual(found(1.0, 1.702), ("gpt_oss", 7.0, 1.702))
        self.assertEqual(found(None, None), ("silu", 7.0, None))
        with self.assertRaisesRegex(fp4.UsageError, "'swiglu_beta' must be 1, or 0 with"):
            found(0.5, 1.0)

    def test_experts(self) -> None:
        """Four of eight experts: parameters of vLLM's names, beside fp4's own layers."""
        from vllm.model_executor.layers.fused_moe.activation import MoEActivation
        for name, activation in (("compressed-tensors, nvfp4", MoEActivation.SILU),
                                 ("compressed-tensors, mxfp4", MoEActivation.SILU),
                                 ("modelopt", MoEActivation.SILU),
                                 ("gpt-oss", MoEActivation.SWIGLUOAI)):
            layer, method = self.experts(name, activation)
            scheme, names = method.scheme, method.scheme.names
            gates, ups, downs = (
                [quantized(*shape, scheme.format, seed + e) for e in range(4)]
                for shape, seed in (((96, 64), 1), ((96, 64), 11), ((64, 96), 21)))
            in_turns = activation is MoEActivation.SWIGLUOAI
            for e in range(4):
                for member, called in (("data", names.weight), ("scales", "weight_scale")):
                    gate, up, down = (getattr(one[e], member).view(torch.uint8)
                                      for one in (gates, ups, downs))
                    both = torch.stack((gate, up), 1).flatten(0, 1) if in_turns else torch.cat(
                        (gate, up))
                    getattr(layer, f"w13_{called}").data[e].view(torch.uint8).copy_(both)
                    getattr(layer, f"w2_{called}").data[e].view(torch.uint8).copy_(down)
                if names.scale:
                    scales = [one[e].decode_scale for one in (gates, ups, downs)]
                    scales = [1 / one if names.is_encode else one for one in scales]
                    getattr(layer, f"w13_{names.scale}").data[e] = torch.stack(scales[:2])
                    getattr(layer, f"w2_{names.scale}").data[e] = scales[2]
            biases = [None, None, None]
            if scheme.experts_alone:
                biases = [torch.nn.Parameter(matrix(4, rows, 30 + rows)) for rows in (96, 96, 64)]
                layer.w13_bias.data.copy_(torch.stack(biases[:2], 2).flatten(1))
                layer.w2_bias.data.copy_(biases[2])
            method.process_weights_after_loading(layer)
            expected = ft.RoutedExperts(
                ft.WeightOnlyExperts(ups, biases[1], gates=gates, gate_bias=biases[0],
                                     activation="gpt_oss" if in_turns else "silu"),
                ft.WeightOnlyExperts(downs, biases[2]), first=4, total=8)
            x, ids = matrix(5, 64, 3), torch.tensor([[4, 0], [7, 6], [1, 2], [5, 4], [3, 7]])
            weights = torch.rand(5, 2)
            with self.subTest(name), torch.no_grad():
                y = method.apply(layer, x, weights, ids.int(), None, None)
                torch.testing.assert_close(y, expected(x, ids, weights), rtol=0.01, atol=0.01)
                self.assertTrue(y[0].any())
                self.assertFalse(y[2].any())

    def test_what_is_refused(self) -> None:
        from fp4.vllm._config import FP4Config
        from vllm.model_executor.layers.fused_moe.activation import MoEActivation
        for said, call in (
                ("must be of compressed-tensors, modelopt or mxfp4, but is of gptq",
                 lambda: FP4Config.from_config({"quant_method": "gptq"})),
                ("'quant_algo' must be NVFP4 or W4A16_NVFP4, but is FP8",
                 lambda: FP4Config.from_config({"quant_method": "modelopt", "quant_algo": "FP8"})),
                ("weights of 4 bits in groups of 16 or 32, but has .*128",
                 lambda: FP4Config.from_config(
                     {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
                         "weights": {"type": "int", "num_bits": 4, "group_size": 128}}}})),
                ("must have one of the activations silu, .* but have gelu",
                 lambda: self.experts("modelopt", MoEActivation.GELU))):
            with self.subTest(said=said), self.assertRaisesRegex(fp4.UsageError, said):
                call()


if __name__ == "__main__":
    unittest.main()
