"""Launches that begin while the one before them ends, where two CTAs fit an SM: which places their
CTAs take, and what it costs that two CTAs of one launch share an SM."""
from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

import ptx
from cuda import Device, Kernel

ROOM = 104 * 1024  # shared memory of a CTA: two fit
PIECE = 16 * 1024
LAUNCHES, SETTLED = 40, 20

# One thread copies `pieces` pieces to shared memory, three in flight, all of them behind the wait.
# The thread notes where its CTA is, when it begins, when the launch before has ended and when it is
# done itself.
BODY = """  .reg .b32 %t, %sm, %buf, %bar, %i, %slot, %ph, %dst, %barrier, %n, %bid; .reg .b64 %t0, %t1, %t2, %at, %to; .reg .pred %q, %done;
  mov.u64 %t0, %globaltimer; mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 0;
@EARLY@
  @%q bra END;
  mov.u32 %buf, window; add.u32 %bar, %buf, @BARS@; mov.u32 %sm, %smid; mov.u32 %bid, %ctaid.x; cvt.u32.u64 %n, %pieces;
  mbarrier.init.shared.b64 [%bar], 1; mbarrier.init.shared.b64 [%bar+8], 1; mbarrier.init.shared.b64 [%bar+16], 1;
  fence.mbarrier_init.release.cluster; fence.proxy.async;
  griddepcontrol.wait;
  mov.u64 %t1, %globaltimer; mul.wide.u32 %at, %bid, 65536; add.u64 %at, %at, %from; mov.u32 %i, 0; mov.u32 %slot, 0; mov.u32 %ph, 0;
FILL:
  mad.lo.u32 %barrier, %i, 8, %bar; mad.lo.u32 %dst, %i, @PIECE@, %buf;
  mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], @PIECE@;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%dst], [%at], @PIECE@, [%barrier];
  add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 3; @%q bra FILL;
LOOP:
  mad.lo.u32 %barrier, %slot, 8, %bar; mad.lo.u32 %dst, %slot, @PIECE@, %buf;
WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%barrier], %ph; @!%done bra WAIT;
  setp.ge.u32 %q, %i, %n; @%q bra SKIP;
  mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], @PIECE@;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%dst], [%at], @PIECE@, [%barrier];
SKIP:
  add.u32 %i, %i, 1; add.u32 %slot, %slot, 1; setp.eq.u32 %q, %slot, 3; selp.b32 %slot, 0, %slot, %q; @%q xor.b32 %ph, %ph, 1;
  add.u32 %t, %n, 3; setp.lt.u32 %q, %i, %t; @%q bra LOOP;
  mov.u64 %t2, %globaltimer; mul.wide.u32 %to, %bid, 32; add.u64 %to, %to, %out; cvt.u64.u32 %at, %sm;
  st.global.v2.u64 [%to], {%at, %t0}; st.global.v2.u64 [%to+16], {%t1, %t2};
END:"""


def kernel(device: Device, early: bool) -> Kernel:
    body = BODY.replace("@EARLY@", "  griddepcontrol.launch_dependents;" if early else "").replace("@PIECE@", str(PIECE))
    return device.load(ptx.kernel(["out", "from", "pieces"], "", body.replace("@BARS@", str(3 * PIECE))), shared=ROOM)


def settled(device: Device, code: Kernel, how: str, memory: int, blocks: int, pieces: int) -> dict[str, Any]:
    """Launches in the second half of a graph: what lies between their ends, and how many SMs have
    two of their CTAs."""
    notes = device.allocate(32 * blocks * LAUNCHES)

    def issue(stream: Any) -> None:
        for i in range(LAUNCHES):
            launch = code if how == "alone" else code.launch_early
            launch(blocks, 128, notes + 32 * blocks * i, memory, pieces, stream=stream)

    replay = device.graph(issue)
    for _ in range(2):
        replay()
    device.synchronize()
    words = device.read(notes, 4 * blocks * LAUNCHES)
    device.free(notes)
    of = [[words[4 * (i * blocks + b):4 * (i * blocks + b) + 4] for b in range(blocks)] for i in range(SETTLED, LAUNCHES)]
    doubles = [sum(n > 1 for n in Counter(block[0] for block in launch).values()) for launch in of]
    ends = [max(block[3] for block in launch) for launch in of]
    steps = [b - a for a, b in zip(ends, ends[1:])]
    begins = [min(block[1] for block in launch) - end for launch, end in zip(of[1:], ends)]
    lasts = [max(block[1] for block in launch) - end for launch, end in zip(of[1:], ends)]
    waits = [statistics.median(block[2] for block in launch) - end for launch, end in zip(of[1:], ends)]
    return {"value": round(statistics.median(steps) / 1e3, 2), "unit": "us", "SMs with two": sorted(doubles),
            "ns from the end before to the first block, the last, the end of their waits":
                [round(statistics.median(values)) for values in (begins, lasts, waits)],
            "ns of a block": [round(statistics.median(block[3] - block[2] for launch in of for block in launch)),
                              max(block[3] - block[2] for launch in of for block in launch)]}


def overlap(device: Device, out: int, quick: bool) -> Iterator[dict[str, Any]]:
    memory = device.allocate(65536 * 2 * device.sms())
    variants = {"alone": kernel(device, False), "waits": kernel(device, False), "early": kernel(device, True)}
    for blocks in (66, 112, 128, 132, 224, 264):
        for pieces in (4,) if quick else (8, 32):
            for how, code in variants.items():
                yield {"name": f"{blocks} blocks of {pieces * PIECE >> 10} KiB, two fit, {how}",
                       **settled(device, code, how, memory, blocks, pieces)}
    device.free(memory)
