//===- LaunchCases.cpp - Modules, parameters, blocks, barriers, atomics ---===//

#include "DeviceUnderTest.h"

#include "fp4/ISA/Cluster.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace fp4::cts {
namespace {

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

const char *const kEmptyKernel = ".visible .entry empty() { ret; }\n";

TEST(CtsModule, MalformedPtxIsACompileErrorWithTheText) {
  auto module =
      loadPtx(ptxModule(".visible .entry broken() { frobnicate.s32 %r1; ret; }\n"), "bad");
  ASSERT_FALSE(module.has_value());
  EXPECT_EQ(module.error().kind, device()->isHardware() ? ErrorKind::Compile : module.error().kind);
  EXPECT_NE(module.error().message.find("frobnicate"), std::string::npos) << module.error().message;
}

TEST(CtsModule, AnUnknownKernelIsAnError) {
  auto module = loadPtx(ptxModule(kEmptyKernel), "empty");
  FP4_ASSERT_OK(module);
  FP4_ASSERT_OK(device()->kernelInfo(*module, "empty"));
  auto info = device()->kernelInfo(*module, "absent");
  ASSERT_FALSE(info.has_value());
  EXPECT_NE(info.error().message.find("has no kernel named 'absent'"), std::string::npos);
}

TEST(CtsModule, AWrongNumberOfParametersIsAnError) {
  auto module = loadPtx(ptxModule(kEmptyKernel), "empty");
  FP4_ASSERT_OK(module);
  int value = 0;
  void *params[] = {&value};
  Status status = device()->launch(*module, "empty", {}, params);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "kernel 'empty' expects 0 parameters, but got 1");
  FP4_ASSERT_OK(device()->launch(*module, "empty", {}, {}));
}

TEST(CtsModule, TooMuchSharedMemoryIsAnError) {
  auto module = loadPtx(ptxModule(kEmptyKernel), "empty");
  FP4_ASSERT_OK(module);
  rt::LaunchShape shape;
  shape.dynamicSharedBytes = 1 << 20;
  EXPECT_FALSE(device()->launch(*module, "empty", shape, {}).has_value());
}

// FP4_CUBIN names a cubin of kEmptyKernel: ptxas -arch=sm_90a.
TEST(CtsModule, ACubinNeedsAGpu) {
  const char *path = std::getenv("FP4_CUBIN");
  std::string image = "not a cubin";
  if (path) {
    std::ifstream file(path, std::ios::binary);
    image.assign(std::istreambuf_iterator<char>(file), {});
  }
  fp4rt_module module{"empty", "sm_90a", nullptr, 0, image.data(), image.size()};
  auto loaded = device()->loadModule(module);
  if (!device()->isHardware() || !path) {
    EXPECT_FALSE(loaded.has_value());
    return;
  }
  FP4_ASSERT_OK(loaded);
  auto info = device()->kernelInfo(*loaded, "empty");
  FP4_ASSERT_OK(info);
  EXPECT_FALSE(info->compiledFromPtx);
  FP4_ASSERT_OK(device()->launch(*loaded, "empty", {}, {}));
  FP4_ASSERT_OK(device()->synchronize());
}

