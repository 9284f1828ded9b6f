//===- Fusions.h - Fusions of fp4-fuse in other files ---------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Remarks.h"

#include <string>

namespace fp4 {

/// The options of remarks about fusion `name`.
mlir::remark::RemarkOpts fusionNamed(llvm::StringRef name);
/// Says at `op` why it is not in fusion `name`; returns false.
bool missed(mlir::Operation *op, llvm::StringRef name, const std::string &reason);
/// Says at `op` what fusion `name` has made of it; returns true.
bool passed(mlir::Operation *op, llvm::StringRef name, const std::string &what);
/// Why an operation with a plan goes into no other kernel.
std::string ownKernel(mlir::Operation *op);

/// Makes `op` the epilogue region of a matmul, or of two matmuls of one lhs, that it alone reads,
/// and erases it. Otherwise `op` stays, and a missed remark says why if it reads a matmul.
bool fuseEpilogue(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);

/// Makes a matmul whose elements `op` reads compute the result of `op`, and erases `op`. Otherwise
/// `op` stays, and a missed remark says why if it reads a matmul.
bool fuseResult(QuantizeOp op, mlir::RewriterBase &rewriter);
bool fuseResult(AmaxOp op, mlir::RewriterBase &rewriter);

/// Makes `op` the epilogue region of an attention, or results of it, likewise (FuseAttention.cpp).
bool fuseAttention(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);
bool fuseAttention(QuantizeOp op, mlir::RewriterBase &rewriter);

/// Makes an attention of `op`, the products of powers and values, with the softmax and the products
/// of queries and keys before it, and the rounding behind it. Operations that nothing reads any
/// more stay. Returns false where it is none, with a missed remark if a softmax is before it.
bool recognizeAttention(mlir::linalg::LinalgOp op, mlir::RewriterBase &rewriter);

/// Results that an operation is to have besides its elements.
struct AddedResults {
  mlir::Value quantizeAmax;
  RecipeAttr recipe;
  OutputsAttr outputs;
  bool amax = false;
};
/// Makes an epilogue region of the elementwise operation `op`, which reads elements `from` and
/// `inputs`.
void buildEpilogue(mlir::RewriterBase &b, mlir::linalg::GenericOp op, mlir::ValueRange from,
                   mlir::ValueRange inputs, mlir::Region &region);
/// Makes an epilogue region that rounds elements to `element`.
void buildRounding(mlir::RewriterBase &b, mlir::Location loc, mlir::Type element,
                   mlir::Region &region);
/// Adds what is `added` to an epilogue region, and yields it behind what the region yields of the
/// elements, if `storesElements`, and of results it has.
void yieldAdded(mlir::RewriterBase &b, mlir::Region &region, const AddedResults &added,
                bool storesElements, mlir::Location loc);
/// Why a quantizer is none of whole blocks of rows, with one amax, as an epilogue has; empty where
/// it is one.
std::string whyNotOfBlocks(QuantizeOp op);

/// Makes operations before `root`, of which one reduces rows, its prologues (Prologue.h). Returns
/// false, with missed remarks that say why, where there are none.
bool fuseRows(mlir::Operation *root, mlir::RewriterBase &rewriter);

/// Says in a missed remark why a named operation of linalg that reduces is part of no chain.
void reportNamedReduction(mlir::Operation *op);

/// Makes `op` the prologue of the quantizers and amaxes that alone read it (Prologue.h). Otherwise
/// a missed remark says why where one of these reads it.
bool fusePrologue(mlir::linalg::GenericOp op, mlir::RewriterBase &rewriter);

} // namespace fp4
