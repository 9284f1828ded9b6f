"""The power of one activity at a time on all SMs, and the clock that it leaves."""
from __future__ import annotations

import bisect
import ctypes
import math
import random
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import ptx
from cuda import Device

MIB = 1 << 20
LAUNCH, SECONDS, LAST = 10e6, 0.4, 8  # ns of a launch, time of an activity, samples that count
A_BYTES, B_BYTES = 16384, 32768  # of shared memory, in the swizzle of 128 bytes
INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT
Made = tuple[str, int, int]  # a kernel, threads of a CTA, bytes of shared memory


class Meter:
    """NVML's power in W, or none where there is no NVML, as in the simulator."""

    def __init__(self) -> None:
        self._device = ctypes.c_void_p()
        try:
            self._library: Any = ctypes.CDLL("libnvidia-ml.so.1")
            self._library.nvmlInit_v2()
            self._library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device))
        except OSError:
            self._library = None

    def watts(self) -> float:
        field = (ctypes.c_uint64 * 8)()  # id and scope, time, latency, type and code, value
        struct.pack_into("I", field, 0, INSTANT)
        if not self._library or self._library.nvmlDeviceGetFieldValues(self._device, 1, field):
            return 0
        return float(struct.unpack_from("I", bytes(field), 32)[0]) / 1e3


# ---- kernels -------------------------------------------------------------------------------------


def repeated(setup: str, body: str, results: list[str], block: int) -> str:
    """Runs `body` %rounds times; thread 0 of each CTA stores the clock and the time at its ends."""
    keep = "\n".join(f"  xor.b32 %sink, %sink, {name};" for name in results)
    return ptx.kernel(["out", "rounds", "data"], "", f"""  .reg .b32 %thread, %count, %sink; .reg .b64 %c0, %c1, %t0, %t1, %where; .reg .pred %more, %first, %pz;
  mov.u32 %thread, %tid.x; mov.b32 %sink, 0;
{setup}
  cvt.u32.u64 %count, %rounds; bar.sync 0; mov.u64 %c0, %clock64; mov.u64 %t0, %globaltimer;
LOOP:
{body}
  sub.u32 %count, %count, 1; setp.ne.u32 %more, %count, 0; @%more bra LOOP;
{keep}
  mov.u64 %c1, %clock64; mov.u64 %t1, %globaltimer; mov.u32 %count, %ctaid.x; setp.eq.u32 %first, %thread, 0;
  mul.wide.u32 %where, %count, 32; add.u64 %where, %where, %out;
  @%first st.global.v2.u64 [%where], {{%c0, %c1}}; @%first st.global.v2.u64 [%where+16], {{%t0, %t1}};
  setp.eq.u32 %first, %sink, 0x12345677; @%first st.global.u32 [%out], %sink;
""", block=block)


#: An instruction of each kind, and its constants %a and %b.
CHAINS = {"fma.f32": ("fma.rn.f32 %x{i}, %x{i}, %a, %b;", 0x3f7fbe77, 0x3c23d70a), "fma.f16x2": ("fma.rn.f16x2 %x{i}, %x{i}, %a, %b;", 0x3bf83bf7, 0x21f123f4),
          "mad.lo": ("mad.lo.u32 %x{i}, %x{i}, %a, %b;", 1664525, 1013904223), "lop3": ("lop3.b32 %x{i}, %x{i}, %x{j}, %a, 0x96;", 0x5bd1e995, 0),
          "prmt": ("prmt.b32 %x{i}, %x{i}, %x{j}, 0x2135;", 0, 0)}


def chain(kind: str) -> Made:
    line, a, b = CHAINS[kind]
    setup = f"  .reg .b32 %x<8>, %a, %b, %t; mad.lo.u32 %t, %thread, 0x9E3779B1, 12345; mov.b32 %a, {a}; mov.b32 %b, {b};\n"
    setup += "".join(f"  mad.lo.u32 %x{i}, %t, {2 * i + 3}, %t; and.b32 %x{i}, %x{i}, 0x03ff03ff; or.b32 %x{i}, %x{i}, 0x3c003c00;\n" for i in range(8))
    body = "".join(f"  {line.format(i=i % 8, j=(i + 3) % 8)}\n" for i in range(256))
    return repeated(setup, body, [f"%x{i}" for i in range(8)], 1024), 1024, 0


def asleep() -> Made:
    return repeated("", "  nanosleep.u32 1000;", [], 32), 32, 0


