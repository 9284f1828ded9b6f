"""Wrong input and what comes of it: the cases of data/bad_input.md.

`bad_input.py` prints the tables of the page and `bad_input.py --write` writes them into it;
test_bad_input.py runs every case and compares. A case is one wrong call. The call must end in the
exception that the page names, with the message and the remedy that the page quotes.
"""

from __future__ import annotations

import argparse
import collections.abc
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any
from unittest import mock

import bad_input_rows
import fp4
import fp4.dist as fd
import fp4.torch as ft
import numpy as np
import safetensors.torch
import torch
from bad_input_rows import Case, Function
from fp4 import checkpoints
from fp4.compat import flashinfer, torchao, vllm
from fp4.torch import weight_programs
from programs import QUANTIZE, ROOT, compiled, product

PAGE = ROOT / "python" / "tests" / "data" / "bad_input.md"
NVFP4 = torch.nn.functional.ScalingType.BlockWise1x16
TILES = torch.nn.functional.SwizzleType.SWIZZLE_32_4_4


def matrix(rows: int = 48, columns: int = 64) -> Any:
    torch.manual_seed(rows)
    return torch.randn(rows, columns).bfloat16()


def torch_cases() -> list[Case]:
    x = matrix()
    a, w, mx = ft.quantize(x), ft.quantize(matrix(32)), ft.quantize(x, format="mxfp4")
    linear = ft.swizzle(a, "linear")
    quantize, multiply = "`fp4.torch.quantize`", "`fp4.torch.linear`"
    return [
        Case(quantize, "dtype", lambda: ft.quantize(x.double())),
        Case(quantize, "device", lambda: ft.quantize(x, amax=torch.ones((), device="meta"))),
        Case(quantize, "stride: a sparse matrix", lambda: ft.quantize(x.to_sparse_csr())),
        Case(quantize, "stride: a nested tensor",
             lambda: ft.quantize(torch.nested.nested_tensor([x, x]))),
        Case(quantize, "layout", lambda: ft.quantize(x, layout="swizzled")),
        Case(quantize, "scale convention", lambda: ft.quantize(
            x, recipe="modelopt, tensor_scale = supplied_decode")),
        Case(quantize, "K", lambda: ft.quantize(matrix(48, 41))),
        Case(quantize, "rows", lambda: ft.quantize(matrix(40), transpose=True)),
        Case("`fp4.torch.swizzle`", "layout", lambda: ft.swizzle(a, "rows")),
        Case("`fp4.torch.Scaled`", "dtype", lambda: ft.Scaled(
            a.data, a.scales.float(), a.amax, a.shape, "nvfp4")),
        Case("`fp4.torch.Scaled`", "stride: a transposed packed tensor", lambda: ft.Scaled(
            a.data.t(), a.scales, a.amax, (64, 48), "nvfp4")),
        Case("`fp4.torch.Scaled`", "rows", lambda: ft.Scaled(
            linear.data, linear.scales[:40], a.amax, (48, 64), "nvfp4", "linear")),
        Case("`fp4.torch.Scaled`", "scale convention", lambda: ft.Scaled.from_encode_scale(
            a.data, a.scales, torch.tensor(2.0), shape=(48, 64),
            recipe="modelopt, tensor_scale = supplied_decode")),
        Case(multiply, "dtype: a matrix that is not quantized",
             lambda: ft.linear(x, w)),  # type: ignore[arg-type]
        Case(multiply, "layout", lambda: ft.linear(linear, w)),
        Case(multiply, "scale convention: two formats", lambda: ft.linear(mx, w)),
        Case(multiply, "K", lambda: ft.linear(ft.quantize(matrix(48, 128)), w)),
        Case(multiply, "device", lambda: ft.linear(a._map(lambda t: t.to("meta")), w)),
        *scaled_mm_cases(a, w),
        *layer_cases(),
        *weight_only_cases(),
    ]


