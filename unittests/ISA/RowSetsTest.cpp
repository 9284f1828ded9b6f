//===- RowSetsTest.cpp - Rows of words that TMA cannot stride by ----------===//
#include "fp4/ISA/RowSets.h"

#include "gtest/gtest.h"

#include <set>

using fp4::hw::RowSets;

namespace {

constexpr int64_t kWholeUnits = 10;

/// The first word of `row` of a matrix whose pitch is `pitch` modulo a unit.
int64_t firstWord(int64_t row, int64_t pitch) {
  return row * (kWholeUnits * RowSets::unit + pitch);
}

} // namespace

TEST(RowSets, RowsOfASetAreUnitsApart) {
  for (int64_t pitch = 0; pitch < RowSets::unit; ++pitch) {
    RowSets sets{pitch};
    for (int64_t row = 0; row < 16; ++row) {
      EXPECT_EQ((firstWord(row, pitch) - sets.shift(row)) % RowSets::unit, 0)
          << pitch << ' ' << row;
      EXPECT_EQ(sets.shift(row + sets.count()), sets.shift(row)) << pitch << ' ' << row;
    }
    // No fewer sets have that.
    std::set<int64_t> shifts;
    for (int64_t row = 0; row < sets.count(); ++row)
      shifts.insert(sets.shift(row));
    EXPECT_EQ(int64_t(shifts.size()), sets.count()) << pitch;
  }
}

TEST(RowSets, ColumnsTogetherAreInOneUnit) {
  for (int64_t pitch = 0; pitch < RowSets::unit; ++pitch) {
    RowSets sets{pitch};
    int64_t together = sets.columnsTogether();
    for (int64_t row = 0; row < 8; ++row)
      for (int64_t column = 0; column < 32; column += together)
        EXPECT_EQ((firstWord(row, pitch) + column) / RowSets::unit,
                  (firstWord(row, pitch) + column + together - 1) / RowSets::unit);
  }
}

TEST(RowSets, SetsAreOneBehindTheOther) {
  for (int64_t pitch = 0; pitch < RowSets::unit; ++pitch) {
    RowSets sets{pitch};
    constexpr int64_t rows = 32;
    std::set<int64_t> places;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t place = sets.place(row, rows);
      EXPECT_EQ(place / (rows / sets.count()), row % sets.count());
      places.insert(place);
    }
    EXPECT_EQ(int64_t(places.size()), rows);
    EXPECT_EQ(*places.rbegin(), rows - 1);
  }
}
