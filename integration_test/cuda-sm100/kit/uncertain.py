"""Probes: facts that the simulator infers, each with a kernel that shows what a device does.

The list is that of docs/reference/simulator.md, "What is uncertain". The output of a probe is an observation and not
a verdict: where the device says otherwise, the simulator is what has to change.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import products
import tensor_memory as tm
from case import Answer, Case, Probe, unpack, words
from products import A_COLUMN, LAST, META_COLUMN, OFFSET_B, SCALE_A, SCALE_B, SHARED


def equal_words(text: str, want: list[int]) -> Answer:
    return Answer(text, lambda image: list(unpack(image)[:len(want)]) == want)


def first(text: str, word: int) -> Answer:
    return Answer(text, lambda image: unpack(image)[0] == word)


def show(count: int) -> Callable[[bytes], str]:
    return lambda image: " ".join(f"{word:x}" for word in unpack(image)[:count])


# ---- Lanes of loads, stores and copies ------------------------------------------------------------------------------


def numbered(columns: int) -> bytes:
    return words(lane << 16 | column for lane in range(tm.LANES) for column in range(columns))


def load_quarter() -> Probe:
    drain = ("  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%tmem];\n  tcgen05.wait::ld.sync.aligned;\n"
             "  mad.wide.u32 %out, %t, 4, %out;\n  st.global.b32 [%out], %v0;\n")
    case = Case("probe_ld-quarter", tm.kernel("", 0, 16, 1, drain=drain), numbered(16), 512)
    return Probe(case, "tcgen05.ld by every warp at lane 0: whose lanes are read?", "loadBaseLane, lib/ISA/TmemLayout.cpp",
                 (equal_words("those of the warp's quarter", [lane << 16 for lane in range(128)]),
                  equal_words("those that the address names", [lane % 32 << 16 for lane in range(128)])))


def store_quarter() -> Probe:
    drain = ("  tcgen05.st.sync.aligned.32x32b.x1.b32 [%tmem], {%t};\n  tcgen05.wait::st.sync.aligned;\n"
             + tm.barrier(False) + tm.move_columns(True, 1, "out"))
    case = Case("probe_st-quarter", tm.kernel("", 0, 16, 1, drain=drain), numbered(16), 512)
    return Probe(case, "tcgen05.st by every warp at lane 0: whose lanes are written?", "loadBaseLane, lib/ISA/TmemLayout.cpp",
                 (equal_words("those of the warp's quarter", list(range(128))),
                  Answer("those that the address names", lambda image: unpack(image)[32:] ==
                         tuple(lane << 16 for lane in range(32, 128)))))


def narrow_copy() -> Probe:
    steps = tm.address("d0", tm.descriptor(0, 2048, 128)) + "  tcgen05.cp.cta_group::1.4x256b [%tmem], %d0;\n"
    case = Case("probe_cp-4x256b", tm.kernel(steps, 8192, 16, 8), words(range(0x1000, 0x1800)) + numbered(16), 4 * 128 * 8,
                shared=8192)

    def written(image: bytes) -> list[int]:
        return [lane for lane in range(128) if unpack(image)[8 * lane] != lane << 16]

    return Probe(case, "tcgen05.cp.4x256b: which lanes are written?", "copy4x256bLane, lib/ISA/TmemLayout.cpp",
                 (Answer("the first of each quarter", lambda image: written(image) == [0, 32, 64, 96]),
                  Answer("the last of each quarter", lambda image: written(image) == [31, 63, 95, 127]),
                  Answer("the first four", lambda image: written(image) == [0, 1, 2, 3])),
                 lambda image: f"lanes {written(image)}")


def shift() -> Probe:
    steps = "  add.u32 %r0, %tmem, 0x200000;\n  tcgen05.shift.cta_group::1.down [%r0];\n"
    case = Case("probe_shift", tm.kernel(steps, 128, 16, 16), bytes(128) + numbered(16), 4 * 128 * 16, shared=128)

    def column(image: bytes) -> list[int]:
        return [unpack(image)[16 * lane] >> 16 for lane in range(32, 64)]

    return Probe(case, "tcgen05.shift.down at lane 32: where do rows go?", "shiftDown, lib/Sim/Insn/TensorCore/Tcgen05Copy.cpp",
                 (Answer("lane i to i + 1, the first stays", lambda image: column(image) == [32, *range(32, 63)]),
                  Answer("lane i + 1 to i, the last stays", lambda image: column(image) == [*range(33, 64), 63])),
                 lambda image: f"lanes 32 to 63 hold rows {column(image)}")


# ---- Operands -------------------------------------------------------------------------------------------------------


def cells_image(fill: dict[int, list[int]], shared: bytes = b"") -> bytes:
    """Shared memory, and tensor memory whose columns `fill` names, of 128 words each; others are zero."""
    rows = [[fill.get(column, ())[lane] if column in fill else 0 for column in range(LAST)] for lane in range(128)]
    return shared.ljust(SHARED, b"\0") + words(word for row in rows for word in row)


def half(value: float) -> int:
    return int.from_bytes(struct.pack("<e", value), "little")


def b_of_ones(rows: int, size: int = 32, values: tuple[float, ...] = (1.0,)) -> bytes:
    """B in f16 whose rows all begin with `values`."""
    image = bytearray(SHARED)
    row = bytearray(size)
    for k, value in enumerate(values):
        row[2 * k:2 * k + 2] = struct.pack("<e", value)
    for i in range(rows):
        products.place(image, OFFSET_B, i, bytes(row))
    return bytes(image)


F16_B = tm.address("d1", tm.descriptor(OFFSET_B, 128, 256))


def lanes_of_d(image: bytes, columns: int) -> list[int]:
    """Column 0 of D in f32, as integers."""
    return [int(struct.unpack_from("<f", image, 4 * columns * lane)[0]) for lane in range(len(image) // (4 * columns))]


def ashift() -> Probe:
    p = products.Product(products.F16, products.F16, n=16)
    steps = (F16_B + f"  mov.u32 %r0, {products.instruction_descriptor(p):#x};\n  add.u32 %r1, %tmem, {A_COLUMN};\n"
             "  tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::discard [%tmem], [%r1], %d1, %r0, 0;\n")
    image = cells_image({A_COLUMN: [half(lane) for lane in range(128)], 0: [0] * 128}, b_of_ones(16))
    case = Case("probe_ashift", tm.kernel(steps, SHARED, LAST, 1), image, 512, shared=SHARED)
    return Probe(case, "tcgen05.mma.ashift: row r of the product has which row of A?", "shiftRowsDown, MmaOperands.cpp",
                 (Answer("r - 1, row 0 its own", lambda i: lanes_of_d(i, 1) == [0, *range(127)]),
                  Answer("r + 1, the last its own", lambda i: lanes_of_d(i, 1) == [*range(1, 128), 127]),
                  Answer("its own in the first row of each quarter, else r - 1", lambda i: lanes_of_d(i, 1) ==
                         [r if r % 32 == 0 else r - 1 for r in range(128)])),
                 lambda i: f"rows {lanes_of_d(i, 1)}")


def stationary(m: int) -> Probe:
    """A in tensor memory says its lane; the simulator refuses copies that differ."""
    p = products.Product(products.F16, products.F16, m=m, n=64, stationary=True)
    steps = (F16_B + f"  mov.u32 %r0, {products.instruction_descriptor(p):#x};\n  add.u32 %r1, %tmem, {A_COLUMN};\n"
             "  tcgen05.mma.ws.cta_group::1.kind::f16 [%tmem], [%r1], %d1, %r0, 0;\n")
    image = cells_image({A_COLUMN: [half(lane) for lane in range(128)]}, b_of_ones(64))
    case = Case(f"probe_ws-a-m{m}", tm.kernel(steps, SHARED, LAST, 1), image, 512, shared=SHARED)
    return Probe(case, f"tcgen05.mma.ws with M = {m}, A in tensor memory: which lane does each part of D read?",
                 "operandLane, lib/ISA/TmemLayout.cpp",
                 (Answer("its own: A is repeated", lambda i: lanes_of_d(i, 1) == list(range(128))),
                  Answer("the first copy", lambda i: lanes_of_d(i, 1) == [lane % m for lane in range(128)])),
                 lambda i: f"lanes {lanes_of_d(i, 1)}", assumes="its own: A is repeated")


def sparse_pair() -> Probe:
    p = products.Product(products.F16, products.F16, m=128, n=32, group=2, sparse=True)
    steps = (tm.address("d1", tm.descriptor(OFFSET_B, 128, 512)) +
             f"  mov.u32 %r0, {products.instruction_descriptor(p):#x};\n  add.u32 %r1, %tmem, {A_COLUMN};\n"
             f"  add.u32 %r2, %tmem, {META_COLUMN};\n"
             "  tcgen05.mma.sp.cta_group::2.kind::f16 [%tmem], [%r1], %d1, [%r2], %r0, 0;\n")
    fill = {A_COLUMN: [half(lane) for lane in range(128)], META_COLUMN: [0x44444444] * 128, 0: [0] * 128}
    image = cells_image(fill, b_of_ones(16, 64)) * 2
    case = Case("probe_sparse-pair-a", tm.kernel(steps, SHARED, LAST, 1, group=2), image, 1024, grid=2, shared=SHARED)

    def own(image: bytes) -> bool:
        found = lanes_of_d(image, 1)
        return all(found[lane] == lane % 128 for lane in range(256) if lane % 32 < 16)

    return Probe(case, "sparse pair with M = 128, A in tensor memory: lane of A for a lane of D?",
                 "operandLane, layout C, lib/ISA/TmemLayout.cpp", (Answer("the same lane", own),),
                 lambda i: f"lanes {lanes_of_d(i, 1)}")


def scale_quadrant() -> Probe:
    """A and B are one, and the copies of A's scales in the quadrants are 1, 2, 4 and 8."""
    p = products.Product(products.NVF4, products.NVF4, n=32, block=32)
    shared = bytearray(SHARED)
    for row in range(128):
        products.place(shared, 0, row, b"\x02" + bytes(31))
    for row in range(32):
        products.place(shared, OFFSET_B, row, b"\x02" + bytes(31))
    scales = [0x01010101 * (127 + lane // 32) for lane in range(128)]
    fill = {column: scales if column < SCALE_B else [0x7F7F7F7F] * 128 for column in range(SCALE_A, LAST)}
    case = Case("probe_scale-quadrant", tm.kernel(products.steps_of(p).replace(", 1;", ", 0;", 1), SHARED, LAST, 1),
                cells_image(fill | {0: [0] * 128}, bytes(shared)), 512, shared=SHARED)

    def rows(image: bytes, of_lane: Callable[[int], int]) -> bool:
        found = lanes_of_d(image, 1)
        return all(found[lane] == 2 << of_lane(lane) for lane in range(128))

    return Probe(case, "copies of A's scales in the four quadrants differ: which one does a row use?",
                 "scaleReadQuadrant, include/fp4/ISA/ScaleLayout.h",
                 (Answer("that of its lane", lambda i: rows(i, lambda lane: lane // 32)),
                  Answer("the first", lambda i: rows(i, lambda lane: 0))),
                 lambda i: f"twice the scales {lanes_of_d(i, 1)}", assumes="that of its lane")


def base_offset(base: int) -> Probe:
    """Rows of 128 bytes from `base` rows behind a multiple of 1024 on. Words say where they lie; the copy moves
    16 bytes of each row."""
    size = 32768
    steps = (tm.address("d0", tm.descriptor(128 * base, 16, 1024, 2, base)) +
             "  tcgen05.cp.cta_group::1.128x128b [%tmem], %d0;\n")
    case = Case(f"probe_base-offset-{base}", tm.kernel(steps, size, 16, 1), words(range(0, size, 4)) + numbered(16), 512, shared=size)

    def places(rotated: int) -> list[int]:
        begin = [128 * base + 128 * row for row in range(128)]
        return [at ^ ((at - 128 * rotated) >> 3 & 0x70) for at in begin]

    return Probe(case, f"a swizzled descriptor at row {base} of 8 with base offset {base}: how does it enter the swizzle?",
                 "swizzleWithBase, lib/ISA/SmemDescriptor.cpp",
                 (equal_words("rows count from the start of the matrix", places(base)),
                  equal_words("not at all: rows count from a multiple of 1024", places(0))), show(16))


def zero_columns() -> Probe:
    """Spans of 3 that skip and of 5 that use."""
    p = products.Product(products.F16, products.F16, m=128, n=64, stationary=True)
    mask = 1 << 39 | 2 << 40 | 4 << 48
    shared = bytearray(b_of_ones(64))
    for i in range(128):
        products.place(shared, 0, i, struct.pack("<e", 1.0) + bytes(30))
    steps = (tm.address("d0", tm.descriptor(0, 128, 256)) + F16_B +
             f"  mov.u32 %r0, {products.instruction_descriptor(p):#x};\n  mov.b64 %d2, {mask:#x};\n"
             "  tcgen05.mma.ws.cta_group::1.kind::f16 [%tmem], %d0, %d1, %r0, 0, %d2;\n")
    case = Case("probe_zero-columns", tm.kernel(steps, SHARED, LAST, 64), cells_image({}, bytes(shared)), 4 * 128 * 64, shared=SHARED)

    def row(image: bytes) -> list[int]:
        return [int(x) for x in struct.unpack_from("<64f", image)]

    def pattern(zeros: int, ones: int, begin: int) -> list[int]:
        return [int((i % (zeros + ones) < ones) if begin else (i % (zeros + ones) >= zeros)) for i in range(64)]

    return Probe(case, "zero-column mask, skip span 3, use span 5, first span 'use': which columns are zero?",
                 "ZeroColumnMask::zeroColumns, lib/ISA/ZeroColumnMask.cpp",
                 (Answer("5 are used, 3 are zero", lambda i: row(i) == pattern(3, 5, 1)),
                  Answer("3 are used, 5 are zero", lambda i: row(i) == pattern(5, 3, 1)),
                  Answer("3 are zero, 5 are used", lambda i: row(i) == pattern(3, 5, 0))), lambda i: str(row(i)))


# ---- Arithmetic -----------------------------------------------------------------------------------------------------


def scaled_d() -> Probe:
    """D = 3 * 2^-149 (odd), scaled by 1/2: half a unit is lost or rounded."""
    p = products.Product(products.F16, products.F16, n=16)
    steps = (tm.address("d0", tm.descriptor(0, 128, 256)) + F16_B + f"  mov.u32 %r0, {products.instruction_descriptor(p):#x};\n"
             "  tcgen05.mma.cta_group::1.kind::f16 [%tmem], %d0, %d1, %r0, 1, 1;\n")
    case = Case("probe_scale-input-d", tm.kernel(steps, SHARED, LAST, 1), cells_image({0: [3] * 128}), 512, shared=SHARED)
    return Probe(case, "scale-input-d: half of D = 3 * 2^-149, and nothing is added", "multiplyRows, Tcgen05Mma.cpp",
                 (first("cut to 2^-149", 1), first("rounded to 2^-148", 2), first("flushed to zero", 0)), show(1))


def fp4_rows(a: bytes, scales_a: int, scales_b: int, d: int, name: str) -> Case:
    """Rows of 32 bytes `a` times ones in every group, block 16, ue4m3; four scales in a word."""
    p = products.Product(products.NVF4, products.NVF4, n=32, block=16)
    shared = bytearray(SHARED)
    for row in range(128):
        products.place(shared, 0, row, a)
    for row in range(32):
        products.place(shared, OFFSET_B, row, b"\x22" * 32)
    fill = {column: [scales_a if column < SCALE_B else scales_b] * 128 for column in range(SCALE_A, LAST)}
    steps = products.steps_of(products.Product(products.NVF4, products.NVF4, n=32, block=16, steps=1))
    assert p.n == 32
    return Case(name, tm.kernel(steps, SHARED, LAST, 1), cells_image(fill | {0: [d] * 128}, bytes(shared)), 512, shared=SHARED)


def empty_group() -> Probe:
    """Group 0 has zeros and a scale of 2^40; group 1 has one 1 and scales of 1: 36 bits below."""
    case = fp4_rows(bytes(8) + b"\x02" + bytes(23), 0x7F7F7F00 | 147, 0x7F7F7F00 | 147, 0, "probe_empty-group")
    return Probe(case, "a group whose products are all zero, with a large scale: does it push others out?",
                 "groupTerm, lib/Numerics/Fp4Mma.cpp", (first("no: the sum is 1", 0x3F800000), first("yes: the sum is 0", 0)),
                 show(1))


def sign_of_zero() -> Probe:
    """A sum of -2^-152, below the smallest number."""
    case = fp4_rows(b"\x0A" + bytes(31), 0x7F7F7F00 | 51, 0x7F7F7F00 | 51, 0, "probe_sign-of-zero")
    return Probe(case, "a negative sum of fp4 products that is cut to zero: which sign?", "fp4MmaElement, lib/Numerics/Fp4Mma.cpp",
                 (first("+0", 0), first("-0", 0x80000000)), show(1))


def pair_arithmetic() -> Probe:
    p = products.Product(products.NVF4, products.NVF4, m=256, n=64, group=2, block=16, ue4m3=True)
    found = products.gemm_case(p)
    case = Case("probe_pair-arithmetic", found.ptx, found.data, found.size, grid=2, shared=found.shared)
    return Probe(case, "NVFP4 MMAs of a pair on random data: the sums of one CTA?", "numerics.md, cta_group::2",
                 (), lambda image: f"bytes {image[:16].hex()}...")


def cases() -> Iterator[Probe]:
    yield from (load_quarter(), store_quarter(), narrow_copy(), shift(), ashift(), stationary(64), stationary(32),
                sparse_pair(), scale_quadrant(), base_offset(1), base_offset(4), zero_columns(), scaled_d(), empty_group(),
                sign_of_zero(), pair_arithmetic())
