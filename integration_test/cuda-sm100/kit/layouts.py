"""Cases of tensor memory itself: tcgen05.ld, .st and .cp in every shape."""
from __future__ import annotations

import functools
from collections.abc import Iterator

import tensor_memory as tm
from case import Case, noise, words

COLUMNS = 128
SHAPES = [("32x32b", 1, 1), ("32x32b", 16, 16), ("32x32b", 32, 32), ("16x64b", 1, 1), ("16x64b", 8, 8), ("16x64b", 16, 16),
          ("16x128b", 1, 2), ("16x128b", 4, 8), ("16x128b", 8, 16), ("16x256b", 1, 4), ("16x256b", 2, 8),
          ("16x256b", 4, 16), ("16x32bx2", 2, 2), ("16x32bx2", 8, 8), ("16x32bx2", 16, 16)]  # shape, num, registers
COPIES = ["32x128b.warpx4", "64x128b.warpx2::01_23", "64x128b.warpx2::02_13", "128x128b", "128x256b", "4x256b"]


@functools.cache
def numbered() -> bytes:
    """Each cell says where it is: lane * 65536 + column."""
    return words(lane << 16 | column for lane in range(tm.LANES) for column in range(COLUMNS))


def halves(shape: str) -> list[int]:
    return [0] if shape == "32x32b" else [0, 16]


def load_case(shape: str, num: int, count: int, lane: int, packed: bool) -> Case:
    split = ", 8" if shape == "16x32bx2" else ""
    suffix = ".pack::16b" if packed else ""
    drain = (f"  add.u32 %at, %mine, {lane << 16 | 4};\n"
             f"  tcgen05.ld.sync.aligned.{shape}.x{num}{suffix}.b32 {tm.registers('v', count)}, [%at]{split};\n"
             f"  tcgen05.wait::ld.sync.aligned;\n  mad.wide.u32 %out, %t, {4 * count}, %out;\n"
             + "".join(f"  st.global.b32 [%out+{4 * i}], %v{i};\n" for i in range(count)))
    return Case(f"ld_{shape}_x{num}_lane{lane}{'_pack' if packed else ''}",
                tm.kernel("", 0, COLUMNS, count, drain=drain), numbered(), 4 * tm.LANES * count)


def store_case(shape: str, num: int, count: int, lane: int, unpacked: bool) -> Case:
    split = ", 8" if shape == "16x32bx2" else ""
    suffix = ".unpack::16b" if unpacked else ""
    drain = "".join(f"  mad.lo.u32 %v{i}, %t, 256, {0x1000000 + i};\n" for i in range(count))
    drain += (f"  add.u32 %at, %mine, {lane << 16 | 4};\n"
              f"  tcgen05.st.sync.aligned.{shape}.x{num}{suffix}.b32 [%at]{split}, {tm.registers('v', count)};\n"
              "  tcgen05.wait::st.sync.aligned;\n" + tm.move_columns(True, COLUMNS, "out"))
    return Case(f"st_{shape}_x{num}_lane{lane}{'_unpack' if unpacked else ''}",
                tm.kernel("", 0, COLUMNS, COLUMNS, drain=drain), numbered(), 4 * tm.LANES * COLUMNS)


def copy_case(shape: str, swizzle: int = 0, group: int = 1) -> Case:
    """8 rows of 16 bytes, the next rows 128 bytes (swizzled: 1024) and the next 16 bytes 2048 further."""
    size = 16384 if swizzle else 8192
    value = tm.descriptor(0, 2048, 1024 if swizzle else 128, swizzle)
    steps = tm.address("d0", value) + f"  tcgen05.cp.cta_group::{group}.{shape} [%tmem+8], %d0;\n"
    name = shape.replace("::", "_").replace(".", "_") + ("_swizzled" if swizzle else "") + f"_group{group}"
    contents = b"".join(noise(size, rank + 1) + numbered() for rank in range(group))
    return Case(f"cp_{name}", tm.kernel(steps, size, COLUMNS, COLUMNS, group=group), contents,
                group * 4 * tm.LANES * COLUMNS, grid=group, shared=size)


def decompress_case(shape: str, bits: int) -> Case:
    steps = tm.address("d0", tm.descriptor(0, 2048, 128))
    steps += (f"  tcgen05.cp.cta_group::1.{shape}.b8x16.b{bits}x16_p{64 if bits == 4 else 32} "
              "[%tmem+8], %d0;\n")
    return Case(f"cp_{shape.replace('::', '_').replace('.', '_')}_of{bits}bits", tm.kernel(steps, 8192, COLUMNS, COLUMNS),
                noise(8192, bits) + numbered(), 4 * tm.LANES * COLUMNS, shared=8192)


def cases() -> Iterator[Case]:
    for shape, num, count in SHAPES:
        for lane in halves(shape):
            for narrow in (False, True):
                yield load_case(shape, num, count, lane, narrow)
                yield store_case(shape, num, count, lane, narrow)
    for shape in COPIES:
        if shape == "4x256b":
            continue  # which lanes it writes is a probe (uncertain.py)
        for group in (1, 2):
            yield copy_case(shape, 0, group)
        for bits in (4, 6):
            yield decompress_case(shape, bits)
    yield copy_case("128x128b", 2)
    yield copy_case("128x256b", 2)
