"""Libraries of CUDA sources: a file of ours that includes a checkout's headers and exports what
nvcc makes of them.

Each exports peer_create, which returns an object or null; peer_run, which launches it on a stream;
and peer_error, which says why either failed."""
from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .library import Missing

#: Without NDEBUG a kernel may call __assertfail, and then its wgmma run one after the other.
OPTIONS = ("-shared", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-gencode", "arch=compute_90a,code=sm_90a")


def compile_kernels(program: pathlib.Path, options: Sequence[str], includes: Sequence[pathlib.Path],
                    library: pathlib.Path) -> None:
    """The driver is not linked: a machine without a GPU has none."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not pathlib.Path(nvcc).exists():
        raise Missing("nvcc")
    command = [nvcc, *OPTIONS, *options, *(f"-I{path}" for path in includes), str(program), "-o", str(library)]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise Missing(f"kernels that compile: {found.stderr.strip()[-2000:]}")


def load_kernels(path: pathlib.Path, arguments: Sequence[Any]) -> ctypes.CDLL:
    """`arguments` are the types of those of peer_create."""
    ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(path))
    library.peer_create.restype = ctypes.c_void_p
    library.peer_create.argtypes = arguments
    library.peer_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.peer_error.restype = ctypes.c_char_p
    return library


def launch_of(library: ctypes.CDLL, numbers: Sequence[int], tensors: Sequence[Any]) -> Callable[[], None]:
    product = library.peer_create(*numbers, *(tensor.data_ptr() for tensor in tensors))
    if not product:
        raise RuntimeError(f"the library cannot multiply these: {library.peer_error().decode()}")

    def launch(_: Any = tensors) -> None:
        if library.peer_run(product, torch.cuda.current_stream().cuda_stream):
            raise RuntimeError(library.peer_error().decode())

    return launch