def scaled_mm_cases(a: Any, w: Any) -> list[Case]:
    def call(**members: Any) -> Function:
        given = {"mat_a": a.data, "mat_b": w.data.t(), "scale_a": a.scales,
                 "scale_recipe_a": NVFP4, "scale_b": w.scales, "scale_recipe_b": NVFP4,
                 "swizzle_a": TILES, "swizzle_b": TILES, **members}
        return lambda: ft.scaled_mm(**given)

    name, wide = "`fp4.torch.scaled_mm`", ft.quantize(matrix(32, 128))
    return [
        Case(name, "dtype", call(mat_a=a.data.view(torch.uint8))),
        Case(name, "stride: a transposed packed tensor", call(mat_b=w.data.t().contiguous())),
        Case(name, "layout", call(swizzle_a=torch.nn.functional.SwizzleType.NO_SWIZZLE)),
        Case(name, "scale convention",
             call(scale_recipe_a=torch.nn.functional.ScalingType.RowWise)),
        Case(name, "K", call(mat_b=wide.data.t(), scale_b=wide.scales)),
        Case(name, "rows", call(scale_a=a.scales[:, :1, :256])),
    ]


def layer_cases() -> list[Case]:
    model = torch.nn.Sequential(torch.nn.Linear(40, 32))
    trained = torch.nn.Sequential(torch.nn.Linear(64, 32))
    ft.quantize_(trained, training=True)
    damaged = torch.nn.Sequential(torch.nn.Linear(64, 32))
    damaged[0].weight.data[3, 5] = float("nan")
    return [
        Case("`fp4.torch.quantize_`", "K", lambda: ft.quantize_(model)),
        Case("`fp4.torch.quantize_`", "a weight that is NaN", lambda: ft.quantize_(damaged)),
        Case("`fp4.torch.Linear`", "dtype", lambda: trained(torch.randn(16, 64).double())),
    ]


def weight_only_cases() -> list[Case]:
    name = "`fp4.torch.WeightOnlyLinear`"
    layer = ft.WeightOnlyLinear(ft.quantize(matrix(128)))
    other = ft.WeightOnlyLinear(ft.quantize(matrix(128), format="mxfp4"))
    what = weight_programs.Product(128, 64, "bf16", "nvfp4")

    return [
        Case(name, "dtype", lambda: layer(matrix().double())),
        Case(name, "a weight that is written", lambda: layer.weight.add_(1)),
        Case(name, "dtype: beside MXFP4", lambda: other(matrix().double())),
        Case(name, "device", lambda: layer(matrix().to("meta"))),
        Case(name, "device: another GPU", lambda: weight_programs.product(what, "sm_80")),
        Case(name, "K", lambda: layer(matrix(48, 128))),
        Case(name, "dtype: a matrix that is not quantized",
             lambda: ft.WeightOnlyLinear(matrix(128))),  # type: ignore[arg-type]
    ]


@contextlib.contextmanager
def group_of_one() -> collections.abc.Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()


def dist_cases() -> list[Case]:
    """One rank; dist_cases.py has what two ranks can get wrong between them."""
    x = matrix()
    q = ft.quantize(x)

    def on_nccl() -> None:
        with mock.patch.object(torch.distributed, "get_backend", return_value="nccl"):
            fd.quantize(x)

    gather = "`fp4.dist.all_gather`"
    return [
        Case("`fp4.dist.quantize`", "dtype", lambda: fd.quantize(x.double())),
        Case("`fp4.dist.quantize`", "device", on_nccl),
        Case("`fp4.dist.quantize`", "scale convention", lambda: fd.quantize(
            x, recipe="vllm, tensor_scale = supplied")),
        Case("`fp4.dist.quantize`", "rows", lambda: fd.quantize(matrix(40), transpose=True)),
        Case(gather, "dtype: a matrix that is not quantized",
             lambda: fd.all_gather(x)),  # type: ignore[arg-type]
        Case(gather, "layout", lambda: fd.all_gather(q, layout="swizzled")),
        Case(gather, "rows", lambda: fd.all_gather(q, sizes=[47])),
        Case("`fp4.dist.column_parallel_linear`", "K", lambda: fd.column_parallel_linear(
            matrix(48, 128), q)),
        Case("`ColumnParallelLinear.from_linear`", "rows of the weight",
             lambda: fd.ColumnParallelLinear.from_linear(torch.nn.Linear(64, 24))),
    ]


