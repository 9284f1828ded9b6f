#!/usr/bin/env python3
"""Chains of neighbours.py and norms of norms.py beside kernels of vLLM, FlashInfer and QuACK, and
torch.compile.

  benchmarks/neighbour_peers.py run FOLDER [--json=FILE] [--kinds=... --cells=ROWSxCOLUMNS,...]
      [--pairs=KIND:ROWSxCOLUMNS,... --compiled=ROWSxCOLUMNS,... --processes=N]

FOLDER is what `neighbours.py pack` or `norms.py pack` made, with libraries of peers:

  vllm_C.so          vllm/_C.abi3.so of a wheel of vLLM, from which others than sm_90 may be cut
  flashinfer.so      FlashInfer's CUDA kernels (neighbour_libraries.py)
  cute_kernels.so    kernels that the CuTe DSL compiled: QuACK's, FlashInfer's norms

All programs of a cell are timed by turns with a cold L2, because one that is timed behind another
is up to 7 % slower; few rows are nodes of graphs. The GPU sleeps before a call is timed, so that
the host has issued it. With --processes=N others compile for PyTorch before. A line of JSON has
the microseconds of a cell.
"""
import argparse
import ctypes
import functools
import os
import statistics
import subprocess
import sys

import kit
import neighbour_chains
import norm_peers
import norms

LIBRARIES = {"vllm": ("vllm_C.so",), "flashinfer": ("flashinfer.so", "cute_kernels.so"), "quack": ("cute_kernels.so",)}
HEAD = neighbour_chains.HEAD
#: Rounds of a cell.
ROUNDS = 20
#: Clocks that the GPU sleeps while the host issues a call.
SLEEP = 400_000
#: Calls of a graph.
SETS = 60


# ===--- Calls without a package ------------------------------------------=== #


class Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("dims", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


class Word(ctypes.Union):
    _fields_ = [("number", ctypes.c_int64), ("real", ctypes.c_double), ("pointer", ctypes.c_void_p)]


class Any(ctypes.Structure):
    """TVM FFI's TVMFFIAny."""

    _fields_ = [("type", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", Word)]


def tensor_of(value, torch):
    """A DLTensor of a tensor, which keeps its arrays."""
    code = {torch.bfloat16: 4, torch.float32: 2, torch.int32: 0}[value.dtype]
    array = ctypes.c_int64 * value.dim()
    shape, strides = array(*value.shape), array(*value.stride())
    made = Tensor(value.data_ptr(), (ctypes.c_int32 * 2)(2, 0), value.dim(), code, 8 * value.element_size(), 1, shape, strides, 0)
    made.kept = (shape, strides)
    return made


def any_of(value, torch, kept):
    """A TVMFFIAny of a tensor, a number or None."""
    if value is None:
        return Any(0, 0, Word())
    if isinstance(value, torch.Tensor):
        kept += [tensor_of(value, torch), value]
        return Any(7, 0, Word(pointer=ctypes.addressof(kept[-2])))
    return Any(3, 0, Word(real=value)) if isinstance(value, float) else Any(1, 0, Word(number=value))


def cute(library, name, arguments, torch):
    """A call of a kernel of the CuTe DSL."""
    function, kept = getattr(library, f"__tvm_ffi_{name}"), []
    array = (Any * len(arguments))(*(any_of(value, torch, kept) for value in arguments))
    library.set_stream.argtypes = [ctypes.c_void_p]
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
    result = Any(0, 0, Word())

    def call():
        library.set_stream(torch.cuda.current_stream().cuda_stream)
        if function(None, array, len(array), ctypes.byref(result)):
            raise ValueError(f"{name} failed")
    call.kept = kept
    return call


def cuda(library, name, arguments, torch):
    """A call of a C function of tensors, numbers and a stream."""
    function = getattr(library, name)
    given = [ctypes.c_void_p(value.data_ptr()) if isinstance(value, torch.Tensor) else
             ctypes.c_float(value) if isinstance(value, float) else ctypes.c_uint32(value) for value in arguments]

    def call():
        error = function(*given, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if error:
            raise ValueError(f"{name} failed with {error}")
    call.kept = arguments
    return call


# ===--- Kernels of peers -------------------------------------------------=== #


class Cell:
    """Tensors of a cell: each call makes another one."""

    def __init__(self, rows, columns, torch):
        self.rows, self.columns, self.torch = rows, columns, torch
        self.heads = columns // HEAD

    def empty(self, *shape, dtype=None):
        return self.torch.empty(*(shape or (self.rows, self.columns)), dtype=dtype or self.torch.bfloat16, device="cuda")

    def matrix(self, *shape, dtype=None):
        shape = shape or (self.rows, self.columns)
        return self.torch.randn(*shape, device="cuda", dtype=dtype or self.torch.bfloat16)

    def weight(self, count=None, dtype=None):
        return self.matrix(count or self.columns, dtype=dtype)

    def numbers(self, *shape):
        return self.torch.rand(*(shape or (self.rows,)), device="cuda")

    def positions(self, dtype=None):
        return self.torch.randint(neighbour_chains.POSITIONS, (self.rows,), device="cuda", dtype=dtype or self.torch.int64)

    def slots(self, dtype=None):
        return self.torch.randperm(neighbour_chains.SLOTS, device="cuda", dtype=dtype or self.torch.int64)[:self.rows]

    def caches(self, dtype=None):
        return [self.empty(neighbour_chains.SLOTS // 16, 16, self.heads // 2, HEAD, dtype=dtype) for _ in range(2)]


def of_vllm(kind, cell, torch):
    """The name and the arguments of vLLM's kernel for a kind. Angles are bf16, and a cache has keys
    in one half and values in the other."""
    rows, columns, fp8 = cell.rows, cell.columns, torch.float8_e4m3fn
    gates = {"silu-bf16": "silu_and_mul", "gelu_tanh-bf16": "gelu_tanh_and_mul", "gpt_oss-bf16": "swigluoai_and_mul"}
    if kind in gates:
        return gates[kind], [cell.empty(), cell.matrix(rows, 2 * columns)]
    if kind == "silu-fp8_block":
        return "silu_and_mul_per_block_quant", [cell.empty(dtype=fp8), cell.matrix(rows, 2 * columns),
                                                cell.numbers(rows, columns // 128), 128, None, False]
    if kind == "rms-bf16":
        return "rms_norm", [cell.empty(), cell.matrix(), cell.weight(), 1e-5]
    if kind == "add_rms-bf16":
        return "fused_add_rms_norm", [cell.matrix(), cell.matrix(), cell.weight(), 1e-5]
    norm, _, after = kind.rpartition("-")
    if norm in ("rms", "add_rms") and after in ("fp8_row", "fp8_block"):
        residual = cell.matrix() if norm == "add_rms" else None
        if after == "fp8_row":
            return "rms_norm_dynamic_per_token_quant", [cell.empty(dtype=fp8), cell.matrix(), cell.weight(), cell.numbers(rows, 1),
                                                        1e-5, None, residual]
        return "rms_norm_per_block_quant", [cell.empty(dtype=fp8), cell.matrix(), cell.weight(), cell.numbers(rows, columns // 128),
                                            1e-5, None, residual, 128, False]
    if kind == "rope-bf16":
        return "rotary_embedding", [cell.positions(), cell.matrix(), None, HEAD, cell.matrix(neighbour_chains.POSITIONS, HEAD), True]
    if kind == "norm_rope-bf16":
        w = cell.weight(HEAD)
        return "fused_qk_norm_rope", [cell.matrix(), cell.heads, 0, 0, HEAD, 1e-6, w, w, cell.matrix(neighbour_chains.POSITIONS, HEAD),
                                      True, cell.positions()]
    if kind in ("cache-bf16", "cache-fp8"):
        dtype, name = (torch.uint8, "fp8") if kind == "cache-fp8" else (torch.bfloat16, "auto")
        one = torch.ones(1, device="cuda")
        halves = cell.matrix().view(rows, 2, cell.heads // 2, HEAD).unbind(1)
        return "reshape_and_cache_flash", [*halves, *cell.caches(dtype), cell.slots(), name, one, one]
    return None


def vllm(libraries, kind, cell, torch):
    found = of_vllm(kind, cell, torch)
    if not found:
        return None
    name, arguments = found
    ops = torch.ops._C_cache_ops if "cache" in name else torch.ops._C
    return functools.partial(getattr(ops, name), *arguments)


def flashinfer(libraries, kind, cell, torch):
    """FlashInfer's kernel: that of CUDA, or that of the CuTe DSL, which its norms have by default.
    Norms of a residual are in place, and the one to FP8 also stores what it quantizes; its caches
    have positions of one sequence."""
    plain, compiled = libraries
    rows, columns, size = cell.rows, cell.columns, [cell.rows, cell.columns]
    if kind in ("silu-bf16", "gelu_tanh-bf16"):
        return cuda(plain, kind.partition("-")[0] + "_and_mul", [cell.empty(), cell.matrix(rows, 2 * columns), *size], torch)
    if kind == "rms-bf16":
        return cute(compiled, f"flashinfer_rms_{columns}", [cell.matrix(), cell.weight(), cell.empty(), rows, 1e-5], torch)
    if kind == "add_rms-bf16":
        return cute(compiled, f"flashinfer_add_rms_{columns}", [cell.matrix(), cell.matrix(), cell.weight(), rows, 1e-5], torch)
    if kind == "add_rms-fp8_block":
        scales = cell.empty(columns // 128, (rows + 3) // 4 * 4, dtype=torch.float32)
        return cuda(plain, "fused_add_rmsnorm_fp8_block_quant",
                    [cell.matrix(), cell.matrix(), cell.weight(), cell.empty(dtype=torch.float8_e4m3fn), scales, cell.empty(), *size], torch)
    table = functools.partial(cell.matrix, neighbour_chains.POSITIONS, HEAD, dtype=torch.float32)
    if kind == "rope-bf16":
        return cuda(plain, "rope", [cell.matrix(), cell.empty(), table(), cell.positions(), rows, cell.heads], torch)
    if kind == "rope-fp8":
        return cuda(plain, "rope_quantize_fp8",
                    [cell.matrix(), cell.empty(dtype=torch.float8_e4m3fn), table(), cell.positions(), rows, cell.heads, 50.0], torch)
    if kind == "cache-bf16":
        whole = functools.partial(torch.tensor, device="cuda", dtype=torch.int32)
        pages = neighbour_chains.SLOTS // 16
        return cuda(plain, "append_paged_kv_cache",
                    [cell.matrix(), *cell.caches(), torch.arange(pages, device="cuda", dtype=torch.int32), whole([0, pages]), whole([16]),
                     torch.zeros(rows, device="cuda", dtype=torch.int32), cell.slots(torch.int32), rows, cell.heads // 2], torch)
    return None


def quack(libraries, kind, cell, torch):
    """QuACK's kernel. Weights of LayerNorm are f32, and a rotation is by the number of the row."""
    library, = libraries
    rows, columns, call = cell.rows, cell.columns, lambda name, *arguments: cute(library, f"{name}_{cell.columns}", arguments, torch)
    labels = lambda: torch.randint(columns, (rows,), device="cuda", dtype=torch.int32)
    if kind == "rms-bf16":
        return call("quack_rms", cell.matrix(), cell.weight(), None, None, cell.empty(), None, None, None, 1e-5)
    if kind == "add_rms-bf16":
        return call("quack_add_rms", cell.matrix(), cell.weight(), None, cell.matrix(), cell.empty(), cell.empty(), None, None, 1e-5)
    if kind == "layer-bf16":
        return call("quack_layer", cell.matrix(), cell.weight(dtype=torch.float32), None, None, cell.empty(), None, None, None, 1e-5)
    if kind == "rms_gradient":
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        return call("quack_rms_gradient", cell.matrix(), cell.weight(), cell.matrix(), None, cell.numbers(), None, cell.empty(), None, None, None, sms)
    if kind == "loss":
        return call("quack_loss", cell.matrix(), labels(), None, cell.numbers(), cell.numbers(), None, None, -100)
    if kind == "loss_gradient":
        return call("quack_loss_gradient", cell.matrix(), labels(), cell.numbers(), cell.empty(), cell.numbers(), None, -100)
    if kind == "rope-bf16":
        half = lambda: cell.matrix(rows, HEAD // 2, dtype=torch.float32)
        heads = lambda made: made.view(1, rows, cell.heads, HEAD)
        return call("quack_rope", heads(cell.matrix()), half(), half(), None, None, heads(cell.empty()), rows)
    return None


#: Peers: what makes a call, or None where the peer has no such kernel.
PEERS = {"vllm": vllm, "flashinfer": flashinfer, "quack": quack}


def load(folder, torch):
    """The libraries of the peers that the folder has."""
    found = {}
    for peer, names in LIBRARIES.items():
        paths = [os.path.join(folder, name) for name in names]
        if not all(map(os.path.exists, paths)):
            continue
        if peer == "vllm":
            torch.ops.load_library(paths[0])
        found[peer] = [] if peer == "vllm" else [ctypes.CDLL(path) for path in paths]
    return found


def calls_of(libraries, kind, rows, columns, torch):
    """A call for each peer that has the kernel."""
    made = {peer: PEERS[peer](given, kind, Cell(rows, columns, torch), torch) for peer, given in libraries.items()}
    return {peer: call for peer, call in made.items() if call}


# ===--- A cell -----------------------------------------------------------=== #


@functools.cache
def loaded(path):
    """The program of a library: calls share its code, as they do that of a peer's library."""
    import fp4
    return fp4.load(path)


def ours(folder, kind, rows, columns, torch):
    """A call of our program, and one that copies as many bytes."""
    program = loaded(os.path.join(folder, f"{kind}_{columns}.so"))
    if kind in neighbour_chains.KINDS:
        chain = neighbour_chains.KINDS[kind]
        values, count = [value for value, _ in chain.arguments(rows, columns, torch)], int(chain.bytes(columns) * rows)
    else:
        values, count = norm_peers.arguments(kind, rows, columns, torch), norms.bytes_of(kind, rows, columns)
        values += [torch.tensor(norms.AMAX, device="cuda")] if kind.endswith("nvfp4") else []
    results = program(*values)
    half = torch.empty(count // 2, dtype=torch.uint8, device="cuda")
    return {"ours": functools.partial(program, *values, out=results), "copy": functools.partial(torch.empty_like(half).copy_, half)}


def compiled(kind, rows, columns, torch):
    if kind not in neighbour_chains.KINDS:
        return functools.partial(norm_peers.compiled(kind, torch), *norm_peers.arguments(kind, rows, columns, torch))
    chain = neighbour_chains.KINDS[kind]
    if not chain.function:
        return None
    torch._dynamo.reset()
    function = torch.compile(chain.function(kind.rpartition("-")[2], torch), dynamic=False)
    return functools.partial(function, *(value for value, _ in chain.arguments(rows, columns, torch)))


def compile_before(folder, pairs, cells, processes):
    """Has other processes compile what `compiled` will, into the cache of this one."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(os.path.abspath(folder), "inductor")
    pairs = [f"{kind}:{rows}x{columns}" for kind, (rows, columns) in pairs if rows > norms.FEW and (rows, columns) in cells]
    running = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "compile", folder, f"--pairs={','.join(part)}"])
               for part in (pairs[first::processes] for first in range(processes)) if part]
    for process in running:
        process.wait()


def compile_pairs(folder, pairs):
    torch = kit.open_package(folder)
    for kind, (rows, columns) in pairs:
        try:
            (compiled(kind, rows, columns, torch) or int)()
        except Exception as error:
            print(kind, rows, columns, error, file=sys.stderr)
        torch.cuda.empty_cache()


def time_by_turns(calls, flush, torch):
    """Median microseconds of each call with a cold L2, in rounds that begin with another one."""
    times = {name: [] for name in calls}
    names = list(calls)
    for name in names:
        for _ in range(3):
            calls[name]()
    for turn in range(ROUNDS):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            flush.zero_()
            torch.cuda._sleep(SLEEP)
            times[name].append(kit.microseconds_of(calls[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def time_graphs(calls_of_set, torch):
    """Microseconds of each call in a graph of so many calls that none finds its tensors in the L2
    cache, the median of rounds."""
    sets = [calls_of_set() for _ in range(SETS)]
    graphs = {name: kit.captured(lambda: [calls[name]() for calls in sets], warm=1) for name in sets[0]}
    times = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            torch.cuda._sleep(SLEEP)
            times[name].append(kit.microseconds_of(graph.replay) / len(sets))
    return {name: statistics.median(found) for name, found in times.items()}


def measure(folder, pairs, compiled_cells):
    torch = kit.open_package(folder)
    libraries = load(folder, torch)
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for kind, (rows, columns) in pairs:
        both = lambda: {**ours(folder, kind, rows, columns, torch), **calls_of(libraries, kind, rows, columns, torch)}
        row = {"kind": kind, "rows": rows, "columns": columns}
        try:
            if rows <= norms.FEW:
                yield {**row, **time_graphs(both, torch)}
            else:
                calls = both()
                made = compiled(kind, rows, columns, torch) if (rows, columns) in compiled_cells else None
                calls.update({"compiled": made} if made else {})
                yield {**row, **time_by_turns(calls, flush, torch)}
        except Exception as error:
            yield {**row, "error": str(error)[:500]}
        torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "compile"))
    parser.add_argument("folder")
    parser.add_argument("--json")
    shapes = lambda text: [tuple(int(number) for number in cell.split("x")) for cell in text.split(",") if cell]
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[])
    parser.add_argument("--pairs", type=lambda text: [(kind, shapes(cell)[0]) for kind, cell in (pair.split(":") for pair in text.split(","))])
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--cells", type=shapes, default=[neighbour_chains.FEW, neighbour_chains.COMPILED])
    parser.add_argument("--compiled", type=shapes, default=[neighbour_chains.COMPILED])
    options = parser.parse_args()
    if options.command == "compile":
        return compile_pairs(options.folder, options.pairs)
    pairs = options.pairs or [(kind, cell) for cell in options.cells for kind in options.kinds]
    if options.processes:
        compile_before(options.folder, pairs, options.compiled, options.processes)
    norms.report(measure(options.folder, pairs, options.compiled), options.json)


if __name__ == "__main__":
    main()
