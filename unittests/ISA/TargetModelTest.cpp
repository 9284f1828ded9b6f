// Target facts. Sources: NVIDIA's Blackwell and Hopper tuning guides (capacities) and ptxas 13.0.88
// (which instruction assembles for which target).
#include "fp4/ISA/TargetModel.h"
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::hw;

TEST(TargetModel, defaultIsB200) {
  const TargetModel &t = targets().front();
  EXPECT_EQ(t.name, "sm_100a");
  EXPECT_EQ(lookupTarget("sm_100a"), &t);
  EXPECT_EQ(t.ptxFeature, "+ptx88");
  EXPECT_EQ(t.multiprocessors, 148u);
  EXPECT_EQ(t.sharedBytesPerCta, 227u * 1024);
  EXPECT_EQ(t.sharedBytesPerCta + t.sharedReservedPerCta, t.sharedBytesPerSM);
  EXPECT_EQ(t.tmemColumns, 512u);
  EXPECT_EQ(t.tmemLanes * t.tmemColumns * 4, 256u * 1024);
}

// CUDA C++ Programming Guide, technical specifications by compute capability; the data sheets of
// H200, B200, B300 and RTX 5090 for multiprocessors and L2.
TEST(TargetModel, capacities) {
  const struct {
    const char *name;
    unsigned sharedPerCta, sharedPerSM, threadsPerSM, ctasPerSM, multiprocessors, l2MB, tmemColumns;
  } rows[] = {{"sm_100a", 227 * 1024, 228 * 1024, 2048, 32, 148, 126, 512},
              {"sm_103a", 227 * 1024, 228 * 1024, 2048, 32, 148, 126, 512},
              {"sm_90a", 227 * 1024, 228 * 1024, 2048, 32, 132, 50, 0},
              {"sm_120a", 99 * 1024, 100 * 1024, 1536, 24, 170, 96, 0}};
  EXPECT_EQ(targets().size(), std::size(rows));
  for (const auto &row : rows) {
    SCOPED_TRACE(row.name);
    const TargetModel *t = lookupTarget(row.name);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->sharedBytesPerCta, row.sharedPerCta);
    EXPECT_EQ(t->sharedBytesPerSM, row.sharedPerSM);
    EXPECT_EQ(t->sharedReservedPerCta, 1024u);
    EXPECT_EQ(t->maxThreadsPerSM, row.threadsPerSM);
    EXPECT_EQ(t->maxThreadsPerCta, 1024u);
    EXPECT_EQ(t->maxCtasPerSM, row.ctasPerSM);
    EXPECT_EQ(t->registersPerSM, 65536u);
    EXPECT_EQ(t->maxRegistersPerThread, 255u);
    EXPECT_EQ(t->maxClusterSize, 8u);
    EXPECT_EQ(t->multiprocessors, row.multiprocessors);
    EXPECT_EQ(t->l2Bytes, uint64_t(row.l2MB) << 20);
    EXPECT_EQ(t->tmemColumns, row.tmemColumns);
  }
}

TEST(TargetModel, instructionFamilies) {
  const struct {
    const char *name;
    bool tcgen05, wgmma, fp4Convert, stochastic, k96;
  } rows[] = {{"sm_100a", true, false, true, true, false},
              {"sm_103a", true, false, true, true, true},
              {"sm_90a", false, true, false, false, false},
              {"sm_120a", false, false, true, false, false}};
  EXPECT_EQ(targets().size(), std::size(rows));
  for (const auto &row : rows) {
    const TargetModel *t = lookupTarget(row.name);
    ASSERT_TRUE(t) << row.name;
    EXPECT_EQ(t->hasTcgen05, row.tcgen05) << row.name;
    EXPECT_EQ(t->hasTcgen05, t->tmemColumns != 0) << row.name;
    EXPECT_EQ(t->hasWgmma, row.wgmma) << row.name;
    EXPECT_EQ(t->hasFp4Convert, row.fp4Convert) << row.name;
    EXPECT_EQ(t->hasStochasticConvert, row.stochastic) << row.name;
    EXPECT_EQ(t->hasFp4K96, row.k96) << row.name;
    EXPECT_TRUE(t->hasTma) << row.name;
  }
}

TEST(TargetModel, errorsSayWhatThereIs) {
  const auto unknown = requireTarget("sm_99");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "unknown target 'sm_99'");
  EXPECT_EQ(unknown.error().note, "known targets: sm_100a, sm_103a, sm_90a, sm_120a");
  ASSERT_TRUE(requireTarget("sm_90a"));
  const auto missing = requireFeature(*lookupTarget("sm_90a"), &TargetModel::hasTcgen05, "tcgen05");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "target 'sm_90a' has no tcgen05");
  EXPECT_EQ(missing.error().note, "targets with tcgen05: sm_100a, sm_103a");
  EXPECT_TRUE(requireFeature(*lookupTarget("sm_100a"), &TargetModel::hasTcgen05, "tcgen05"));
}
