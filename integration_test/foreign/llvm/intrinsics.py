#!/usr/bin/env python3
"""Asks LLVM's NVPTX backend for the PTX of every llvm.nvvm intrinsic it has, and the simulator whether it knows it.

Each intrinsic gets a kernel of its own, with arguments from the kernel's parameters and immediates that are tried out;
what the backend cannot select for a target is left out. Prints the instructions that are refused, by kind.
Needs libLLVM and its header of intrinsics (Debian: libllvm22, llvm-22-dev); nothing is built.
"""
import argparse
import collections
import ctypes
import multiprocessing
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TARGETS = (("sm_100a", "+ptx88"), ("sm_90a", "+ptx88"), ("sm_120a", "+ptx88"))
GROUP = 40 # intrinsics per process: the backend aborts on what it cannot select

llvm = None


def load(path):
    global llvm
    llvm = ctypes.CDLL(path)
    for name in ("LLVMContextCreate LLVMModuleCreateWithNameInContext LLVMGetIntrinsicDeclaration LLVMIntrinsicGetType "
                 "LLVMVoidTypeInContext LLVMFunctionType LLVMAddFunction LLVMAppendBasicBlockInContext LLVMGetParam "
                 "LLVMCreateBuilderInContext LLVMBuildCall2 LLVMBuildRetVoid LLVMBuildStore LLVMGetReturnType LLVMConstInt "
                 "LLVMPointerTypeInContext LLVMGetTargetFromName LLVMCreateTargetMachine LLVMGetBufferStart LLVMTypeOf "
                 "LLVMGetEnumAttributeAtIndex LLVMConstNull LLVMBuildExtractValue LLVMPrintTypeToString").split():
        getattr(llvm, name).restype = ctypes.c_void_p
    for target in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
        getattr(llvm, f"LLVMInitializeNVPTX{target}")()


P = ctypes.c_void_p


def build(name, immediate):
    """(module, None), or (None, why) when there is no such function; None when it is overloaded."""
    context = P(llvm.LLVMContextCreate())
    module = P(llvm.LLVMModuleCreateWithNameInContext(name.encode(), context))
    number = llvm.LLVMLookupIntrinsicID(name.encode(), len(name))
    if not number or llvm.LLVMIntrinsicIsOverloaded(number):
        return None
    function = P(llvm.LLVMGetIntrinsicDeclaration(module, number, None, 0))
    kind = P(llvm.LLVMIntrinsicGetType(context, number, None, 0))
    count = llvm.LLVMCountParamTypes(kind)
    types = (P * max(1, count))()
    llvm.LLVMGetParamTypes(kind, types)
    attribute = llvm.LLVMGetEnumAttributeKindForName(b"immarg", 6)
    constant = [llvm.LLVMGetEnumAttributeAtIndex(function, i + 1, attribute) is not None for i in range(count)]
    token = lambda t: llvm.LLVMGetTypeKind(P(t)) in (14, 16) # metadata, token
    if any(token(types[i]) for i in range(count)):
        return None
    taken = [types[i] for i in range(count) if not constant[i]]
    pointer = llvm.LLVMPointerTypeInContext(context, 1)
    outer = (P * (len(taken) + 1))(*taken, pointer)
    signature = P(llvm.LLVMFunctionType(P(llvm.LLVMVoidTypeInContext(context)), outer, len(outer), 0))
    kernel = P(llvm.LLVMAddFunction(module, b"k", signature))
    llvm.LLVMSetFunctionCallConv(kernel, 71) # ptx_kernel
    builder = P(llvm.LLVMCreateBuilderInContext(context))
    llvm.LLVMPositionBuilderAtEnd(builder, P(llvm.LLVMAppendBasicBlockInContext(context, kernel, b"")))
    arguments, next_parameter = (P * max(1, count))(), 0
    for i in range(count):
        if constant[i]:
            arguments[i] = llvm.LLVMConstInt(P(types[i]), ctypes.c_ulonglong(immediate), 0)
        else:
            arguments[i] = llvm.LLVMGetParam(kernel, next_parameter)
            next_parameter += 1
    result = P(llvm.LLVMBuildCall2(builder, kind, function, arguments, count, b""))
    returned = P(llvm.LLVMGetReturnType(kind))
    out = P(llvm.LLVMGetParam(kernel, next_parameter))
    if llvm.LLVMGetTypeKind(returned) == 10: # struct: each member is used
        for i in range(llvm.LLVMCountStructElementTypes(returned)):
            llvm.LLVMBuildStore(builder, P(llvm.LLVMBuildExtractValue(builder, result, i, b"")), out)
    elif llvm.LLVMGetTypeKind(returned) != 0:
        llvm.LLVMBuildStore(builder, result, out)
    llvm.LLVMBuildRetVoid(builder)
    return module