TEST(CtsModule, CodeForAnotherGpuIsRefused) {
  const char *text =
      ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k() { ret; }";
  fp4rt_module module{"blackwell", "sm_100a", text, std::strlen(text), nullptr, 0};
  auto loaded = device()->loadModule(module);
  if (!device()->isHardware()) { // the simulator runs PTX that it understands
    FP4_ASSERT_OK(loaded);
    FP4_ASSERT_OK(device()->launch(*loaded, "k", {}, {}));
    FP4_ASSERT_OK(device()->synchronize());
    return;
  }
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind, ErrorKind::Device);
  EXPECT_NE(loaded.error().message.find("is compiled for sm_100a"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// A kernel that copies its parameters to `out`, the three arrays word by word.
static std::string parameterKernel() {
  std::string body = R"(
.visible .entry params(.param .u64 out, .param .u8 a, .param .u16 b, .param .u32 c, .param .u64 d,
    .param .f32 e, .param .f64 f, .param .align 16 .b8 g[48], .param .align 64 .b8 h[128],
    .param .align 4 .b8 i[1000]) {
  .reg .b16 %h; .reg .b32 %r; .reg .b64 %d, %out; .reg .b32 %v<4>;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  ld.param.u8 %h, [a];   st.global.u8 [%out], %h;
  ld.param.u16 %h, [b];  st.global.u16 [%out+2], %h;
  ld.param.u32 %r, [c];  st.global.u32 [%out+4], %r;
  ld.param.u64 %d, [d];  st.global.u64 [%out+8], %d;
  ld.param.b32 %r, [e];  st.global.b32 [%out+16], %r;
  ld.param.b64 %d, [f];  st.global.b64 [%out+24], %d;
)";
  auto copy = [&](char name, int bytes, int at) {
    for (int offset = 0; offset < bytes; offset += 4)
      body += "  ld.param.b32 %r, [" + std::string(1, name) + "+" + std::to_string(offset) +
              "]; st.global.b32 [%out+" + std::to_string(at + offset) + "], %r;\n";
  };
  copy('g', 48, 32);
  copy('h', 128, 80);
  copy('i', 1000, 208);
  return body + "  ret;\n}\n";
}

TEST(CtsLaunch, ParametersOfAllSizesArrive) {
  Bytes g = patternBytes(48, 1), h = patternBytes(128, 2), i = patternBytes(1000, 3);
  Buffer out(1208, 0);
  Params params;
  params.add(out.address()).add(uint8_t(0x12)).add(uint16_t(0x3456)).add(uint32_t(0x789abcde));
  params.add(uint64_t(0x0123456789abcdef)).add(1.5f).add(-2.25);
  params.addBytes(g).addBytes(h).addBytes(i);
  ASSERT_TRUE(runKernel(ptxModule(parameterKernel()), "params", {}, params));
  Bytes got = out.read();
  EXPECT_EQ(got[0], std::byte(0x12));
  EXPECT_EQ(view<uint16_t>(got)[1], 0x3456);
  EXPECT_EQ(view<uint32_t>(got)[1], 0x789abcdeu);
  EXPECT_EQ(view<uint64_t>(got)[1], 0x0123456789abcdefu);
  EXPECT_EQ(view<float>(got)[4], 1.5f);
  EXPECT_EQ(view<double>(got)[3], -2.25);
  EXPECT_EQ(Bytes(got.begin() + 32, got.begin() + 80), g);
  EXPECT_EQ(Bytes(got.begin() + 80, got.begin() + 208), h);
  EXPECT_EQ(Bytes(got.begin() + 208, got.end()), i);
  saveImage("launch_params", got);
}

//===----------------------------------------------------------------------===//
// Grids and CTAs
//===----------------------------------------------------------------------===//

TEST(CtsLaunch, EveryThreadOfAGridRunsOnce) {
  const std::string body = R"(
.visible .entry ids(.param .u64 out) {
  .reg .b32 %t<3>, %b<3>, %n<3>, %g<3>, %block, %thread, %r, %one; .reg .b64 %out, %offset;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  mov.u32 %t0, %tid.x; mov.u32 %t1, %tid.y; mov.u32 %t2, %tid.z;
  mov.u32 %b0, %ctaid.x; mov.u32 %b1, %ctaid.y; mov.u32 %b2, %ctaid.z;
  mov.u32 %n0, %ntid.x; mov.u32 %n1, %ntid.y; mov.u32 %n2, %ntid.z;
  mov.u32 %g0, %nctaid.x; mov.u32 %g1, %nctaid.y;
  mad.lo.u32 %block, %b2, %g1, %b1;
  mad.lo.u32 %block, %block, %g0, %b0;
  mad.lo.u32 %thread, %t2, %n1, %t1;
  mad.lo.u32 %thread, %thread, %n0, %t0;
  mul.lo.u32 %r, %n0, %n1;
  mul.lo.u32 %r, %r, %n2;
  mad.lo.u32 %r, %block, %r, %thread;
  mul.wide.u32 %offset, %r, 4;
  add.u64 %out, %out, %offset;
  mov.u32 %one, 1;
  red.global.add.u32 [%out], %one;
  ret;
}
)";
  constexpr size_t threads = 33 * 3 * 2, blocks = 5 * 3 * 2;
  Buffer out(threads * blocks * 4, 0);
  ASSERT_TRUE(runKernel(ptxModule(body), "ids", {.grid = {5, 3, 2}, .block = {33, 3, 2}}, out));
  Bytes got = out.read();
  for (uint32_t count : view<uint32_t>(got))
    ASSERT_EQ(count, 1u);
}

// Reverses a CTA's values through dynamic shared memory: wrong without bar.sync.
const char *const kReverse = R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry reverse(.param .u64 out, .param .u32 skip) {
  .reg .b32 %t, %n, %base, %at, %skip, %v, %size; .reg .b64 %out, %o;
  ld.param.u64 %out, [out];
  ld.param.u32 %skip, [skip];
  cvta.to.global.u64 %out, %out;
  mov.u32 %t, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %base, dynamic;
  add.u32 %base, %base, %skip;
  mad.lo.u32 %at, %t, 4, %base;
  mad.lo.u32 %v, %t, 3, 7;
  st.shared.u32 [%at], %v;
  bar.sync 0;
  sub.u32 %at, %n, %t;
  sub.u32 %at, %at, 1;
  mad.lo.u32 %at, %at, 4, %base;
  ld.shared.u32 %v, [%at];
  mul.wide.u32 %o, %t, 4;
  add.u64 %out, %out, %o;
  st.global.u32 [%out], %v;
  ret;
}
)";

