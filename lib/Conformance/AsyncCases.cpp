//===- AsyncCases.cpp - mbarriers and bulk copies -------------------------===//

#include "DeviceUnderTest.h"

namespace fp4::cts {
namespace {

const char *const kBulkKernel = R"(
.extern .shared .align 128 .b8 tile[];
.shared .align 8 .b8 full[8];
.visible .entry bulk(.param .u64 src, .param .u64 dst, .param .u32 bytes) {
  .reg .b32 %t, %n, %bytes, %bar, %tile, %at, %v; .reg .b64 %src, %dst, %o; .reg .pred %p, %done;
  ld.param.u64 %src, [src];
  ld.param.u64 %dst, [dst];
  ld.param.u32 %bytes, [bytes];
  cvta.to.global.u64 %src, %src;
  cvta.to.global.u64 %dst, %dst;
  mov.u32 %t, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %bar, full;
  mov.u32 %tile, tile;
  setp.ne.u32 %p, %t, 0;
  @%p bra READY;
  mbarrier.init.shared.b64 [%bar], 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %bytes;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%src], %bytes, [%bar];
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;
  @!%done bra WAIT;
  shl.b32 %t, %t, 2;
  shl.b32 %n, %n, 2;
COPY:
  setp.ge.u32 %p, %t, %bytes;
  @%p bra END;
  add.u32 %at, %tile, %t;
  ld.shared.u32 %v, [%at];
  cvt.u64.u32 %o, %t;
  add.u64 %o, %dst, %o;
  st.global.u32 [%o], %v;
  add.u32 %t, %t, %n;
  bra COPY;
END:
  ret;
}
)";

// A bulk copy into shared memory, announced on an mbarrier, then read by all threads.
TEST(CtsAsync, BulkCopySignalsItsBarrier) {
  for (uint32_t bytes : {16u, 512u, 16384u}) {
    Bytes contents = patternBytes(bytes, bytes);
    Buffer src(contents), dst(bytes, 0);
    rt::LaunchShape shape;
    shape.block = {128, 1, 1};
    shape.dynamicSharedBytes = bytes;
    Params params;
    params.add(src.address()).add(dst.address()).add(bytes);
    ASSERT_TRUE(runKernel(ptxModule(kBulkKernel), "bulk", shape, params)) << bytes;
    ASSERT_EQ(dst.read(), contents) << bytes;
  }
}

const char *const kRingKernel = R"(
.shared .align 128 .b8 ring[1024];
.shared .align 8 .b8 bars[32];
.visible .entry ring_sum(.param .u64 src, .param .u64 dst, .param .u32 chunks) {
  .reg .b32 %t, %chunks, %i, %stage, %phase, %full, %empty, %slot, %v, %sum, %at, %lane, %warp;
  .reg .b64 %src, %dst, %o; .reg .pred %p, %done;
  ld.param.u64 %src, [src];
  ld.param.u64 %dst, [dst];
  ld.param.u32 %chunks, [chunks];
  cvta.to.global.u64 %src, %src;
  cvta.to.global.u64 %dst, %dst;
  mov.u32 %t, %tid.x;
  and.b32 %lane, %t, 31;
  shr.u32 %warp, %t, 5;
  mov.u32 %full, bars;
  add.u32 %empty, %full, 16;
  setp.ne.u32 %p, %t, 0;
  @%p bra READY;
  mbarrier.init.shared.b64 [%full], 1;
  mbarrier.init.shared.b64 [%full+8], 1;
  mbarrier.init.shared.b64 [%empty], 32;
  mbarrier.init.shared.b64 [%empty+8], 32;
  fence.proxy.async;
READY:
  bar.sync 0;
  mov.u32 %i, 0;
  mov.u32 %sum, 0;
  setp.eq.u32 %p, %warp, 1;
  @%p bra CONSUME;
  setp.ne.u32 %p, %lane, 0;
  @%p bra END;
PRODUCE:
  setp.ge.u32 %p, %i, %chunks;
  @%p bra END;
  and.b32 %stage, %i, 1;
  shr.u32 %phase, %i, 1;
  xor.b32 %phase, %phase, 1;
  and.b32 %phase, %phase, 1;
  mad.lo.u32 %at, %stage, 8, %empty;
WAIT_EMPTY:
  mbarrier.try_wait.parity.shared.b64 %done, [%at], %phase;
  @!%done bra WAIT_EMPTY;
  mad.lo.u32 %at, %stage, 8, %full;
  mbarrier.arrive.expect_tx.shared.b64 _, [%at], 512;
  mov.u32 %slot, ring;
  mad.lo.u32 %slot, %stage, 512, %slot;
  mul.wide.u32 %o, %i, 512;
  add.u64 %o, %src, %o;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%slot], [%o], 512, [%at];
  add.u32 %i, %i, 1;
  bra PRODUCE;
