"""The cost of a call through Python on the host, against the launch of the same kernel in C.

The kernel's own launch is cuLaunchKernel in a loop in C, with the function, the grid and the
parameters that a captured graph of the call has. Every number is the median of batches; batches of
all kinds take turns, and the GPU is idle at the start of each, so no launch waits for a queue.
"""

import contextlib
import ctypes
import gc
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import fp4
import torch
from fp4 import _library as c
from fp4._calls import maker
from fp4.program import _Call, arguments_of
from fp4.tensors import view
from operations import amax_of, matrix, program

LIMIT = 3.0  # microseconds above the launch
COUNT, BATCHES = 200, 60
LAUNCH = "the kernel's own launch (C, cuLaunchKernel)"
QUANTIZE = "program(x, amax, out=(q, s)): quantize through Python"


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2"""

    _fields_ = [("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3),
                ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("parameters", ctypes.c_void_p), ("extra", ctypes.c_void_p),
                ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]


def kernel_of(graph: Any, driver: Any) -> KernelNode:
    """The only kernel of a graph."""
    count = ctypes.c_size_t()
    handle = ctypes.c_void_p(graph.raw_cuda_graph())
    assert driver.cuGraphGetNodes(handle, None, ctypes.byref(count)) == 0
    nodes = (ctypes.c_void_p * count.value)()
    assert driver.cuGraphGetNodes(handle, nodes, ctypes.byref(count)) == 0
    if count.value != 1:
        raise RuntimeError(f"the call must be one kernel, but is {count.value} nodes")
    node = KernelNode()
    assert driver.cuGraphKernelNodeGetParams_v2(ctypes.c_void_p(nodes[0]), ctypes.byref(node)) == 0
    return node


def c_call(x: Any, amax: Any) -> "tuple[Any, ...]":
    """Arguments of fp4_function_call for results that exist, and what must live as long."""
    function = program().manifest.find("quantize")
    views = [view(value, "x") for value in (x, amax)]
    executable = program()._code.on(program()._device_for(0))
    call = _Call(executable, function, arguments_of(function, views), views, "torch")
    outputs = call.allocate_results()
    for tensor, source in zip((*call.arguments, *call.results), (*views, *outputs)):
        tensor.address = source.address
    options = c.CallOptions(size=ctypes.sizeof(c.CallOptions),
                            stream=torch.cuda.current_stream().cuda_stream)
    address = ctypes.cast(call.library.fp4_function_call, ctypes.c_void_p)
    return (address, ctypes.c_void_p(call.function), ctypes.byref(call.arguments),
            ctypes.c_size_t(2), ctypes.byref(call.results), ctypes.c_size_t(2),
            ctypes.byref(options)), (call, outputs, options)


def in_python(work: Callable[[], Any]) -> Callable[[], float]:
    def batch() -> float:
        begin = time.perf_counter_ns()
        for _ in range(COUNT):
            work()
        return (time.perf_counter_ns() - begin) / COUNT / 1000

    return batch


def batches(folder: pathlib.Path) -> "tuple[dict[str, Callable[[], float]], Any]":
    """Returns the timed calls by name, and the objects that must live as long."""
    loops = ctypes.CDLL(str(folder / "libloops.so"))
    loops.time_launches.restype = loops.time_calls.restype = ctypes.c_double
    driver = ctypes.CDLL("libcuda.so.1")
    x = matrix(128).cuda()
    amax = amax_of(x)
    ours = program()
    ours(x, amax, function="quantize")
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        results = ours(x, amax, function="quantize")
    node, launch = kernel_of(graph, driver), ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    arguments, alive = c_call(x, amax)
    given = tuple(torch.empty_like(one.view(torch.uint8)).view(one.dtype) for one in results)
    makers = [maker(torch, one) for one in results]
    fresh = fp4.Program(ours._code)
    fresh._remember = lambda *_: False  # type: ignore[method-assign]
    out = torch.empty_like(x)

    def make() -> None:
        for slow, arguments, options, here, arguments_here in makers:
            here(*arguments_here) if here else slow(*arguments, **options)

    timed = {
        LAUNCH: lambda: loops.time_launches(
            launch, ctypes.byref(node), stream, COUNT),
        "fp4_function_call (C API)": lambda: loops.time_calls(*arguments, COUNT),
        QUANTIZE: in_python(
            lambda: ours(x, amax, function="quantize", out=given)),
        "program(x, amax): with two new results": in_python(
            lambda: ours(x, amax, function="quantize")),
        "of it, the two results, made and freed": in_python(make),
        "the same, checked in Python": in_python(lambda: fresh(x, amax, function="quantize")),
        "for comparison: torch.neg(x)": in_python(lambda: torch.neg(x)),
        "for comparison: torch.neg(x, out=out)": in_python(lambda: torch.neg(x, out=out)),
    }
    with contextlib.suppress(Exception):  # test_streams.py says what is wrong with it
        import fp4.torch as ops

        ops.quantize(x, amax=amax)
        timed["fp4.torch.quantize(x, amax=amax)"] = in_python(lambda: ops.quantize(x, amax=amax))
    return timed, (graph, results, alive, x, amax)


def measure(folder: pathlib.Path) -> "tuple[dict[str, float], float]":
    """Medians in microseconds, and what quantize through Python costs above the launch where the
    caller has the results: a launch allocates nothing either."""
    timed, alive = batches(folder)
    times: dict[str, list[float]] = {name: [] for name in timed}
    gc.disable()
    try:
        for _ in range(BATCHES):
            for name, batch in timed.items():
                torch.cuda.synchronize()
                times[name].append(batch())
        torch.cuda.synchronize()
    finally:
        gc.enable()
    del alive
    if min(map(min, times.values())) < 0:
        raise RuntimeError("a launch failed")
    medians = {name: statistics.median(found) for name, found in times.items()}
    return medians, medians[QUANTIZE] - medians[LAUNCH]
