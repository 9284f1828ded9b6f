//===- MmaVariantTest.cpp - tcgen05.mma with .sp, .ws, A in tensor memory, ... ===//
//
// One instruction per case. D is written before the MMA, and every cell of its lanes is looked at
// after it.
//
//===----------------------------------------------------------------------===//
#include "MmaVariants.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using namespace fp4::sim::test::variants;
using testing::HasSubstr;

namespace {

void check(const Case &c) {
  SCOPED_TRACE(c.name());
  Problem p;
  Builder build{c, p};
  build.make();
  const auto want = expected(c, p, build);
  const MmaRun result = run(c, p, schedules(0)[1]); // completes late
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.cells, want);
}

std::string failure(const Case &c) {
  Problem p;
  Builder{c, p}.make();
  return run(c, p, schedules(0)[0]).error;
}

struct KindAndType {
  MmaKind kind;
  MmaType type;
};
constexpr KindAndType plainKinds[] = {
    {MmaKind::F16, MmaType::F16},     {MmaKind::F16, MmaType::BF16},
    {MmaKind::TF32, MmaType::TF32},   {MmaKind::F8F6F4, MmaType::E4M3},
    {MmaKind::F8F6F4, MmaType::E5M2}, {MmaKind::F8F6F4, MmaType::E2M3},
    {MmaKind::F8F6F4, MmaType::E3M2}, {MmaKind::F8F6F4, MmaType::E2M1},
    {MmaKind::I8, MmaType::S8},       {MmaKind::I8, MmaType::U8}};
constexpr KindAndType scaledKinds[] = {{MmaKind::MXF8F6F4, MmaType::E4M3},
                                       {MmaKind::MXF8F6F4, MmaType::E2M1},
                                       {MmaKind::MXF4, MmaType::E2M1},
                                       {MmaKind::MXF4NVF4, MmaType::E2M1}};

Case caseOf(const KindAndType &t) {
  Case c;
  c.kind = t.kind;
  c.type = t.type;
  c.d = t.kind == MmaKind::I8 ? hw::AccumulatorType::S32 : hw::AccumulatorType::F32;
  return c;
}

/// Every M that one CTA and a pair have, A in shared and in tensor memory.
void checkShapes(const KindAndType &t, bool sparse) {
  for (unsigned group : {1u, 2u})
    for (unsigned m : {64 * group, 128 * group})
      for (bool inTmem : {false, true}) {
        Case c = caseOf(t);
        c.m = m;
        c.group = group;
        c.sparse = sparse;
        c.aInTmem = inTmem;
        c.n = c.kind == MmaKind::I8 ? 32 : 16 * group;
        if (!hw::validateMmaShape(c.kind, group, m, c.n, {sparse, false}))
          continue;
        check(c);
        c.lane = 16;
        if (c.halfLanes())
          check(c);
      }
}

TEST(MmaVariants, DenseOfEveryKindAndShape) {
  for (const KindAndType &t : plainKinds)
    checkShapes(t, false);
  for (const KindAndType &t : scaledKinds)
    checkShapes(t, false);
}

TEST(MmaVariants, SparseOfEveryKindAndShape) {
  for (const KindAndType &t : plainKinds)
    checkShapes(t, true);
  for (const KindAndType &t : scaledKinds)
    checkShapes(t, true);
}

TEST(MmaVariants, TheSelectorTakesTheSecondColumn) {
  for (const KindAndType &t : {plainKinds[0], plainKinds[2]}) {
    Case c = caseOf(t);
    c.sparse = true;
    c.selector = 1;
    check(c);
  }
}

TEST(MmaVariants, WeightStationary) {
  for (const KindAndType &t : plainKinds)
    for (unsigned m : {32u, 64u, 128u})
      for (bool sparse : {false, true})
        for (bool inTmem : {false, true}) {
          Case c = caseOf(t);
          c.stationary = true;
          c.m = m;
          c.sparse = sparse;
          c.aInTmem = inTmem;
          c.collector = sparse ? ".collector::b3::use" : ".collector::b1::fill";
          check(c);
        }
}

TEST(MmaVariants, ColumnsOfBThatCountAsZero) {
  for (unsigned m : {32u, 64u, 128u}) {
    Case c;
    c.stationary = true;
    c.m = m;
    c.mask = hw::ZeroColumnMask{};
    c.mask->columnShift = m == 32 ? 16 : 5;
    check(c);
    c.mask->nonZero = true;
    c.mask->skipSpan = 3;
    c.mask->useSpan = 4;
    c.mask->startCount = {0, 1, 2, 1};
    c.mask->firstSkips = {true, true, false, false};
    check(c);
  }
  Case c;
  c.stationary = true;
  c.m = 32;
  c.mask = hw::ZeroColumnMask{};
  c.mask->columnShift = 17;
  EXPECT_THAT(failure(c), HasSubstr("the column shift must be at most 16 with M = 32"));
}

TEST(MmaVariants, LanesThatAreNotWritten) {
  Case c;
  c.n = 16;
  c.disabled = {0x00000003, 0x80000000, 0xFFFF0000, 0};
  check(c);
  c.m = 64;
  check(c);
  c.group = 2;
  c.m = 128;
  c.disabled = {1, 2, 4, 8, 0xF0, 0xF00, 0, 0xFFFFFFFF};
  check(c);
  c.sparse = true;
  check(c);
}