TEST(CtsLaunch, DynamicSharedMemoryReachesTheLimit) {
  for (uint32_t bytes : {4096u, 48u * 1024, 100u * 1024, 227u * 1024}) {
    Buffer out(4096, 0);
    rt::LaunchShape shape;
    shape.block = {1024, 1, 1};
    shape.dynamicSharedBytes = bytes;
    Params params;
    params.add(out.address()).add(bytes - 4096);
    ASSERT_TRUE(runKernel(ptxModule(kReverse), "reverse", shape, params)) << bytes;
    Bytes got = out.read();
    for (uint32_t i = 0; i < 1024; ++i)
      ASSERT_EQ(view<uint32_t>(got)[i], (1023 - i) * 3 + 7) << bytes;
  }
}

// Half of the CTA meets at barrier 1, the other half at barrier 2; then all at 0.
TEST(CtsLaunch, NamedBarriersSeparateTheirThreads) {
  const std::string body = R"(
.shared .align 4 .b8 cells[1024];
.visible .entry named(.param .u64 out) {
  .reg .b32 %t, %half, %bar, %base, %at, %v, %w; .reg .b64 %out, %o;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  mov.u32 %t, %tid.x;
  shr.u32 %half, %t, 7;
  add.u32 %bar, %half, 1;
  mov.u32 %base, cells;
  mad.lo.u32 %at, %t, 4, %base;
  st.shared.u32 [%at], %t;
  bar.sync %bar, 128;
  xor.b32 %v, %t, 127;
  mad.lo.u32 %at, %v, 4, %base;
  ld.shared.u32 %v, [%at];
  bar.sync 0;
  mad.lo.u32 %at, %t, 4, %base;
  st.shared.u32 [%at], %v;
  bar.sync 0;
  xor.b32 %w, %t, 255;
  mad.lo.u32 %at, %w, 4, %base;
  ld.shared.u32 %v, [%at];
  mul.wide.u32 %o, %t, 4;
  add.u64 %out, %out, %o;
  st.global.u32 [%out], %v;
  ret;
}
)";
  Buffer out(1024, 0);
  ASSERT_TRUE(runKernel(ptxModule(body), "named", {.grid = {1, 1, 1}, .block = {256, 1, 1}}, out));
  Bytes got = out.read();
  for (uint32_t i = 0; i < 256; ++i)
    ASSERT_EQ(view<uint32_t>(got)[i], (i ^ 255) ^ 127);
}

//===----------------------------------------------------------------------===//
// Atomics and divergence
//===----------------------------------------------------------------------===//

