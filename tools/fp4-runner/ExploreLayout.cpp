//===- ExploreLayout.cpp - Places of elements and scales ------------------===//
//
// Answers of lib/ISA to every question that the page can ask, for the matrices below. The page has
// no formula of its own.
//
//===----------------------------------------------------------------------===//

#include "Explore.h"

#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/Swizzle.h"
#include "fp4/ISA/TmemLayout.h"

namespace fp4::runner {
namespace {

using explorer::Json;

constexpr unsigned kRows = 256, kDepth = 256;     ///< size of the matrix whose scales are shown
constexpr unsigned kTileRows = 128;               ///< rows of an operand in shared memory
constexpr unsigned kColumns = 64;                 ///< columns of the accumulator
constexpr unsigned kElementsPerMma = 64;          ///< K of one instruction on 4-bit elements

/// The place of each row and scale block in global memory (linear, tiled), in the 512 bytes of
/// shared memory, and in tensor memory (lane, column, byte), then the K step and the scale id.
Json scales(const char *name) {
  const hw::ScaleFormat &format = *hw::lookupScaleFormat(name);
  const unsigned blocks = kDepth / format.blockSize;
  Json places = Json::array();
  for (unsigned row = 0; row < kRows; ++row)
    for (unsigned block = 0; block < blocks; ++block) {
      const unsigned mma = block * format.blockSize / kElementsPerMma;
      const hw::ScaleStep step = hw::scaleStep(unsigned(format.vector), mma);
      const hw::ScaleCell cell = hw::scaleCell(
          row % hw::scaleBlockRows, block % unsigned(format.vector), step.id, 0);
      places.push_back(
          Json{int64_t(row * blocks + block), int64_t(hw::tiled128x4Offset(row, block, blocks)),
               int64_t(hw::scaleOffsetInBlock(row, block)), int64_t(cell.lane),
               int64_t(cell.column), int64_t(cell.byte), int64_t(mma), int64_t(step.id)});
    }
  Json blockOf = Json::array();
  for (unsigned k = 0; k < kDepth; ++k)
    blockOf.push_back(k / format.blockSize);
  return Json{{"format", name},
              {"rows", kRows},
              {"depth", kDepth},
              {"blocks", blocks},
              {"block_of", std::move(blockOf)},
              {"places", std::move(places)}};
}

/// The byte of shared memory in which TMA stores each byte of a row of a tile of kTileRows x kDepth
/// elements with a swizzle of 128 bytes.
Json operand() {
  constexpr unsigned pitch = kDepth / 2;
  Json places = Json::array(), byteOf = Json::array(), nibbleOf = Json::array();
  for (unsigned byte = 0; byte < kTileRows * pitch; ++byte)
    places.push_back(int64_t(hw::swizzleAddress(hw::SwizzleMode::B128, byte)));
  for (unsigned k = 0; k < kDepth; ++k) {
    byteOf.push_back(k / 2);
    nibbleOf.push_back(k % 2);
  }
  return Json{{"rows", kTileRows},
              {"depth", kDepth},
              {"pitch", pitch},
              {"byte_of", std::move(byteOf)},
              {"nibble_of", std::move(nibbleOf)},
              {"shared", std::move(places)}};
}

/// The TMEM lane and column of each element of an accumulator of 128 rows.
Json accumulator() {
  const hw::AccumulatorLayout layout = *hw::accumulatorLayout(1, kTileRows, false, false);
  Json places = Json::array();
  for (unsigned row = 0; row < kTileRows; ++row)
    for (unsigned column = 0; column < kColumns; ++column) {
      const hw::AccumulatorCell cell = hw::accumulatorCell(layout, row, column, kColumns);
      places.push_back({cell.lane, cell.column});
    }
  return Json{{"rows", kTileRows}, {"columns", kColumns}, {"places", std::move(places)}};
}

} // namespace

Json layoutTables() {
  return Json{{"scales", Json::array({scales("nvfp4"), scales("mxfp4")})},
              {"operand", operand()},
              {"accumulator", accumulator()}};
}

} // namespace fp4::runner
