"""The cost of reading registers: instructions whose operands are chosen one by one, in the machine
code.

ptxas assembles a loop, whose instructions are then overwritten. The results of the loop mean
nothing.
"""
from __future__ import annotations

import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ptx
from cuda import Device, Failure, resolve
from instructions import difference, span

COUNT, POOL = 256, 64
NONE = 255  # RZ
# Opcode and modifiers of sm_90a; the words have their operands at bits 16 (result), 24, 32 and 64.
OPS = {"LOP3": (0x7212, 0x078E1E00), "IMAD": (0x7224, 0x078E0200), "FFMA": (0x7223, 0), "PRMT": (0x7216, 0),
       "SHF": (0x7219, 0x00010E00), "IADD3": (0x7210, 0x07FFE000), "FADD": (0x7221, 0), "FMUL": (0x7220, 0x00400000),
       "HFMA2": (0x7235, 0), "F2FP": (0x723E, 0x00001000), "VIMNMX": (0x7248, 0x03FE0100), "HMNMX2": (0x7240, 0x07A40200),
       "FMNMX": (0x7209, 0x07800000),
       # the second operand is an immediate, or a uniform register
       "LOP3.I": (0x7812, 0x078EC000), "IMAD.I": (0x7824, 0x078E0200), "WIDE.I": (0x7825, 0x078E0000), "VIADD.I": (0x7836, 0),
       "FMUL.I": (0x7820, 0x00400000), "PRMT.I": (0x7816, 0), "VIADD.U": (0x7C36, 0x08000000), "IADD3.U": (0x7C10, 0x0FFFE000)}
TWO = {"FADD", "FMUL", "F2FP", "VIMNMX", "HMNMX2", "FMNMX"}  # operands
WITHOUT = TWO - {"F2FP"} | {"VIADD.I", "VIADD.U", "FMUL.I"}  # no bits for a third
FIXED = {"i": 0x11000, "u": 4}


@dataclass
class Insn:
    """`sources`: for each operand the bank (e and o: even and odd registers, 0 to 3: modulo 4, a:
    any), s (the same register as the operand before), k (one register in all instructions, kept for
    reuse), i (an immediate), u (a uniform register) or - (none)."""
    op: str
    sources: str


def template() -> str:
    setup = "\n".join(f"  add.u32 %x{i}, %thread, {1065353216 + 77 * i}; mov.b32 %f{i}, %x{i};" for i in range(POOL))
    body = "\n".join(f"  fma.rn.f32 %f{i % POOL}, %f{i % POOL}, %f{(i + 1) % POOL}, %f{(i + 2) % POOL};" for i in range(COUNT))
    keep = "\n".join(f"  mov.b32 %x{i}, %f{i};" for i in range(POOL))
    code = ptx.timed(setup, body, [f"%x{i}" for i in range(POOL)], registers=f"  .reg .b32 %x<{POOL}>; .reg .f32 %f<{POOL}>;", block=512)
    return code.replace("  xor.b32 %sink, %sink, %x0;", keep + "\n  xor.b32 %sink, %sink, %x0;")


def assemble(target: str) -> bytes:
    assembler = os.environ.get("FP4_PTXAS") or shutil.which("ptxas")
    if not assembler:
        raise Failure("needs ptxas on PATH or in $FP4_PTXAS")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder, "k.ptx"), pathlib.Path(folder, "k.cubin")
        source.write_text(resolve(template(), target), encoding="utf-8")
        subprocess.run([assembler, f"-arch={target}", str(source), "-o", str(cubin)], check=True)
        return cubin.read_bytes()


def find(cubin: bytes) -> tuple[list[int], list[int]]:
    """Finds the FFMAs, of which there are few others between, and the registers that they write."""
    places = [at for at in range(0, len(cubin) - 15, 16)
              if struct.unpack_from("<H", cubin, at)[0] == OPS["FFMA"][0] and cubin[at + 15] < 64]
    if len(places) != COUNT or places[-1] - places[0] > 16 * (COUNT + 8):
        raise Failure("ptxas did not leave the loop as it was")
    return places, sorted({cubin[at + 2] for at in places})


class Chooser:
    def __init__(self, registers: list[int]) -> None:
        self.kept, self.registers, self.random = registers[:3], registers[3:-1], random.Random(1)

    def take(self, bank: str) -> int:
        fits = {"e": lambda r: r % 2 == 0, "o": lambda r: r % 2 == 1, "a": lambda _: True}.get(bank, lambda r: r % 4 == int(bank))
        return self.random.choice([r for r in self.registers if fits(r)])