TEST(MmaVariants, DScaledBeforeItIsAddedTo) {
  for (const KindAndType &t : {plainKinds[0], plainKinds[2]})
    for (unsigned scale : {1u, 3u, 15u}) {
      Case c = caseOf(t);
      c.n = 16;
      c.scaleD = scale;
      check(c);
    }
  Case half;
  half.n = 16;
  half.d = hw::AccumulatorType::F16;
  half.scaleD = 2;
  check(half);
  Case eight = caseOf(plainKinds[3]);
  eight.scaleD = 1;
  EXPECT_THAT(failure(eight), HasSubstr("scale-input-d must not be given with kind::f8f6f4"));
}

TEST(MmaVariants, RowsOfAShiftedDown) {
  for (unsigned group : {1u, 2u}) {
    Case c;
    c.group = group;
    c.m = 128 * group;
    c.n = 16 * group;
    c.aInTmem = c.shiftA = true;
    c.collector = ".collector::a::lastuse";
    check(c);
  }
  Case c;
  c.aInTmem = c.shiftA = true;
  c.collector = ".collector::a::fill";
  EXPECT_THAT(failure(c), HasSubstr(".ashift does not go with .collector::a::fill"));
}

TEST(MmaVariants, ErrorsSayWhatIsWrong) {
  Case c;
  c.sparse = true;
  Problem p;
  Builder{c, p}.make();
  const auto errorOf = [&](const Case &wrong) { return run(wrong, p, schedules(0)[0]).error; };
  EXPECT_EQ(errorOf(c), "");
  Case selector = c;
  selector.selector = 2;
  EXPECT_THAT(errorOf(selector),
              HasSubstr("the sparsity selector of kind::f16 must be 0 or 1, but got 2"));
  for (uint32_t &word : p.tmem[0])
    word = 0;
  EXPECT_THAT(errorOf(c), HasSubstr("sparse A has metadata 0b0000 for elements 0..3 of row 0"));
  Case scaled = caseOf(scaledKinds[2]);
  scaled.sparse = true;
  scaled.group = 2;
  scaled.m = 128;
  EXPECT_THAT(failure(scaled), HasSubstr(".sp kind::mxf4 with cta_group::2 expects M = 256"));
  Case stationary;
  stationary.stationary = true;
  stationary.n = 32;
  EXPECT_THAT(failure(stationary), HasSubstr("expects N = 64, 128 or 256, but got 32"));
}

/// Copies of A in tensor memory that differ: the columns of each part come from its own.
TEST(MmaVariants, PartsOfDHaveTheirOwnCopyOfA) {
  std::vector<Case> cases;
  for (const KindAndType &t : {plainKinds[0], plainKinds[3], plainKinds[8]})
    for (unsigned m : {32u, 64u}) {
      cases.push_back(caseOf(t));
      cases.back().stationary = true;
      cases.back().m = m;
    }
  for (const KindAndType &t : {plainKinds[1], scaledKinds[0], scaledKinds[2]}) {
    cases.push_back(caseOf(t));
    cases.back().group = 2;
    cases.back().m = 128;
    cases.back().n = 32;
  }
  for (Case &c : cases) {
    SCOPED_TRACE(c.name());
    c.aInTmem = true;
    ASSERT_GT(c.parts(), 1u);
    Problem same, other, mixed;
    for (Problem *p : {&same, &other, &mixed})
      Builder{c, *p}.make();
    const unsigned last = c.parts() - 1;
    for (unsigned lane = 0; lane < 128; ++lane)
      for (unsigned column = 0; column < 8; ++column) {
        const size_t at = lane * columnCount + column;
        other.tmem[0][at] = 0;
        if (lane / (128 / c.parts()) == last)
          mixed.tmem[0][at] = 0;
      }
    std::vector<std::vector<uint32_t>> cells;
    for (const Problem *p : {&same, &other, &mixed}) {
      const MmaRun result = run(c, *p, schedules(0)[0]);
      ASSERT_EQ(result.error, "");
      cells.push_back(result.cells[0]);
    }
    EXPECT_NE(cells[0], cells[1]);
    const auto split = ptrdiff_t(cells[0].size() / c.parts() * last);
    std::vector<uint32_t> want(cells[0].begin(), cells[0].begin() + split);
    want.insert(want.end(), cells[1].begin() + split, cells[1].end());
    EXPECT_EQ(cells[2], want);
  }
}

TEST(MmaVariants, CopiesOfMetadataMustAgree) {
  Case c;
  c.stationary = c.sparse = c.aInTmem = true;
  c.m = 64;
  Problem p;
  Builder{c, p}.make();
  EXPECT_EQ(run(c, p, schedules(0)[0]).error, "");
  p.tmem[0][70 * columnCount + columnMeta - columnA] ^= 1;
  EXPECT_THAT(run(c, p, schedules(0)[0]).error,
              HasSubstr("the copies of sparsity metadata in tensor memory differ: row 6 in lanes 6 "
                        "and 70"));
}

} // namespace
