"""Libraries of CUDA sources: a file of ours that includes a checkout's headers and exports what
nvcc makes of them.

Each exports peer_create, which returns an object or null; peer_run, which launches it on a stream;
and peer_error, which says why either failed."""
from __future__ import annotations

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .library import Missing

#: Without NDEBUG a kernel may call __assertfail, and then its wgmma run one after the other.
OPTIONS = ("-shared", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-gencode", "arch=compute_90a,code=sm_90a")


def find_nvcc() -> str:
    """The path of nvcc. Raises Missing."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not pathlib.Path(nvcc).exists():
        raise Missing("nvcc")
    return nvcc


def toolkit_headers(nvcc: str) -> list[pathlib.Path]:
    """The folders with cuda.h and with CCCL, as nvcc itself names them: the program on PATH may be
    a script in another folder that calls it. Raises Missing."""
    said = subprocess.run([nvcc, "--dryrun", "-x", "cu", os.devnull], capture_output=True, text=True).stderr
    top = re.search(r"^#\$ TOP=(.+)$", said, re.MULTILINE)
    if not top:
        raise Missing(f"the folder of the CUDA toolkit, which '{nvcc} --dryrun' does not name")
    folder = pathlib.Path(top[1]).resolve() / "include"
    if not (folder / "cuda.h").exists():
        raise Missing(f"cuda.h in {folder}, the toolkit of {nvcc}")
    return [folder, folder / "cccl"]


def compile_kernels(program: pathlib.Path, options: Sequence[str], includes: Sequence[pathlib.Path],
                    library: pathlib.Path) -> None:
    """The driver is not linked: a machine without a GPU has none."""
    command = [find_nvcc(), *OPTIONS, *options, *(f"-I{path}" for path in includes), str(program), "-o", str(library)]
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
