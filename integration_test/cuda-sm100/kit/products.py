"""Cases of tcgen05.mma: every kind, shape and data path that the simulator is sure of.

Data are of two sets: `exact` of small integers, whose sums are exact in any order, so that a difference
is one of layout; and `random` of many exponents, so that a difference is one of arithmetic. Matrices are
K-major without swizzle: core matrices of 8 rows of 16 bytes, the next 16 bytes of the rows 128 further.
Descriptors are spelled here from PTX ISA and do not come from the compiler.
"""
from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import tensor_memory as tm
from case import Case, words

OFFSET_B = 4096  # of the image of shared memory; A has at most 128 rows of 32 bytes
A_COLUMN, META_COLUMN, SCALE_A, SCALE_B = 256, 264, 272, 276
LAST = 288  # columns of the image of tensor memory
SHARED = OFFSET_B + 32 * 256  # bytes of the image of shared memory


@dataclass(frozen=True)
class Element:
    """A type of factors: number in the instruction descriptor, bits, codes of the values -2 to 2 for
    exact data, and a mask and a maximum of the codes that are finite."""
    name: str
    kind: str
    code: int
    bits: int
    small: tuple[int, ...]
    finite: int  # codes below, besides the sign
    sign: int


def floating(name: str, kind: str, code: int, bits: int, one: int, two: int, finite: int) -> Element:
    sign = 1 << (bits - 1) if bits != 6 else 32
    return Element(name, kind, code, bits, (0, one, two, one | sign, two | sign), finite, sign)


F16 = floating("f16", "f16", 0, 16, 0x3C00, 0x4000, 0x7C00)
BF16 = floating("bf16", "f16", 1, 16, 0x3F80, 0x4000, 0x7F80)
TF32 = floating("tf32", "tf32", 2, 32, 0x3F800000, 0x40000000, 0x7F800000)
E4M3 = floating("e4m3", "f8f6f4", 0, 8, 0x38, 0x40, 0x7F)
E5M2 = floating("e5m2", "f8f6f4", 1, 8, 0x3C, 0x40, 0x7C)
E2M3 = floating("e2m3", "f8f6f4", 3, 6, 0x08, 0x10, 0x20)
E3M2 = floating("e3m2", "f8f6f4", 4, 6, 0x0C, 0x10, 0x20)
E2M1 = floating("e2m1", "f8f6f4", 5, 4, 2, 4, 8)
S8 = Element("s8", "i8", 1, 8, (0, 1, 2, 0xFF, 0xFE), 128, 128)
U8 = Element("u8", "i8", 0, 8, (0, 1, 2, 3, 4), 128, 128)
PLAIN = (F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, S8, U8)
MX8 = tuple(replace(e, kind="mxf8f6f4") for e in (E4M3, E5M2, E2M3, E3M2, E2M1))
MXF4 = replace(E2M1, kind="mxf4", code=1)
NVF4 = replace(E2M1, kind="mxf4nvf4", code=1)


@dataclass(frozen=True)
class Product:
    a: Element
    b: Element
    m: int = 128
    n: int = 64
    group: int = 1
    block: int = 0  # elements of a scale; 0 without scales
    ue4m3: bool = False
    in_tmem: bool = False
    data: str = "random"
    half: bool = False  # D in f16
    steps: int = 2
    sparse: bool = False
    stationary: bool = False

    @property
    def packed(self) -> bool:
        return self.a.kind in ("mxf4", "mxf4nvf4")

    @property
    def rows(self) -> int:
        return self.m // self.group

    @property
    def columns(self) -> int:
        """The columns of D in tensor memory."""
        if self.stationary:
            return self.n * self.m // 128
        return self.n // 2 if self.group == 2 and self.m == 128 and not self.sparse else self.n

    @property
    def name(self) -> str:
        scales = f"_block{self.block}{'_ue4m3' if self.ue4m3 else ''}" if self.block else ""
        flags = "".join(text for text, on in (("_tmem", self.in_tmem), ("_half", self.half), ("_ws", self.stationary),
                                              ("_sparse", self.sparse)) if on)
        return (f"mma_{self.a.kind}_{self.a.name}_{self.b.name}{scales}_m{self.m}n{self.n}_group{self.group}"
                f"{flags}_{self.data}")


