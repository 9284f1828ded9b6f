// The hand-written NVFP4 GEMM of integration_test/sim, end to end, under every schedule: bit equal
// to the model of lib/Numerics. Then the same kernel with one wait, fence or size taken away.
#include "KernelHarness.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::AnyOf;
using testing::HasSubstr;

namespace {

struct Gemm {
  uint32_t m, n, k;
  std::vector<uint8_t> a, b, scalesA, scalesB; ///< packed codes; linear scales
  std::vector<float> want;

  Gemm(uint32_t m, uint32_t n, uint32_t k, uint32_t seed) : m(m), n(n), k(k) {
    std::mt19937 rng(seed);
    const auto fill = [&](std::vector<uint8_t> &to, size_t size, auto draw) {
      to.resize(size);
      for (uint8_t &byte : to)
        byte = uint8_t(draw());
    };
    fill(a, size_t(m) * k / 2, [&] { return rng(); });
    fill(b, size_t(n) * k / 2, [&] { return rng(); });
    const auto scale = [&] { return 0x28 + rng() % 0x28; };
    fill(scalesA, size_t(m) * k / 16, scale);
    fill(scalesB, size_t(n) * k / 16, scale);
    numerics::GemmProblem problem;
    problem.a = {a.data(), scalesA.data(), m};
    problem.b = {b.data(), scalesB.data(), n};
    problem.depth = k;
    problem.threads = 1;
    auto result = numerics::gemmMmaModel(problem);
    EXPECT_TRUE(result);
    want = *result;
  }

  static std::vector<uint8_t> tiled(const std::vector<uint8_t> &scales, uint32_t rows,
                                    uint32_t blocks) {
    std::vector<uint8_t> out(hw::tiled128x4Bytes(rows, blocks));
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t block = 0; block < blocks; ++block)
        out[hw::tiled128x4Offset(row, block, blocks)] = scales[row * blocks + block];
    return out;
  }
};

hw::TensorMap operandMap(uint64_t address, uint32_t rows, uint32_t k) {
  hw::TensorMap map;
  map.elementType = hw::TensorMapType::UInt8;
  map.rank = 2;
  map.address = address;
  map.dims = {k / 2, rows};
  map.strides = {k / 2};
  map.box = {128, 128};
  map.swizzle = hw::SwizzleMode::B128;
  return map;
}

uint64_t upload(GlobalMemory &memory, const std::vector<uint8_t> &bytes, std::string name) {
  const uint64_t address = memory.allocate(bytes.size(), std::move(name));
  EXPECT_TRUE(memory.write(address, bytes.data(), bytes.size()));
  return address;
}

/// Runs the kernel; elements that differ from the model, or the error.
struct Outcome {
  int wrong = -1;
  std::string error, note;
  LaunchStats stats;
};

Outcome run(const Gemm &g, const Program &program, const SimOptions &options) {
  Simulator simulator(options);
  GlobalMemory &memory = simulator.memory();
  const uint64_t a = upload(memory, g.a, "a"), b = upload(memory, g.b, "b");
  const uint64_t sfa = upload(memory, Gemm::tiled(g.scalesA, g.m, g.k / 16), "sfa");
  const uint64_t sfb = upload(memory, Gemm::tiled(g.scalesB, g.n, g.k / 16), "sfb");
  const uint64_t d = memory.allocate(g.want.size() * 4, "d");
  Params params;
  params.map(operandMap(a, g.m, g.k)).map(operandMap(b, g.n, g.k));
  params.add(sfa).add(sfb).add(d).add(uint32_t(g.k / 256)).add(uint32_t(g.n));
  LaunchConfig config;
  config.grid = {g.m / 128, g.n / 128, 1};
  config.block = {192, 1, 1};
  config.dynamicSharedBytes = 73728;
  auto stats = simulator.launch(program, "nvfp4_gemm_128x128", config, params.span());
  if (!stats)
    return {-1, stats.error().message, stats.error().note, {}};
  std::vector<float> got(g.want.size());
  EXPECT_TRUE(memory.read(d, got.data(), got.size() * 4));
  Outcome outcome{0, "", "", *stats};
  for (size_t i = 0; i < got.size(); ++i)
    outcome.wrong += std::memcmp(&got[i], &g.want[i], 4) != 0;
  return outcome;
}

const char *path = "integration_test/sim/nvfp4_gemm_128x128.ptx";

TEST(NvFp4Gemm, OneTileUnderEverySchedule) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  const Gemm gemm(128, 128, 256, 1);
  for (const SimOptions &options : schedules()) {
    const Outcome outcome = run(gemm, *program, options);
    EXPECT_EQ(outcome.wrong, 0) << describe(options) << ": " << outcome.error << "\n"
                                << outcome.note;
    EXPECT_EQ(outcome.stats.mmas, 4u);
  }
}

TEST(NvFp4Gemm, SeveralTilesAndPhases) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  const Gemm gemm(256, 128, 1280, 2); // five k tiles: both stages, more than one phase each
  for (const SimOptions &options : schedules(2)) {
    const Outcome outcome = run(gemm, *program, options);
    EXPECT_EQ(outcome.wrong, 0) << describe(options) << ": " << outcome.error << "\n"
                                << outcome.note;
  }
}