def encode(insn: Insn, chooser: Chooser, last: bool) -> bytes:
    operands, reuse = [], 0
    for slot, bank in enumerate(insn.sources):
        if bank == "k":
            operands.append(chooser.kept[slot])
            reuse |= 0 if last else 1 << slot
        elif bank in FIXED:
            operands.append(FIXED[bank])
        else:
            operands.append(NONE if bank == "-" else operands[-1] if bank == "s" else chooser.take(bank))
    operands += [NONE] * (3 - len(operands))
    operands[2] = 0 if insn.op in WITHOUT else operands[2]
    code, modifiers = OPS[insn.op]
    result = chooser.take("e") if insn.op.startswith("WIDE") else chooser.take("a")
    low = code | result << 16 | operands[0] << 24 | operands[1] << 32
    control = 1 | 1 << 4 | 7 << 5 | 7 << 8 | reuse << 17  # a stall of one, stay with this warp, no barrier
    return struct.pack("<QQ", low, modifiers | operands[2] | control << 41)


def patched(cubin: bytes, sequence: list[Insn]) -> bytes:
    places, registers = find(cubin)
    chooser, image = Chooser(registers), bytearray(cubin)
    for i, at in enumerate(places):
        image[at:at + 16] = encode(sequence[i % len(sequence)], chooser, i == COUNT - 1)
    return bytes(image)


def cases() -> Iterator[list[Insn]]:
    for op in ("LOP3", "IMAD", "FFMA", "IADD3", "PRMT", "SHF", "HFMA2"):
        for banks in ("eee", "ooo", "eeo", "eoe", "oee", "eoo", "aaa", "000", "020", "012", "ess", "eos", "ee-", "eo-", "e--"):
            yield [Insn(op, banks)]
        for banks in ("kee", "eke", "eek", "kke", "kkk"):
            yield [Insn(op, banks)]
    for op in sorted(TWO):
        for banks in ("ee", "eo", "es", "aa"):
            yield [Insn(op, banks)]
    pairs = [("LOP3", "IMAD"), ("LOP3", "FFMA"), ("IMAD", "FFMA"), ("PRMT", "IMAD"), ("IADD3", "IMAD"), ("LOP3", "HFMA2"), ("SHF", "FFMA")]
    for first, second in pairs:
        for banks in (("eee", "eee"), ("eee", "ooo"), ("eeo", "ooe"), ("eoe", "oeo"), ("aaa", "aaa"), ("aaa", "aa-"), ("aa-", "aaa"),
                      ("aa-", "aa-"), ("eo-", "eo-"), ("ee-", "ee-"), ("ee-", "oo-"), ("a--", "aaa"), ("a--", "a--"), ("ass", "ass"), ("kaa", "kaa")):
            yield [Insn(first, banks[0]), Insn(second, banks[1])]
    for first, second in (("LOP3", "FADD"), ("LOP3", "FMUL"), ("IMAD", "FADD"), ("IMAD", "VIMNMX"), ("F2FP", "FMUL"), ("FFMA", "FADD")):
        for banks in (("aaa", "aa"), ("aa-", "aa"), ("eee", "ee"), ("eoe", "oe")):
            yield [Insn(first, banks[0][:2] if first in TWO else banks[0]), Insn(second, banks[1])]
    single = {op: "aia" if op in ("LOP3.I", "IMAD.I") else "au-" if op == "IADD3.U" else "au" if op == "VIADD.U" else "ai-" for op in OPS if "." in op}
    for op, sources in single.items():
        yield [Insn(op, sources)]
        yield [Insn(op, sources), Insn("FADD", "aa")]
        yield [Insn(op, sources), Insn("LOP3", "aaa")]
        yield [Insn("WIDE.I", "ai-"), Insn(op, sources)]
    for others in (("FMUL.I", "ai-"), ("FADD", "aa"), ("FFMA", "aaa"), ("LOP3", "aa-"), ("VIADD.U", "au"), ("HMNMX2", "aa"), ("F2FP", "aa"), ("SHF", "aa-")):
        for times in (1, 2, 3):
            yield [Insn("WIDE.I", "ai-")] + [Insn(*others)] * times
    yield [Insn("WIDE.I", "ai-")] * 2 + [Insn("VIADD.U", "au")] * 2 + [Insn("VIADD.I", "ai-")] * 2 + [Insn("LOP3", "aaa")] * 2  # Philox
    yield [Insn("LOP3", "aaa"), Insn("IMAD", "aaa"), Insn("FFMA", "aaa"), Insn("FADD", "aa")]
    yield [Insn("LOP3", "aa-"), Insn("IMAD", "aa-"), Insn("FFMA", "aaa"), Insn("FADD", "aa")]


def registers(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Clocks of a scheduler for each instruction, with one and with four warps each."""
    cubin = assemble(device.target())
    for sequence in cases():
        kernel = device.load_image(patched(cubin, sequence))
        taken = []
        for warps in (4, 16):
            times = []
            for repeats in (rounds, 3 * rounds):
                kernel(1, 32 * warps, out, repeats, 0x7FFFFFFF)
                device.synchronize()
                times.append(span(device.read(out, 2 * warps), warps))
            taken.append(round(difference(times) / (2 * rounds) / COUNT / (warps // 4), 3))
        yield {"name": " + ".join(f"{i.op} {i.sources}" for i in sequence), "value": taken[1], "unit": "clk", "one warp": taken[0]}
