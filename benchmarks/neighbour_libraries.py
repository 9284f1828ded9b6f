#!/usr/bin/env python3
"""Builds FlashInfer's and QuACK's kernels for sm_90a as libraries that need no package where they
are timed (neighbour_peers.py).

  benchmarks/neighbour_libraries.py FLASHINFER FOLDER [--columns=...]

FLASHINFER is the unpacked wheel of flashinfer-python. flashinfer.so has its CUDA kernels, and
cute_kernels.so those that the CuTe DSL compiles: QuACK's, and FlashInfer's norms. Python has the
packages of integration_test/foreign/corpus/requirements.txt, whose headers nvcc takes.
"""
import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import types

import neighbour_chains

HERE = pathlib.Path(__file__).parent
PACKAGES = pathlib.Path(sysconfig.get_path("purelib"))
#: Shared memory of a CTA on an H200.
SHARED_BYTES = 232448


def build_cuda(flashinfer, folder):
    stubs = HERE.parent / "integration_test" / "foreign" / "corpus" / "programs" / "include"
    cuda = PACKAGES / "nvidia" / "cu13" / "include"
    includes = [flashinfer / "data" / "include", stubs, cuda / "cccl", cuda]
    subprocess.run(["nvcc", "-O3", "-use_fast_math", "-std=c++17", "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", "-cudart",
                    "shared", "--expt-relaxed-constexpr",
                    *(f"-DFLASHINFER_ENABLE_{name}" for name in ("F16", "BF16", "FP8_E4M3")), "-DENABLE_BF16", "-DENABLE_FP8",
                    *(f"-I{path}" for path in includes), HERE / "flashinfer_kernels.cu", "-o", folder / "flashinfer.so"], check=True)


def begin(flashinfer):
    """Has the CuTe DSL compile for an H200 that is not there, and finds modules of FlashInfer
    without the rest of the package."""
    os.environ.update(QUACK_ARCH="90", CUTE_DSL_ARCH="sm_90a", CUDA_VISIBLE_DEVICES="", QUACK_CACHE_ENABLED="0")
    import torch
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda device: types.SimpleNamespace(shared_memory_per_block_optin=SHARED_BYTES)
    for name in ("", ".norm", ".norm.kernels", ".cute_dsl"):
        module = types.ModuleType(f"flashinfer{name}")
        module.__path__ = [str(flashinfer) + name.replace(".", "/")]
        sys.modules[module.__name__] = module
    from quack.cache import async_compile
    async_compile._pin_dsl_arch("sm_90a")
    async_compile._install_gpu_blind_device_attrs()


def kernels(columns):
    """Names and what compiles them."""
    from cutlass import BFloat16 as bf16, Float32 as f32, Int32 as i32
    from flashinfer.norm.kernels import fused_add_rmsnorm, rmsnorm
    norms, cross_entropy, rotary = (importlib.import_module(f"quack.{name}") for name in ("rmsnorm", "cross_entropy", "rotary"))
    forward, backward = norms._compile_rmsnorm_fwd, norms._compile_rmsnorm_bwd
    yield "quack_rms", lambda: forward(bf16, bf16, None, bf16, None, None, columns, False, False, False, False)
    yield "quack_add_rms", lambda: forward(bf16, bf16, bf16, bf16, None, bf16, columns, False, False, False, False)
    yield "quack_layer", lambda: forward(bf16, bf16, None, f32, None, None, columns, False, False, True, False)
    yield "quack_rms_gradient", lambda: backward(columns, bf16, bf16, bf16, bf16, False, None, None, False, T_hint=16384)
    yield "quack_loss", lambda: cross_entropy.CrossEntropy.compile(bf16, i32, None, columns, True, False, None, None)
    yield "quack_loss_gradient", lambda: cross_entropy.CrossEntropyBackward.compile(bf16, i32, columns, None)
    yield "quack_rope", lambda: rotary.RotaryKernel.compile(bf16, f32, None, None, 128, False, False)
    yield "flashinfer_rms", lambda: rmsnorm._get_compiled_rmsnorm_kernel("bfloat16", columns, 0.0, False, 90)
    yield "flashinfer_add_rms", lambda: fused_add_rmsnorm._get_compiled_fused_add_rmsnorm_kernel("bfloat16", columns, 0.0, False, 90)


def build_cute(flashinfer, folder, columns_of):
    begin(flashinfer)
    objects = []
    for columns in columns_of:
        for name, compiled in kernels(columns):
            objects.append(folder / f"{name}_{columns}.o")
            compiled().export_to_c(object_file_path=str(objects[-1]), function_name=objects[-1].stem)
            print(objects[-1].stem, flush=True)
    runtime = PACKAGES / "nvidia_cutlass_dsl" / "cu13" / "lib" / "libcuda_dialect_runtime_static.a"
    cuda = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64"
    subprocess.run(["g++", "-shared", "-fPIC", "-O2", "-x", "c", HERE / "tvm_ffi_calls.c", "-x", "none", *objects, runtime,
                    f"-L{cuda}", "-lcudart", "-ldl", "-Wl,--no-undefined",
                    "-o", folder / "cute_kernels.so"], check=True)
    for path in objects:
        path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flashinfer", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--columns", type=lambda text: [int(number) for number in text.split(",")], default=neighbour_chains.COLUMNS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    build_cute(options.flashinfer, options.folder, options.columns)
    build_cuda(options.flashinfer, options.folder)


if __name__ == "__main__":
    main()
