"""fp4.checkpoints: what packages write is read, decoded and written again, to the last bit, and
what is wrong or ambiguous is refused."""

import contextlib
import json
import os
import pathlib
import tempfile
import unittest
from collections.abc import Iterator
from typing import Any

import fp4
from programs import optional, torch

if torch is not None and optional("safetensors") is not None:
    import fp4.checkpoints as ck
    import fp4.torch as ft
    from fp4.compat._programs import dequantizer
    from safetensors.torch import load_file, save_file
else:
    ck = None

VALUES = [0.0, .5, 1, 1.5, 2, 3, 4, 6]


def packed(rows: int, columns: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8)


def e4m3(rows: int, columns: int) -> Any:
    """Every finite scale occurs."""
    codes = torch.arange(rows * columns) * 37 % 127
    return codes.to(torch.uint8).view(rows, columns).view(torch.float8_e4m3fn)


def e8m0(*shape: int) -> Any:
    torch.manual_seed(7)
    return torch.randint(90, 160, shape, dtype=torch.uint8)


def unpacked(codes: Any) -> Any:
    table = torch.tensor(VALUES + [-value for value in VALUES])
    numbers = torch.stack([codes & 15, codes >> 4], -1)
    return table[numbers.long()].reshape(*codes.shape[:-1], -1)


def by_blocks(codes: Any, factors: Any) -> Any:
    values = unpacked(codes)
    return (values.view(*factors.shape, -1) * factors.unsqueeze(-1)).view(values.shape)


def decoded(weight: Any, dtype: str = "f32") -> Any:
    names = ("q", "s", "g")[:2 + (weight.amax is not None)]
    program = dequantizer(weight.shape[0], weight.shape[1], dtype, weight.recipe, weight.layout,
                          names, "sm_100a", weight.format)
    return program(*weight.tensors)


def tensors(layout: str) -> "tuple[dict[str, Any], Any]":
    """The tensors of a file, as its package writes it, and the numbers that they stand for."""
    q = packed(48, 64)
    if layout == "compressed-tensors":
        g = torch.tensor([2688 / 0.37])
        return ({"a.weight_packed": q, "a.weight_scale": e4m3(48, 4), "a.weight_global_scale": g,
                 "a.input_global_scale": torch.tensor([321.5]), "a.bias": torch.ones(48)},
                by_blocks(q, e4m3(48, 4).float() / g))
    if layout == "modelopt":
        d = torch.tensor(0.37) / 2688
        return ({"a.weight": q, "a.weight_scale": e4m3(48, 4), "a.weight_scale_2": d,
                 "a.input_scale": torch.tensor(0.0031), "norm.weight": torch.ones(64)},
                by_blocks(q, e4m3(48, 4).float() * d))
    if layout == "deepseek":
        s = e8m0(48, 2)
        return ({"a.weight": q.view(torch.int8), "a.scale": s.view(torch.float8_e8m0fnu),
                 "b.weight": torch.ones(4, 4).to(torch.float8_e4m3fn), "b.scale": s.clone()},
                by_blocks(q, torch.exp2(s.float() - 127)))
    data, scales = packed(3 * 48 * 2, 32).view(3, 48, 2, 16), e8m0(3, 48, 2)
    endings = ("_blocks", "_scales") if layout == "gpt-oss" else (".blocks", ".scales")
    numbers = by_blocks(data.view(3, 48, 32), torch.exp2(scales.float() - 127))
    return ({"a" + endings[0]: data, "a" + endings[1]: scales, "a_bias": torch.ones(3, 48)},
            numbers)


def mxfp4_tensors(layout: str) -> "tuple[dict[str, Any], Any]":
    q, s = packed(48, 64), e8m0(48, 2)
    name = "a.weight_packed" if layout == "compressed-tensors" else "a.weight"
    return {name: q, "a.weight_scale": s}, by_blocks(q, torch.exp2(s.float() - 127))