FILL = f"""  .reg .b32 %s, %v<4>, %e, %n; .reg .b64 %g, %nn;
  mov.u32 %s, window; mad.lo.u32 %s, %thread, 16, %s; mul.wide.u32 %g, %thread, 16; add.u64 %g, %g, %data; mov.u32 %e, window; add.u32 %e, %e, {A_BYTES + B_BYTES};
  mov.u32 %n, %ntid.x; mul.lo.u32 %n, %n, 16; cvt.u64.u32 %nn, %n;
FILL: ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%g]; st.shared.v4.b32 [%s], {{%v0, %v1, %v2, %v3}}; add.u32 %s, %s, %n; add.u64 %g, %g, %nn;
  setp.lt.u32 %pz, %s, %e; @%pz bra FILL;
  fence.proxy.async; bar.sync 0;
"""


def shared_loads() -> Made:
    setup = FILL + "  .reg .b32 %x<64>, %w; mov.u32 %w, window; mad.lo.u32 %w, %thread, 16, %w;\n"
    names = [", ".join(f"%x{4 * (i % 16) + j}" for j in range(4)) for i in range(64)]
    body = "".join(f"  ld.volatile.shared.v4.b32 {{{name}}}, [%w+{8192 * (i % 4)}];\n" for i, name in enumerate(names))
    return repeated(setup, body, [f"%x{i}" for i in range(64)], 512), 512, A_BYTES + B_BYTES + 1024


def products(kind: str, registers: bool) -> Made:
    """Two warpgroups multiply their A by one B, 16 MMAs of 256 columns in a group."""
    d = ", ".join(f"%d{i}" for i in range(128))
    depth, flags = (32, "1, 1") if kind == "e4m3" else (16, "1, 1, 0" if registers else "1, 1, 0, 0")
    setup = FILL + """  .reg .b32 %d<128>, %a<16>, %w; .reg .b64 %da, %db, %da0, %db0;
  shr.u32 %w, %thread, 7; mul.lo.u32 %w, %w, 512; mov.u32 %s, window; shr.u32 %s, %s, 4; add.u32 %w, %w, %s; cvt.u64.u32 %da0, %w;
  or.b64 %da0, %da0, 0x4000004000010000; cvt.u64.u32 %db0, %s; add.u64 %db0, %db0, 1024; or.b64 %db0, %db0, 0x4000004000010000;
""" + "".join(f"  mov.b32 %d{i}, 0;\n" for i in range(128))
    if registers:
        setup += "  mov.u32 %s, window; mad.lo.u32 %s, %thread, 64, %s;\n" + "".join(f"  ld.shared.b32 %a{i}, [%s+{4 * i}];\n" for i in range(16))
    body = "  wgmma.fence.sync.aligned;\n"
    for i in range(16):
        step = i % 4
        a = "{" + ", ".join(f"%a{4 * step + j}" for j in range(4)) + "}" if registers else "%da"
        body += f"  add.u64 %da, %da0, {2 * step}; add.u64 %db, %db0, {2 * step};\n"
        body += f"  wgmma.mma_async.sync.aligned.m64n256k{depth}.f32.{kind}.{kind} {{{d}}}, {a}, %db, 1, {flags};\n"
    body += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;"
    return repeated(setup, body, [f"%d{i}" for i in range(128)], 256), 256, A_BYTES + B_BYTES + 1024


def reads(of_all: int) -> Made:
    """Each SM reads its part of memory again and again."""
    part = of_all // 132 // 65536 * 65536
    setup = f"""  .reg .b64 %p, %q, %end, %begin; .reg .b32 %x<16>, %c; mov.u32 %c, %ctaid.x; mul.wide.u32 %p, %c, {part};
  add.u64 %p, %p, %data; mul.wide.u32 %q, %thread, 16; add.u64 %begin, %p, %q; add.u64 %end, %begin, {part}; mov.u64 %p, %begin;
"""
    names = [", ".join(f"%x{4 * i + j}" for j in range(4)) for i in range(4)]
    body = "".join(f"  ld.volatile.global.v4.b32 {{{name}}}, [%p+{16384 * i}];\n" for i, name in enumerate(names))
    body += "  add.u64 %p, %p, 65536; setp.ge.u64 %pz, %p, %end; @%pz mov.u64 %p, %begin;\n"
    return repeated(setup, body, [f"%x{i}" for i in range(16)], 1024), 1024, 0


# ---- operands ------------------------------------------------------------------------------------

E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
#: Numbers of e4m3 and their codes, the least first.
E4M3 = sorted((sign * ((m / 8) * 2.0 ** -6 if not e else (1 + m / 8) * 2.0 ** (e - 7)), (sign < 0) << 7 | e << 3 | m)
              for sign in (1, -1) for e in range(16) for m in range(8) if (e, m) != (15, 7) and (sign > 0 or e or m))


def code_of(value: float) -> float:
    """The nearest number of e2m1."""
    return math.copysign(min(E2M1, key=lambda one: abs(one - min(abs(value), 6))), value)