/// Later operations in a pipeline wait, although only the earlier ones are late.
TEST(NvFp4Gemm, DelaysKeepTheOrderOfAPipeline) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  const Gemm gemm(128, 128, 512, 4);
  for (const char *engine : {"tcgen05.cp", "tcgen05.mma"}) {
    SimOptions options;
    options.policy = CompletionPolicy::Delay;
    options.delayedEngine = engine;
    const Outcome outcome = run(gemm, *program, options);
    EXPECT_EQ(outcome.wrong, 0) << engine << ": " << outcome.error << "\n" << outcome.note;
  }
}

TEST(NvFp4Gemm, ASeedReplays) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  const Gemm gemm(256, 256, 512, 3);
  SimOptions options;
  options.policy = CompletionPolicy::Random;
  options.seed = 11;
  options.hostThreads = 1;
  const Outcome first = run(gemm, *program, options);
  options.hostThreads = 2;
  const Outcome second = run(gemm, *program, options);
  EXPECT_EQ(first.wrong, 0) << first.error;
  EXPECT_EQ(first.stats.warpInstructions, second.stats.warpInstructions);
  EXPECT_EQ(first.stats.tickets, second.stats.tickets);
}

/// The kernel with the first `from` replaced by `to`.
std::string mutate(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

struct Mutant {
  const char *name, *from, *to;
  const char *error; ///< part of what some schedule must report
};

const Mutant mutants[] = {
    {"mma does not wait for the copies",
     "  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r20], %r16;\n  @!%p4 bra MMA_WAIT;", "",
     "too early"},
    {"mma does not retry its wait", "  @!%p4 bra MMA_WAIT;", "", "too early"},
    {"load does not wait for the multiplications",
     "  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r19], %r17;\n  @!%p4 bra LOAD_WAIT;", "",
     "gets 1 arrivals with 0 pending"},
    {"epilogue does not wait for the accumulator",
     "  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r8], 0;\n  @!%p4 bra EPILOGUE;", "",
     "never written"},
    {"registers read before wait::ld", "  tcgen05.wait::ld.sync.aligned;", "", "tcgen05.ld"},
    {"bytes expected: too many", "[%r20], 36864;", "[%r20], 36880;", "deadlock"},
    {"bytes expected: too few", "[%r20], 36864;", "[%r20], 36848;", "more were delivered"},
    {"wrong phase", "  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r8], 0;",
     "  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r8], 1;", "never written"},
    {"constant phase", "  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r20], %r16;",
     "  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r20], 0;", "too early"},
    {"no commit for the epilogue",
     "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r8];", "",
     "deadlock"},
    {"no commit for the load",
     "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r19];", "",
     "deadlock"},
    {"tensor memory leaks", "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 256;", "",
     "exits with tensor memory allocated"},
    {"first tile accumulates", "  setp.ne.u32 %p6, %r14, 0;", "  setp.ne.u32 %p6, %r14, 99;",
     "never written"},
    {"scales of the last step are not copied",
     "  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r27+12], %rd15;", "", "never written"},
    {"lanes of another warp", "  shl.b32 %r33, %r1, 21;", "  mov.u32 %r33, 0;",
     "may access TMEM lanes"},
};

TEST(NvFp4Gemm, MutantsAreCaught) {
  const std::string text = readFile(path);
  const Gemm gemm(128, 128, 1280, 4);
  for (const Mutant &mutant : mutants) {
    const auto program = parse(mutate(text, mutant.from, mutant.to), path);
    ASSERT_TRUE(program) << mutant.name;
    bool caught = false, explained = false;
    std::string seen;
    for (const SimOptions &options : schedules(3)) {
      const Outcome outcome = run(gemm, *program, options);
      caught |= outcome.wrong != 0;
      explained |= outcome.error.find(mutant.error) != std::string::npos;
      if (!outcome.error.empty())
        seen += describe(options) + ": " + outcome.error + "\n";
    }
    EXPECT_TRUE(caught) << mutant.name;
    EXPECT_TRUE(explained) << mutant.name << " should say '" << mutant.error << "', but says\n"
                           << seen;
  }
}

/// Reports of the hazard checker under an option set.
std::string hazards(const Gemm &gemm, const Program &program, SimOptions options) {
  const auto instruments = instrument("default", options);
  (void)run(gemm, program, options);
  std::string text;
  for (const HazardReport &report : instruments->hazards())
    text += report.text();
  return text;
}

TEST(NvFp4Gemm, HasNoHazards) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  const Gemm gemm(256, 128, 1280, 5);
  for (const SimOptions &options : schedules(1))
    EXPECT_EQ(hazards(gemm, *program, options), "") << describe(options);
}

/// Waits on shared memory that are taken away are named. The schedule completes operations early;
/// later ones end the second program with an arrival too many before it can overwrite anything.
TEST(NvFp4Gemm, MissingWaitsAreNamed) {
  const std::string text = readFile(path);
  const Gemm gemm(128, 128, 1280, 6);
  for (const auto &[mutant, rule] : {std::pair(mutants[0], "unwaited-copy"),
                                     std::pair(mutants[2], "overwritten-while-written")}) {
    const auto program = parse(mutate(text, mutant.from, mutant.to), path);
    ASSERT_TRUE(program);
    EXPECT_THAT(hazards(gemm, *program, schedules()[0]), HasSubstr(rule)) << mutant.name;
  }
}

} // namespace