@unittest.skipIf(ck is None, "torch or safetensors is not installed")
class Checkpoints(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "model.safetensors"

    def save(self, content: "dict[str, Any]", **config: Any) -> pathlib.Path:
        save_file(content, self.path)
        (self.folder / "config.json").unlink(missing_ok=True)
        if config:
            (self.folder / "config.json").write_text(json.dumps({"quantization_config": config}))
        return self.path

    @contextlib.contextmanager
    def refused(self, message: str) -> Iterator[None]:
        with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
            yield

    def same(self, found: Any, expected: Any) -> None:
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        found, expected = (value.contiguous().reshape(-1).view(torch.uint8)
                           for value in (found, expected))
        self.assertTrue(torch.equal(found, expected))


class Reading(Checkpoints):
    def test_weights_decode_as_their_package_decodes_them(self) -> None:
        for layout in ("compressed-tensors", "modelopt"):
            content, numbers = tensors(layout)
            with self.subTest(layout), ck.open(self.save(content)) as checkpoint:
                weight = checkpoint.read("a")
                self.assertEqual((checkpoint.layout.name, list(checkpoint), weight.format,
                                  weight.shape, weight.layout, len(checkpoint.others)),
                                 (layout, ["a"], "nvfp4", (48, 64), "linear", 1))
                self.assertEqual(weight.recipe, checkpoint["a"].kind.recipe)
                self.same(decoded(weight), numbers)
                self.same(decoded(weight, "bf16"), numbers.bfloat16())

    def test_mxfp4(self) -> None:
        for layout, config in (("compressed-tensors", {}), ("modelopt", {
                "quant_method": "modelopt", "quant_algo": "MXFP4"})):
            content, numbers = mxfp4_tensors(layout)
            for dtype in (torch.uint8, torch.float8_e8m0fnu):
                content["a.weight_scale"] = content["a.weight_scale"].view(dtype)
                with self.subTest(layout), ck.open(self.save(content, **config)) as checkpoint:
                    weight = checkpoint.read("a")
                    self.assertEqual((checkpoint.layout.name, weight.format, weight.amax),
                                     (layout, "mxfp4", None))
                    self.same(decoded(weight), numbers)

    def test_experts_of_gpt_oss(self) -> None:
        for layout in ("gpt-oss", "gpt-oss-original"):
            content, numbers = tensors(layout)
            with ck.open(self.save(content)) as checkpoint:
                self.assertEqual((checkpoint.layout.name, repr(checkpoint["a"])),
                                 (layout, "Entry('a', 3 experts of 48x64 mxfp4)"))
                for expert in range(3):
                    self.same(decoded(checkpoint.read("a", expert=expert)), numbers[expert])
                with self.refused("'a' has 3 experts, but got expert = None"):
                    checkpoint.read("a")
                with self.refused("'a' has 3 experts, but got expert = 3"):
                    checkpoint.read("a", expert=3)
                self.same(checkpoint.tensor("a_bias"), torch.ones(3, 48))

    def test_a_matrix_without_experts(self) -> None:
        content, numbers = tensors("gpt-oss")
        ck.write(self.path, {"a": ft.Scaled(
            content["a_blocks"][1].view(48, 32).contiguous(), content["a_scales"][1].contiguous(),
            None, (48, 64), "mxfp4", "linear")}, "gpt-oss")
        self.assertEqual(load_file(self.path)["a_blocks"].shape, (48, 2, 16))
        with ck.open(self.path) as checkpoint:
            self.assertIsNone(checkpoint["a"].experts)
            self.same(decoded(checkpoint.read("a")), numbers[1])

    def test_typed_elements(self) -> None:
        content, numbers = tensors("modelopt")
        content["a.weight"] = content["a.weight"].view(torch.float4_e2m1fn_x2)
        with ck.open(self.save(content)) as checkpoint:
            self.same(decoded(checkpoint.read("a")), numbers)
        content, numbers = tensors("gpt-oss")
        content["a_blocks"] = content["a_blocks"].view(torch.float4_e2m1fn_x2)
        with ck.open(self.save(content)) as checkpoint:
            self.same(decoded(checkpoint.read("a", expert=2)), numbers[2])

    def test_several_files(self) -> None:
        content, numbers = tensors("modelopt")
        parts = [dict(list(content.items())[:1]), dict(list(content.items())[1:])]
        names = {name: f"part-{i}.safetensors" for i, part in enumerate(parts) for name in part}
        for i, part in enumerate(parts):
            save_file(part, self.folder / f"part-{i}.safetensors")
        with self.refused("must have one safetensors file, or .*index.json, but has 2 files"):
            ck.open(self.folder)
        index = self.folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": names}))
        for path in (self.folder, index):
            with ck.open(path) as checkpoint:
                self.same(decoded(checkpoint.read("a")), numbers)
        index.write_text(json.dumps({"weight_map": {**names, "b": "part-0.safetensors"}}))
        with self.refused("tensor 'b' must be in '.*part-0.safetensors', as the index says"):
            ck.open(self.folder)
        index.write_text(json.dumps({"weight_map": {**names, "b": "part-2.safetensors"}}))
        with self.refused("cannot read '.*part-2.safetensors'"):
            ck.open(self.folder)
        for text, message in (("[]", "must hold a JSON object, but holds list"),
                              ("{}", "must have a 'weight_map'"), ("{", "cannot read")):
            index.write_text(text)
            with self.refused(message):
                ck.open(self.folder)

    def test_names_that_are_not_there(self) -> None:
        with ck.open(self.save(tensors("modelopt")[0])) as checkpoint:
            with self.refused("no quantized weight 'norm.weight'\nnote: it is not quantized"):
                checkpoint.read("norm.weight")
            with self.refused("no tensor 'a.weight_scale_3'\nnote: there is 'a.weight_scale_2'"):
                checkpoint.tensor("a.weight_scale_3")
            with self.refused("weight 'a' is one matrix, but got expert = 0"):
                checkpoint.read("a", expert=0)
            self.assertEqual(repr(checkpoint["a"]), "Entry('a', 48x64 nvfp4)")
            self.assertRegex(repr(checkpoint), "1 weights in nvfp4, layout modelopt, and 1 other")
        with self.refused("the checkpoint is closed"):
            checkpoint.read("a")

    def test_scales_of_inputs(self) -> None:
        for layout, name, convention in (
                ("compressed-tensors", "a.input_global_scale", "encode"),
                ("modelopt", "a.input_scale", "decode")):
            content = tensors(layout)[0]
            with ck.open(self.save(content)) as checkpoint:
                scale = checkpoint.input_scale("a")
                self.assertEqual((scale.value, scale.convention), (content[name], convention))
            with ck.open(self.save({key: content[key] for key in content if key != name})) as bare:
                self.assertIsNone(bare.input_scale("a"))


    def test_defaults_of_a_program_that_loads_a_model(self) -> None:
        """vLLM sets the default dtype, and others the default device."""
        content, numbers = tensors("modelopt")
        path = self.save(content)
        torch.set_default_dtype(torch.bfloat16)
        try:
            with torch.device("meta"), ck.open(path) as checkpoint:
                weight = checkpoint.read("a")
                ck.write(self.path, {"a": weight}, "compressed-tensors", nearest=True)
                self.assertEqual(checkpoint.input_scale("a").value.dtype, torch.float32)
        finally:
            torch.set_default_dtype(torch.float32)
        self.same(decoded(weight), numbers)
        self.assertEqual(load_file(self.path)["a.weight_global_scale"].dtype, torch.float32)

    def test_a_scale_of_an_input_that_is_none(self) -> None:
        for value, message in ((torch.ones(1).half(), "must be one float32, but is float16 of sh"),
                               (torch.ones(2), r"must be one float32, but is float32 of shape .2")):
            content = {**tensors("modelopt")[0], "a.input_scale": value}
            with ck.open(self.save(content)) as checkpoint, self.refused(
                    f"tensor 'a.input_scale' {message}"):
                checkpoint.input_scale("a")


class Layers(Checkpoints):
    def test_a_layer_computes_what_its_package_does(self) -> None:
        """The scale of the file quantizes the input, and both packages have the same result."""
        x = torch.randn(20, 64, dtype=torch.bfloat16)
        for layout in ("compressed-tensors", "modelopt"):
            content = tensors(layout)[0]
            content["a.bias"] = torch.arange(48, dtype=torch.bfloat16)
            with self.subTest(layout), ck.open(self.save(content)) as checkpoint:
                layer = checkpoint.linear("a")
                weight, scale = checkpoint.read("a"), checkpoint.input_scale("a")
                q = ft.quantize(x, recipe=weight.recipe, amax=scale.value)
                expected = ft.linear(q, ft.swizzle(weight), content["a.bias"])
                self.same(layer(x).detach(), expected)
                exact = ft.dequantize(q).float() @ decoded(weight).T + content["a.bias"]
                self.assertLess(((expected - exact).norm() / exact.norm()).item(), 0.01)

    def test_weights_alone(self) -> None:
        content = {name: value for name, value in tensors("modelopt")[0].items()
                   if name != "a.input_scale"}
        with ck.open(self.save(content)) as checkpoint, self.refused(
                "'a' has no scale for the input of its layer"):
            checkpoint.linear("a", weight_only=False)
        content, numbers = mxfp4_tensors("compressed-tensors")
        with ck.open(self.save(content)) as checkpoint:
            layer = checkpoint.linear("a", weight_only=False)  # MXFP4 needs none
        x = torch.randn(20, 64, dtype=torch.bfloat16)
        exact = ft.dequantize(ft.quantize(x, format="mxfp4", recipe="mxfp4_compressed_tensors"))
        exact = exact.double() @ numbers.double().T
        self.assertLess(((layer(x) - exact).norm() / exact.norm()).item(), 0.01)


class Refusals(Checkpoints):
    """Every file is the good one with one thing changed."""

    def test_files(self) -> None:
        for content in (b"", b"abc", b"\x10" + bytes(7) + b"{" + b" " * 15, b"\xff" * 64):
            self.path.write_bytes(content)
            with self.refused("cannot read '.*model.safetensors'"):
                ck.open(self.path)
        with self.refused("cannot read '.*none"):
            ck.open(self.folder / "none")
        for wrong in (None, 3, {}):
            with self.assertRaises(TypeError):
                ck.open(wrong)
        for arguments, message in (({"layout": "gguf"}, "'layout' must be compressed-tensors"),
                                   ({"global_scale": "amax"}, "'global_scale' must be encode")):
            with self.refused(message):
                ck.open(self.save(tensors("modelopt")[0]), **arguments)

    def test_tensors(self) -> None:
        bf16, bytes_of = torch.bfloat16, torch.uint8
        q, s = packed(48, 64), e4m3(48, 4)
        for layout, name, value, message in (
                ("modelopt", "a.weight_scale", None, "'a.weight' must have block scales 'a.w"),
                ("modelopt", "a.weight_scale", s.to(bf16), "'a.weight_scale' must be F8_E4M3"),
                ("modelopt", "a.weight_scale", s[:, :3].clone(), r"the shape \[48, 4\] for a wei"),
                ("modelopt", "a.weight_scale", e4m3(128, 4), r"(?s)\[128, 4\].*tiled scales that"),
                ("modelopt", "a.weight_scale", e8m0(48, 2), "'a.weight_scale_2' must not be"),
                ("modelopt", "a.weight_scale_2", None, "'a.weight_scale_2' must be there beside"),
                ("modelopt", "a.weight_scale_2", torch.ones(2), "scale_2' must be one F32"),
                ("modelopt", "a.weight_scale_2", torch.ones(1).half(), "must be one F32, but is F"),
                ("modelopt", "a.weight", packed(96, 64).view(2, 48, 32), r"the shape \[2, 48, 4\]"),
                ("compressed-tensors", "a.weight_packed", packed(96, 64).view(2, 48, 32),
                 r"shape \[R, K/2\]"),
                ("deepseek", "a.scale", e8m0(48, 2), "'a.scale' must be F8_E8M0, but is U8"),
                ("deepseek", "a.scale", None, "'a.weight' must have block scales 'a.scale'"),
                ("modelopt", "a.weight", q[:, :31].clone(), "for a weight of 48 x 62"),
                ("modelopt", "a.weight", torch.ones(48, 64), "no tensor is named like one"),
                ("compressed-tensors", "a.weight_packed", torch.ones(48, 8, dtype=torch.int32),
                 "'a.weight_packed' must be U8 or F4, two elements in a byte, but is I32"),
                ("compressed-tensors", "a.weight_global_scale", None, "_global_scale' must be"),
                ("compressed-tensors", "b.weight", q, "but tensor 'b.weight' has modelopt\nnote"),
                ("gpt-oss", "a_scales", None, "'a_blocks' must have block scales 'a_scales'"),
                ("gpt-oss", "a_scales", e8m0(3, 48, 3), r"'a_scales' must have the shape \[3, 4"),
                ("gpt-oss", "a_scales", e8m0(3, 48, 2).view(torch.float8_e4m3fn), "must be U8/F8"),
                ("gpt-oss", "a_blocks", packed(48, 64), r"the shape \[R, K/32, 16\] or \[E"),
                ("gpt-oss", "a_blocks", torch.ones(3, 48, 2, 8, dtype=bytes_of), "of 16 bytes")):
            content = tensors(layout)[0]
            if value is None:
                del content[name]
            else:
                content[name] = value
            with self.refused(message):
                ck.open(self.save(content))

    def test_what_config_json_says(self) -> None:
        modelopt, compressed = tensors("modelopt")[0], tensors("compressed-tensors")[0]
        for content, config, message in (
                (modelopt, {"quant_method": "quark"}, "has the layout modelopt, but .* 'quark'"),
                (modelopt, {"quant_method": "modelopt", "quant_algo": "FP8"},
                 "'a.weight' has the format nvfp4, but .* says FP8"),
                (compressed, {"quant_method": "compressed-tensors", "config_groups": {
                    "group_0": {"format": "mxfp4-pack-quantized"}}}, "nvfp4, but .* says mxfp4"),
                (mxfp4_tensors("modelopt")[0], {}, "and no config.json decides"),
                (mxfp4_tensors("modelopt")[0], {"quant_method": "quark"}, "says quant_method")):
            with self.refused(message):
                ck.open(self.save(content, **config))
            ck.open(self.save(content, **config), layout=(
                "modelopt" if "a.weight" in content else "compressed-tensors")).close()
        for config in ({"quant_method": "modelopt", "quant_algo": "NVFP4"},
                       {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
                        "quantized_layers": {"a": {"quant_algo": "NVFP4"}}}):
            ck.open(self.save(modelopt, **config)).close()
        for word in ("MXFP4", "mxfp4"):  # as the versions of ModelOpt write it
            with ck.open(self.save(mxfp4_tensors("modelopt")[0], quant_method="modelopt",
                                   quant_algo=word)) as checkpoint:
                self.assertIsInstance(checkpoint.linear("a"), ft.QuantizedLinear)
        (self.folder / "hf_quant_config.json").write_text(json.dumps(
            {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}))
        with self.refused("hf_quant_config.json' says FP8"):
            ck.open(self.path)

    def test_what_a_layer_has_besides_its_weight(self) -> None:
        content = {**tensors("modelopt")[0], "a.pre_quant_scale": torch.ones(64)}
        with ck.open(self.save(content)) as checkpoint:
            with self.refused("'a' is not all of its layer: tensor 'a.pre_quant_scale' changes"):
                checkpoint.read("a")
            self.assertEqual(checkpoint.read("a", partial=True).shape, (48, 64))

    def test_scales_that_decode_nothing(self) -> None:
        for layout, name, values in (
                ("modelopt", "a.weight_scale_2", (-1e-4, float("inf"), float("nan"))),
                ("compressed-tensors", "a.weight_global_scale", (0.0, -3.0, float("nan"))),
                ("modelopt", "a.input_scale", (float("nan"),))):
            for value in values:
                content = tensors(layout)[0]
                content[name] = torch.full_like(content[name], value)
                with ck.open(self.save(content)) as checkpoint, self.refused(
                        f"tensor '{name}' must be a positive (en|de)code scale, but is"):
                    (checkpoint.input_scale if "input" in name else checkpoint.read)("a")

    def test_scales_of_the_other_convention(self) -> None:
        """A decode scale where an encode scale belongs, and the other way round."""
        for layout, name, other in (("modelopt", "a.weight_scale_2", "encode"),
                                    ("compressed-tensors", "a.weight_global_scale", "decode")):
            content, numbers = tensors(layout)
            content[name] = content[name].reciprocal()
            path = self.save(content)
            with ck.open(path) as checkpoint, self.refused(
                    f"(?s)tensor '{name}' is .*open\\(path, global_scale='{other}'"):
                checkpoint.read("a")
            with ck.open(path, global_scale=other) as checkpoint:
                error = (decoded(checkpoint.read("a")) - numbers).abs().max() / numbers.abs().max()
                self.assertLess(error.item(), 1e-6)
                self.assertEqual(checkpoint.input_scale("a").convention, other)
            with ck.open(path, global_scale="decode" if other == "encode" else "encode") as same:
                self.assertGreater(decoded(same.read("a")).abs().max().item(), 65504)  # as stated


class Writing(Checkpoints):
    def test_a_file_that_was_read_is_written_again(self) -> None:
        for layout in ck.LAYOUTS:
            with self.subTest(layout):
                content = tensors(layout)[0]
                with ck.open(self.save(content)) as checkpoint:
                    entry = checkpoint["a"]
                    weight: Any = (checkpoint.read("a") if entry.experts is None else [
                        checkpoint.read("a", expert=i) for i in range(entry.experts)])
                    scale = checkpoint.input_scale("a")
                    others = {name: checkpoint.tensor(name) for name in checkpoint.others}
                again = self.folder / "again.safetensors"
                ck.write(again, {"a": weight}, layout, tensors=others,
                         input_scales={"a": scale} if scale else {})
                found = load_file(again)
                self.assertEqual(set(found), set(content))
                for name in content:
                    self.same(found[name], content[name])
                self.assertEqual(sorted(os.listdir(self.folder)),
                                 ["again.safetensors", "model.safetensors"])

    def test_from_one_layout_to_another(self) -> None:
        """The decoded numbers stay, to the last bit, where that can be."""
        for first, second in (("modelopt", "compressed-tensors"),
                              ("compressed-tensors", "modelopt")):
            exact = 0
            for seed in range(8):
                content = tensors(first)[0]
                name = next(key for key in content if key.endswith(("scale_2", "t_global_scale")))
                content[name] = content[name] * (1 + seed / 8)
                with ck.open(self.save(content)) as checkpoint:
                    weight = checkpoint.read("a")
                again = self.folder / "again.safetensors"
                try:
                    ck.write(again, {"a": weight}, second)
                    exact += 1
                except fp4.UsageError as error:
                    self.assertRegex(str(error), "weight 'a': no (en|de)code scale decodes to the n"
                                     r".*\n.*nearest=True")
                    self.assertFalse(again.exists())
                    ck.write(again, {"a": weight}, second, nearest=True)
                    with ck.open(again) as checkpoint:
                        error = decoded(checkpoint.read("a")) / decoded(weight) - 1
                        self.assertLess(error.nan_to_num().abs().max().item(), 2.0 ** -22)
                else:
                    with ck.open(again) as checkpoint:
                        self.same(decoded(checkpoint.read("a")), decoded(weight))
                again.unlink()
            self.assertIn(exact, range(1, 8))  # both kinds occur

    def test_powers_of_two_convert_exactly(self) -> None:
        content = tensors("modelopt")[0]
        content["a.weight_scale_2"] = torch.tensor(2.0 ** -13)
        with ck.open(self.save(content)) as checkpoint:
            weight = checkpoint.read("a")
        ck.write(self.path, {"a": weight}, "compressed-tensors")
        self.assertEqual(load_file(self.path)["a.weight_global_scale"], 2.0 ** 13)
        with ck.open(self.path) as checkpoint:
            self.same(decoded(checkpoint.read("a")), decoded(weight))
            restated = ck.restated(checkpoint.read("a"), ck.LAYOUTS["modelopt"].kind("nvfp4"))
        self.assertTrue(restated.same(weight))

    def test_what_fp4_quantized(self) -> None:
        """An amax becomes the decode scale amax / 2688, which ModelOpt computes too."""
        weight = ft.Scaled(packed(48, 64), e4m3(48, 4), torch.tensor(0.37), (48, 64),
                           layout="linear", recipe="modelopt")
        ck.write(self.path, {"a": weight}, "modelopt")
        self.assertEqual(load_file(self.path)["a.weight_scale_2"], torch.tensor(0.37) / 2688)
        for recipe in ("compressed_tensors", "compressed_tensors_f32", "vllm"):  # with own rules
            weight = ft.quantize(torch.randn(48, 64, dtype=torch.bfloat16), recipe=recipe,
                                 layout="linear")
            ck.write(self.path, {"a": weight}, "compressed-tensors")
            self.assertEqual(load_file(self.path)["a.weight_global_scale"], weight.encode_scale)
            with ck.open(self.path) as checkpoint:
                self.same(decoded(checkpoint.read("a")), decoded(weight))
        one_level = ft.Scaled(weight.data, weight.scales, None, (48, 64), layout="linear",
                              recipe="torchao_1level")
        for layout, name in (("modelopt", "a.weight_scale_2"),
                             ("compressed-tensors", "a.weight_global_scale")):
            ck.write(self.path, {"a": one_level}, layout)
            self.assertEqual(load_file(self.path)[name], 1)

    def test_what_is_refused(self) -> None:
        good = ft.Scaled(packed(48, 64), e4m3(48, 4), torch.tensor(0.37), (48, 64),
                         layout="linear", recipe="modelopt")
        mx = ft.Scaled(packed(48, 64), e8m0(48, 2), None, (48, 64), "mxfp4", "linear")
        rows = ft.Scaled(good.data, good.scales, torch.ones(48), (48, 64), layout="linear",
                         recipe="modelopt")
        zeros = ft.Scaled(good.data, good.scales, torch.tensor(0.0), (48, 64), layout="linear",
                          recipe="modelopt")
        shifted = ft.Scaled(mx.data, torch.zeros_like(mx.scales), None, (48, 64), "mxfp4",
                            "linear", "mxfp4_flashinfer")  # its byte 0 means 0
        scale = ck.GlobalScale(torch.tensor(3.0), "decode")
        ck.write(self.path, {"a": good}, "modelopt")
        before = self.path.read_bytes()
        for weights, layout, named, message in (
                ({"a": good}, "gpt-oss", {}, "'a': layout 'gpt-oss' must have weights of mxfp4"),
                ({"a": good.to("meta")}, "modelopt", {}, "'a': the weight must have data"),
                ({"a": rows}, "modelopt", {}, "'a': the weight must have one scale .* 48 rows"),
                ({"a": zeros}, "compressed-tensors", {}, "'a': no encode scale decodes to"),
                ({"a": shifted}, "gpt-oss", {}, "'a': no recipe without a scale of the"),
                ({"a": [good, good]}, "modelopt", {}, "'a': layout 'modelopt' has no stacks"),
                ({"a": [mx, good]}, "gpt-oss", {}, "'a': experts must be of one shape"),
                ({"a": good}, "modelopt", {"input_scales": {"b": scale}}, "must be of weights, bu"),
                ({"a": mx}, "modelopt", {"input_scales": {"a": scale}}, "has no scales for inputs"),
                ({"a": good}, "modelopt", {"tensors": {"a.weight": mx.data}}, "'a.weight' belongs"),
                ({"a": good}, "modelopt", {"tensors": {"b": torch.ones(4, 4).t()[1:]}}, "cannot"),
                ({"a": good}, "float", {}, "'layout' must be compressed-tensors")):
            with self.refused(message):
                ck.write(self.path, weights, layout, **named)
        for weights in ({"a": None}, {"a": []}, {"a": [None]}, {3: good}, [good], None):
            with self.assertRaisesRegex(TypeError, "must"):
                ck.write(self.path, weights, "modelopt")
        for named in ({"tensors": [1]}, {"input_scales": [1]}, {"input_scales": {"a": 3.0}}):
            with self.assertRaisesRegex(TypeError, "must"):
                ck.write(self.path, {"a": good}, "modelopt", **named)
        with self.refused("cannot write '.*none"):
            ck.write(self.folder / "none" / "x", {"a": good}, "modelopt")
        self.assertEqual(self.path.read_bytes(), before)  # nothing is lost or half written
        self.assertEqual(os.listdir(self.folder), [self.path.name])

    def test_the_section_of_config_json(self) -> None:
        for layout, format, inputs in (("compressed-tensors", "nvfp4", True),
                                       ("compressed-tensors", "mxfp4", False),
                                       ("modelopt", "nvfp4", True), ("modelopt", "nvfp4", False),
                                       ("modelopt", "mxfp4", False), ("gpt-oss", "mxfp4", False)):
            config = ck.quantization_config(layout, format, ignore=["lm_head"], inputs=inputs)
            content = (tensors if format == "nvfp4" or layout == "gpt-oss" else mxfp4_tensors)(
                layout)[0]
            with self.subTest(config=config), ck.open(self.save(content, **config)) as checkpoint:
                self.assertEqual(checkpoint.layout.name, layout)
        with self.refused("has no scales for inputs of mxfp4"):
            ck.quantization_config("modelopt", "mxfp4", inputs=True)
        with self.refused("layout 'gpt-oss-original' has no config.json"):
            ck.quantization_config("gpt-oss-original", "mxfp4")


@unittest.skipIf(ck is None, "torch or safetensors is not installed")
class GlobalScales(unittest.TestCase):
    def test_a_reciprocal_is_exact_or_refused(self) -> None:
        torch.manual_seed(1)
        exact = 0
        for value in torch.rand(200) * 4:
            scale = ck.GlobalScale(value, "decode")
            try:
                other = scale.to("encode")
            except fp4.UsageError as error:
                self.assertRegex(str(error), "no encode scale has the reciprocal .*\n.*nearest=T")
                self.assertEqual(scale.to("encode", nearest=True).value, value.reciprocal())
            else:
                exact += 1
                self.assertEqual((other.convention, 1 / other.value), ("encode", value))
        self.assertIn(exact, range(50, 200))
        self.assertIs(scale.to("decode"), scale)

    def test_what_is_none(self) -> None:
        for value, convention, message in (
                (torch.ones(2), "encode", r"must be one float32, but got float32 of shape \[2\]"),
                (torch.ones(1).half(), "encode", "must be one float32, but got float16"),
                (torch.ones(1), "amax", "'convention' must be encode or decode, but got 'amax'")):
            with self.assertRaisesRegex(fp4.UsageError, message):
                ck.GlobalScale(value, convention)
        with self.assertRaises(TypeError):
            ck.GlobalScale(1.0, "encode")


if __name__ == "__main__":
    unittest.main()
