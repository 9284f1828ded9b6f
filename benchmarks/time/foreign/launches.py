"""Launches kernels of other libraries for foreign.py: on a GPU, and in the simulator by the same
calls.

A launcher takes the device, the folder that `prepare` wrote and a case, and gives functions that
launch the kernel on a stream, each on operands of its own.
"""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuda import Device  # benchmarks/micro, or a copy of it beside this file

Launch = Callable[[Any], None]
#: Floats of any of the formats here, none of them large or not a number.
SMALL = bytes(byte & 0x3f for byte in range(256))
CHUNK = 1 << 22


@dataclass(frozen=True)
class Case:
    source: str  # triton, cutlass, peer (CUTLASS' kernels of benchmarks/peers) or deepgemm
    kernel: str
    sizes: tuple[int, ...]

    def name(self) -> str:
        return f"{self.source} {self.kernel} {' x '.join(map(str, self.sizes))}"

    def file(self) -> str:
        return f"{self.source}_{self.kernel}_{'x'.join(map(str, self.sizes))}"


class Operands:
    """Device memory: of a GPU with small values, in the simulator with zeros, because times do not
    depend on them."""

    def __init__(self, device: Device, values: bool) -> None:
        self.device, self.values, self.bytes = device, values, 0
        self.random = os.urandom(CHUNK).translate(SMALL) if values else b""

    def tensor(self, size: int) -> int:
        pointer = self.device.allocate(size)
        self.bytes += size
        for at in range(0, size if self.values else 0, CHUNK):
            self.device.write(pointer + at, self.random[:min(CHUNK, size - at)])
        return pointer


# ---- Triton --------------------------------------------------------------------------------------


def _triton_arguments(case: Case, constants: dict[str, int], tensor: Callable[[int], int]) -> tuple[int, int, list[Any]]:
    """The grid, of two dimensions, and the arguments."""
    kernel, sizes = case.kernel.split("_")[0], case.sizes
    u32, f32 = ctypes.c_uint32, ctypes.c_float
    if kernel == "add":
        return -(-sizes[0] // constants["BLOCK"]), 1, [*(tensor(4 * sizes[0]) for _ in range(3)), u32(sizes[0])]
    if kernel == "softmax":
        return sizes[0], 1, [*(tensor(4 * sizes[0] * sizes[1]) for _ in range(2)), u32(sizes[1])]
    if kernel == "layer":
        rows, columns = sizes
        return rows, 1, [tensor(2 * rows * columns), tensor(2 * columns), tensor(2 * columns), tensor(2 * rows * columns), u32(columns)]
    if kernel == "matmul":
        m, n, k = sizes
        of_element = 1 if case.kernel.endswith("fp8") else 2
        operands = [tensor(of_element * m * k), tensor(of_element * n * k), tensor(2 * m * n)]
        return -(-m // constants["BM"]) * -(-n // constants["BN"]), 1, [*operands, u32(m), u32(n), u32(k)]
    heads, length = sizes
    operands = [tensor(2 * heads * length * constants["D"]) for _ in range(4)]
    return length // constants["BM"], heads, [*operands, f32(0.125), u32(length)]


def triton(device: Device, folder: pathlib.Path, case: Case, operands: Operands) -> Callable[[], Launch]:
    made = json.loads((folder / "triton.json").read_text(encoding="utf-8"))[case.kernel]
    kernel = device.load((folder / f"triton_{case.kernel}.ptx").read_text(encoding="utf-8"), made["shared"], made["entry"])

    def create() -> Launch:
        across, down, arguments = _triton_arguments(case, made["constants"], operands.tensor)
        arguments += [0, 0]  # scratch memory that none of these has
        return lambda stream: kernel.launch((across, down), made["threads"], *arguments, stream=stream)

    return create


# ---- CUTLASS -------------------------------------------------------------------------------------

#: The kernel that peer_create of each library makes, by name (cutlass_launch.h).
KINDS = {"cutlass": {"48_tf32": 48, "49_specialized": 490, "49_pingpong": 491, "49_cooperative": 492, "49_stream_k": 493},
         "peer": {"54_fp8": 54, "67_fp8_blocks": 67}}


def _library(path: pathlib.Path) -> ctypes.CDLL:
    """Loads a library as benchmarks/peers does, without PyTorch."""
    ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    if "FP4_SIM_REPORT" not in os.environ:  # the simulator has its own
        ctypes.CDLL(str(path.with_name("libcudart.so.13")), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(path))
    library.peer_create.restype = ctypes.c_void_p
    library.peer_create.argtypes = [ctypes.c_int] * 5 + [ctypes.c_void_p] * 5
    library.peer_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.peer_error.restype = ctypes.c_char_p
    return library


def cutlass(device: Device, folder: pathlib.Path, case: Case, operands: Operands) -> Callable[[], Launch]:
    library, kind = _library(folder / f"lib{case.source}.so"), KINDS[case.source][case.kernel]
    m, n, k = case.sizes
    fp8, scaled, blocks = case.source == "peer", "blocks" in case.kernel, k // 128
    of_operand, of_result = (1, 2) if fp8 else (4, 4) if case.kernel == "48_tf32" else (2, 2)

    def create() -> Launch:
        scales = [operands.tensor(4 * blocks * m), operands.tensor(4 * (n // 128) * blocks)] if scaled else [None, None]
        product = library.peer_create(kind, m, n, k, 1, operands.tensor(of_operand * m * k), operands.tensor(of_operand * n * k),
                                      *scales, operands.tensor(of_result * m * n))
        if not product:
            raise RuntimeError(library.peer_error().decode())

        def launch(stream: Any) -> None:
            if library.peer_run(product, stream):
                raise RuntimeError(library.peer_error().decode())

        return launch

    return create


# ---- DeepGEMM ------------------------------------------------------------------------------------

BYTES, BF16, F32 = 0, 9, 7  # of the driver's tensor maps
SWIZZLES = {0: 0, 16: 0, 32: 1, 64: 2, 128: 3}


def deepgemm(device: Device, folder: pathlib.Path, case: Case, operands: Operands) -> Callable[[], Launch]:
    config = json.loads((folder / "deepgemm.json").read_text(encoding="utf-8"))[case.file()]
    kernel = device.load((folder / f"{case.file()}.ptx").read_text(encoding="utf-8"), config["shared"], config["entry"])
    m, n, k = case.sizes
    threads = config["copy_threads"] + config["math_threads"]

    def tensor_map(size: int, kind: int, rows: int, columns: int, box: tuple[int, int], swizzle: int) -> Any:
        width = swizzle // size if swizzle else box[1]
        return device.encode(kind, operands.tensor(size * rows * columns), (columns, rows), (columns * size,), (width, box[0]),
                             SWIZZLES[swizzle], promotion=3)

    def create() -> Launch:
        maps = [tensor_map(1, BYTES, m, k, (config["block_m"], 128), config["swizzle_a"]),
                tensor_map(1, BYTES, n, k, (config["block_n"], 128), config["swizzle_b"]),
                tensor_map(2, BF16, m, n, (config["block_m"], config["block_n"]), config["swizzle_d"]),
                tensor_map(4, F32, k // 128, -(-m // 4) * 4, (1, config["block_m"]), 0)]
        arguments = [operands.tensor(4 * (n // 128) * (k // 128)), 0, *map(ctypes.c_uint, (m, n, k)), *maps]
        return lambda stream: kernel.launch((132, 1), threads, *arguments, stream=stream, cluster=config["cluster"])

    return create


LAUNCHERS = {"triton": triton, "cutlass": cutlass, "peer": cutlass, "deepgemm": deepgemm}
