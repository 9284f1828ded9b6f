"""Issue rates and latencies of instructions on one SM."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device, Failure

CHAINS = 8
UNROLL = 8

# Name: instructions on %x<i> and its neighbour %x<j>; {c} is one of four constants.
OPERATIONS: dict[str, str] = {
    "add.s32": "add.s32 {i}, {i}, {j};",
    "lop3.b32": "lop3.b32 {i}, {i}, {j}, {c}, 0x1e;",
    "shf.l": "shf.l.wrap.b32 {i}, {i}, {j}, {c};",
    "prmt.b32": "prmt.b32 {i}, {i}, {j}, {c};",
    "mad.lo.s32": "mad.lo.s32 {i}, {i}, {c}, {j};",
    "mul.hi.u32": "mul.hi.u32 {i}, {i}, {j};",
    "mul.wide.u32 + xor": "mul.wide.u32 %w, {i}, {j}; mov.b64 {{%l, %u}}, %w; xor.b32 {i}, %l, %u;",
    "min.s32": "min.s32 {i}, {i}, {j};",
    "setp+selp": "setp.lt.u32 %q, {i}, {j}; selp.b32 {i}, {j}, {c}, %q;",
    "popc.b32": "popc.b32 {i}, {j};",
    "add.f32": "add.rn.f32 {i}, {i}, {j};",
    "mul.f32": "mul.rn.f32 {i}, {i}, {j};",
    "fma.rn.f32": "fma.rn.f32 {i}, {i}, {c}, {j};",
    "min.f32": "min.f32 {i}, {i}, {j};",
    "add.f16x2": "add.rn.f16x2 {i}, {i}, {j};",
    "mul.f16x2": "mul.rn.f16x2 {i}, {i}, {j};",
    "fma.rn.f16x2": "fma.rn.f16x2 {i}, {i}, {c}, {j};",
    "fma.rn.bf16x2": "fma.rn.bf16x2 {i}, {i}, {c}, {j};",
    "max.bf16x2": "max.bf16x2 {i}, {i}, {j};",
    "cvt.rn.f16x2.f32": "cvt.rn.f16x2.f32 {i}, {i}, {j};",
    "cvt.rz.f16x2.f32": "cvt.rz.f16x2.f32 {i}, {i}, {j};",
    "cvt.rn.bf16x2.f32": "cvt.rn.bf16x2.f32 {i}, {i}, {j};",
    "cvt.f32.f16": "mov.b32 {{%h, %g}}, {j}; cvt.f32.f16 {i}, %h;",
    "cvt.rn.satfinite.e4m3x2.f32 + mov": "cvt.rn.satfinite.e4m3x2.f32 %h, {i}, {j}; mov.b32 {i}, {{%h, %h}};",
    "cvt.rn.f16x2.e4m3x2": "mov.b32 {{%h, %g}}, {j}; cvt.rn.f16x2.e4m3x2 {i}, %h;",
    "cvt.rn.f32.s32": "cvt.rn.f32.s32 {i}, {j};",
    "cvt.rni.s32.f32": "cvt.rni.s32.f32 {i}, {j};",
    "ex2.approx.f32": "ex2.approx.ftz.f32 {i}, {j};",
    "rsqrt.approx.f32": "rsqrt.approx.ftz.f32 {i}, {j};",
    "add.f32 + lop3.b32": "add.rn.f32 {i}, {i}, {j}; lop3.b32 {i}, {i}, {j}, {c}, 0x1e;",
    "add.f32 + shf.l": "add.rn.f32 {i}, {i}, {j}; shf.l.wrap.b32 {i}, {i}, {j}, {c};",
    "add.f32 + add.s32": "add.rn.f32 {i}, {i}, {j}; add.s32 {i}, {i}, {j};",
    "add.f32 + cvt.rn.bf16x2.f32": "add.rn.f32 {i}, {i}, {j}; cvt.rn.bf16x2.f32 {i}, {i}, {j};",
    "fma.f32 + lop3.b32": "fma.rn.f32 {i}, {i}, {c}, {j}; lop3.b32 {i}, {i}, {j}, {c}, 0x1e;",
    "shfl.bfly": "shfl.sync.bfly.b32 {i}, {j}, 1, 31, 0xffffffff;",
    "redux.add": "redux.sync.add.s32 {i}, {j}, 0xffffffff;",
    "vote.ballot": "setp.lt.u32 %q, {i}, {j}; vote.sync.ballot.b32 {i}, %q, 0xffffffff;",
    "add.f64": "cvt.f64.f32 %d, {j}; add.rn.f64 %d, %d, %d; cvt.rn.f32.f64 {i}, %d;",
}


def program(line: str, chains: int) -> str:
    registers = f"""  .reg .b32 %x<{CHAINS}>; .reg .b32 %c<4>; .reg .b16 %h, %g; .reg .pred %q; .reg .f64 %d;
  .reg .b64 %w; .reg .b32 %l, %u;"""
    setup = [f"  add.u32 %x{i}, %thread, {1065353216 + 77 * i};" for i in range(CHAINS)]
    setup += [f"  cvt.u32.u64 %c{i}, %seed;\n  add.u32 %c{i}, %c{i}, {i + 1};" for i in range(4)]
    body = []
    for step in range(UNROLL * CHAINS):
        i = step % chains
        body.append("  " + line.format(i=f"%x{i}", j=f"%x{(i + 1) % max(2, chains)}", c=f"%c{step % 4}"))
        if chains == 1:  # the next one depends on this one through both operands
            body.append("  " + line.format(i="%x1", j="%x0", c=f"%c{step % 4}"))
    return ptx.timed("\n".join(setup), "\n".join(body), [f"%x{i}" for i in range(CHAINS)], ["seed"], registers)


def span(words: Any, warps: int) -> int:
    """Returns the clocks from the first warp's beginning to the last one's end."""
    return int(max(words[2 * w + 1] for w in range(warps)) - min(words[2 * w] for w in range(warps)))


def difference(times: list[int]) -> int:
    if times[1] <= times[0]:
        raise Failure("the clock stands still")
    return times[1] - times[0]


def rates(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Instructions of a warp per clock and SM, 16 warps of 8 chains; and the clocks of a
    dependent one."""
    warps = 16
    for name, line in OPERATIONS.items():
        wide = device.load(program(line, CHAINS))
        times = []
        for repeats in (rounds, 3 * rounds):
            wide(1, 32 * warps, out, repeats, 0x7FFFFFFF, 3)
            device.synchronize()
            times.append(span(device.read(out, 2 * warps), warps))
        count = UNROLL * CHAINS * 2 * rounds
        narrow = device.load(program(line, 1))
        latencies = []
        for repeats in (rounds, 3 * rounds):
            narrow(1, 32, out, repeats, 0x7FFFFFFF, 3)
            device.synchronize()
            latencies.append(span(device.read(out, 2), 1))
        yield {"name": f"rate {name}", "value": round(count * warps / difference(times), 3),
               "unit": "warp instructions/clk/SM"}
        yield {"name": f"latency {name}", "value": round(difference(latencies) / count / 2, 2), "unit": "clk"}


