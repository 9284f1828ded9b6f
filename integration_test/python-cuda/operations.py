"""Operations for the GPU and the simulator: functions of CPU or CUDA tensors that return tensors.

Every operation here is packed: pack.sh runs each once on the CPU, and packed.py keeps the programs
that it compiles.
"""

import functools
from collections.abc import Callable
from typing import Any

import fp4
import torch

COLUMNS, FEATURES = 1024, 128

_X = f"tensor<?x{COLUMNS}xbf16>"
_Q = f"tensor<?x{COLUMNS}xf4E2M1FN>"
_S = f"tensor<?x{COLUMNS // 16}xf8E4M3FN>"
_T = f"tensor<?x{COLUMNS // 16}xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>"
_BODY = "{format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}"
#: `quantize` is one kernel; `whole` is several, with temporary memory between them.
TEXT = f"""
func.func @amax(%x: {_X} {{fp4.name = "x"}}) -> tensor<f32> {{
  %a = fp4.amax %x : {_X} -> tensor<f32>
  return %a : tensor<f32>
}}
func.func @quantize(%x: {_X} {{fp4.name = "x"}}, %a: tensor<f32> {{fp4.name = "a"}})
    -> ({_Q}, {_S}) {{
  %q, %s = fp4.quantize %x amax %a {_BODY} : ({_X}, tensor<f32>) -> ({_Q}, {_S})
  return %q, %s : {_Q}, {_S}
}}
func.func @whole(%x: {_X} {{fp4.name = "x"}}) -> ({_Q}, {_T}, {_X}) {{
  %a = fp4.amax %x : {_X} -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {_BODY} : ({_X}, tensor<f32>) -> ({_Q}, {_S})
  %t = fp4.swizzle_scales %s : {_S} -> {_T}
  %y = fp4.dequantize %q scaled %s amax %a {{format = #fp4.format<nvfp4>}}
      : ({_Q}, {_S}, tensor<f32>) -> {_X}
  return %q, %t, %y : {_Q}, {_T}, {_X}
}}
"""


@functools.cache
def program() -> fp4.Program:
    return fp4.compile(TEXT, target="sm_90a").program()


def matrix(rows: int, seed: int = 1, columns: int = COLUMNS) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, columns, generator=generator) * 3).to(torch.bfloat16)


def amax_of(x: Any) -> Any:
    return x.abs().max().float()


def flat(values: Any) -> "list[Any]":
    """The tensors in what an operation returned, scales of fp4.torch included."""
    if values is None:
        return []
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, (tuple, list)):
        return [tensor for value in values for tensor in flat(value)]
    return [tensor for tensor in values.tensors]


def raw(tensor: Any) -> Any:
    """The bytes of a tensor, on the CPU."""
    if tensor.dim() == 0:
        tensor = tensor.reshape(1)
    return tensor.detach().contiguous().view(torch.uint8).cpu()


def same(some: Any, others: Any) -> bool:
    """Returns true when two results have the same dtypes, shapes and bytes."""
    one, two = flat(some), flat(others)
    return len(one) == len(two) and all(
        a.dtype == b.dtype and a.shape == b.shape and torch.equal(raw(a), raw(b))
        for a, b in zip(one, two))


def difference(some: Any, others: Any) -> str:
    """Returns a message that says how many bytes differ."""
    return "; ".join(f"{a.dtype}{list(a.shape)} against {b.dtype}{list(b.shape)}: "
                     f"{int((raw(a) != raw(b)).sum()) if a.shape == b.shape else 'all'} bytes"
                     for a, b in zip(flat(some), flat(others)))


def _of_programs() -> "dict[str, Callable[[Any], Any]]":
    return {
        "fp4.Program: amax": lambda x: program()(x, function="amax"),
        "fp4.Program: quantize": lambda x: program()(x, amax_of(x), function="quantize"),
        "fp4.Program: amax, quantize, swizzle, dequantize":
            lambda x: program()(x, function="whole"),
    }


def _of_compat() -> "dict[str, Callable[[Any], Any]]":
    from fp4.compat import flashinfer, vllm

    def scale(x: Any) -> Any:
        return (2688 / amax_of(x)).reshape(1)

    def round_trip(x: Any) -> Any:
        q, s = flashinfer.nvfp4_quantize(x, scale(x))
        return flashinfer.e2m1_and_ufp8sf_scale_to_float(q, s.view(torch.uint8).reshape(-1),
                                                         1 / scale(x))

    return {
        "flashinfer.nvfp4_quantize": lambda x: flashinfer.nvfp4_quantize(x, scale(x)),
        "flashinfer.nvfp4_quantize, linear": lambda x: flashinfer.nvfp4_quantize(
            x, scale(x), sfLayout=flashinfer.SfLayout.layout_linear),
        "flashinfer.mxfp4_quantize": lambda x: flashinfer.mxfp4_quantize(x),
        "flashinfer.e2m1_and_ufp8sf_scale_to_float": round_trip,
        "vllm.scaled_fp4_quant": lambda x: vllm.scaled_fp4_quant(x, scale(x)),
        "vllm.scaled_fp4_quant, linear": lambda x: vllm.scaled_fp4_quant(x, scale(x), False),
    }


