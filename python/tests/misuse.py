"""Random misuse of the package: `cases` yields calls that are wrong, each with what it must raise.

    python3 misuse.py SEED COUNT [FIRST]

makes COUNT calls, of which the first FIRST are only drawn, and prints a line of JSON for each
that raises something else. Before each call it writes the number of the case to stderr, so that
the last line there is the case that ended the process. test_misuse.py runs it.
"""

from __future__ import annotations

import json
import pathlib
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import fp4
import numpy as np
from misuse_case import JUNK, Case
from programs import QUANTIZE, compiled, matrix, operands, optional, product

torch: Any = optional("torch")
_FOLDER = tempfile.TemporaryDirectory(prefix="fp4_misuse_")
FOLDER = pathlib.Path(_FOLDER.name)


class Exporter:
    """A DLPack object that is wrong about itself."""

    def __init__(self, array: Any, device: Any = (1, 0), capsule: Any = None) -> None:
        self.array, self.device, self.capsule = array, device, capsule

    def __dlpack__(self, **options: Any) -> Any:
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.array.__dlpack__(**options) if self.capsule is None else self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


#===--- Arguments ---------------------------------------------------------===#

_RIGHT: dict[str, list[Any]] = {}


def right(function: str) -> list[Any]:
    """Arguments that fit, made once. The rows of the first and second of `dequantize` and of
    `product` must agree."""
    if not _RIGHT:
        x = matrix(5)
        a = compiled()(x, function="amax")
        q, s = compiled()(x, a, function="linear")
        _RIGHT.update(amax=[x], linear=[x, a], tiled=[x, a], dequantize=[q, s, a],
                      product=list(operands()))
    return list(_RIGHT[function])


def program(function: str) -> Any:
    return compiled(product() if function == "product" else QUANTIZE)


def wrong_numpy(rng: random.Random, array: Any) -> tuple[str, Any]:
    """Makes something else than an array that fits."""
    array = np.asarray(array)
    shape, columns = array.shape, array.shape[-1:]
    dtypes = ["float64", "int8", "bool", "complex64", "int32", "V4", "O", "S3", "datetime64[s]"]
    changed = tuple(size + rng.choice((-1, 1, 7)) for size in columns) or (1,)
    wrong: list[tuple[str, Any]] = [
        ("dtype", np.zeros(shape, rng.choice(dtypes))),
        ("rank", np.zeros((*shape, rng.randint(2, 3)), array.dtype)),
        ("columns", np.zeros((*shape[:-1], *changed), array.dtype)),
        ("empty", np.zeros((*shape[:-1], 0), array.dtype)),
        ("flat", np.zeros((array.size + 1,), array.dtype)),
    ]
    if shape:
        wrong += [("transposed", np.zeros(shape[::-1], array.dtype).T if min(shape) > 1 else
                   np.zeros((2, *shape), array.dtype)[::2, ..., ::-1]),
                  ("strided", np.zeros((*shape, 2), array.dtype)[..., 0])]
    if array.dtype.itemsize > 1:
        wrong.append(("byte order", array.astype(array.dtype.newbyteorder(">"))))
    return rng.choice(wrong)


