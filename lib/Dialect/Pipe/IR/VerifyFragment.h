//===- VerifyFragment.h - Checks of ops on fragments ----------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// Rows of the fragment of a warpgroup.
inline constexpr int64_t kFragmentRows = 64;

/// Sums that a warpgroup has in registers, and no register-resident weights: f32 in the rows of one
/// instruction.
llvm::LogicalResult verifySums(mlir::Operation *op, llvm::StringRef name, FragmentType type);

/// Returns true when the role around `op` has a warpgroup for every 64 of `rows`, or there are no
/// roles yet.
bool hasWarpgroups(mlir::Operation *op, int64_t rows);
/// Checks for two warpgroups, each of which has half of the rows of a tile of weights.
llvm::LogicalResult verifyTwoWarpgroups(mlir::Operation *op);
/// (C318) Weights that a warpgroup holds, and the tile in shared memory that they are of.
llvm::LogicalResult verifyResident(mlir::Operation *op, FragmentType held, llvm::StringRef name,
                                   SharedType tile);

/// Returns the element that a scaled fp4 element becomes, by the type of its scales.
mlir::Type convertedType(mlir::Type scale);
/// (C180) An operand that is converted: rows of one panel, and their scales.
llvm::LogicalResult verifyConvertible(mlir::Operation *op, llvm::StringRef name, SharedType data,
                                      SharedType scales);

/// The fragments of the warps of the role around `op` make up a tile of `rows` x `columns`; there
/// may be no role yet.
llvm::LogicalResult verifyFragments(mlir::Operation *op, FragmentType fragment, int64_t rows,
                                    int64_t columns);
/// Returns true when the warpgroups of the role around `op` have 64 rows each of a tile of `rows`,
/// from `row` on.
bool hasRowsOfRole(mlir::Operation *op, int64_t row, int64_t rows);

/// (C192) The elements of `tile`, of every thread of the role, from `column` on within a row of
/// `workspace`.
llvm::LogicalResult verifyWorkspace(mlir::Operation *op, GlobalType workspace,
                                    mlir::RankedTensorType tile, int64_t column);

/// Sums that threads add up from the TMEM lanes.
llvm::LogicalResult requireLanes(mlir::Operation *op, FragmentType fragment);

/// Bytes of a row of the e4m3 tiles whose sums are promoted; threads of a warpgroup.
inline constexpr int64_t kPromotedRowBytes = 128, kGroupThreads = 128;

/// Warpgroups of the role around `op`; 0 before there are roles.
int64_t groupsOfRole(mlir::Operation *op);

/// Buffers with a scale for each scale block of k. `hasRows`: there is an operand for the rows of
/// `a`.
llvm::LogicalResult verifyScaleBuffers(mlir::Operation *op, mlir::Value a, mlir::Value b,
                                       bool hasRows);

/// Tiles of such scales.
llvm::LogicalResult verifyScaleTiles(mlir::Operation *op, SharedType a, SharedType b);

} // namespace fp4::pipe