CONSUME:
  setp.ge.u32 %p, %i, %chunks;
  @%p bra STORE;
  and.b32 %stage, %i, 1;
  shr.u32 %phase, %i, 1;
  and.b32 %phase, %phase, 1;
  mad.lo.u32 %at, %stage, 8, %full;
WAIT_FULL:
  mbarrier.try_wait.parity.shared.b64 %done, [%at], %phase;
  @!%done bra WAIT_FULL;
  mov.u32 %slot, ring;
  mad.lo.u32 %slot, %stage, 512, %slot;
  mad.lo.u32 %slot, %lane, 16, %slot;
  ld.shared.u32 %v, [%slot];
  mad.lo.u32 %sum, %sum, 3, %v;
  ld.shared.u32 %v, [%slot+12];
  xor.b32 %sum, %sum, %v;
  mad.lo.u32 %at, %stage, 8, %empty;
  mbarrier.arrive.shared.b64 _, [%at];
  add.u32 %i, %i, 1;
  bra CONSUME;
STORE:
  mul.wide.u32 %o, %lane, 4;
  add.u64 %dst, %dst, %o;
  st.global.u32 [%dst], %sum;
END:
  ret;
}
)";

// The pattern of every pipelined kernel: a producer fills a ring of two stages by bulk copies, a
// consumer warp drains it; full and empty barriers with phases from one counter.
TEST(CtsAsync, ARingOfTwoStagesKeepsItsPhases) {
  for (uint32_t chunks : {1u, 2u, 7u, 32u}) {
    Bytes contents = patternBytes(chunks * 512, chunks);
    Buffer src(contents), dst(128, 0);
    rt::LaunchShape shape;
    shape.block = {64, 1, 1};
    Params params;
    params.add(src.address()).add(dst.address()).add(chunks);
    ASSERT_TRUE(runKernel(ptxModule(kRingKernel), "ring_sum", shape, params)) << chunks;
    Bytes got = dst.read();
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t sum = 0;
      for (uint32_t i = 0; i < chunks; ++i) {
        uint32_t word = i * 128 + lane * 4;
        sum = (sum * 3 + view<uint32_t>(contents)[word]) ^ view<uint32_t>(contents)[word + 3];
      }
      ASSERT_EQ(view<uint32_t>(got)[lane], sum) << chunks << " chunks, lane " << lane;
    }
  }
}

// A store by the asynchronous proxy: shared to global, waited for by its bulk group.
TEST(CtsAsync, BulkStoreWritesGlobalMemory) {
  const std::string body = R"(
.shared .align 128 .b8 tile[512];
.visible .entry store(.param .u64 dst) {
  .reg .b32 %t, %tile, %at, %v; .reg .b64 %dst; .reg .pred %p;
  ld.param.u64 %dst, [dst];
  cvta.to.global.u64 %dst, %dst;
  mov.u32 %t, %tid.x;
  mov.u32 %tile, tile;
  mad.lo.u32 %at, %t, 4, %tile;
  mad.lo.u32 %v, %t, 17, 3;
  st.shared.u32 [%at], %v;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.ne.u32 %p, %t, 0;
  @%p bra END;
  cp.async.bulk.global.shared::cta.bulk_group [%dst], [%tile], 512;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:
  ret;
}
)";
  Buffer dst(512, 0);
  ASSERT_TRUE(runKernel(ptxModule(body), "store", {.grid = {1, 1, 1}, .block = {128, 1, 1}}, dst));
  Bytes got = dst.read();
  for (uint32_t i = 0; i < 128; ++i)
    ASSERT_EQ(view<uint32_t>(got)[i], i * 17 + 3);
}

} // namespace
} // namespace fp4::cts