SHARED = {  # instruction at the address %at + {o}; bytes of a warp, of a lane
    "ld.shared.b32": ("ld.volatile.shared.b32 %y{n}, [%at + {o}];", 128, 4),
    "ld.shared.v2": ("ld.volatile.shared.v2.b32 {{%y{n}, %z{n}}}, [%at + {o}];", 256, 8),
    "ld.shared.v4": ("ld.volatile.shared.v4.b32 {{%y{n}, %z{n}, %v{n}, %w{n}}}, [%at + {o}];", 512, 16),
    "st.shared.b32": ("st.volatile.shared.b32 [%at + {o}], %y{n};", 128, 4),
    "st.shared.v4": ("st.volatile.shared.v4.b32 [%at + {o}], {{%y{n}, %z{n}, %v{n}, %w{n}}};", 512, 16),
    "ldmatrix.x4": ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%y{n}, %z{n}, %v{n}, %w{n}}}, [%at + {o}];", 512, 16),
    "stmatrix.x4": ("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%at + {o}], {{%y{n}, %z{n}, %v{n}, %w{n}}};", 512, 16),
    "atom.shared.add": ("atom.shared.add.u32 %y{n}, [%at + {o}], 1;", 128, 4),
}


def shared_memory(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Bytes per clock of one SM, 16 warps, no bank conflicts."""
    warps = 16
    registers = "  .reg .b32 %y<32>, %z<32>, %v<32>, %w<32>, %at;"
    for name, (line, size, lane) in SHARED.items():
        setup = f"  mul.lo.u32 %at, %lane, {lane};\n  .reg .b32 %base;\n  mov.u32 %base, window;\n  add.u32 %at, %at, %base;"
        setup += "".join(f"\n  mov.b32 %{r}{n}, %thread;" for r in "yzvw" for n in range(32))
        body = "\n".join("  " + line.format(n=n, o=512 * n) for n in range(32))
        kept = "yzvw" if lane == 16 else "yz" if lane == 8 else "y"
        results = [f"%{r}{n}" for r in kept for n in range(32)]
        if name.startswith("ld"):  # each value is used, or ptxas drops the load
            body += "".join(f"\n  xor.b32 %at, %at, {r};" for r in results) + "\n  and.b32 %at, %at, 16383;"
            setup = setup.replace("  mov.u32 %base, window;", "  mov.b32 %base, 0;")
        kernel = device.load(ptx.timed(setup, body, results, registers=registers), shared=32768)
        times = []
        for repeats in (rounds, 3 * rounds):
            kernel(1, 32 * warps, out, repeats, 0x7FFFFFFF)
            device.synchronize()
            times.append(span(device.read(out, 2 * warps), warps))
        yield {"name": f"rate {name}", "value": round(64 * rounds * warps * size / difference(times), 2),
               "unit": "B/clk/SM"}


def stream(device: Device, size: int) -> None:
    """Reads other memory through L2."""
    memory = device.allocate(size)  # and clears it
    device.free(memory)


CHAIN = """  .reg .b64 %p; cvta.to.global.u64 %p, %start;
"""


def latencies(device: Device, out: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Dependent loads."""
    setup = "  .reg .b32 %a; mov.u32 %a, window; st.shared.b32 [%a], %a;"
    chase = "\n".join("  ld.volatile.shared.b32 %a, [%a];" for _ in range(32))
    kernel = device.load(ptx.timed(setup, chase, ["%a"]), shared=1024)
    yield from _pair(device, kernel, out, rounds, 32, "latency ld.shared", [])
    fill = device.load(ptx.kernel(["to", "stride", "count", "step"], "  .reg .b64 %i, %n, %w; .reg .b32 %t, %b, %d; .reg .pred %q;", """
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mad.lo.u32 %t, %b, %d, %t; cvt.u64.u32 %i, %t;
  setp.ge.u64 %q, %i, %count; @%q ret;
  add.u64 %n, %i, %step; rem.u64 %n, %n, %count; mad.lo.u64 %n, %n, %stride, %to; mad.lo.u64 %w, %i, %stride, %to;
  st.global.u64 [%w], %n;"""))
    for name, size, stride, op in (("L1 hit", 16 << 10, 128, "ca"), ("L2 hit, 8 MiB", 8 << 20, 1024 + 128, "cg"),
                                   ("L2 hit, 24 MiB", 24 << 20, 1024 + 128, "cg"),
                                   ("device memory, 512 MiB", 512 << 20, 4096 + 128, "cg")):
        count = size // stride
        memory = device.allocate(size)
        fill((count + 255) // 256, 256, memory, stride, count, 1)
        if size > 24 << 20:  # the links lie in L2, which filled them
            stream(device, 128 << 20)
        chase = "\n".join(f"  ld.global.{op}.b64 %p, [%p];" for _ in range(32))
        kernel = device.load(ptx.timed(CHAIN, chase + "\n  cvt.u32.u64 %a, %p;", ["%a"], ["start"], "  .reg .b32 %a;"))
        whole = count // 32 if size <= 24 << 20 else 100  # rounds that see every line once
        kernel(1, 32, out, whole, 0x7FFFFFFF, memory)
        far = 20000 * stride if size > 24 << 20 else 0  # a place that no run has touched
        yield from _pair(device, kernel, out, min(whole, 64 * rounds), 32, f"latency {name}",
                         [memory + far], [memory + 3 * far])
        device.free(memory)


def _pair(device: Device, kernel: Any, out: int, rounds: int, unroll: int, name: str,
          *arguments: list[int]) -> Iterator[dict[str, Any]]:
    times = []
    for repeats, more in ((rounds, arguments[0]), (2 * rounds, arguments[-1])):
        kernel(1, 32, out, repeats, 0x7FFFFFFF, *more)
        device.synchronize()
        times.append(span(device.read(out, 2), 1))
    yield {"name": name, "value": round(difference(times) / rounds / unroll, 2), "unit": "clk"}