def emit(name, target, features, immediate):
    """The PTX of the kernel; the process ends when the backend cannot."""
    module = build(name, immediate)
    if module is None:
        return None
    machine = P(llvm.LLVMCreateTargetMachine(P(llvm.LLVMGetTargetFromName(b"nvptx64")), b"nvptx64-nvidia-cuda",
                                             target.encode(), features.encode(), 2, 0, 0))
    llvm.LLVMSetTarget(module, b"nvptx64-nvidia-cuda")
    message, buffer = ctypes.c_char_p(), P()
    if llvm.LLVMVerifyModule(module, 2, ctypes.byref(message)) or \
            llvm.LLVMTargetMachineEmitToMemoryBuffer(machine, module, 0, ctypes.byref(message), ctypes.byref(buffer)):
        return ""
    return ctypes.string_at(llvm.LLVMGetBufferStart(buffer)).decode()


def one(queue, library, names, target, features, immediate):
    import os
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    load(library)
    for name in names:
        queue.put((name, "begin"))
        queue.put((name, emit(name, target, features, immediate)))
    queue.put((None, None))


def collect(library, names, target, features, immediate):
    """{name: PTX}; what made the process end is left out, the others go on in a new one."""
    found, rest = {}, list(names)
    while rest:
        queue = multiprocessing.SimpleQueue()
        process = multiprocessing.Process(target=one, args=(queue, library, rest[:GROUP], target, features, immediate))
        process.start()
        last, done = None, False
        queue._writer.close() # the end of the process is the end of the file
        while not done:
            try:
                name, text = queue.get()
            except EOFError:
                break
            done = name is None
            if text == "begin":
                last = name
            elif not done:
                found[name] = text
        process.join()
        rest = rest[min(GROUP, len(rest)):] if done else rest[rest.index(last) + 1:] if last else rest[1:]
    return found


def refused(tool, ptx, folder):
    """Messages about instructions that the simulator does not know."""
    path = Path(folder) / "k.ptx"
    path.write_text(ptx)
    run = subprocess.run([tool, "check", path], capture_output=True, text=True)
    return re.findall(r"^error: \S+?:\d+:\d+: (.*)$", run.stderr, re.M)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--llvm", default="/usr/lib/llvm-22", type=Path)
    parser.add_argument("--filter", default="")
    o = parser.parse_args()
    header = (o.llvm / "include/llvm/IR/IntrinsicsNVPTX.h").read_text()
    names = [n for n in sorted(set(re.findall(r"llvm\.nvvm\.[\w.]+", header))) if re.search(o.filter, n)]
    library = next(str(p) for p in sorted((o.llvm / "lib").glob("libLLVM*.so*")))
    text, known = {}, set()
    for target, features in TARGETS:
        for immediate in (0, 1, 2, 16):
            missing = [n for n in names if not text.get(n)]
            text.update({n: t for n, t in collect(library, missing, target, features, immediate).items() if t})
    kinds, bad = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(text):
            errors = refused(o.build / "bin/fp4-sim", text[name], folder)
            bad += bool(errors)
            for error in errors[:1]:
                print(f"{name}: {error}")
                kinds[re.split(r"[.: ]", error.partition("'")[2])[0]] += 1
    print(f"{len(names)} intrinsics, of which LLVM printed {len(text)}; the simulator knows {len(text) - bad}")
    print("refused:", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))


if __name__ == "__main__":
    sys.exit(main())
