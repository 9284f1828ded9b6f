"""tcgen05: the main loop of a GEMM. One thread copies tiles of A and B into a ring, and one
multiplies them."""
from __future__ import annotations

from dataclasses import dataclass

import ptx
from cuda import Device

ROW = 128  # bytes of a row of shared memory in the widest swizzle
STEP = 32  # bytes of K that one MMA takes
APART = 8  # k tiles of the operands that stay in L2
# by bytes of a row: the driver's number of a swizzle, and its layout in a descriptor of shared
# memory
SWIZZLES = {32: (1, 6), 64: (2, 4), 128: (3, 2)}


@dataclass(frozen=True)
class Tile:
    m: int
    n: int
    k: int  # elements
    element: str  # bf16, e4m3
    stages: int

    def bytes(self) -> int:
        """Bytes of a row of a k tile."""
        return self.k * (2 if self.element == "bf16" else 1)

    def box(self) -> int:
        """Bytes of a row of a box."""
        return min(self.bytes(), ROW)

    def size(self) -> int:
        return (self.m + self.n) * self.bytes()


def copies(tile: Tile) -> str:
    """The k tile at element %column, into %stage."""
    text = ""
    for operand, rows, base in (("A", tile.m, 0), ("B", tile.n, tile.m * tile.bytes())):
        for part in range(tile.bytes() // tile.box()):
            text += (f"  add.u32 %to, %stage, {base + part * rows * tile.box()};"
                     f" add.u32 %x, %column, {part * tile.box() * tile.k // tile.bytes()};\n"
                     "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     f"[%to], [%map{operand}, {{%x, %zero}}], [%full];\n")
    return text


def products(tile: Tile) -> str:
    """The MMAs of the k tile in %stage; %more is false for the first of all."""
    descriptor = tile.n >> 3 << 17 | tile.m >> 4 << 24 | 1 << 4
    if tile.element == "bf16":
        descriptor |= 1 << 7 | 1 << 10
    layout = SWIZZLES[tile.box()][1]
    common = 1 << 46 | (8 * tile.box() >> 4) << 32 | 1 << 16 | layout << 61
    kind = "f16" if tile.element == "bf16" else "f8f6f4"
    text = f"  shr.u32 %x, %stage, 4; cvt.u64.u32 %da, %x; or.b64 %da, %da, {common:#x};\n"
    text += f"  add.u64 %db, %da, {tile.m * tile.bytes() >> 4};\n"
    for step in range(tile.bytes() // STEP):
        part, within = divmod(step * STEP, tile.box())
        if step:
            text += (f"  add.u64 %ea, %da, {(part * tile.m * tile.box() + within) >> 4};"
                     f" add.u64 %eb, %db, {(part * tile.n * tile.box() + within) >> 4};\n")
        a, b, accumulate = ("%ea", "%eb", "1") if step else ("%da", "%db", "%more")
        text += f"  tcgen05.mma.cta_group::1.kind::{kind} [%tmem], {a}, {b}, {descriptor:#x}, {accumulate};\n"
    return text.replace(", 1;\n", ", %always;\n")


def advance(tile: Tile) -> str:
    return f"""  add.u32 %slot, %slot, 1; add.u32 %stage, %stage, {tile.size()}; add.u32 %full, %full, 8; add.u32 %empty, %empty, 8;
  setp.eq.u32 %wrap, %slot, {tile.stages}; @!%wrap bra KEEP~;
  mov.u32 %slot, 0; mov.u32 %stage, window; mov.u32 %full, bars; add.u32 %empty, %full, {8 * tile.stages}; xor.b32 %phase, %phase, 1;
KEEP~:
"""


def kernel(tile: Tile, apart: int = APART) -> str:
    """A kernel of 64 threads over operands of `apart` k tiles, again and again: `out` gets the
    clock before the first copy and behind the last MMA."""
    body = f"""{ptx.CLOCK}  .shared .align 8 .b64 bars[{2 * tile.stages + 1}]; .shared .align 4 .b32 where;
  .reg .b32 %slot, %stage, %full, %empty, %phase, %tmem, %to, %x, %zero, %column, %it, %steps, %last, %at;
  .reg .b64 %mapA, %mapB, %da, %db, %ea, %eb; .reg .pred %done, %wrap, %always, %other, %bystander;
  setp.eq.u32 %always, %thread, %thread; mov.u32 %zero, 0; mov.u32 %at, where; cvt.u32.u64 %steps, %rounds;
  mov.b64 %mapA, p_a; cvta.param.u64 %mapA, %mapA; mov.b64 %mapB, p_b; cvta.param.u64 %mapB, %mapB;
  mov.u32 %slot, 0; mov.u32 %stage, window; mov.u32 %full, bars; add.u32 %empty, %full, {8 * tile.stages};
  add.u32 %last, %full, {16 * tile.stages}; mov.u32 %it, 0; mov.u32 %column, 0;
  setp.ne.u32 %other, %warp, 0; @%other bra MADE;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%at], 256;
  setp.ne.u32 %bystander, %lane, 0; @%bystander bra MADE;
  mov.u32 %x, %full;
INIT: mbarrier.init.shared::cta.b64 [%x], 1; add.u32 %x, %x, 8; setp.le.u32 %done, %x, %last; @%done bra INIT;
  fence.mbarrier_init.release.cluster;
MADE:
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.b32 %tmem, [%at]; setp.ne.u32 %bystander, %lane, 0; @%bystander bra NEXT; @%other bra MULTIPLY;
  mov.u64 %begin, %clock64; st.global.u64 [%out], %begin; mov.u32 %phase, 1;
COPY: mbarrier.try_wait.parity.shared::cta.b64 %done, [%empty], %phase; @!%done bra COPY;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], {tile.size()};
{copies(tile)}  add.u32 %column, %column, {tile.k}; setp.eq.u32 %wrap, %column, {apart * tile.k}; selp.b32 %column, 0, %column, %wrap;
{advance(tile).replace("~", "0")}  add.u32 %it, %it, 1; setp.lt.u32 %done, %it, %steps; @%done bra COPY;
  bra NEXT;
MULTIPLY: mov.u32 %phase, 0;
FULL: mbarrier.try_wait.parity.shared::cta.b64 %done, [%full], %phase; @!%done bra FULL;
  setp.ne.u32 %more, %it, 0;
{products(tile)}  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%empty];
{advance(tile).replace("~", "1")}  add.u32 %it, %it, 1; setp.lt.u32 %done, %it, %steps; @%done bra FULL;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%last];
LAST: mbarrier.try_wait.parity.shared::cta.b64 %done, [%last], 0; @!%done bra LAST;
  mov.u64 %end, %clock64; st.global.u64 [%out+8], %end;
NEXT:
  bar.sync 0;
  @%other bra END;
  bar.warp.sync -1;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 256;
END:"""
    text = ptx.kernel(["out", "rounds", "a", "b"], "", body, block=64)
    for name in "ab":
        text = text.replace(f".param .u64 p_{name}", f".param .align 64 .b8 p_{name}[128]")
        text = text.replace(f"  .reg .b64 %{name};\n  ld.param.u64 %{name}, [p_{name}];\n", "")
        text = text.replace(f"  .reg .b64 %{name};\n  ld.param.u64 %{name}, [p_{name}];", "")
    return text


def cycles(device: Device, out: int, tile: Tile, few: int, many: int, apart: int = APART) -> float:
    """Returns the cycles of a k tile, between two lengths of the loop."""
    memory = [device.allocate(rows * apart * tile.bytes()) for rows in (tile.m, tile.n)]
    kind = 9 if tile.element == "bf16" else 0  # bytes
    maps = [device.encode(kind, of, (apart * tile.k, rows), (apart * tile.bytes(),),
                          (tile.box() * tile.k // tile.bytes(), rows), SWIZZLES[tile.box()][0]) for of, rows in zip(memory, (tile.m, tile.n))]
    loop = device.load(kernel(tile, apart), shared=(tile.size() * tile.stages + 1023) // 1024 * 1024)
    spans = []
    for steps in (few, many):
        loop(1, 64, out, steps, *maps)
        device.synchronize()
        begin, end = device.read(out, 2)
        spans.append(end - begin)
    for of in memory:
        device.free(of)
    return (spans[1] - spans[0]) / (many - few)
