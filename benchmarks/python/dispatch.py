"""The path from torch's dispatcher to a launch: host time of a W4A16 layer and of its parts.

    PYTHONPATH=python python3 benchmarks/python/dispatch.py

Prints the best of several repetitions in microseconds, and the ratio of a layer's call to that of
torch.nn.functional.linear of an empty batch. A stub in the place of libfp4 (stubs.c, built with cc)
makes a launch take no time, so the rest is what Python, torch and the native module take. Numbers
of one machine compare with each other only.

    custom_op          an operation of torch.library.custom_op that allocates its result
    define and impl    the same as fp4 makes it known to torch (fp4/torch/operation.py)
    program            a call of the layer's program, with a plan
    weight_mm          torch.ops.fp4.weight_mm
    layer              fp4.torch.WeightOnlyLinear, with a bias, under no_grad
"""

import tempfile

import fp4.torch
import torch
from call import best, build
from fp4 import _calls
from fp4 import _library as c
from fp4.torch import weight_only, weight_programs
from fp4.torch.operation import Operation

N, K, M = 256, 320, 4
SCHEMA = "(Tensor x, Tensor packed, Tensor? alpha, Tensor? bias) -> Tensor"


def made(x, packed, alpha, bias):
    return x.new_empty((x.shape[0], N))


def operations(x, packed):
    """The two ways of making an operation known, of one implementation."""
    custom = torch.library.custom_op("fp4_benchmark::made", made, mutates_args=(), schema=SCHEMA)
    custom.register_fake(made)
    custom.register_autograd(lambda ctx, dy: (None,) * 4)
    defined = Operation("benchmark_made" + SCHEMA, made, made)
    for name, call in (("custom_op", torch.ops.fp4_benchmark.made.default),
                       ("define and impl", defined.overload)):
        yield name, best(lambda call=call: call(x, packed, None, None))


def main():
    torch.set_num_threads(1)
    source = torch.nn.Linear(K, N, dtype=torch.bfloat16)
    layer, x = fp4.torch.WeightOnlyLinear.from_linear(source), torch.zeros(M, K).bfloat16()
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        layer(x)
        facts = weight_programs.Product(N, K, "bf16", "nvfp4", layer.alpha.dim(), "bf16")
        program = weight_programs.product(facts, weight_programs.TARGET).program()
        arguments = (x, layer.packed, layer.alpha, layer.bias.detach().view(1, -1))
        program(*arguments)
        times = dict(operations(x, layer.packed))
        _calls.native.load(build(folder, "libfp4stub.so", "stubs.c", "-DLIBFP4"), _calls._raise)
        try:
            times["program"] = best(lambda: program(*arguments))
            times["weight_mm"] = best(lambda: weight_only.weight_mm.overload(
                x, layer.packed, layer.alpha, layer.bias, N))
            times["layer"] = best(lambda: layer(x))
        finally:
            _calls.native.load(str(c.PATH), _calls._raise)
        plain = best(lambda: torch.nn.functional.linear(x[:0], source.weight, source.bias))
    for name, microseconds in times.items():
        print(f"{name:16} {microseconds:8.2f} us")
    print(f"{'torch, no rows':16} {plain:8.2f} us")
    print(f"layer / torch    {times['layer'] / plain:8.2f}")
    print(f"custom_op / define and impl {times['custom_op'] / times['define and impl']:.2f}")


if __name__ == "__main__":
    main()