def _of_torch() -> "dict[str, Callable[[Any], Any]]":
    import fp4.torch as ops

    return {
        "fp4.torch.amax": lambda x: ops.amax(x),
        "fp4.torch.amax, per row": lambda x: ops.amax(x, per_row=True),
        "fp4.torch.quantize": lambda x: ops.quantize(x),
        "fp4.torch.quantize, given amax": lambda x: ops.quantize(x, amax=amax_of(x)),
        "fp4.torch.quantize, linear": lambda x: ops.quantize(x, layout="linear"),
        "fp4.torch.quantize, mxfp4": lambda x: ops.quantize(x, format="mxfp4"),
        "fp4.torch.quantize, stochastic": lambda x: ops.quantize(
            x, rounding="stochastic", rng=torch.tensor([7, 3], device=x.device)),
        "fp4.torch.quantize, per row": lambda x: ops.quantize(x, per_row=True),
        "fp4.torch.fake_quantize": lambda x: ops.fake_quantize(x),
        "fp4.torch.dequantize": lambda x: ops.dequantize(ops.quantize(x)),
        "fp4.torch.swizzle": lambda x: ops.swizzle(ops.quantize(x, layout="linear")),
        "fp4.torch.hadamard": lambda x: ops.hadamard(x),
    }


@functools.cache
def _mixture(device: torch.device) -> Any:
    """A mixture of four experts of FEATURES elements, with two of them for each token."""
    import fp4.torch as ops

    def stack(seed: int, rows: int, columns: int) -> Any:
        weights = matrix(4 * rows, seed, columns) / 64
        return torch.nn.Parameter(weights.view(4, rows, columns).to(device), requires_grad=False)

    up = ops.WeightOnlyExperts.from_stack(
        stack(11, FEATURES, COLUMNS), gate=stack(12, FEATURES, COLUMNS), activation="silu",
        format="nvfp4")
    down = ops.WeightOnlyExperts.from_stack(stack(13, COLUMNS, FEATURES), format="nvfp4")
    # Each logit is one element of a token, so that its bits do not depend on the order of sums.
    router = ops.Router(torch.nn.Parameter(torch.eye(4, COLUMNS).bfloat16(), requires_grad=False),
                        ops.Rule(k=2, renormalize="sum"))
    return ops.MoE(router.to(device), ops.RoutedExperts(up, down, first=0, total=4))


def _of_gemms() -> "dict[str, Callable[[Any], Any]]":
    """Tensor cores differ in their sums: on the CPU, products run in the simulator of the GPU's."""
    import fp4.torch as ops

    def on_gpu_target(operation: "Callable[[Any], Any]", x: Any) -> Any:
        if x.is_cuda:
            return operation(x)
        with ops.simulator(fp4.Device("sim", target="sm_90a")):
            return operation(x)

    def weight(x: Any) -> Any:
        return (matrix(FEATURES, 9) / 32).to(x.device)

    def product(x: Any, **how: Any) -> Any:
        return ops.linear(ops.quantize(x, **how), ops.quantize(weight(x), **how))

    def training(x: Any) -> Any:
        x = torch.nn.functional.pad(x, (0, 0, 0, -x.shape[0] % 16)).requires_grad_()
        layer = ops.Linear(COLUMNS, FEATURES, bias=False, device=x.device, dtype=torch.bfloat16,
                           training=ops.NVFP4Training(stochastic_rounding=False))
        with torch.no_grad():
            layer.weight.copy_(weight(x))
        y = layer(x)
        y.backward(y.detach() / 8)
        return y, x.grad, layer.weight.grad

    found = {"fp4.torch.linear": product,
             "fp4.torch.linear, mxfp4": functools.partial(product, format="mxfp4"),
             "fp4.torch.Linear, forward and backward": training,
             "fp4.torch.MoE": lambda x: _mixture(x.device)(x[:130])}
    return {name: functools.partial(on_gpu_target, operation) for name, operation in found.items()}


def _of_neighbours() -> "dict[str, Callable[[Any], Any]]":
    import neighbours

    return neighbours.operations()


def operations() -> "dict[str, Callable[[Any], Any]]":
    found = _of_programs()
    for name, make in (("fp4.compat", _of_compat), ("fp4.torch", _of_torch),
                       ("neighbours", _of_neighbours), ("products", _of_gemms)):
        try:
            found.update(make())
        except Exception as error:  # such as a torch that lacks something: the others run
            found[name] = functools.partial(_raise, error)
    return found


def _raise(error: Exception, _: Any) -> None:
    raise error


#: Each row count is a program of its own where the layout of scales asks for it (fp4.compat).
ROWS = (1, 130, 1000)


def run_all(device: str = "cpu") -> None:
    """Runs every operation once for each number of rows; pack.sh does."""
    for rows in ROWS:
        for operation in operations().values():
            operation(matrix(rows, rows).to(device))
