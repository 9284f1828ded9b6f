// Fields of the events of asynchronous operations: kind, engine, bytes and operations.
#include "fp4/Sim/Events/TicketEvent.h"
#include "KernelHarness.h"
#include "fp4/Sim/Observer.h"

#include <map>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::ElementsAre;
using testing::Pair;

namespace {

/// Sums what was issued; counts what was completed.
class Recorder final : public Observer {
public:
  struct Sum {
    uint64_t issued = 0, completed = 0, bytes = 0, flops = 0;
    auto operator<=>(const Sum &) const = default;
  };
  std::map<std::pair<TicketKind, Engine>, Sum> sums;

  void onTicket(const TicketEvent &event) override {
    Sum &sum = sums[{event.kind, event.engine}];
    if (event.state == TicketState::Completed) {
      ++sum.completed;
      return;
    }
    ++sum.issued;
    sum.bytes += event.bytes;
    sum.flops += event.flops;
  }
};

/// One tile of 128 x 128 x 256 of the MMA that lib/ISA describes: the kernel does not care for the
/// numbers.
std::map<std::pair<TicketKind, Engine>, Recorder::Sum> recordGemm(SimOptions options) {
  Recorder recorder;
  options.observer = &recorder;
  Simulator simulator(options);
  GlobalMemory &memory = simulator.memory();
  const auto zeros = [&](uint64_t bytes, const char *name) {
    const uint64_t address = memory.allocate(bytes, name);
    EXPECT_TRUE(memory.fill(address, 0, bytes));
    return address;
  };
  Params params;
  for (const char *name : {"a", "b"}) {
    hw::TensorMap map;
    map.elementType = hw::TensorMapType::UInt8;
    map.rank = 2;
    map.address = zeros(128 * 128, name);
    map.dims = {128, 128};
    map.strides = {128};
    map.box = {128, 128};
    map.swizzle = hw::SwizzleMode::B128;
    params.map(map);
  }
  params.add(zeros(128 * 16, "sfa")).add(zeros(128 * 16, "sfb")).add(zeros(128 * 128 * 4, "d"));
  params.add(uint32_t(1)).add(uint32_t(128));
  LaunchConfig config;
  config.block = {192, 1, 1};
  config.dynamicSharedBytes = 73728;
  const char *path = "integration_test/sim/nvfp4_gemm_128x128.ptx";
  const auto program = parse(readFile(path), path);
  EXPECT_TRUE(program);
  EXPECT_TRUE(simulator.launch(*program, "nvfp4_gemm_128x128", config, params.span()));
  return recorder.sums;
}

TEST(TicketEvents, AMmaNamesItsEnginesBytesAndOperations) {
  for (const SimOptions &options : schedules(1)) {
    const auto sums = recordGemm(options);
    const auto of = [&](TicketKind kind, Engine engine) {
      const auto found = sums.find({kind, engine});
      return found == sums.end() ? Recorder::Sum() : found->second;
    };
    // Both operands of 128 x 128 bytes.
    EXPECT_EQ(of(TicketKind::Tma, Engine::Tma), (Recorder::Sum{2, 2, 2 * 128 * 128, 0}));
    // 4 instructions of K = 64, each of which writes D.
    EXPECT_EQ(of(TicketKind::Mma, Engine::Tensor),
              (Recorder::Sum{4, 4, 4ull * 128 * 128 * 4, 2ull * 128 * 128 * 256}));
    // 128 x 16 scales of each operand by tcgen05.cp.32x128b.warpx4, which writes them four times.
    EXPECT_EQ(of(TicketKind::TmemCopy, Engine::ScaleCopy).bytes, 2ull * 128 * 16 * 4);
    // The scales come by plain bulk copies.
    EXPECT_EQ(of(TicketKind::Bulk, Engine::Tma).bytes, 2ull * 128 * 16);
    // The epilogue reads all of D once.
    EXPECT_EQ(of(TicketKind::TmemLoad, Engine::Threads).bytes, 128ull * 128 * 4);
    for (const auto &[key, sum] : sums)
      EXPECT_EQ(sum.issued, sum.completed) << stringify(key.first) << describe(options);
  }
}

TEST(TicketEvents, AStoreIsTheBulkStoreEngines) {
  const std::string text = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry test(.param .u64 out) {
  .shared .align 128 .b8 tile[256];
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, tile;
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r2, 3;
  add.u32 %r3, %r3, %r1;
  st.shared.v2.b32 [%r3], {%r2, %r2};
  fence.proxy.async.shared::cta;
  bar.warp.sync 0xffffffff;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra DONE;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
  ret;
}
)";
  std::string declared = text;
  declared.insert(declared.find("  ld.param"), "  .reg .pred %p<2>;\n");
  Recorder recorder;
  SimOptions options = schedules(0)[1];
  options.observer = &recorder;
  LaunchConfig config;
  config.block = {32, 1, 1};
  EXPECT_EQ(runText(declared, options, config, 64).error, "");
  EXPECT_THAT(recorder.sums, ElementsAre(Pair(std::pair(TicketKind::Bulk, Engine::BulkStore),
                                              Recorder::Sum{1, 1, 256, 0})));
}

} // namespace