def program_cases() -> list[Case]:
    program = compiled().program()
    x = torch.ones(48, 64, dtype=torch.bfloat16)
    q, s = program(x, torch.tensor(3.0), function="linear")
    amax = torch.tensor(3.0)
    gemm = fp4.compile(product()).program()
    tiled = torch.zeros(512, dtype=torch.float8_e4m3fn)

    def quantize(array: Any) -> Function:
        return lambda: program(array, amax, function="linear")

    def cuda() -> None:
        program(x.to("meta"), amax, function="linear")

    name = "a call of a `Program`"
    return [
        Case(name, "dtype", quantize(x.float())),
        Case(name, "dtype (NumPy)", lambda: program(np.ones((48, 64), "f4"), np.float32(1),
                                                    function="linear")),
        Case(name, "device", cuda),
        Case(name, "stride", quantize(torch.ones(64, 48, dtype=torch.bfloat16).t())),
        Case(name, "stride: a sparse matrix", quantize(x.to_sparse())),
        Case(name, "stride: a nested tensor", quantize(torch.nested.nested_tensor([x, x]))),
        Case(name, "stride: a transposed packed tensor", lambda: program(
            torch.zeros(32, 48, dtype=torch.uint8).t(), s, amax, function="dequantize")),
        Case(name, "layout", lambda: gemm(
            torch.zeros(48, 32, dtype=torch.uint8), torch.zeros(48, 4, dtype=torch.float8_e4m3fn),
            torch.zeros(32, 32, dtype=torch.uint8), tiled, amax)),
        Case(name, "K", quantize(x[:, :48].contiguous())),
        Case(name, "rows", lambda: program(q, s[:40], amax, function="dequantize")),
        Case(name, "a missing argument", lambda: program(x, function="linear")),
        Case(name, "an argument that is no array",
             lambda: program([1.0], amax, function="linear")),
    ]


def compile_cases() -> list[Case]:
    name = "`fp4.compile`"
    small = QUANTIZE.split("func.func @linear")[0]
    return [
        Case(name, "K", short_rows),
        Case(name, "a target that is none", lambda: fp4.compile(small, target="sm_1")),
        Case(name, "a missing ptxas",
             lambda: fp4.compile(small, assemble=True, ptxas=pathlib.Path("/nowhere/ptxas"))),
        Case(name, "an incompatible ptxas: CUDA 12.4", lambda: fp4.compile(
            small, assemble=True, ptxas=fake_ptxas("echo 'tools, release 12.4, V12.4.131'"))),
        Case(name, "an incompatible ptxas: no version", lambda: fp4.compile(
            small, assemble=True, ptxas=fake_ptxas("echo 'ptxas fatal   : no such option' >&2"))),
        Case(name, "a ptxas that crashes", lambda: fp4.compile(
            small, assemble=True, ptxas=fake_ptxas(CRASHES))),
        Case("`fp4.compile`, `linear` of `fp4.Builder`", "layout", linear_scales),
        Case("`fp4.Device`", "a device that is none", lambda: fp4.Device("tpu")),
        Case("`fp4.load`", "a file that is no library", lambda: fp4.load("/dev/null")),
    ]


#: A ptxas whose version is right, and which then ends by a signal.
CRASHES = 'test "$1" = --version && echo "Cuda compilation tools, release 13.0" || kill -SEGV $$'


def fake_ptxas(command: str) -> pathlib.Path:
    """A ptxas that answers as `command` of a shell does."""
    path = pathlib.Path(tempfile.mkdtemp(), "ptxas")
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
    return path


def short_rows() -> None:
    builder = fp4.Builder()
    f = builder.function("f")
    q = f.quantize(f.argument("x", (32, 40)), "mxfp4")
    f.returns(q.data)
    fp4.compile(builder)


def linear_scales() -> None:
    f = fp4.Builder().function("f")
    q = f.quantize(f.argument("x", (32, 64)), "mxfp4")
    f.matmul(q, q)


