#!/usr/bin/env python3
"""Writes a kernel with every spelling of the matrix and tensor memory instructions of PTX ISA 9.0.

matrix_spellings.py TARGET: those that TARGET (sm_90a, sm_100a, sm_103a, sm_120a) has, one of each
shape, type, qualifier and form of operands. Operands are registers of any value: the kernel is for loading
and for ptxas, not for running.
"""
import itertools
import sys

F8 = ["e4m3", "e5m2"]
F8F6F4 = F8 + ["e3m2", "e2m3", "e2m1"]


def regs(count, first=0, bank="r"):
    return "{" + ", ".join(f"%{bank}{first + i}" for i in range(count)) + "}"


def mma(head, counts, extra=""):
    """D, A, B, C of so many 32-bit registers."""
    return f"{head} {regs(counts[0])}, {regs(counts[1], 8)}, {regs(counts[2], 16)}, {regs(counts[3], 24)}{extra};"


def mma_sync():
    for a, b, c, d in itertools.product(["row", "col"], ["row", "col"], ["f16", "f32"], ["f16", "f32"]):
        if (c, d) != ("f32", "f16"):
            count = {"f16": 4, "f32": 8}
            yield mma(f"mma.sync.aligned.m8n8k4.{a}.{b}.{d}.f16.f16.{c}", (count[d], 2, 2, count[c]))
    for k, halves in (("8", 1), ("16", 2)):
        for t, n in (("f16", 2), ("f32", 4)):
            yield mma(f"mma.sync.aligned.m16n8k{k}.row.col.{t}.f16.f16.{t}", (n, 2 * halves, halves, n))
        yield mma(f"mma.sync.aligned.m16n8k{k}.row.col.f32.bf16.bf16.f32", (4, 2 * halves, halves, 4))
    for k, halves in (("4", 1), ("8", 2)):
        yield mma(f"mma.sync.aligned.m16n8k{k}.row.col.f32.tf32.tf32.f32", (4, 2 * halves, halves, 4))
    for (k, halves), a, b, (t, n) in itertools.product((("16", 1), ("32", 2)), F8, F8, (("f16", 2), ("f32", 4))):
        yield mma(f"mma.sync.aligned.m16n8k{k}.row.col.{t}.{a}.{b}.{t}", (n, 2 * halves, halves, n))
    for bits, shapes in ((8, ("m8n8k16", "m16n8k16", "m16n8k32")), (4, ("m8n8k32", "m16n8k32", "m16n8k64"))):
        for shape, a, b, sat in itertools.product(shapes, "us", "us", ("", ".satfinite")):
            tall, full = shape.startswith("m16"), shape == shapes[2]
            yield mma(f"mma.sync.aligned.{shape}.row.col{sat}.s32.{a}{bits}.{b}{bits}.s32",
                      (4 if tall else 2, (2 if tall else 1) * (2 if full else 1), 2 if full else 1, 4 if tall else 2))
    for op in ("xor", "and"):
        for shape, counts in (("m8n8k128", (2, 1, 1, 2)), ("m16n8k128", (4, 2, 1, 4)), ("m16n8k256", (4, 4, 2, 4))):
            yield mma(f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc", counts)
    for shape, counts in (("m8n8k4", (2, 1, 1, 2)), ("m16n8k4", (4, 2, 1, 4)), ("m16n8k8", (4, 4, 2, 4)),
                          ("m16n8k16", (4, 8, 4, 4))):
        d, a, b, c = counts
        yield (f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64 {regs(d, 0, 'd')}, {regs(a, 8, 'd')}, "
               f"{regs(b, 16, 'd')}, {regs(c, 24, 'd')};")


def wmma():
    halves = ("m16n16k16", "m8n32k16", "m32n8k16")
    for shape, la, lb in itertools.product(halves, ("row", "col"), ("row", "col")):
        for operand, layout in (("a", la), ("b", lb)):
            yield f"wmma.load.{operand}.sync.aligned.{layout}.{shape}.global.f16 {regs(8)}, [%rd0], %r40;"
        for c, d in (("f16", "f16"), ("f32", "f32"), ("f16", "f32")):
            count = {"f16": 4, "f32": 8}
            yield (f"wmma.mma.sync.aligned.{la}.{lb}.{shape}.{d}.{c} {regs(count[d], 32)}, {regs(8)}, {regs(8, 8)}, "
                   f"{regs(count[c], 16)};")
        for a, b, sat in itertools.product(("u8", "s8"), ("u8", "s8"), ("", ".satfinite")):
            if a != b:
                continue
            n = {"m16n16k16": (2, 2), "m8n32k16": (1, 4), "m32n8k16": (4, 1)}[shape]
            yield (f"wmma.mma.sync.aligned.{la}.{lb}.{shape}.s32.{a}.{b}.s32{sat} {regs(8, 32)}, {regs(n[0])}, "
                   f"{regs(n[1], 8)}, {regs(8, 16)};")
        n = {"m16n16k16": (4, 4), "m8n32k16": (2, 8), "m32n8k16": (8, 2)}[shape]
        yield (f"wmma.mma.sync.aligned.{la}.{lb}.{shape}.f32.bf16.bf16.f32 {regs(8, 32)}, {regs(n[0])}, "
               f"{regs(n[1], 8)}, {regs(8, 16)};")
    for la, lb in itertools.product(("row", "col"), ("row", "col")):
        yield (f"wmma.mma.sync.aligned.{la}.{lb}.m16n16k8.f32.tf32.tf32.f32 {regs(8, 32)}, {regs(4)}, {regs(4, 8)}, "
               f"{regs(8, 16)};")
        for rnd in ("", ".rn", ".rz", ".rm", ".rp"):
            yield (f"wmma.mma.sync.aligned.{la}.{lb}.m8n8k4{rnd}.f64.f64.f64.f64 {regs(2, 8, 'd')}, {regs(1, 0, 'd')}, "
                   f"{regs(1, 1, 'd')}, {regs(2, 2, 'd')};")
    for t, sat in itertools.product(("u4", "s4"), ("", ".satfinite")):
        yield (f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{t}.{t}.s32{sat} {regs(2, 8)}, {regs(1)}, {regs(1, 1)}, "
               f"{regs(2, 2)};")
        yield f"wmma.load.a.sync.aligned.row.m8n8k32.global.{t} {regs(1)}, [%rd0], %r40;"
        yield f"wmma.load.b.sync.aligned.col.m8n8k32.global.{t} {regs(1)}, [%rd0], %r40;"
    for op in ("xor", "and"):
        yield (f"wmma.mma.{op}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {regs(2, 8)}, {regs(1)}, {regs(1, 1)}, "
               f"{regs(2, 2)};")
    yield f"wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {regs(1)}, [%rd0], %r40;"
    yield f"wmma.load.b.sync.aligned.col.m8n8k128.global.b1 {regs(1)}, [%rd0], %r40;"
    yield f"wmma.load.c.sync.aligned.row.m8n8k128.global.s32 {regs(2)}, [%rd0], %r40;"
    yield f"wmma.store.d.sync.aligned.col.m8n8k32.global.s32 [%rd0], {regs(2)}, %r40;"
    yield f"wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {regs(1, 0, 'd')}, [%rd0], %r40;"
    yield f"wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%rd0], {regs(2, 0, 'd')}, %r40;"


def mma_sparse():
    for sp in ("sp", "sp::ordered_metadata"):
        head = f"mma.{sp}.sync.aligned."
        for (k, r), (t, n) in itertools.product((("16", 2), ("32", 4)), (("f16", 2), ("f32", 4))):
            yield mma(f"{head}m16n8k{k}.row.col.{t}.f16.f16.{t}", (n, r, r, n), ", %r40, 1")
        for k, r in (("16", 2), ("32", 4)):
            yield mma(f"{head}m16n8k{k}.row.col.f32.bf16.bf16.f32", (4, r, r, 4), ", %r40, 0")
        for k, r in (("8", 2), ("16", 4)):
            yield mma(f"{head}m16n8k{k}.row.col.f32.tf32.tf32.f32", (4, r, r, 4), ", %r40, 1")
        for a, b in itertools.product(F8, F8):
            yield mma(f"{head}m16n8k64.row.col.f32.{a}.{b}.f32", (4, 4, 4, 4), ", %r40, 0")
        for bits, shapes in ((8, (("32", 2), ("64", 4))), (4, (("64", 2), ("128", 4)))):
            for (k, r), a, b, sat in itertools.product(shapes, "us", "us", ("", ".satfinite")):
                yield mma(f"{head}m16n8k{k}.row.col{sat}.s32.{a}{bits}.{b}{bits}.s32", (4, r, r, 4), ", %r40, 0")


def mma_kinds():
    """kind::f8f6f4 and block scaling, dense and sparse."""
    scales = ", {%r41}, {%h0, %h1}, {%r42}, {%h0, %h1}"
    for a, b, (t, n) in itertools.product(F8F6F4, F8F6F4, (("f16", 2), ("f32", 4))):
        yield mma(f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{t}.{a}.{b}.{t}", (n, 4, 2, n))
        yield mma(f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.{t}.{a}.{b}.{t}",
                  (n, 4, 4, n), ", %r40, 0")
    for a, b, size in itertools.product(F8F6F4, F8F6F4, ("", ".scale_vec::1X")):
        residue = f"row.col.kind::mxf8f6f4.block_scale{size}.f32.{a}.{b}.f32.ue8m0"
        yield mma(f"mma.sync.aligned.m16n8k32.{residue}", (4, 4, 2, 4), scales)
        yield mma(f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.{residue}", (4, 4, 4, 4), ", %r40, 0" + scales)
    # CUTLASS writes the kind before .sp, and metadata in braces.
    yield mma("mma.sync.aligned.kind::mxf8f6f4.sp::ordered_metadata.block_scale.scale_vec::1X.m16n8k64.row.col.f32.e4m3."
              "e4m3.f32.ue8m0", (4, 4, 4, 4), ", {%r40}, 0" + scales)
    for kind, size, scale in (("mxf4", "", "ue8m0"), ("mxf4", ".scale_vec::2X", "ue8m0"),
                              ("mxf4nvf4", ".scale_vec::2X", "ue8m0"), ("mxf4nvf4", ".scale_vec::4X", "ue4m3")):
        residue = f"row.col.kind::{kind}.block_scale{size}.f32.e2m1.e2m1.f32.{scale}"
        yield mma(f"mma.sync.aligned.m16n8k64.{residue}", (4, 4, 2, 4), scales)
        yield mma(f"mma.sp::ordered_metadata.sync.aligned.m16n8k128.{residue}", (4, 4, 4, 4), ", %r40, 0" + scales)


def wgmma():
    yield "wgmma.fence.sync.aligned;"
    for sparse in (False, True):
        base, meta = ("wgmma.mma_async.sp", ", %r160, 0") if sparse else ("wgmma.mma_async", "")
        k = 2 if sparse else 1

        def form(shape, types, registers, residue, sat=""):
            for a in ("%rd0", regs(4, 150)):
                last = residue(a == "%rd0")
                yield f"{base}.sync.aligned.{shape}{sat}.{types} {regs(registers)}, {a}, %rd1{meta}, %p0{last};"

        transposed = lambda shared: ", 1, -1, 0, 1" if shared else ", 1, -1, 1"
        scaled, plain = (lambda shared: ", 1, -1"), (lambda shared: "")
        for n in range(8, 257, 8):
            yield from form(f"m64n{n}k{16 * k}", "f16.f16.f16", n // 4, transposed)
            yield from form(f"m64n{n}k{16 * k}", "f32.f16.f16", n // 2, transposed)
        for n in (8, 64, 256):
            yield from form(f"m64n{n}k{16 * k}", "f32.bf16.bf16", n // 2, transposed)
            yield from form(f"m64n{n}k{8 * k}", "f32.tf32.tf32", n // 2, scaled)
            for a, b in itertools.product(F8, F8):
                yield from form(f"m64n{n}k{32 * k}", f"f16.{a}.{b}", n // 4, scaled)
                yield from form(f"m64n{n}k{32 * k}", f"f32.{a}.{b}", n // 2, scaled)
        for n in [8, 16, 24, 32] + list(range(48, 257, 16)):
            for a, b in itertools.product(("s8", "u8"), ("s8", "u8")):
                for sat in ("", ".satfinite"):
                    yield from form(f"m64n{n}k{32 * k}", f"s32.{a}.{b}", n // 2, plain, sat)
            if not sparse:
                for a in ("%rd0", regs(4, 150)):
                    yield f"{base}.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc {regs(n // 2)}, {a}, %rd1, %p0;"
    yield "wgmma.commit_group.sync.aligned;"
    yield "wgmma.wait_group.sync.aligned 0;"


def tcgen05_mma(group):
    """ptxas wants one cta_group in a kernel."""
    lanes = ", " + regs(4 * group, 60)
    collectors_a = ["", ".collector::a::fill", ".collector::a::use", ".collector::a::lastuse", ".collector::a::discard"]
    collectors_b = [""] + [f".collector::b{i}::{op}" for i in range(4) for op in ("fill", "use", "lastuse", "discard")]
    for sparse, a in itertools.product((False, True), ("%rd0", "[%r1]")):
        sp, meta = (".sp", ", [%r2]") if sparse else ("", "")
        head = f"[%r0], {a}, %rd1{meta}, %r3"
        for kind, collector, ashift in itertools.product(("f16", "tf32", "f8f6f4", "i8"), collectors_a, ("", ".ashift")):
            if ashift and (a[0] == "%" or collector.endswith(("use", "fill")) and "last" not in collector):
                continue
            opcode = f"tcgen05.mma{sp}.cta_group::{group}.kind::{kind}{ashift}{collector}"
            for mask in ("", lanes):
                yield f"{opcode} {head}{mask}, %p0;"
                if kind in ("f16", "tf32"):
                    yield f"{opcode} {head}{mask}, %p0, 3;"
        sizes = (("mxf8f6f4", ("", ".scale_vec::1X", ".block32")), ("mxf4", ("", ".scale_vec::2X", ".block32")),
                 ("mxf4nvf4", (".scale_vec::2X", ".scale_vec::4X", ".block32", ".block16")))
        for kind, qualifiers in sizes:
            for size, collector in itertools.product(qualifiers, collectors_a):
                yield (f"tcgen05.mma{sp}.cta_group::{group}.kind::{kind}.block_scale{size}{collector} {head}, "
                       "[%r4], [%r5], %p0;")
        if group == 1:
            for kind, collector, mask in itertools.product(("f16", "tf32", "f8f6f4", "i8"), collectors_b, ("", ", %rd2")):
                yield f"tcgen05.mma.ws{sp}.cta_group::1.kind::{kind}{collector} {head}, %p0{mask};"


def tcgen05_memory(group):
    g = f"cta_group::{group}"
    for space in (".shared::cta", ""):
        address = "%r0" if space else "%rd0"
        yield f"tcgen05.alloc.{g}.sync.aligned{space}.b32 [{address}], 32;"
    yield f"tcgen05.dealloc.{g}.sync.aligned.b32 %r0, 32;"
    yield f"tcgen05.relinquish_alloc_permit.{g}.sync.aligned;"
    for space, many in itertools.product((".shared::cluster", ""), (False, True)):
        address, mask = ("%r0" if space else "%rd0"), (", %h0" if many else "")
        multicast = ".multicast::cluster" if many else ""
        yield f"tcgen05.commit.{g}.mbarrier::arrive::one{space}{multicast}.b64 [{address}]{mask};"
    for shape in ("128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"):
        for formats in ("", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"):
            yield f"tcgen05.cp.{g}.{shape}{formats} [%r0], %rd0;"
    yield f"tcgen05.shift.{g}.down [%r0];"
    for fence in ("fence::before_thread_sync", "fence::after_thread_sync"):
        yield f"tcgen05.{fence};"
    for wait in ("wait::ld", "wait::st"):
        yield f"tcgen05.{wait}.sync.aligned;"
    for shape, width in (("32x32b", 1), ("16x64b", 1), ("16x128b", 2), ("16x256b", 4), ("16x32bx2", 1)):
        offset = ", 16" if shape == "16x32bx2" else ""
        for num in (1, 2, 4, 8, 16, 32, 64, 128):
            if num * width > 128:
                continue
            for pack in ("", "16b"):
                p, u = (".pack::16b", ".unpack::16b") if pack else ("", "")
                v = regs(num * width)
                yield f"tcgen05.ld.sync.aligned.{shape}.x{num}{p}.b32 {v}, [%r200]{offset};"
                yield f"tcgen05.st.sync.aligned.{shape}.x{num}{u}.b32 [%r200]{offset}, {v};"


def tcgen05_reductions():
    for shape, num, op in itertools.product(("32x32b", "16x32bx2"), (2, 4, 8, 16, 32, 64, 128), ("min", "max")):
        offset = ", 16" if shape == "16x32bx2" else ""
        for kind in ("f32", "abs.f32", "NaN.f32", "abs.NaN.f32", "u32", "s32"):
            yield f"tcgen05.ld.red.sync.aligned.{shape}.x{num}.{op}.{kind} {regs(num)}, %r200, [%r201]{offset};"


def kernel(name, lines):
    body = "\n".join("  " + line for line in lines)
    return (f".visible .entry {name}() {{\n  .reg .pred %p<2>;\n  .reg .b16 %h<4>;\n  .reg .b32 %r<240>;\n"
            f"  .reg .b64 %rd<4>;\n  .reg .f64 %d<32>;\n{body}\n  ret;\n}}\n")


def main(target):
    families = {
        "sm_90a": {"mma_sync": mma_sync(), "mma_sparse": mma_sparse(), "wmma_all": wmma(), "wgmma_all": wgmma()},
        "sm_100a": {"mma_one": tcgen05_mma(1), "mma_two": tcgen05_mma(2), "memory_one": tcgen05_memory(1),
                    "memory_two": tcgen05_memory(2)},
        "sm_103a": {"reductions": tcgen05_reductions()},
        "sm_120a": {"mma_kinds": mma_kinds()},
    }[target]
    print(f".version 9.0\n.target {target}\n.address_size 64\n")
    for name, lines in families.items():
        print(kernel(name, lines))


main(sys.argv[1])
