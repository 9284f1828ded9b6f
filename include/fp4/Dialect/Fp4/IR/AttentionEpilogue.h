//===- AttentionEpilogue.h - Attention whose kernel quantizes its elements -===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include <string>

namespace fp4 {

/// Returns true where a kernel that quantizes elements has a row in several lanes: for few queries,
/// quantized caches and latent values. Others have tiles of 128 tokens of a head.
bool quantizesInLanes(AttentionOp op);

/// Why no kernel of `op` quantizes its elements, in blocks of `recipe` with scales of type
/// `scales`; empty where one does. fp4-fuse leaves such a quantizer alone, and plans refuse it in a
/// region.
std::string whyNotQuantized(AttentionOp op, RecipeAttr recipe, mlir::RankedTensorType scales);

} // namespace fp4
