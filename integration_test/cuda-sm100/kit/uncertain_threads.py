"""Probes that need no tensor memory: conversions with random bits, matrix moves, tensor maps, reciprocals.

The probes have no list of answers: the report has the bytes of the device and those of the simulator.
"""
from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from case import BLACKWELL, EVERY, HEADER, TCGEN05, Case, Probe, TensorMap, noise, unpack, words
from conversions import thread_kernel


def digest(image: bytes) -> str:
    return f"{len(image)} bytes with SHA-256 {hashlib.sha256(image).hexdigest()[:16]}"


def random_bits(to: str, elements: int, fields: int, exact: float, half: float) -> Probe:
    """Threads 0 to 31: all elements halfway between two values, one random bit set. Threads 32 to 95: a small
    fraction above a value, all random bits set but one. An element goes up when its random bits say so."""
    rows = []
    step = 2 * (half - exact)
    for i in range(32):
        rows.append((half, 1 << i))
    for fraction in (2.0 ** -7, 2.0 ** -12):
        for i in range(32):
            rows.append((exact + step * fraction, ~(1 << i) & 0xFFFFFFFF))
    contents = b"".join(struct.pack("<fI", value, bits) for value, bits in rows)
    contents += bytes(8 * (128 - len(rows)))
    move = "  mov.b32 %f0, %x0;\n"
    if elements == 2:
        body = move + f"  cvt.rs.{to}.f32 %y0, %f0, %f0, %x1;\n"
    elif to == "e2m1x4":
        body = move + f"  cvt.rs.satfinite.{to}.f32 %h0, {{%f0, %f0, %f0, %f0}}, %x1;\n  cvt.u32.u16 %y0, %h0;\n"
    else:
        body = move + f"  cvt.rs.satfinite.{to}.f32 %y0, {{%f0, %f0, %f0, %f0}}, %x1;\n"
    case = Case(f"probe_cvt-rs-{to}", thread_kernel(body, 2, 1), contents, 512, targets=TCGEN05)

    def deciders(image: bytes) -> str:
        found, low = unpack(image), min(unpack(image)[:32])
        parts = []
        for element in range(elements):
            mask = (1 << fields) - 1 << fields * element
            parts.append([i for i in range(32) if found[i] & mask != low & mask])
        return f"bits that alone carry a half, the lowest element first: {parts}; {digest(image)}"

    return Probe(case, f"cvt.rs.{to}: which random bits serve which element?", "simulator.md, cvt.rs", (), deciders)


def matrix_kernel(load: str, registers: int) -> str:
    """A warp stores 512 bytes, each lane names a row of 16 of them, and the lanes store what they get."""
    values = "{" + ", ".join(f"%v{i}" for i in range(registers)) + "}"
    stores = "".join(f"  st.global.b32 [%out+{4 * i}], %v{i};\n" for i in range(registers))
    return f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out) .reqntid 32, 1, 1 {{
  .shared .align 128 .b8 tile[512]; .reg .b32 %t, %at, %v<4>; .reg .b64 %in, %out;
  ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out]; mov.u32 %t, %tid.x; mov.u32 %at, tile;
  mad.wide.u32 %in, %t, 16, %in; ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%in];
  mad.lo.u32 %at, %t, 16, %at; st.shared.v4.b32 [%at], {{%v0, %v1, %v2, %v3}}; bar.warp.sync 0xffffffff;
  {load} {values}, [%at];
  mad.wide.u32 %out, %t, {4 * registers}, %out;
{stores}  ret;
}}
"""


def matrix_moves() -> Iterator[Probe]:
    for name, load, registers in (("m16n16-trans-b8", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 2),
                                  ("m16n16-trans-b6", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32", 2),
                                  ("m16n16-trans-b4", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b4x16_p64", 2),
                                  ("m8n16-b6", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32", 1),
                                  ("m8n16-b4", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64", 1)):
        case = Case(f"probe_ldmatrix-{name}", matrix_kernel(load, registers), noise(512, 7), 128 * registers, block=32,
                    targets=BLACKWELL)
        yield Probe(case, f"{load}: which bits come into which lane?", "lib/Sim/Insn/Memory/MatrixMove.cpp", (), digest)
    store = """  mov.u32 %at, tile; and.b32 %v1, %t, 7; mad.lo.u32 %at, %v1, 16, %at; ld.global.b32 %v0, [%in];
  stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%at], {%v0}; bar.warp.sync 0xffffffff;
  mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at; ld.shared.b32 %v0, [%at]; mad.wide.u32 %out, %t, 4, %out; st.global.b32 [%out], %v0;"""
    ptx = f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out) .reqntid 32, 1, 1 {{
  .shared .align 128 .b8 tile[512]; .reg .b32 %t, %at, %v<4>; .reg .b64 %in, %out;
  ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out]; mov.u32 %t, %tid.x; mad.wide.u32 %in, %t, 4, %in;
{store}
  ret;
}}
"""
    yield Probe(Case("probe_stmatrix-m16n8-trans-b8", ptx, noise(128, 8), 128, block=32, targets=BLACKWELL),
                "stmatrix.m16n8.trans.b8: where do the bytes go?", "lib/Sim/Insn/Memory/MatrixMove.cpp", (), digest)


