"""Kernels around tensor memory: images in, a few tcgen05 instructions of one thread, images out.

A CTA of 128 threads (or each CTA of a pair) copies an image of shared memory and one of tensor
memory from `in`, thread 0 of the first CTA issues `steps` and commits them, and all columns asked for
go to `out`, lane by lane. In `steps`
  %tmem  address of the allocated tensor memory, all 512 columns (32 bits)
  %base  address of the shared image / 16, to be added to the constant part of a descriptor (64 bits)
  %r0-7, %d0-7   registers of 32 and 64 bits to use
A wait ends after a second or so with a trap, so that a kernel whose MMAs never complete ends too.
"""
from __future__ import annotations

from case import HEADER

LANES = 128
WAIT = """  mov.u32 %count, 0;
{label}:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;
  @%done bra {label}_OVER;
  add.u32 %count, %count, 1;
  setp.lt.u32 %more, %count, 1000000;
  @%more bra {label};
  trap;
{label}_OVER:
"""


def registers(prefix: str, count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%{prefix}{first + i}" for i in range(count)) + "}"


def declarations(pair: bool, group: int) -> str:
    cluster = ".reqnctapercluster 2, 1, 1\n" if pair else ""
    return f"""{HEADER}.extern .shared .align 1024 .b8 window[];
.visible .entry k(.param .u64 p_in, .param .u64 p_out)
.reqntid 128, 1, 1
{cluster}{{
  .shared .align 8 .b64 bar;
  .shared .align 4 .b32 slot;
  .reg .b32 %t, %warp, %rank, %smem, %bar, %slot, %tmem, %mine, %count, %at, %r<8>, %v<64>;
  .reg .b64 %in, %out, %base, %from, %to, %d<8>;
  .reg .b16 %both;
  .reg .pred %done, %more, %other, %idle;
  mov.u32 %t, %tid.x;
  shr.u32 %warp, %t, 5;
  mov.u32 %rank, %{'cluster_ctarank' if pair else 'ctaid.x'};
  mov.u32 %smem, window;
  mov.u32 %bar, bar;
  mov.u32 %slot, slot;
  ld.param.u64 %in, [p_in];
  ld.param.u64 %out, [p_out];
  setp.ne.u32 %other, %warp, 0;
  @%other bra ALLOCATED;
  tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%slot], 512;
  tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
ALLOCATED:
"""


def barrier(pair: bool) -> str:
    """Synchronizes all threads of the CTA or the pair, with what tensor memory needs on either side."""
    meet = ("  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n" if pair
            else "  bar.sync 0;\n")
    return f"  tcgen05.fence::before_thread_sync;\n{meet}  tcgen05.fence::after_thread_sync;\n"


def fill_shared(size: int) -> str:
    return f"""  shl.b32 %at, %t, 4;
FILL:
  setp.ge.u32 %more, %at, {size};
  @%more bra FILLED;
  cvt.u64.u32 %from, %at;
  add.u64 %from, %in, %from;
  ld.global.v4.b32 {registers('v', 4)}, [%from];
  add.u32 %count, %smem, %at;
  st.shared.v4.b32 [%count], {registers('v', 4)};
  add.u32 %at, %at, 2048;
  bra FILL;
FILLED:
  fence.proxy.async.shared::cta;
"""


def move_columns(load: bool, columns: int, where: str) -> str:
    """Thread t moves lane t of the first `columns` columns from or to its row at %{where}."""
    text = f"  mad.wide.u32 %{where}, %t, {4 * columns}, %{where};\n"
    for first in range(0, columns, 16):
        count = min(16, columns - first)
        if count not in (1, 2, 4, 8, 16):
            raise ValueError("the number of columns must be a sum of 16s and a power of two")
        vector = registers("v", count)
        move = "".join(f"  {'st' if load else 'ld'}.global.b32 " +
                       (f"[%{where}+{4 * (first + i)}], %v{i};\n" if load else
                        f"%v{i}, [%{where}+{4 * (first + i)}];\n") for i in range(count))
        if load:
            text += (f"  tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {vector}, [%mine+{first}];\n"
                     "  tcgen05.wait::ld.sync.aligned;\n" + move)
        else:
            text += move + f"  tcgen05.st.sync.aligned.32x32b.x{count}.b32 [%mine+{first}], {vector};\n"
    return text + ("" if load else "  tcgen05.wait::st.sync.aligned;\n")


def commit(group: int) -> str:
    if group == 1:
        return "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];\n"
    return ("  mov.u16 %both, 3;\n  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
            ".multicast::cluster.b64 [%bar], %both;\n")


def kernel(steps: str, shared: int, before: int, after: int, *, group: int = 1, drain: str = "") -> str:
    """`shared` bytes and `before` columns come from `in` (of each CTA, one after the other), `after`
    columns go to `out`. `drain` replaces the loads of the columns: code of all threads."""
    pair = group == 2
    stride, result = shared + 4 * LANES * before, 4 * LANES * after
    text = declarations(pair, group)
    text += f"  mad.wide.u32 %in, %rank, {stride}, %in;\n  mad.wide.u32 %out, %rank, {result}, %out;\n"
    text += fill_shared(shared)
    text += """  setp.ne.u32 %idle, %t, 0;
  @%idle bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
READY:
""" + barrier(pair) + f"""  ld.shared.b32 %tmem, [%slot];
  shl.b32 %mine, %warp, 21;
  add.u32 %mine, %mine, %tmem;
  shr.u32 %count, %smem, 4;
  cvt.u64.u32 %base, %count;
  add.u64 %in, %in, {shared};
"""
    text += move_columns(False, before, "in") if before else ""
    text += barrier(pair)
    if steps:
        text += ("  or.b32 %count, %t, %rank;\n  setp.ne.u32 %idle, %count, 0;\n  @%idle bra ISSUED;\n" + steps
                 + commit(group) + "ISSUED:\n" + WAIT.format(label="WAIT")
                 + "  tcgen05.fence::after_thread_sync;\n")
    text += drain or move_columns(True, after, "out")
    text += barrier(pair)
    return text + f"""  @%other bra END;
  tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %tmem, 512;
END:
  ret;
}}
"""


def descriptor(offset: int, leading: int, stride: int, swizzle: int = 0, base_offset: int = 0) -> int:
    """The constant part of a descriptor of shared memory; `offset` is one of the image, in bytes.
    Bits as in PTX ISA, "Shared memory descriptor"."""
    return (offset >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | base_offset << 49
            | swizzle << 61)


def address(register: str, value: int) -> str:
    """Puts a descriptor in a register of 64 bits."""
    return f"  add.u64 %{register}, %base, {value:#x};\n"