// An atomic of each kind on its own cell, and a compare-and-swap that is tried until it succeeds.
static const char *const kAtomics = R"(
.visible .entry atomics(.param .u64 cells) {
  .reg .b32 %t, %b, %id, %old; .reg .b64 %cells, %wide; .reg .f32 %f; .reg .pred %p;
  ld.param.u64 %cells, [cells];
  cvta.to.global.u64 %cells, %cells;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mad.lo.u32 %id, %b, 128, %t;
  red.global.add.u32 [%cells], %id;
  atom.global.max.u32 %old, [%cells+4], %id;
  atom.global.min.s32 %old, [%cells+8], %id;
  atom.global.or.b32 %old, [%cells+12], %id;
  mov.f32 %f, 0f3F800000;
  red.global.add.f32 [%cells+16], %f;
  cvt.u64.u32 %wide, %id;
  red.global.add.u64 [%cells+24], %wide;
RETRY:
  ld.volatile.global.u32 %old, [%cells+32];
  add.u32 %t, %old, 1;
  atom.global.cas.b32 %id, [%cells+32], %old, %t;
  setp.ne.u32 %p, %id, %old;
  @%p bra RETRY;
  ret;
}
)";

TEST(CtsLaunch, AtomicsFromManyBlocksAddUp) {
  std::vector<uint32_t> initial(10, 0);
  initial[2] = 1000;
  Buffer cells(bytesOf(initial));
  ASSERT_TRUE(
      runKernel(ptxModule(kAtomics), "atomics", {.grid = {8, 1, 1}, .block = {128, 1, 1}}, cells));
  Bytes got = cells.read();
  auto words = view<uint32_t>(got);
  EXPECT_EQ(words[0], 1024u * 1023 / 2);
  EXPECT_EQ(words[1], 1023u);
  EXPECT_EQ(words[2], 0u);
  EXPECT_EQ(words[3], 1023u);
  EXPECT_EQ(view<float>(got)[4], 1024.0f);
  EXPECT_EQ(view<uint64_t>(got)[3], uint64_t(1024) * 1023 / 2);
  EXPECT_EQ(words[8], 1024u);
  saveImage("launch_atomics", got);
}

// Lanes leave a loop at different times and meet again for a shuffle.
TEST(CtsLaunch, DivergentLanesReconverge) {
  const std::string body = R"(
.visible .entry diverge(.param .u64 out) {
  .reg .b32 %t, %n, %sum, %v, %mask; .reg .b64 %out, %o; .reg .pred %p;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  mov.u32 %t, %tid.x;
  mov.u32 %n, %t;
  mov.u32 %sum, 0;
LOOP:
  setp.eq.u32 %p, %n, 0;
  @%p bra DONE;
  add.u32 %sum, %sum, %n;
  sub.u32 %n, %n, 1;
  bra LOOP;
DONE:
  bar.warp.sync 0xffffffff;
  shfl.sync.bfly.b32 %v, %sum, 1, 31, 0xffffffff;
  and.b32 %n, %t, 3;
  setp.eq.u32 %p, %n, 0;
  vote.sync.ballot.b32 %mask, %p, 0xffffffff;
  add.u32 %v, %v, %mask;
  mul.wide.u32 %o, %t, 4;
  add.u64 %out, %out, %o;
  st.global.u32 [%out], %v;
  ret;
}
)";
  Buffer out(256, 0);
  ASSERT_TRUE(runKernel(ptxModule(body), "diverge", {.grid = {1, 1, 1}, .block = {64, 1, 1}}, out));
  Bytes got = out.read();
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t other = i ^ 1;
    ASSERT_EQ(view<uint32_t>(got)[i], other * (other + 1) / 2 + 0x11111111u) << i;
  }
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