def tensor_maps() -> Iterator[Probe]:
    """The driver's 128 bytes, less the address."""
    ptx = f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .align 64 .b8 map[128]) .maxntid 32, 1, 1 {{
  .reg .b64 %out; .reg .b32 %v; .reg .b32 %t; ld.param.u64 %out, [p_out];
""" + "".join(f"  ld.param.b32 %v, [map+{at}]; st.global.b32 [%out+{at}], %v;\n" for at in range(8, 128, 4)) + "  ret;\n}\n"
    for name, kind, swizzle, targets in (("u8", 0, 0, EVERY), ("bf16-swizzled", 9, 3, EVERY), ("u4-align8", 13, 3, TCGEN05),
                                         ("u4-align16", 14, 3, TCGEN05), ("u6-align16", 15, 3, TCGEN05),
                                         ("f32-atom32", 7, 4, TCGEN05)):
        bits = {0: 8, 9: 16, 13: 4, 14: 4, 15: 6, 7: 32}[kind]
        box = 32 if kind == 7 else 128 if kind >= 13 else 64
        matrix = TensorMap(kind, (1024, 64), (1024 * bits // 8,), (box, 8), swizzle)
        case = Case(f"probe_map-{name}", ptx, bytes(1024), 128, block=1, map=matrix, targets=targets)
        yield Probe(case, f"the bytes of a tensor map, {name}", "lib/ISA/TensorMapEncoding.cpp", (),
                    lambda image: " ".join(f"{word:x}" for word in unpack(image)[2:20]))


def reciprocals() -> Probe:
    values = [0x3F800000 + 8192 * i + i * i % 8191 for i in range(1024)] + [i << 21 | 0x155 * i % 2 ** 21 for i in range(2048)]
    values += [1 << 31 | v for v in values[:1024]]
    case = Case("probe_rcp-approx", thread_kernel("  mov.b32 %f0, %x0;\n  rcp.approx.ftz.f32 %f1, %f0;\n  mov.b32 %y0, %f1;\n", 1, 1),
                words(values), 4 * len(values), targets=EVERY, grid=len(values) // 128)
    return Probe(case, "rcp.approx.ftz.f32: the bits of an H200?", "approximateReciprocal", (), digest)


def cases() -> Iterator[Probe]:
    yield random_bits("e2m1x4", 4, 4, 1.0, 1.25)
    yield random_bits("e4m3x4", 4, 8, 1.0, 1.0625)
    yield random_bits("e5m2x4", 4, 8, 1.0, 1.125)
    yield random_bits("e2m3x4", 4, 8, 1.0, 1.0625)
    yield random_bits("e3m2x4", 4, 8, 1.0, 1.125)
    yield random_bits("f16x2", 2, 16, 1.0, 1.00048828125)
    yield random_bits("bf16x2", 2, 16, 1.0, 1.00390625)
    yield from matrix_moves()
    yield from tensor_maps()
    yield reciprocals()
