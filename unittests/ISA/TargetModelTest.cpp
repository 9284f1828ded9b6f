// Target facts. Sources: NVIDIA's Blackwell and Hopper tuning guides (capacities) and ptxas 13.0.88
// (which instruction assembles for which target).
#include "fp4/ISA/TargetModel.h"
#include "fp4/ISA/GpuModel.h"
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::hw;

TEST(TargetModel, defaultIsB200) {
  const TargetModel &t = targets().front();
  EXPECT_EQ(t.name, "sm_100a");
  EXPECT_EQ(lookupTarget("sm_100a"), &t);
  EXPECT_EQ(t.ptxFeature, "+ptx88");
  EXPECT_EQ(t.sms, 148u);
  EXPECT_EQ(t.limits.sharedBytesPerCta, 227u * 1024);
  EXPECT_EQ(t.limits.sharedBytesPerCta + t.limits.sharedReservedPerCta, t.limits.sharedBytesPerSM);
  EXPECT_EQ(t.limits.tmemColumns, 512u);
  EXPECT_EQ(t.limits.tmemLanes * t.limits.tmemColumns * 4, 256u * 1024);
}

// CUDA C++ Programming Guide, technical specifications by compute capability; the data sheets of
// H200, B200, B300, RTX 5090 and GB10 for SMs and L2.
TEST(TargetModel, capacities) {
  const struct {
    const char *name;
    unsigned sharedPerCta, sharedPerSM, threadsPerSM, ctasPerSM, sms, l2MB, tmemColumns;
  } rows[] = {{"sm_100a", 227 * 1024, 228 * 1024, 2048, 32, 148, 126, 512},
              {"sm_103a", 227 * 1024, 228 * 1024, 2048, 32, 148, 126, 512},
              {"sm_107a", 227 * 1024, 228 * 1024, 1024, 16, 212, 126, 512},
              {"sm_90a", 227 * 1024, 228 * 1024, 2048, 32, 132, 50, 0},
              {"sm_120a", 99 * 1024, 100 * 1024, 1536, 24, 170, 96, 0},
              {"sm_121a", 99 * 1024, 100 * 1024, 1536, 24, 48, 24, 0},
              {"sm_110a", 227 * 1024, 228 * 1024, 1536, 24, 20, 32, 512}};
  EXPECT_EQ(targets().size(), std::size(rows));
  for (const auto &row : rows) {
    SCOPED_TRACE(row.name);
    const TargetModel *t = lookupTarget(row.name);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->limits.sharedBytesPerCta, row.sharedPerCta);
    EXPECT_EQ(t->limits.sharedBytesPerSM, row.sharedPerSM);
    EXPECT_EQ(t->limits.sharedReservedPerCta, 1024u);
    EXPECT_EQ(t->limits.maxThreadsPerSM, row.threadsPerSM);
    EXPECT_EQ(t->limits.maxThreadsPerCta, 1024u);
    EXPECT_EQ(t->limits.maxCtasPerSM, row.ctasPerSM);
    EXPECT_EQ(t->limits.registersPerSM, 65536u);
    EXPECT_EQ(t->limits.maxRegistersPerThread, 255u);
    EXPECT_EQ(t->limits.maxClusterSize, 8u);
    EXPECT_EQ(t->limits.mostSharedBytes(), t->name == "sm_107a" ? 327u * 1024 : row.sharedPerCta);
    EXPECT_EQ(t->limits.ctasByShared(row.sharedPerCta), 1u);
    EXPECT_EQ(t->limits.ctasByShared(t->limits.mostSharedBytes()), 1u);
    EXPECT_EQ(t->limits.ctasByShared(t->limits.mostSharedBytes() + 1), 0u);
    EXPECT_EQ(t->sms, row.sms);
    EXPECT_EQ(t->l2Bytes, uint64_t(row.l2MB) << 20);
    EXPECT_EQ(t->limits.tmemColumns, row.tmemColumns);
  }
}

// Instructions and limits are asked of ptxas: unittests/Compiler/TargetsTest.cpp.
TEST(TargetModel, factsAgreeWithEachOther) {
  for (const TargetModel &t : targets()) {
    SCOPED_TRACE(t.name);
    EXPECT_EQ(t.features.hasTcgen05, t.limits.tmemColumns != 0);
    EXPECT_EQ(t.features.hasTcgen05, t.product != nullptr);
    EXPECT_TRUE(t.features.hasFp4Convert || !t.features.hasStochasticConvert);
    EXPECT_TRUE(t.features.hasTcgen05 ||
                !(t.features.hasFp4K96 || t.features.hasDoubleK || t.features.hasTcgen05Int8));
    EXPECT_GE(t.limits.tmemExclusiveColumns, t.limits.tmemColumns);
    EXPECT_TRUE(t.features.hasFp8MmaSync ||
                !t.features.hasMmaBlockScale); // scaled products have no form in f16
    EXPECT_TRUE(t.features.hasTcgen05 || !t.features.hasCtaPairs);
    EXPECT_EQ(t.name, "sm_" + std::to_string(t.computeMajor) + std::to_string(t.computeMinor) + "a");
  }
}

// A target without a device has the habits that all its products have.
TEST(TargetModel, lastingLoads) {
  for (const GpuModel &gpu : gpus())
    EXPECT_EQ(gainsFromLastingLoads(gpu.model()), gpu.gainsFromLastingLoads) << gpu.option;
  EXPECT_TRUE(requireGpu("h200").value()->gainsFromLastingLoads);
  EXPECT_TRUE(gainsFromLastingLoads(*lookupTarget("sm_90a")));
  EXPECT_FALSE(gainsFromLastingLoads(*lookupTarget("sm_100a")));
  EXPECT_FALSE(gainsFromLastingLoads(*lookupTarget("sm_110a"))); // which no product has
}

// Whoever adds a row of rates says where they come from.
TEST(TargetModel, ratesHaveSources) {
  for (const TargetModel &t : targets()) {
    if (!t.product)
      continue;
    const MmaRates &r = *t.product;
    for (const Rate &rate : {r.flopsPerCycle, r.sharedBytesPerCycle, r.l2BytesPerCycle, r.fillCycles,
                             r.epilogueCyclesPerColumn, r.serialShare, r.tailCycles}) {
      EXPECT_GT(rate.value, 0) << t.name;
      EXPECT_FALSE(rate.source.empty()) << t.name;
    }
  }
  EXPECT_EQ(lookupTarget("sm_100a")->product->flopsPerCycle.mark, Mark::Measured);
  EXPECT_EQ(lookupTarget("sm_103a")->product->flopsPerCycle.mark, Mark::Assumed);
}

TEST(TargetModel, errorsSayWhatThereIs) {
  const auto unknown = requireTarget("sm_99");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "unknown target 'sm_99'");
  std::string known;
  for (const TargetModel &t : targets())
    known += (known.empty() ? "" : ", ") + std::string(t.name);
  EXPECT_EQ(unknown.error().note, "known targets: " + known);
  ASSERT_TRUE(requireTarget("sm_90a"));
  const auto missing =
      requireFeature(*lookupTarget("sm_90a"), &TargetFeatures::hasTcgen05, "tcgen05");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "target 'sm_90a' has no tcgen05");
  EXPECT_EQ(missing.error().note,
            "targets with tcgen05: " + targetsWith(&TargetFeatures::hasTcgen05));
  EXPECT_TRUE(requireFeature(*lookupTarget("sm_100a"), &TargetFeatures::hasTcgen05, "tcgen05"));
}
