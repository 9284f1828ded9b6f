"""fp4.compile on a machine that has no compiler: programs come from a folder.

`record` lets fp4.compile also save each program, for its target and for the GPU's; `replay` puts a
lookup in the place of fp4.compile. A program that was not recorded is an error, so nothing is left
out unnoticed. Call either before fp4.torch or fp4.compat is imported.
"""

import contextlib
import hashlib
import json
import os
import pathlib
from typing import Any

import fp4
import fp4.compiler

GPU = "sm_90a"


def _file(folder: pathlib.Path, text: Any, target: str, dims: Any) -> pathlib.Path:
    key = json.dumps([str(text), target, sorted((dims or {}).items())])
    return folder / (hashlib.sha256(key.encode()).hexdigest()[:32] + ".so")


def _install(function: Any) -> None:
    fp4.compile = fp4.compiler.compile = function


def record(folder: pathlib.Path) -> None:
    compile = fp4.compiler.compile
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["FP4_CACHE"] = "0"  # every program is compiled, and so recorded

    def recording(text: Any, *, target: str = "sm_100a", dims: Any = None, **options: Any) -> Any:
        for each in {target, GPU}:
            path = _file(folder, text, each, dims)
            with contextlib.suppress(fp4.CompileError):  # a GPU without tcgen05 has no products
                if not path.exists():
                    compile(text, target=each, dims=dims, assemble=each == GPU).save(path)
        return compile(text, target=target, dims=dims, **options)

    _install(recording)


def without_running() -> None:
    """Lets the operations of fp4.torch on CPU tensors compile their programs for the GPU and return
    zeros: for models that would take long in the simulator. Call `record` first."""
    from fp4.torch import ops, weight_only

    class Compiled(Exception):
        pass

    def compile_for_gpu(program: Any, *tensors: Any, **options: Any) -> Any:
        program(GPU)
        raise Compiled

    def zeros(tensor: Any) -> Any:
        tensor.view(torch.uint8 if tensor.dim() else tensor.dtype).zero_()
        return tensor

    def kernel(module: Any, name: str) -> Any:
        run, shapes = getattr(module, f"_{name}"), getattr(module, f"_{name}_fake")

        def call(*arguments: Any) -> Any:
            try:
                return run(*arguments)
            except Compiled:
                made = shapes(*arguments)
                return tuple(map(zeros, made)) if isinstance(made, tuple) else zeros(made)

        return call

    import torch

    for module, names in (
            (ops, ("amax", "hadamard_amax", "hadamard", "quantize", "quantize_both", "dequantize",
                   "swizzle_scales", "unswizzle_scales", "scaled_mm")),
            (weight_only, ("prepack", "unprepack", "weight_mm"))):
        module.run = compile_for_gpu
        for name in names:
            getattr(module, name).register_kernel("cpu")(kernel(module, name))


class Packed:
    """The part of an fp4.Compiled that these tests use."""

    def __init__(self, path: pathlib.Path, target: str) -> None:
        self._program = fp4.load(path)
        self.manifest, self.target = self._program.manifest, target

    def program(self, device: Any = None) -> fp4.Program:
        return self._program if device is None else self._program.on(device)

    def __call__(self, *tensors: Any, **options: Any) -> Any:
        return self._program(*tensors, **options)


def replay(folder: pathlib.Path) -> None:
    def lookup(text: Any, *, target: str = "sm_100a", dims: Any = None, **_: Any) -> Packed:
        path = _file(folder, text, target, dims)
        if not path.exists():
            raise fp4.UsageError(f"no program for {target} was packed for this text:\n{text}",
                                 "add what compiles it to operations.py, and pack again")
        return Packed(path, target)

    _install(lookup)