// Each CTA reads the cell of its neighbour in the cluster through distributed shared memory.
TEST(CtsLaunch, ClusterBlocksReadEachOthersSharedMemory) {
  const std::string body = R"(
.shared .align 4 .b8 cell[4];
.visible .entry neighbours(.param .u64 out) {
  .reg .b32 %rank, %size, %peer, %at, %v, %b; .reg .b64 %out, %o; .reg .pred %p;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %size, %cluster_nctarank;
  mov.u32 %b, %ctaid.x;
  mad.lo.u32 %v, %b, 10, 5;
  mov.u32 %at, cell;
  st.shared.u32 [%at], %v;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  add.u32 %peer, %rank, 1;
  setp.eq.u32 %p, %peer, %size;
  selp.u32 %peer, 0, %peer, %p;
  mapa.shared::cluster.u32 %at, %at, %peer;
  ld.shared::cluster.u32 %v, [%at];
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mul.wide.u32 %o, %b, 4;
  add.u64 %out, %out, %o;
  st.global.u32 [%out], %v;
  ret;
}
)";
  Buffer out(8 * 4, 0);
  ASSERT_TRUE(runKernel(ptxModule(body), "neighbours",
                        {.grid = {8, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}}, out));
  Bytes got = out.read();
  for (uint32_t i = 0; i < 8; ++i)
    EXPECT_EQ(view<uint32_t>(got)[i], ((i & 4) | ((i + 1) & 3)) * 10 + 5);
}

const char *const kSizes = R"(
.shared .align 4 .b8 cell[4];
.visible .entry sizes(.param .u64 out) {
  .reg .b32 %rank, %size, %peer, %at, %v, %b, %first, %rest; .reg .b64 %out, %o; .reg .pred %p, %q;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %size, %cluster_nctarank;
  mov.u32 %b, %ctaid.x;
  mov.u32 %at, cell;
  st.shared.u32 [%at], %b;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  add.u32 %peer, %rank, 1;
  rem.u32 %peer, %peer, %size;
  mapa.shared::cluster.u32 %at, %at, %peer;
  ld.shared::cluster.u32 %v, [%at];
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  sub.u32 %first, %b, %rank;
  rem.u32 %rest, %first, %size;
  setp.eq.u32 %p, %rest, 0;
  add.u32 %first, %first, %peer;
  setp.eq.and.u32 %p, %v, %first, %p;
  setp.eq.u32 %q, %size, 2;
  setp.eq.or.u32 %q, %size, 4, %q;
  and.pred %p, %p, %q;
  selp.u32 %v, 1, 0, %p;
  mul.wide.u32 %o, %b, 4;
  add.u64 %out, %out, %o;
  st.global.u32 [%out], %v;
  ret;
}
)";

// Clusters of two or of four CTAs, as the device has room: each CTA reports whether its neighbour
// is the next one of a cluster that begins where the grid divides. The report does not depend on
// the size.
TEST(CtsLaunch, ClustersOfAPreferredSizeBeginWhereTheGridDivides) {
  if (!hw::requirePreferredClusters(*hw::lookupTarget(device()->target())))
    GTEST_SKIP() << device()->target() << " has clusters of one size in a launch";
  Buffer out(64 * 4, 0);
  rt::LaunchShape shape{.grid = {64, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}};
  shape.preferredCluster = {4, 1, 1};
  ASSERT_TRUE(runKernel(ptxModule(kSizes), "sizes", shape, out));
  Bytes got = out.read();
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(view<uint32_t>(got)[i], 1u) << "CTA " << i;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

// Ends the context on a GPU, so the test runs alone: FP4_FAULTS=1 and
// --gtest_filter=CtsFault.AStore*.
TEST(CtsFault, AStoreOutsideEveryAllocationIsAnError) {
  if (device()->isHardware() && !std::getenv("FP4_FAULTS"))
    return;
  const std::string body = R"(
.visible .entry fault() {
  .reg .b64 %a; .reg .b32 %v;
  mov.u64 %a, 0x123456789000;
  mov.u32 %v, 1;
  st.global.u32 [%a], %v;
  ret;
}
)";
  Params params;
  testing::AssertionResult result = runKernel(ptxModule(body), "fault", {}, params);
  ASSERT_FALSE(result);
  std::string message = result.message();
  EXPECT_NE(message.find(device()->isHardware() ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "0x123456789000"),
            std::string::npos)
      << message;
}

} // namespace
} // namespace fp4::cts