def compat_cases() -> list[Case]:
    x, scale = matrix(), torch.tensor(2.0)
    data, tiles = flashinfer.nvfp4_quantize(x, scale)
    rows = flashinfer.nvfp4_quantize(x, scale, sfLayout=flashinfer.SfLayout.layout_linear)[1]
    name = "`fp4.compat.flashinfer.mm_fp4`"
    return [
        Case(name, "layout", lambda: flashinfer.mm_fp4(data, data.T, rows, tiles.T, scale)),
        Case(name, "stride: a transposed packed tensor",
             lambda: flashinfer.mm_fp4(data, data.T.contiguous(), tiles, tiles.T, scale)),
        *vllm_cases(x, scale),
        *torchao_cases(x),
    ]


def vllm_cases(x: Any, scale: Any) -> list[Case]:
    data, tiles = vllm.scaled_fp4_quant(x, scale)
    rows = vllm.scaled_fp4_quant(x, scale, is_sf_swizzled_layout=False)[1]
    quantize, multiply = ("`fp4.compat.vllm.scaled_fp4_quant`",
                          "`fp4.compat.vllm.cutlass_scaled_fp4_mm`")

    def product(a: Any, b: Any, scales: Any, alpha: Any = scale) -> Function:
        return lambda: vllm.cutlass_scaled_fp4_mm(a, b, scales, tiles, alpha, torch.bfloat16)

    return [
        Case(quantize, "dtype", lambda: vllm.scaled_fp4_quant(x.float(), scale)),
        Case(quantize, "K", lambda: vllm.scaled_fp4_quant(matrix(48, 40), scale)),
        Case(quantize, "scale convention: a scale of each row",
             lambda: vllm.scaled_fp4_quant(x, torch.ones(48))),
        Case(quantize, "device", lambda: vllm.scaled_fp4_quant(x.to("meta"), scale)),
        Case(multiply, "dtype", product(x, data, tiles)),
        Case(multiply, "layout", product(data, data, rows)),
        Case(multiply, "K", product(data[:, :16].contiguous(), data, tiles)),
        Case(multiply, "stride: a transposed packed tensor", product(data.t(), data.t(), tiles)),
    ]


def torchao_cases(x: Any) -> list[Case]:
    name = "`fp4.compat.torchao.nvfp4_quantize`"
    return [
        Case(name, "dtype", lambda: torchao.nvfp4_quantize(x.double())),
        Case(name, "K", lambda: torchao.nvfp4_quantize(matrix(48, 40))),
        Case(name, "scale convention: blocks of 32",
             lambda: torchao.nvfp4_quantize(x, block_size=32)),
    ]


def checkpoint_cases() -> list[Case]:
    folder = pathlib.Path(tempfile.mkdtemp())
    whole, cut, other = (folder / f"{name}.safetensors" for name in ("whole", "cut", "other"))
    weights = {"w": ft.quantize(matrix(32), layout="linear", recipe="modelopt")}
    checkpoints.write(whole, weights, "modelopt")
    cut.write_bytes(whole.read_bytes()[:-100])
    safetensors.torch.save_file({"w": torch.zeros(2, 2)}, other)
    content, nan = safetensors.torch.load_file(whole), folder / "nan.safetensors"
    content["w.weight_scale"].view(torch.uint8)[3, 2] = 0x7F
    safetensors.torch.save_file(content, nan)
    linear = weights["w"]
    encoded = ft.Scaled.from_encode_scale(
        linear.data, linear.scales, torch.tensor(1 + 2 ** -23), shape=linear.shape, layout="linear")
    name, write = "`fp4.checkpoints.open`", "`fp4.checkpoints.write`"

    def written(weight: Any) -> Function:
        return lambda: checkpoints.write(folder / "new", {"w": weight}, "modelopt")

    return [
        Case(name, "no file", lambda: checkpoints.open(folder / "nothing.safetensors")),
        Case(name, "a damaged file", lambda: checkpoints.open(cut)),
        Case(name, "a file without 4-bit weights", lambda: checkpoints.open(other)),
        Case(name, "layout", lambda: checkpoints.open(whole, layout="gguf")),
        Case(name, "scale convention", lambda: checkpoints.open(whole, global_scale="amax")),
        Case("`Checkpoint.read`", "a weight that is not there",
             lambda: checkpoints.open(whole).read("ww")),
        Case("`Checkpoint.read`", "a block scale that is NaN",
             lambda: checkpoints.open(nan).read("w")),
        Case(write, "dtype: a matrix that is not quantized", written(matrix())),
        Case(write, "layout: a scale for each row", written(ft.quantize(matrix(32), per_row=True))),
        Case(write, "scale convention", written(encoded)),
        Case("`fp4.checkpoints.load_into`", "another model",
             lambda: checkpoints.load_into(torch.nn.Sequential(torch.nn.Linear(64, 32)), whole)),
    ]


