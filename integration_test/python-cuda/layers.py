"""Layers with weights in 4 bits and activations in bfloat16 (W4A16), against torch's in bfloat16:
the bits of the simulator, and times. models.py calls it."""

import pathlib
import time
from collections.abc import Callable
from typing import Any

import fp4.torch
import torch

SIZES = ((4096, 4096), (8192, 8192))
ROWS = (1, 16, 64, 256)
FORMATS = ("nvfp4", "mxfp4")
#: Rows of the products whose bits are compared; each has a plan of its own.
CHECKED = (1, 12, 30, 50, 100, 300)
#: Bytes of the layers of a measurement: none is in the L2 cache when its turn comes.
ROTATED = 256 << 20


def small(format: str, device: str) -> "tuple[Any, Any]":
    """A layer with a bias, and activations."""
    generator = torch.Generator().manual_seed(7)
    source = torch.nn.Linear(640, 384, dtype=torch.bfloat16)
    for parameter in source.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator).bfloat16()
    x = torch.randn(max(CHECKED), 640, generator=generator).bfloat16()
    layer = fp4.torch.WeightOnlyLinear.from_linear(source.to(device), format=format)
    return layer, x.to(device)


def products(format: str, device: str) -> "list[Any]":
    layer, x = small(format, device)
    with torch.no_grad():
        return [layer.packed.cpu()] + [layer(x[:rows]).cpu() for rows in CHECKED]


def record(folder: pathlib.Path) -> None:
    """Writes what the simulator computes."""
    torch.save({format: products(format, "cpu") for format in FORMATS}, folder / "layers.pt")


def record_sizes() -> None:
    """Programs of the layers that are measured, without running them."""
    for rows, columns in SIZES:
        for format in FORMATS:
            layer = make(rows, columns, format, "cpu")
            fp4.torch.dequantize(layer.unpack(), torch.float32)
            for count in ROWS:
                layer(torch.empty(count, columns, dtype=torch.bfloat16))


def make(rows: int, columns: int, format: str, device: str) -> Any:
    source = torch.nn.Linear(columns, rows, False, device, torch.bfloat16).requires_grad_(False)
    if format == "bf16":
        return source
    return fp4.torch.WeightOnlyLinear.from_linear(source, format=format)


def check(folder: pathlib.Path) -> None:
    recorded = torch.load(folder / "layers.pt")
    for format in FORMATS:
        found = products(format, "cuda")
        for rows, one, other in zip((0, *CHECKED), found, recorded[format]):
            assert torch.equal(one, other), f"{format}, {rows} rows: not the bits of the simulator"
    print(f"W4A16: {len(CHECKED)} products of {' and '.join(FORMATS)} have the simulator's bits")


def run(folder: pathlib.Path) -> None:
    check(folder)
    print("a layer N x K, weights not in L2; us in a CUDA graph, launched by Python, and on the "
          "host for a call")
    for rows, columns in SIZES:
        for format in ("bf16", *FORMATS):
            first = make(rows, columns, format, "cuda")
            size = sum(tensor.nbytes for tensor in (*first.parameters(), *first.buffers()))
            layers = [first] + [make(rows, columns, format, "cuda")
                                for _ in range(-(-ROTATED // size) - 1)]
            for count in ROWS:
                graph, eager, host = measure(layers, count, columns)
                print(f"{rows} x {columns}, {count:4} rows, {format:5} {graph:8.1f} {eager:8.1f} "
                      f"{host:8.1f}")
            del first, layers
            torch.cuda.empty_cache()


def measure(layers: "list[Any]", rows: int, columns: int) -> "tuple[float, float, float]":
    """Microseconds of a layer: in a CUDA graph of all, launched by Python, and until a call has
    returned."""
    x = torch.randn(rows, columns, device="cuda").bfloat16()

    def work() -> None:
        for layer in layers:
            layer(x)

    with torch.no_grad():
        work()
        if isinstance(layers[0], fp4.torch.WeightOnlyLinear):
            compare(layers[0], x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return (median(graph.replay) / len(layers), median(work) / len(layers),
                host_time(lambda: layers[0](x)))


def compare(layer: Any, x: Any) -> None:
    """With torch's product of the same numbers, in float32."""
    weight = fp4.torch.dequantize(layer.unpack(), torch.float32)
    expected = x.float() @ weight.T
    error = float((layer(x).float() - expected).norm() / expected.norm())
    assert error < 4e-3, f"the relative distance to torch's product is {error:.4f}"


def median(work: "Callable[[], Any]") -> float:
    """Microseconds on the device."""
    found = []
    for index in range(25):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        if index >= 5:
            found.append(begin.elapsed_time(end) * 1000)
    return sorted(found)[len(found) // 2]


def host_time(call: "Callable[[], Any]") -> float:
    """Microseconds until a call has returned, while the device does not hold it up."""
    found = []
    for _ in range(10):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            call()
        found.append((time.perf_counter() - begin) / 20 * 1e6)
    torch.cuda.synchronize()
    return sorted(found)[len(found) // 2]