def instruction_descriptor(p: Product) -> int:
    """PTX ISA, "Instruction descriptor"."""
    value = p.a.code << 7 | p.b.code << 10 | p.n >> 3 << 17 | (1 << 2 if p.sparse else 0)
    if p.block:
        return value | p.m >> 7 << 27 | (0 if p.ue4m3 else 1 << 23)
    result = 2 if p.a.kind == "i8" else 0 if p.half else 1
    return value | result << 4 | p.m >> 4 << 24


def element(e: Element, data: str, source: random.Random) -> int:
    if data == "exact":
        return e.small[source.randrange(len(e.small))]
    if e.bits == 32:  # exponents around one: products of all are finite
        return source.getrandbits(1) << 31 | source.randrange(97, 157) << 23 | source.getrandbits(23)
    if e.name == "bf16":
        return source.getrandbits(1) << 15 | source.randrange(97, 157) << 7 | source.getrandbits(7)
    return source.randrange(e.finite) | (e.sign if source.getrandbits(1) else 0)


def row_bytes(p: Product, e: Element, source: random.Random, in_tmem: bool = False) -> bytearray:
    """32 bytes of K. Elements of 4 and 6 bits next to wider ones take the front of 16 bytes for 16 of
    them in shared memory, and a byte each in tensor memory (4 bits in the middle of it)."""
    row, count = bytearray(32), 64 if p.packed else 32 if e.bits < 16 else 256 // e.bits
    for i in range(count):
        code, at = element(e, p.data, source), i * e.bits
        if e.bits < 8 and not p.packed:
            at = 8 * i + (2 if e.bits == 4 else 0) if in_tmem else i // 16 * 128 + i % 16 * e.bits
        for bit in range(e.bits):
            row[(at + bit) // 8] |= (code >> bit & 1) << (at + bit) % 8
    return row


def place(image: bytearray, offset: int, row: int, contents: bytes | bytearray) -> None:
    """A row of 32 (of a sparse product's B: 64) bytes into core matrices."""
    size = len(contents)
    for byte in range(size):
        image[offset + row // 8 * 8 * size + row % 8 * 16 + byte // 16 * 128 + byte % 16] = contents[byte]


def scale(p: Product, source: random.Random) -> int:
    if p.data == "exact":
        return 0x38 if p.ue4m3 else 127
    return source.randrange(1, 0x7F) if p.ue4m3 else source.randrange(117, 138)


def result_word(p: Product, source: random.Random) -> int:
    if p.a.kind == "i8":
        return source.randrange(-99, 99) & 0xFFFFFFFF
    value = source.randrange(-8, 9) if p.data == "exact" else source.gauss(0, 30)
    return int.from_bytes(struct.pack("<e" if p.half else "<f", value), "little")


def operand_lanes(p: Product, row: int) -> tuple[int, ...]:
    """Lanes of row `row` of A in tensor memory: D's layouts A to F of PTX ISA."""
    if p.group == 2 and p.m == 128:
        return row, row + 64
    if p.group == 1 and p.m == 64 and not p.stationary:
        return (row // 16 * 32 + row % 16,)
    return (row,)


def image_of(p: Product, rank: int) -> bytes:
    """Shared memory, and then tensor memory, of one block."""
    source = random.Random(f"{p.name} {rank}")
    shared = bytearray(SHARED)
    cells = [[0] * LAST for _ in range(tm.LANES)]
    for row in range(p.rows):
        if p.in_tmem:
            contents = struct.unpack("<8I", row_bytes(p, p.a, source, True))
            for lane in operand_lanes(p, row):
                cells[lane][A_COLUMN:A_COLUMN + 8] = contents
        else:
            place(shared, 0, row, row_bytes(p, p.a, source))
    for row in range(p.n // p.group):
        place(shared, OFFSET_B, row, row_bytes(p, p.b, source))
    rows_of_scales = [[scale(p, source) for _ in range(4)] for _ in range(32 * (LAST - SCALE_A))]
    for lane in range(tm.LANES):
        cells[lane][:p.columns] = [result_word(p, source) for _ in range(p.columns)]
        for column in range(SCALE_A, LAST):  # the quadrants hold copies
            scales = rows_of_scales[(column - SCALE_A) * 32 + lane % 32]
            cells[lane][column] = int.from_bytes(bytes(scales), "little")
    if p.block and p.group == 2:  # both blocks have the scales of all columns of B
        share_columns(p, cells)
    return bytes(shared) + words(word for row in cells for word in row)


def share_columns(p: Product, cells: list[list[int]]) -> None:
    source = random.Random(p.name + " scales")
    columns = [[int.from_bytes(bytes(scale(p, source) for _ in range(4)), "little") for _ in range(32)]
               for _ in range(SCALE_B, LAST)]
    for lane in range(tm.LANES):
        for i, values in enumerate(columns):
            cells[lane][SCALE_B + i] = values[lane % 32]


def steps_of(p: Product) -> str:
    """PTX of the product `p`, `steps` times, so that the rounding of D into the next sum shows."""
    text = tm.address("d0", tm.descriptor(0, 128, 256)) + tm.address("d1", tm.descriptor(OFFSET_B, 128, 256))
    text += f"  mov.u32 %r0, {instruction_descriptor(p):#x};\n"
    text += f"  add.u32 %r1, %tmem, {A_COLUMN};\n  add.u32 %r2, %tmem, {SCALE_A};\n  add.u32 %r3, %tmem, {SCALE_B};\n"
    qualifier = {0: "", 16: ".block_scale.block16", 32: ".block_scale.block32" if p.a.kind != "mxf8f6f4" else ".block_scale"}
    scales = ", [%r2], [%r3]" if p.block else ""
    ws = ".ws" if p.stationary else ""
    for _ in range(p.steps):
        text += (f"  tcgen05.mma{ws}.cta_group::{p.group}.kind::{p.a.kind}{qualifier[p.block]} [%tmem], "
                 f"{'[%r1]' if p.in_tmem else '%d0'}, %d1, %r0{scales}, 1;\n")
    return text


def gemm_case(p: Product) -> Case:
    def contents() -> bytes:
        return b"".join(image_of(p, rank) for rank in range(p.group))

    return Case(p.name, tm.kernel(steps_of(p), SHARED, LAST, p.columns, group=p.group), contents,
                p.group * 4 * tm.LANES * p.columns, grid=p.group, shared=SHARED,
                targets=("sm_100a",) if p.a.kind == "i8" else ("sm_100a", "sm_103a"))


def shapes(p: Product) -> Iterator[Product]:
    """Every M of one CTA and of a pair, A in shared and in tensor memory."""
    smallest = 128 if p.block else 64
    for group in (1, 2):
        for m in sorted({smallest * group if not (p.block and group == 2) else 128, 128 * group}):
            for in_tmem in (False, True):
                yield replace(p, m=m, group=group, n=32 * group, in_tmem=in_tmem)


def cases() -> Iterator[Case]:
    for e in PLAIN:
        for data in ("exact", "random"):
            for p in shapes(Product(e, e, data=data)):
                yield gemm_case(p)
    for a in (E4M3, E2M3, E2M1):  # mixed
        for b in (E5M2, E3M2, E2M1):
            yield gemm_case(Product(a, b, n=32))
    yield gemm_case(Product(F16, F16, half=True, data="exact"))
    yield gemm_case(Product(F16, F16, half=True))
    scaled = [Product(e, e, block=32) for e in MX8] + [Product(MX8[0], MX8[4], block=32)]
    scaled += [Product(MXF4, MXF4, block=32), Product(NVF4, NVF4, block=32), Product(NVF4, NVF4, block=16),
               Product(NVF4, NVF4, block=16, ue4m3=True)]
    for p in scaled:
        for data in ("exact", "random"):
            for shaped in shapes(replace(p, data=data)):
                if not (shaped.group == 2 and shaped.m == 128):  # its scales lie elsewhere
                    yield gemm_case(shaped)
    for n in (8, 96, 192, 256):
        yield gemm_case(Product(NVF4, NVF4, block=16, ue4m3=True, n=n, data="exact"))
        yield gemm_case(Product(NVF4, NVF4, block=16, ue4m3=True, n=max(n, 16), m=256, group=2))