# ----------------------------------------------------------------------------
# Installations: each of these runs in a process of its own
# ----------------------------------------------------------------------------

REPORT = """
import json
try:
    {code}
    found = None
except BaseException as error:
    message = getattr(error, "message", str(error))
    found = type(error).__name__, message, getattr(error, "note", "")
print("REPORT" + json.dumps(found))
"""


class Refused(Exception):
    """The exception that a process reported: its name, its message and its note."""

    def __init__(self, name: str, message: str, note: str) -> None:
        super().__init__(message)
        self.name, self.message, self.note = name, message, note


def child(code: str, **environment: str) -> Function:
    def run() -> None:
        done = subprocess.run(
            [sys.executable, "-c", REPORT.format(code=code)], capture_output=True, text=True,
            env={**os.environ, **environment})
        if "REPORT" not in done.stdout:
            raise AssertionError(f"the process ended with {done.returncode}: {done.stderr}")
        found = json.loads(done.stdout.rpartition("REPORT")[2])
        if found:
            raise Refused(*found)

    return run


def sim(*arguments: str, **environment: str) -> Function:
    """python -m fp4.sim, whose errors are text and an exit code."""
    def run() -> None:
        done = subprocess.run(
            [sys.executable, "-m", "fp4.sim", *arguments], capture_output=True, text=True,
            env={**os.environ, **environment})
        lines = [line for line in done.stderr.splitlines()
                 if re.match(r"(fp4[.-]sim: )?(error|note|python -m fp4.sim: error)", line)]
        text = [re.sub(r"^(fp4[.-]sim|python -m fp4.sim): ", "", line) for line in lines]
        notes = [line for line in text if line.startswith("note: ")]
        message = [line.removeprefix("error: ") for line in text if line not in notes]
        raised = re.findall(r"^\w+Error: .*$", done.stderr, re.M)  # of the script itself
        raise Refused(f"exit code {done.returncode}", (message or raised or [done.stderr])[0],
                      notes[0].removeprefix("note: ") if notes else "")

    return run


def runtime_library() -> str:
    return str(fp4._library.PATH.with_name("libfp4rt.so"))


def fake_torch(text: str) -> str:
    """A folder with a package torch of this text, for PYTHONPATH."""
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "torch.py").write_text(text)
    return os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))


def old_driver(library: str) -> str:
    """A folder whose libcuda.so.1 lacks every function."""
    folder = tempfile.mkdtemp()
    pathlib.Path(folder, "libcuda.so.1").symlink_to(library)
    return folder


def script(text: str) -> str:
    path = pathlib.Path(tempfile.mkdtemp(), "script.py")
    path.write_text(text)
    return str(path)


def installation_cases() -> list[Case]:
    library = __import__("ctypes.util").util.find_library("m") or "libm.so.6"
    found = next(path for path in ("/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64")
                 if pathlib.Path(path, library).exists())
    return [
        Case("runtime wheel: `import fp4`", "no library",
             child("import fp4; fp4.compile('')", FP4_LIBRARY="/nowhere/libfp4.so")),
        Case("runtime wheel: `import fp4`", "a library of something else", child(
            "import fp4; fp4.Device('sim')", FP4_LIBRARY=f"{found}/{library}")),
        Case("runtime wheel: `fp4.compile`", "no compiler",
             child("import fp4; fp4.compile('')", FP4_LIBRARY=runtime_library())),
        Case("runtime wheel: `fp4.Device(\"cuda\")`", "no driver",
             child("import fp4; fp4.Device('cuda')", FP4_LIBRARY=runtime_library())),
        Case("runtime wheel: `fp4.Device(\"cuda\")`", "an incompatible driver",
             child("import fp4; fp4.Device('cuda')", FP4_LIBRARY=runtime_library(),
                   LD_LIBRARY_PATH=old_driver(f"{found}/{library}"))),
        Case("`import fp4.torch`", "no torch", child(
            "import fp4.torch",
            PYTHONPATH=fake_torch("raise ModuleNotFoundError(\"No module named 'torch'\")"))),
        Case("`import fp4.torch`", "an old torch",
             child("import fp4.torch", PYTHONPATH=fake_torch("__version__ = '2.4.0'"))),
    ]


