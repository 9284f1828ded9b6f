"""Writers of checkpoints whose experts are as gpt-oss and ModelOpt have them, for tests. Each
stores the numbers that the weights of a model have in 4 bits, and gives the model these numbers."""

from typing import Any

from programs import optional, torch

if torch is not None:
    import fp4.torch as ft

PLACE = "model.layers.0.mlp.experts"


def rest_of(exact: Any) -> Any:
    return {name: value.contiguous() for name, value in exact.state_dict().items()
            if not name.startswith(PLACE) or name.endswith("_bias")}


def as_gpt_oss(ck: Any, path: str, exact: Any) -> None:
    weights = {}
    for last in ("gate_up_proj", "down_proj"):
        stack = getattr(exact.get_submodule(PLACE), last)
        weights[f"{PLACE}.{last}"] = [ft.quantize(one.t().contiguous(), format="mxfp4")
                                      for one in stack]
        for one, matrix in zip(weights[f"{PLACE}.{last}"], stack):
            matrix.copy_(ft.dequantize(one).t())
    ck.write(path, weights, "gpt-oss", tensors=rest_of(exact))


def as_modelopt_stacks(ck: Any, path: str, exact: Any) -> None:
    """Stores experts as ModelOpt writes those of gpt-oss: transposed, with one scale for all."""
    content = rest_of(exact)
    for last in ("gate_up_proj", "down_proj"):
        stack = getattr(exact.get_submodule(PLACE), last)
        scale = stack.abs().max().float() / 2688
        found = [ft.quantize(one.t().contiguous(), layout="linear", amax=scale,
                             recipe="modelopt, tensor_scale = supplied_decode") for one in stack]
        for one, matrix in zip(found, stack):
            matrix.copy_(ft.dequantize(one).t())
        data, scales = (torch.stack([value.view(torch.uint8).t() for value in values]).contiguous()
                        for values in ([one.data for one in found], [one.scales for one in found]))
        content |= {f"{PLACE}.{last}": data, f"{PLACE}.{last}_weight_scale_2": scale,
                    f"{PLACE}.{last}_weight_scale": scales.view(torch.float8_e4m3fn)}
    optional("safetensors.torch").save_file(content, path)


def as_modelopt(ck: Any, path: str, exact: Any) -> None:
    """A weight for each expert and projection."""
    weights = {}
    experts = exact.get_submodule(PLACE)
    for number in range(4):
        gate, up = experts.gate_up_proj[number].chunk(2)
        for last, matrix in (("gate_proj", gate), ("up_proj", up),
                             ("down_proj", experts.down_proj[number])):
            one = ft.quantize(matrix.contiguous())
            weights[f"{PLACE}.{number}.{last}"] = one
            matrix.copy_(ft.dequantize(one))
    ck.write(path, weights, "modelopt", tensors=rest_of(exact))
