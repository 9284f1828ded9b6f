//===- Signature.h - The signature of a matmul -----------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Routes/Routes.h"

namespace fp4 {

/// The signature of `op`, by its types and attributes (fp4/Routes/Routes.h).
route::Signature signatureOf(BlockScaledMatmulOp op);

/// Returns true when results by `recipe` have blocks of 128 elements of two GEMMs or of f32.
bool hasWideBlocks(BlockScaledMatmulOp op, RecipeAttr recipe);

/// Returns true when the routes of `op` on `target` have `core`.
bool isOn(BlockScaledMatmulOp op, const hw::TargetModel &target, route::Core core);

/// Why no route has such GEMMs, on the target of `op` if it has one; else empty.
std::string whyNoRoute(mlir::Operation *op, const route::Signature &signature);

} // namespace fp4