def sim_cases() -> list[Case]:
    name = "`python -m fp4.sim`"
    gpu = ("import types\n__version__ = '2.13.0'\n"
           "cuda = types.SimpleNamespace(is_available=lambda: True)\n")
    return [
        Case(name, "no script", sim("nowhere")),
        Case(name, "no tool", sim(__file__, FP4_SIM="/nowhere/fp4-sim")),
        Case(name, "a device that is none", sim("--device=b100", __file__)),
        Case(name, "a torch that has a GPU",
             sim(script("print()"), PYTHONPATH=fake_torch(gpu))),
        Case(name, "device", sim(script("import torch\ntorch.ones(1, device='cuda:1')"))),
        Case("`fp4.sim` in a script that runs without it", "no driver of the simulator",
             child("import os; os.environ.pop('FP4_SIM_DEVICE', None); "
                   "from fp4.sim import driver; driver.device_name()")),
    ]


SECTIONS: dict[str, Function] = {
    "fp4.torch": torch_cases, "Rows and routes": bad_input_rows.row_cases,
    "Attention and caches": bad_input_rows.attention_cases, "fp4.dist": dist_cases,
    "Programs": program_cases, "The compiler": compile_cases,
    "Functions of other packages": compat_cases,
    "Rows and attention of other packages": bad_input_rows.compat_cases,
    "fp4.checkpoints": checkpoint_cases,
}
#: Tables whose cases wait for processes, which run beside the other tables.
PROCESSES: dict[str, Function] = {"Installations": installation_cases, "fp4.sim": sim_cases}


def outcome(function: Function) -> tuple[str, str, str]:
    """The class, the message and the remedy of what a wrong call raises."""
    try:
        function()
    except Refused as error:
        found = error.name, error.message, error.note
    except Exception as error:
        found = (type(error).__name__, getattr(error, "message", str(error)),
                 getattr(error, "note", ""))
    else:
        return "nothing", "", ""
    name, message, note = found
    if "\nnote: " in message:
        message, note = message.split("\nnote: ", 1)
    located = re.search(r"^\S+: note: (.*)$", message, re.M)
    if located and not note:
        note = located[1]
    # The first of the compiler's diagnostics.
    first = re.search(r"\A.*(?:\n\S+:\d+:\d+: error: .*)?", message)
    return name, plain(first[0] if first else message), plain(note)


def plain(text: str) -> str:
    """One line without what differs between machines and versions of files."""
    text = re.sub(r"\S+\.(?:py|mlir):\d+:\d+:", "FILE:LINE:COLUMN:", text)
    text = re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+(?=[\w.+-]+)", ".../", " ".join(text.split()))
    return text.replace("|", "\\|")


def tables() -> str:
    with group_of_one(), concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        apart = {name: pool.map(row, cases()) for name, cases in PROCESSES.items()}
        return "\n".join(
            f"## {name}\n\n| call | wrong | exception | message | remedy |\n"
            "|---|---|---|---|---|\n" + "".join(rows)
            for name, rows in itertools.chain(
                ((name, map(row, cases())) for name, cases in SECTIONS.items()), apart.items()))


def row(case: Case) -> str:
    name, message, note = outcome(case.function)
    return f"| {case.call} | {case.wrong} | {name} | {message} | {note} |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="prints the tables of data/bad_input.md")
    parser.add_argument("--write", action="store_true")
    found = tables()
    if not parser.parse_args().write:
        print(found)
        return
    PAGE.write_text(PAGE.read_text().partition("## ")[0] + found)


if __name__ == "__main__":
    main()