def wrong_torch(rng: random.Random, array: Any) -> tuple[str, Any]:
    """Makes something else than a tensor that fits."""
    bits = np.ascontiguousarray(array)
    bits = bits.view(np.uint8) if bits.dtype.itemsize == 1 else bits
    tensor = torch.from_numpy(bits.copy()).reshape(np.shape(array))
    wide = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
    wrong = [
        ("torch dtype", torch.zeros(tensor.shape, dtype=rng.choice(
            [torch.float64, torch.int8, torch.bool, torch.complex64, torch.int32]))),
        ("torch strided", wide[..., 0] if tensor.ndim else torch.zeros(1, dtype=tensor.dtype)),
        ("torch meta", torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")),
        ("torch sparse", torch.zeros(max(tensor.shape, default=2), 2).to_sparse()),
        ("torch gradient", torch.zeros(tensor.shape, requires_grad=True)),
        ("torch columns", torch.cat([wide[..., 0], wide[..., 0]], -1) if tensor.ndim else
         torch.zeros(2, dtype=tensor.dtype)),
    ]
    if tensor.ndim == 2:
        wrong.append(("torch transposed", tensor.reshape(tensor.shape[::-1]).t()))
    return rng.choice(wrong)


def wrong_dlpack(rng: random.Random, array: Any) -> tuple[str, Any]:
    plain = np.zeros(np.shape(array), np.float64)
    return rng.choice([
        ("DLPack device", Exporter(plain, (rng.choice((2, 7, 10, 99)), 0))),
        ("DLPack no device", Exporter(plain, rng.choice((None, (), "cpu")))),
        ("DLPack fails", Exporter(plain, capsule=RuntimeError("no"))),
        ("DLPack no capsule", Exporter(plain, capsule=rng.choice((3, "dltensor", object())))),
        ("DLPack dtype", Exporter(plain)),
    ])


def misuse_array(rng: random.Random) -> Case:
    """One argument is wrong. A tensor of torch stands among arrays of NumPy, which is wrong too."""
    function = rng.choice(["amax", "linear", "tiled", "dequantize", "product"])
    arguments = right(function)
    index = rng.randrange(len(arguments))
    makers = [wrong_numpy] * 3 + [wrong_dlpack] + ([wrong_torch] * 2 if torch else [])
    what, arguments[index] = rng.choice(makers)(rng, arguments[index])
    return Case(f"{function}: {what} of argument {index}",
                lambda: program(function)(*arguments, function=function))


def misuse_junk(rng: random.Random) -> Case:
    function = rng.choice(["amax", "linear", "dequantize", "product"])
    arguments = right(function)
    index = rng.randrange(len(arguments))
    arguments[index] = rng.choice(JUNK)
    return Case(f"{function}: {type(arguments[index]).__name__} as argument {index}",
                lambda: program(function)(*arguments, function=function), TypeError)


def misuse_rows(rng: random.Random) -> Case:
    """Arguments that disagree about M. Tiled scales know 128 rows at a time."""
    function, index = rng.choice([("dequantize", 0), ("dequantize", 1), ("product", 0)])
    arguments = right(function)
    rows = rng.choice([1, 4, 6, 128, 300])
    arguments[index] = np.zeros((rows, arguments[index].shape[1]), arguments[index].dtype)
    return Case(f"{function}: {rows} rows of argument {index}",
                lambda: program(function)(*arguments, function=function))


def misuse_tiled(rng: random.Random) -> Case:
    """Scales that are not those of the layout, or of another size."""
    arguments = right("product")
    index = rng.choice([1, 3])
    rows, scales = (130, 32)[index // 2], arguments[index]
    what, arguments[index] = rng.choice([
        ("linear", np.zeros((rows, 4), scales.dtype)),
        ("a matrix", scales.reshape(-1, 16)),
        ("cut", scales.reshape(-1)[:-rng.choice((1, 16, 511))]),
        ("other columns", fp4.tiled(scales, rows, rng.choice((3, 5, 8)))),
        ("other rows", fp4.tiled(scales, rows + rng.choice((-1, 1, 300)), 4)),
        ("one tile more", np.zeros((scales.shape[0] + 1, 1, 512), scales.dtype)),
    ])
    if rng.random() < 0.2:
        what, index, arguments = "tiled data", 0, right("product")
        arguments[0] = fp4.tiled(arguments[0], 130, 64)
    return Case(f"scales: {what} of argument {index}", lambda: program("product")(*arguments))


def misuse_out(rng: random.Random) -> Case:
    """Arrays for the results that do not fit, and streams where there is no GPU."""
    x, a = right("linear")
    q, s = (np.zeros((5, size), np.uint8) for size in (32, 4))
    whole = np.zeros((5, 36), np.uint8)
    what, out = rng.choice([
        ("one", q), ("three", (q, s, s)), ("none", ()), ("dtype", (q, s.astype(np.float32))),
        ("shape", (q, s[:4])), ("order", (s, q)), ("strided", (whole[:, :32], s)),
        ("overlap", (q, q.reshape(-1)[:20].reshape(5, 4))),
        ("overlap with an argument", (x.view(np.uint8).reshape(-1)[:160].reshape(5, 32), s)),
    ])
    if rng.random() < 0.2:
        return Case("a stream of the CPU", lambda: compiled()(x, a, function="linear", stream=1))
    if rng.random() < 0.2:
        junk = rng.choice([value for value in JUNK if value is not None])
        return Case("out of another type",
                    lambda: compiled()(x, function="amax", out=junk), (TypeError, fp4.UsageError))
    return Case(f"out: {what}", lambda: compiled()(x, a, function="linear", out=out))


def misuse_count(rng: random.Random) -> Case:
    function = rng.choice(["amax", "linear", "dequantize", "product"])
    arguments = right(function)
    count = rng.choice([n for n in (0, 1, 2, 3, 4, 6, 9) if n != len(arguments)])
    given = (arguments * 9)[:count]
    return Case(f"{function}: {count} arguments",
                lambda: program(function)(*given, function=function))


def misuse_name(rng: random.Random) -> Case:
    name: Any = rng.choice([None, "", "AMAX", "amax\0", "é", "\ud800", "amax ", 3, b"amax", (1,)])
    expected = fp4.UsageError if name is None or isinstance(name, str) else TypeError
    return Case(f"function {name!r}", lambda: compiled()(matrix(), function=name), expected)


#===--- Programs ----------------------------------------------------------===#

def misuse_syntax(rng: random.Random) -> Case:
    """Cut programs, and characters that no program has."""
    text = rng.choice([QUANTIZE, product()])
    body = text[:text.rindex("}")]
    place = rng.randrange(text.index("@") + 1, len(body))
    letter = rng.choice("\0\x01\x7f☃\ud800")
    if rng.random() < 0.5:
        return Case(f"text cut at {place}", lambda: fp4.compile(body[:place] + "("),
                    fp4.CompileError)
    expected = fp4.UsageError if letter in "\0\ud800" else fp4.CompileError
    return Case(f"{letter!r} at {place}",
                lambda: fp4.compile(body[:place] + letter + body[place:] + "("), expected)


#: Parts of `product` that must fit the others, and what to write there.
_PARTS = {
    r"32x64x": "32x96x", r"x4xf8E4M3FN": "x5xf8E4M3FN", r"f8E4M3FN": "f8E8M0FNU",
    r", #fp4\.scale_layout<tiled_128x4>": "", r"fp4\.matmul": "fp4.matmuls",
    r"nvfp4": "nvfp5", r"alpha %": "alpha= %", r"tiled_128x4": "tiled_64x4",
    r"tensor<f32>": "tensor<bf16>", r"x32xf32": "x32xi8", r"%sw\b": "%ws", r"xf4E2M1FN": "xf16",
    r"xf32>": "x2xf32>", r"fp4\.name": "fp4.nam\\", r"return": "retrun", r"\?": "-3",
}


def misuse_semantics(rng: random.Random) -> Case:
    """A word of a program that does not fit the others."""
    text, (pattern, other) = product(), rng.choice(list(_PARTS.items()))
    found = rng.choice(list(re.finditer(pattern, text)))
    changed = text[:found.start()] + other + text[found.end():]
    return Case(f"{other!r} for {found.group()!r} at {found.start()}",
                lambda: fp4.compile(changed), fp4.CompileError)


def misuse_options(rng: random.Random) -> Case:
    word = rng.choice(["", "sm_1", "sm_100", "SM_100A", "x" * 300])
    junk: Any = rng.choice([3, 2.5, b"x", [1], object()])
    big = rng.choice([0, -1, 2**63, 2**70])
    return rng.choice([
        Case(f"target {word[:9]!r}", lambda: fp4.compile(QUANTIZE, target=word or "\0")),
        Case("target of another type", lambda: fp4.compile(QUANTIZE, target=junk), TypeError),
        Case(f"dims {big}", lambda: fp4.compile(QUANTIZE, dims={"M": big})),
        Case("dims of another name", lambda: fp4.compile(QUANTIZE, dims={word or "Q": 4}),
             fp4.CompileError),
        Case("dims by a str", lambda: fp4.compile(QUANTIZE, dims={"M": "4"}),  # type: ignore[dict-item]
             TypeError),
        Case("dims of another type", lambda: fp4.compile(QUANTIZE, dims=junk), TypeError),
        Case("text of another type", lambda: fp4.compile(junk), TypeError),
        Case("no such file", lambda: fp4.compile(FOLDER / f"{word[:9]}.mlir")),
        Case("a folder", lambda: fp4.compile(FOLDER)),
        Case("phase", lambda: compiled().ir(word)),
        Case("phase of another type", lambda: compiled().ir(junk), TypeError),
    ])


def misuse_ptxas(rng: random.Random) -> Case:
    """A ptxas that is missing, is none, or is no program."""
    path = FOLDER / rng.choice(["ptxas", "none/ptxas", ""])
    return Case(f"ptxas {path.name}",
                lambda: fp4.compile(SMALL, assemble=True, ptxas=path), fp4.CompileError)


SMALL = """func.func @f(%x: tensor<2x32xbf16>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<2x32xbf16> -> tensor<f32>
  return %a : tensor<f32>
}"""


def misuse_builder(rng: random.Random) -> Case:
    f, other = (fp4.Builder().function("f") for _ in range(2))
    x = f.argument("x", (4, 64))
    junk: Any = rng.choice(JUNK)
    q = f.quantize(x, amax=f.amax(x))
    word = rng.choice(["", "nvfp5", "a>", "\0", "tiled"])
    return rng.choice([
        Case("builder: format", lambda: f.quantize(x, word)),
        Case("builder: recipe", lambda: f.quantize(x, recipe=word + ">")),
        Case("builder: layout", lambda: f.quantize(x, layout=word)),
        Case("builder: element", lambda: f.argument("y", (1, 2), word)),
        Case("builder: function", lambda: other.amax(x)),
        Case("builder: linear scales", lambda: f.matmul(q, q)),
        Case("builder: no return", f.text),
        Case("builder: size", lambda: f.argument("y", (rng.choice((0, -1, 2**80)), 2))),
        Case("builder: junk", lambda: f.amax(junk), TypeError),
        Case("builder: junk product", lambda: f.matmul(junk, q), TypeError),
        Case("builder: junk result", lambda: f.returns(junk), TypeError),
    ])


def misuse_verified_builder(rng: random.Random) -> Case:
    """Makes a mistake that only the verifier finds."""
    builder = fp4.Builder()
    f = builder.function("f")
    x = f.argument("x", (4, rng.choice((64, 96))))
    ways: list[tuple[str, Callable[[], Any]]] = [
        ("no amax", lambda: f.quantize(x)),
        ("an amax", lambda: f.quantize(x, "mxfp4", amax=f.amax(x))),
        ("recipe", lambda: f.quantize(x, "mxfp4", recipe="transformer_engine")),
        ("rng", lambda: f.quantize(x, amax=f.amax(x), rng=f.argument("rng", (3,), "i64"))),
        ("transform", lambda: f.hadamard(x, fp4.Hadamard(size=rng.choice((7, 256))))),
        ("dimension", lambda: f.hadamard(x, dimension=rng.choice((-1, 2)))),
        ("lines", lambda: f.amax(x, per_row=True, per_column=True)),
    ]
    what, make = rng.choice(ways)
    f.returns(make())
    return Case(f"builder: {what}", lambda: fp4.compile(builder), fp4.CompileError)


#===--- Devices and files -------------------------------------------------===#

def misuse_device(rng: random.Random) -> Case:
    name, word = rng.choice(["check", "policy"]), rng.choice(["", "on", "DEFAULT", "\0"])
    number: Any = rng.choice([("seed", 0), ("seed", 2**64), ("threads", -1), ("threads", 2**32)])
    return rng.choice([
        Case(f"device {name}", lambda: fp4.Device("sim", **{name: word})),  # type: ignore[arg-type]
        Case(f"device {number}", lambda: fp4.Device("sim", **dict([number]))),
        Case("device seed", lambda: fp4.Device("sim", seed=1.5), TypeError),  # type: ignore[arg-type]
        Case("device selector", lambda: fp4.Device(rng.choice(["tpu", "cuda:x", "sim:0", "\0"]))),
        Case("device of another type", lambda: fp4.Device(rng.choice(JUNK[4:])), TypeError),
        Case("no such GPU", lambda: fp4.Device("cuda:999"), fp4.DeviceError),
        Case("device target", lambda: fp4.Device("sim", target=rng.choice(["sm_1", "x"]))),
        Case("timeline", lambda: fp4.Device("sim", timeline=FOLDER / "none" / "t.json")),
        Case("on junk", lambda: compiled().program().on(rng.choice(JUNK)), TypeError),
    ])


def misuse_closed(rng: random.Random) -> Case:
    """Uses an object after its device was closed."""
    with fp4.Device("sim", check="off") as device:
        closed = compiled().program(device)
        if rng.random() < 0.5:
            closed(matrix(), function="amax")
    return rng.choice([
        Case("closed: call", lambda: closed(matrix(), function="amax")),
        Case("closed: another program", lambda: compiled().program(device)(
            matrix(), function="amax")),
        Case("closed: synchronize", lambda: device.synchronize()),
        Case("closed: with verify", lambda: closed(matrix(), function="amax", verify=True)),
    ])


def misuse_file(rng: random.Random) -> Case:
    """Libraries that are none, are damaged, or cannot be written."""
    good, bad = FOLDER / "good.so", FOLDER / "bad.so"
    if not good.exists():
        compiled().save(good)
        (FOLDER / "text.so").write_text("no library")
        (FOLDER / "empty.so").write_bytes(b"")
    data = good.read_bytes()
    cut = rng.randrange(len(data) // 2)

    def load_cut() -> Any:
        bad.write_bytes(data[:cut])
        return fp4.load(bad)

    path = FOLDER / rng.choice(["none.so", "text.so", "empty.so", "", "none/x.so"])
    return rng.choice([
        Case(f"load {path.name}", lambda: fp4.load(path)),
        Case(f"load a library cut at {cut}", load_cut),
        Case("load junk", lambda: fp4.load(rng.choice(JUNK[4:])), TypeError),
        Case("save to a folder", lambda: compiled().save(FOLDER)),
        Case("save nowhere", lambda: compiled().save(FOLDER / "none" / "x.so")),
        Case("save NUL", lambda: compiled().save("x\0.so")),
        Case("save bytes", lambda: compiled().save(b"/x"), TypeError),  # type: ignore[arg-type]
        Case("tiled rows", lambda: fp4.tiled(matrix(), rng.choice((-1, 2**63)), 4)),
        Case("tiled junk", lambda: fp4.tiled(matrix(), "3", 4), TypeError),  # type: ignore[arg-type]
    ])


_KINDS: dict[Callable[[random.Random], Case], int] = {
    misuse_array: 25, misuse_junk: 5, misuse_rows: 5, misuse_tiled: 10, misuse_count: 5,
    misuse_name: 4, misuse_syntax: 10, misuse_semantics: 8, misuse_options: 8, misuse_ptxas: 1,
    misuse_builder: 6, misuse_verified_builder: 4, misuse_device: 6, misuse_closed: 4,
    misuse_file: 8, misuse_out: 6,
}
if torch:
    from misuse_torch import KINDS

    _KINDS.update(KINDS)


def cases(seed: int, count: int) -> Iterator[Case]:
    """The first `count` cases of a seed; each has its own generator."""
    for number in range(count):
        rng = random.Random(f"{seed}:{number}")
        kind = rng.choices(list(_KINDS), list(_KINDS.values()))[0]
        yield kind(rng)


def judge(case: Case) -> str:
    """Returns what is wrong with how a call ends; "" if it ends well."""
    try:
        result = case.call()
    except case.expected as error:
        if isinstance(error, fp4.Error) and not error.message:
            return "the exception has no message"
        return "" if str(error) else "the exception has no message"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return f"accepted: {result!r}"


def main(seed: int, count: int, first: int = 0) -> None:
    before = compiled()(matrix(), function="amax")
    for number, case in enumerate(cases(seed, count)):
        if number < first:
            continue
        print(f"case {number} of seed {seed}: {case.what}".encode("ascii", "replace").decode(),
              file=sys.stderr, flush=True)
        if wrong := judge(case):
            print(json.dumps([number, case.what, wrong]))
    after = compiled()(matrix(), function="amax", verify=True)
    assert after == before, "a call that was refused changed what others compute"
    print("done")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
