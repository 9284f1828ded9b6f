//===- AdversarialBlocks.h - Scale blocks at which quantizers disagree ----===//
//
// The inputs of the numbered vectors of numerics_vectors.json: ties and their neighbours, scales at
// every edge of E4M3, amaxes for which spellings differ, zeros of both signs, subnormals, infinity
// and NaN.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Random.h"

#include <string_view>
#include <vector>

namespace fp4::harness {

struct AdversarialBlock {
  std::string_view vector;    ///< "N08"
  std::vector<uint32_t> bits; ///< fp32 patterns; the last is repeated to the end of the scale block
};

extern const std::vector<AdversarialBlock> kNvfp4Blocks; ///< scale blocks of 16
extern const std::vector<AdversarialBlock> kMxfp4Blocks; ///< scale blocks of 32

/// A row-major matrix of such scale blocks, along rows in some tiles of 32 x 32 and along columns
/// in others. `seed` chooses the largest magnitude, which is the first element: scale blocks with
/// larger values are left out.
std::vector<float> adversarialMatrix(Random &random, uint64_t seed, uint64_t rows,
                                     uint64_t columns);

} // namespace fp4::harness
