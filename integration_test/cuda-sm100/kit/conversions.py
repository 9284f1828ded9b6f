"""Cases of cvt with 4, 6 and 8 bits: every pattern of the narrow side, and noise with ties on the wide one."""
from __future__ import annotations

import functools
import random
import struct
from collections.abc import Iterator

from case import BLACKWELL, EVERY, HEADER, Case, words

COUNT = 4096  # pairs of inputs


def thread_kernel(body: str, inputs: int, outputs: int) -> str:
    """Thread i has words %x0.. of the input and stores %y0.."""
    loads = "".join(f"  ld.global.b32 %x{i}, [%in+{4 * i}];\n" for i in range(inputs))
    stores = "".join(f"  st.global.b32 [%out+{4 * i}], %y{i};\n" for i in range(outputs))
    return f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out) .maxntid 128, 1, 1 {{
  .reg .b32 %t, %b, %x<8>, %y<8>; .reg .b64 %in, %out; .reg .b16 %h<4>; .reg .b8 %q<4>; .reg .f32 %f<8>;
  ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %t, %b, 128, %t;
  mad.wide.u32 %in, %t, {4 * inputs}, %in; mad.wide.u32 %out, %t, {4 * outputs}, %out;
{loads}{body}{stores}  ret;
}}
"""


@functools.cache
def floats() -> bytes:
    """Pairs: ordinary ones, what lies halfway between values of few bits, and all that is special."""
    source = random.Random(3)
    special = [0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 1, 0x80000001, 0x7F7FFFFF,
               0x00800000, 0x43E00000, 0x43E80000, 0x40C00000, 0x40E00000, 0x477FE000, 0x3E800000, 0x3E000000]
    values = list(special)
    while len(values) < 2 * COUNT:
        exponent = source.randrange(100, 150)
        tie = source.getrandbits(6) << 17 | source.choice((0, 0, 1, 0x1FFFF))
        values.append(source.getrandbits(1) << 31 | exponent << 23 | (tie if source.getrandbits(1) else source.getrandbits(23)))
    return words(values)


@functools.cache
def halves() -> bytes:
    """Pairs of 16-bit floats: every pattern occurs once."""
    order = list(range(65536))
    random.Random(4).shuffle(order)
    return struct.pack("<65536H", *order)


def case(name: str, body: str, contents: bytes, inputs: int, outputs: int, targets: tuple[str, ...]) -> Case:
    threads = len(contents) // (4 * inputs)
    return Case(f"cvt_{name}", thread_kernel(body, inputs, outputs), contents, 4 * outputs * threads,
                targets=targets, grid=threads // 128)


def from_floats(to: str, qualifiers: str, bits: int) -> str:
    """Pairs of f32 to a pair of `bits` each."""
    convert = f"cvt.{qualifiers}.{to}.f32"
    move = "  mov.b32 %f0, %x0; mov.b32 %f1, %x1;\n"
    if bits == 4:
        return move + f"  {convert} %q0, %f0, %f1;\n  mov.b16 %h0, {{%q0, 0}};\n  cvt.u32.u16 %y0, %h0;\n"
    return move + f"  {convert} %h0, %f0, %f1;\n  cvt.u32.u16 %y0, %h0;\n"


def to_halves(source: str, target: str, bits: int, qualifiers: str) -> str:
    convert = f"cvt.{qualifiers}.{target}.{source}"
    if bits == 4:
        return f"  cvt.u16.u32 %h0, %x0;\n  mov.b16 {{%q0, %q1}}, %h0;\n  {convert} %y0, %q0;\n"
    return f"  cvt.u16.u32 %h0, %x0;\n  {convert} %y0, %h0;\n"


def cases() -> Iterator[Case]:
    pairs = floats()
    for to, bits in (("e2m1x2", 4), ("e2m3x2", 8), ("e3m2x2", 8), ("e4m3x2", 8), ("e5m2x2", 8)):
        for relu in ("", ".relu"):
            targets = EVERY if to in ("e4m3x2", "e5m2x2") else BLACKWELL
            yield case(f"{to}_f32{relu.replace('.', '_')}", from_floats(to, f"rn.satfinite{relu}", bits), pairs, 2, 1, targets)
    for mode in ("rz", "rp"):
        for satfinite in ("", ".satfinite"):
            yield case(f"ue8m0x2_f32_{mode}{satfinite.replace('.', '_')}",
                       from_floats("ue8m0x2", mode + satfinite, 8), pairs, 2, 1, BLACKWELL)
    every = words(range(65536))
    for source, bits in (("e2m1x2", 4), ("e2m3x2", 8), ("e3m2x2", 8), ("e4m3x2", 8), ("e5m2x2", 8)):
        patterns = words(range(256)) if bits == 4 else every
        if source in ("e2m3x2", "e3m2x2"):  # the upper two bits of a byte are zero
            patterns = words(i & 0x3F3F for i in range(65536) if not i & 0xC0C0)
        for relu in ("", ".relu"):
            targets = EVERY if source in ("e4m3x2", "e5m2x2") else BLACKWELL
            yield case(f"f16x2_{source}{relu.replace('.', '_')}", to_halves(source, "f16x2", bits, f"rn{relu}"),
                       patterns, 1, 1, targets)
    yield case("bf16x2_ue8m0x2", to_halves("ue8m0x2", "bf16x2", 8, "rn"), every, 1, 1, BLACKWELL)
    for to in ("e4m3x2", "e5m2x2"):
        yield case(f"{to}_f16x2", f"  cvt.rn.satfinite.{to}.f16x2 %h0, %x0;\n  cvt.u32.u16 %y0, %h0;\n",
                   halves(), 1, 1, EVERY)
    for mode in ("rz", "rp"):
        yield case(f"ue8m0x2_bf16x2_{mode}", f"  cvt.{mode}.satfinite.ue8m0x2.bf16x2 %h0, %x0;\n  cvt.u32.u16 %y0, %h0;\n",
                   halves(), 1, 1, BLACKWELL)
