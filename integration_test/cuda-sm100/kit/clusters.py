"""Cases of cluster launch control, of copies of 4-bit tensors, and of multicast in a pair."""
from __future__ import annotations

from collections.abc import Iterator

import tensor_memory as tm
from case import CLUSTERS, HEADER, TCGEN05, Case, TensorMap, noise

BLOCKS = 600  # more than any of the devices starts at once


def launch_control() -> Case:
    """Every CTA adds one to the counter of its own index and of every index that it takes over. CTAs
    are held up, so that there is something to take."""
    ptx = f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out) .reqntid 128, 1, 1 {{
  .shared .align 8 .b64 bar; .shared .align 16 .b8 response[16];
  .reg .b32 %bar, %response, %index, %phase, %old, %t, %count; .reg .b64 %out, %at; .reg .b128 %q;
  .reg .pred %taken, %done, %more, %idle;
  ld.param.u64 %out, [p_out];
  mov.u32 %t, %tid.x; setp.ne.u32 %idle, %t, 0; @%idle bra END;
  mov.u32 %bar, bar; mov.u32 %response, response; mov.u32 %index, %ctaid.x; mov.u32 %phase, 0;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
WORK:
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;
  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%response], [%bar];
  mad.wide.u32 %at, %index, 4, %out;
  atom.global.add.u32 %old, [%at], 1;
  mov.u32 %count, 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], %phase;
  @%done bra ANSWERED;
  add.u32 %count, %count, 1;
  setp.lt.u32 %more, %count, 1000000;
  @%more bra WAIT;
  trap;
ANSWERED:
  xor.b32 %phase, %phase, 1;
  ld.shared.b128 %q, [%response];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %taken, %q;
  @!%taken bra END;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %index, %q;
  fence.proxy.async.shared::cta;
  bra WORK;
END:
  ret;
}}
"""
    return Case("clc_every-index-once", ptx, b"", 4 * BLOCKS, grid=BLOCKS, before=0)


def tensor_copy(name: str, kind: int, width: int, rows: int, box: int, swizzle: int) -> Case:
    """A box of `rows` rows of `box` elements at (box, 3) of a matrix of 4-bit elements; rows that the matrix
    lacks are zero. The image is 16 KiB of shared memory, 0xEE where nothing came."""
    ptx = f"""{HEADER}.extern .shared .align 1024 .b8 window[];
.visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .align 64 .b8 map[128]) .reqntid 128, 1, 1 {{
  .shared .align 8 .b64 bar;
  .reg .b32 %t, %at, %window, %bar, %count, %v<4>; .reg .b64 %out, %to, %map; .reg .pred %more, %idle, %done;
  ld.param.u64 %out, [p_out]; mov.u32 %t, %tid.x; mov.u32 %window, window; mov.u32 %bar, bar;
  mov.b64 %map, map; cvta.param.u64 %map, %map;
  mov.b32 %v0, 0xeeeeeeee; shl.b32 %at, %t, 4;
FILL:
  add.u32 %count, %window, %at; st.shared.v4.b32 [%count], {{%v0, %v0, %v0, %v0}};
  add.u32 %at, %at, 2048; setp.lt.u32 %more, %at, 16384; @%more bra FILL;
  fence.proxy.async.shared::cta;
  setp.ne.u32 %idle, %t, 0; @%idle bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  @%idle bra ISSUED;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {box // 2 * rows};
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%window], [%map, {{{box}, 3}}], [%bar];
ISSUED:
{tm.WAIT.format(label='WAIT')}
  shl.b32 %at, %t, 4;
DUMP:
  add.u32 %count, %window, %at; ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%count];
  cvt.u64.u32 %to, %at; add.u64 %to, %out, %to; st.global.v4.b32 [%to], {{%v0, %v1, %v2, %v3}};
  add.u32 %at, %at, 2048; setp.lt.u32 %more, %at, 16384; @%more bra DUMP;
  ret;
}}
"""
    matrix = TensorMap(kind, (width, rows + 1), (width // 2,), (box, rows), swizzle)
    return Case(f"tma_{name}", ptx, noise(width // 2 * (rows + 1), kind + swizzle), 16384, targets=TCGEN05,
                shared=16384, map=matrix)


def remote_store() -> Case:
    """Each CTA of a pair stores its threads' numbers into the other's shared memory."""
    ptx = f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out) .reqntid 128, 1, 1 .reqnctapercluster 2, 1, 1 {{
  .shared .align 16 .b8 mine[512];
  .reg .b32 %t, %rank, %peer, %at, %v; .reg .b64 %out;
  ld.param.u64 %out, [p_out]; mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; xor.b32 %peer, %rank, 1;
  mov.u32 %at, mine; mad.lo.u32 %at, %t, 4, %at; mapa.shared::cluster.u32 %at, %at, %peer;
  mad.lo.u32 %v, %rank, 1000, %t;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  st.shared::cluster.b32 [%at], %v;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  mov.u32 %at, mine; mad.lo.u32 %at, %t, 4, %at; ld.shared.b32 %v, [%at];
  mad.lo.u32 %t, %rank, 128, %t; mad.wide.u32 %out, %t, 4, %out; st.global.b32 [%out], %v;
  ret;
}}
"""
    return Case("pair_remote-store", ptx, b"", 1024, targets=CLUSTERS, grid=2)


def cases() -> Iterator[Case]:
    yield launch_control()
    yield remote_store()
    for swizzle in (0, 1, 2, 3):
        box = {0: 64, 1: 64, 2: 128, 3: 256}[swizzle]
        yield tensor_copy(f"u4-align8_swizzle{swizzle}", 13, 1024, 40, box, swizzle)
    for swizzle in (0, 3):
        yield tensor_copy(f"u4-align16_swizzle{swizzle}", 14, 1024, 40, 128, swizzle)
