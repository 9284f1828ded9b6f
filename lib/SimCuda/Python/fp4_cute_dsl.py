"""Lets the CuTe DSL run in the simulator.

The DSL's runtime library has the CUDA runtime inside. The library exports a function _F for each
function F that compiled programs call; most of them are one jump to the F inside, which we replace
by a jump to ours. The DSL's compiler writes PTX besides machine code, and a compiled program gets
the PTX.
"""
import ctypes
import glob
import os
import pathlib
import re
import struct
import tempfile

from fp4_redirect import address_of, our_library, write_jump

MODULES = ("cutlass.base_dsl.env_manager", "cutlass.base_dsl.compiler")

#: Functions whose exported name is not F with an underscore.
OURS = {"_cudaLaunchKernelEx": "cudaLaunchKernelExC",
        "_cudaGetDeviceProperties": "cudaGetDeviceProperties_v2",
        "cuda_dialect_get_error_name": "cudaGetErrorName"}
#: Functions with a body of their own, which takes what F takes. The body of
#: _cuTensorMapEncodeTiled also changes the map for drivers before 13.1.
WHOLE = ("_cuDeviceGet", "_cuKernelGetAttribute", "_cuTensorMapEncodeTiled", "_cuLibraryGetGlobal",
         "_cuLibraryGetKernel", "_cuLibraryGetKernelCount", "_cuLibraryGetManaged",
         "_cuLibraryGetModule", "_cuLibraryGetUnifiedFunction", "_cuLibraryLoadData",
         "_cuLibraryLoadFromFile", "_cuLibraryUnload")
FORMAT = "cubin-format=bin"
JUMP = re.compile(b"(?:\x31\xd2)?\xe9(.{4})", re.DOTALL)  # perhaps xor edx, edx; jmp rel32


def exported_names(path):
    with open(path, "rb") as file:
        found = set(re.findall(rb"\0(_cu(?:da)?[A-Z]\w+|cuda_dialect_get_error_name)(?=\0)",
                               file.read()))
    return sorted(name.decode() for name in found)


def inside(address):
    """The function that the one at `address` does nothing but jump to, or None."""
    match = JUMP.match(ctypes.string_at(address, 7))
    return match and address + match.end() + struct.unpack("<i", match[1])[0]


def take_over_runtime(path):
    folder = os.path.basename(os.path.dirname(os.path.dirname(path)))
    major = 13 if folder == "cu13" else 12
    theirs, runtime = ctypes.CDLL(path), our_library(f"libcudart.so.{major}")
    driver = our_library("libcuda.so.1")
    for name in exported_names(path):
        address = address_of(theirs, name)
        ours = OURS.get(name, name[1:])
        function = address_of(runtime if ours.startswith("cuda") else driver, ours)
        if address and function:
            place = address if name in WHOLE else inside(address)
            if place:
                write_jump(place, function)


def compile_to_ptx(compile):
    """Compiler.compile, whose results have PTX where they had machine code of the same kernels."""
    def compiled(self, module, pipeline, *args, **kwargs):
        with tempfile.TemporaryDirectory() as folder:
            asked = re.search("dump-ptx-path='([^']*)'", pipeline)
            prefix = asked[1] if asked else os.path.join(folder, "kernels")
            option = "" if asked else f" dump-ptx-path='{prefix}'"
            result = compile(self, module, pipeline.replace(FORMAT, FORMAT + option), *args,
                             **kwargs)
            texts = [path.read_bytes() for path in files_of(prefix, "ptx")]
        if len(texts) == 1:
            embed(result, texts[0].rstrip(b"\0") + b"\0")
            for cubin in re.findall("dump-cubin-path='([^']*)'", pipeline):
                for path in files_of(cubin, "cubin"):
                    path.write_bytes(texts[0])
        return result

    return compiled


def files_of(prefix, suffix):
    """The files that the compiler wrote for a function: PREFIX.ARCHITECTURE.SUFFIX."""
    folder, name = os.path.split(prefix)
    return list(pathlib.Path(folder).glob(f"{glob.escape(name)}.*.{suffix}"))


def embed(module, text):
    """Puts the text in the place of the fat binary in a compiled module."""
    from cutlass._mlir import ir

    with module.context, ir.Location.unknown():
        for operation in module.body.operations:
            attributes = operation.operation.attributes
            if (operation.operation.name == "llvm.mlir.global"
                    and ir.StringAttr(attributes["sym_name"]).value.endswith("_binary")):
                attributes["value"] = ir.StringAttr.get(text)
                attributes["global_type"] = ir.TypeAttr.get(
                    ir.Type.parse(f"!llvm.array<{len(text)} x i8>"))


def take_over(module):
    """Called once behind the import of each of MODULES."""
    if module.__name__ == "cutlass.base_dsl.compiler":
        module.Compiler.compile = compile_to_ptx(module.Compiler.compile)
        return
    for path in (module.get_prefix_dsl_libs("CUTE_DSL") or "").split(os.pathsep):
        if os.path.basename(path) == "libcute_dsl_runtime.so":
            take_over_runtime(path)