def rounded(value: float, bits: int) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 2 ** bits) / 2 ** bits, exponent)


def numbers(what: str, count: int, dice: random.Random) -> list[float]:
    """`what`: zeros, codes of fp4, codes times scales of nvfp4, or so many significant bits."""
    if what == "zeros":
        return [0.0] * count
    if what in ("fp4", "nvfp4"):
        scales = [rounded(0.3 + 0.2 * abs(dice.gauss(0, 1)), 4) if what == "nvfp4" else 1 for _ in range(count // 16)]
        return [code_of(dice.gauss(0, 2)) * scales[i // 16] for i in range(count)]
    return [rounded(dice.gauss(0, 1), int(what)) for _ in range(count)]


def encoded(kind: str, values: list[float]) -> bytes:
    if kind == "f16":
        return struct.pack(f"<{len(values)}e", *values)
    if kind == "bf16":
        return b"".join(struct.pack("<H", (struct.unpack("<I", struct.pack("<f", value))[0] + 0x8000) >> 16 & 0xffff) for value in values)
    keys = [key for key, _ in E4M3]
    places = [min(bisect.bisect_left(keys, value), len(keys) - 1) for value in values]
    return bytes(E4M3[place if place == 0 or abs(keys[place] - value) < abs(keys[place - 1] - value) else place - 1][1] for place, value in zip(places, values))


def operands(kind: str, a: str, b: str) -> bytes:
    size, dice = 1 if kind == "e4m3" else 2, random.Random(5)
    return encoded(kind, numbers(a, A_BYTES // size, dice)) + encoded(kind, numbers(b, B_BYTES // size, dice))


OPERANDS = {"f16": ("11 x 11", "8 x 8", "6 x 6", "4 x 4", "2 x 2", "1 x 1", "nvfp4 x nvfp4", "fp4 x fp4", "11 x fp4", "fp4 x 11", "zeros x zeros"),
            "bf16": ("8 x 8", "4 x 4", "nvfp4 x nvfp4", "8 x nvfp4", "nvfp4 x 8"), "e4m3": ("4 x 4", "2 x 2", "fp4 x fp4", "4 x fp4", "zeros x zeros")}
OF_REGISTERS = {"f16": ("11 x 11", "nvfp4 x nvfp4"), "bf16": ("8 x 8", "nvfp4 x 8"), "e4m3": ("4 x 4", "fp4 x 4")}


def activities() -> Iterator[tuple[str, Callable[[], Made], tuple[str, str, str], int]]:
    """Each with what its data are, and the MiB of memory that it reads."""
    random_bits = ("f16", "11", "11")
    yield "warps that sleep", asleep, random_bits, 0
    for kind in CHAINS:
        yield kind, lambda kind=kind: chain(kind), random_bits, 0
    yield "ld.shared.v4", shared_loads, random_bits, 0
    for registers, of in ((False, OPERANDS), (True, OF_REGISTERS)):
        for kind, pairs in of.items():
            for pair in pairs:
                a, b = pair.split(" x ")
                yield (f"m64n256 of {kind}, {pair}{', A in registers' * registers}", lambda kind=kind, registers=registers: products(kind, registers), (kind, a, b), 0)
    for size in (24, 512):
        yield f"reads of {size} MiB", lambda size=size: reads(size * MIB), random_bits, size


def power(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The clock and the power at the end of 0.4 s of an activity."""
    meter, pool = Meter(), 0
    for name, make, of_data, size in activities():
        text, threads, shared = make()
        kernel, bytes_of_data = device.load(text, shared=shared), operands(*of_data)
        pool = pool or device.allocate((32 if quick else 512) * MIB)
        for at in range(0, min(size, 1 if quick else size) * MIB or 1, MIB):
            device.write(pool + at, (bytes_of_data * (MIB // len(bytes_of_data) + 1))[:MIB])
        samples: list[tuple[float, float]] = []
        rounds, begin = 2 if quick else 20, time.monotonic()
        while len(samples) < (1 if quick else LAST + 1) or (not quick and time.monotonic() - begin < SECONDS):
            kernel(1 if quick else device.sms(), threads, out, rounds, pool)
            watts = meter.watts()  # while the kernel runs
            device.synchronize()
            first, last, then, now = device.read(out, 4)
            if now > then and not quick and not samples:
                rounds = max(2, int(rounds * LAUNCH / (now - then)))
            samples.append(((last - first) / max(1, now - then), watts))
        of_end = samples[-LAST:]
        yield {"name": name, "value": round(sum(ghz for ghz, _ in of_end) / len(of_end), 4), "unit": "GHz",
               "watts": round(sum(watts for _, watts in of_end) / len(of_end), 1)}
    device.free(pool)
