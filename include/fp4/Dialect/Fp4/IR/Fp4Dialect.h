//===- Fp4Dialect.h - The fp4 dialect: attributes, operations -------------===//
//
// Include this to create or match fp4 operations. Fp4Ops.td is the documentation of each; the
// facts about a format that several places need are the inline functions below.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/KernelPlan.h"
#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/Numerics/Epilogue.h"
#include "fp4/Numerics/Hadamard.h"
#include "fp4/Numerics/Recipe.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fp4::numerics {
/// A hash of the decisions, by which attributes with recipes are uniqued.
llvm::hash_code hash_value(const Recipe &recipe);
} // namespace fp4::numerics

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h.inc"
#include "fp4/Dialect/Fp4/IR/Fp4Enums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Attrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Types.h.inc"

namespace fp4 {

/// Element types of the data and of the block scales.
mlir::FloatType dataType(mlir::MLIRContext *context, Format format);
mlir::FloatType scaleType(mlir::MLIRContext *context, Format format);

/// The format of lib/Numerics that `format` names.
constexpr numerics::BlockFormat blockFormat(Format format) {
  return static_cast<numerics::BlockFormat>(format);
}
constexpr Format formatOf(numerics::BlockFormat format) { return static_cast<Format>(format); }

/// Elements of the contraction axis that share one scale.
inline int64_t blockSize(Format format) { return numerics::blockSizeOf(blockFormat(format)); }

/// Returns true when scales are f32, of 1 x 128 or 128 x 128 elements.
inline bool hasF32Scales(Format format) { return numerics::hasF32Scales(blockFormat(format)); }

/// Returns true when data has two elements per byte.
inline bool hasPackedData(Format format) { return numerics::isPacked(blockFormat(format)); }

/// True for the element types of data that have a byte each: 6 and 8 bits.
bool isByteElementType(mlir::Type type);
/// f6E2M3FN or f6E3M2FN.
bool isSixBitElementType(mlir::Type type);

/// The recipe that is used where none is written: transformer_engine, ocp_floor.
const numerics::Recipe &defaultRecipe(Format format);

/// The policy of lib/Numerics that `policy` names.
numerics::NanPolicy nanPolicy(NanPolicy policy);

/// True for f8E4M3FN and f8E8M0FNU, the element types of block scales; false for no type.
bool isScaleElementType(mlir::Type type);

/// The layout of a scale tensor; nothing when it is row-major.
std::optional<ScaleLayout> scaleLayout(mlir::RankedTensorType type);

/// `tiles` are weights of #fp4.weight_layout<wgmma_rows>: a row has one power of two.
bool haveRowPowers(mlir::RankedTensorType tiles);

/// `type` with the given layout, or row-major when there is none.
mlir::RankedTensorType withScaleLayout(mlir::RankedTensorType type,
                                       std::optional<ScaleLayout> layout);

/// The result types that `op`, an fp4 operation, has on other operands. Layouts of scales and
/// element types of results that are chosen by the program stay as they are.
mlir::LogicalResult inferResultTypes(mlir::Operation *op, mlir::ValueRange operands,
                                     llvm::SmallVectorImpl<mlir::Type> &types);

/// operation (C1): attributes without the prefix of a dialect are those of the operation.
mlir::LogicalResult verifyKnownAttributes(mlir::Operation *op);

/// The operands of fp4.matmul and the type of fp4.scaled in text (MatmulOperands.cpp).
mlir::ParseResult parseMatmulOperand(mlir::OpAsmParser &parser,
                                     mlir::OpAsmParser::UnresolvedOperand &operand);
void printMatmulOperand(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Value operand);
mlir::ParseResult parseScaledType(mlir::OpAsmParser &parser, mlir::Type &data, mlir::Type &scales,
                                  mlir::Type &result);
void printScaledType(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Type data,
                     mlir::Type scales, mlir::Type result);

/// The scales of fp4.attention in text (AttentionOps.cpp).
using MaybeOperand = std::optional<mlir::OpAsmParser::UnresolvedOperand>;
mlir::ParseResult parseAttentionScales(mlir::OpAsmParser &parser, MaybeOperand &query,
                                       MaybeOperand &key, MaybeOperand &value,
                                       mlir::Type &queryType, mlir::Type &keyType,
                                       mlir::Type &valueType);
void printAttentionScales(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Value query,
                          mlir::Value key, mlir::Value value, mlir::Type queryType,
                          mlir::Type keyType, mlir::Type valueType);
/// The type of the elements of fp4.attention, which an epilogue region may leave out.
mlir::ParseResult parseAttentionResult(mlir::OpAsmParser &parser, mlir::Type &result);
void printAttentionResult(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Type result);
/// The number of tokens of a dimension, or the most that it can be where it is dynamic.
inline int64_t sizeOrMost(int64_t size) {
  return mlir::ShapedType::isDynamic(size) ? std::numeric_limits<int32_t>::max() : size;
}
/// The offsets of packed queries and keys of gradients of attention, two or none.
mlir::ParseResult
parsePackedOffsets(mlir::OpAsmParser &parser,
                   llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &offsets,
                   llvm::SmallVectorImpl<mlir::Type> &types);
void printPackedOffsets(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                        mlir::OperandRange offsets, mlir::TypeRange types);

template <typename Op>
class KnownAttributes : public mlir::OpTrait::TraitBase<Op, KnownAttributes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyKnownAttributes(op); }
};

} // namespace fp4

#define GET_OP_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Ops.h.inc"

namespace fp4 {

/// The tensor of an operand of a matmul, or its scales; null where there is none. A bundle is the
/// result of fp4.scaled, which the verifier of the matmul checks.
mlir::TypedValue<mlir::RankedTensorType> bundleData(mlir::Value operand);
mlir::TypedValue<mlir::RankedTensorType> bundleScales(mlir::Value operand);
/// The type of the data of an operand of this type.
mlir::RankedTensorType bundleDataType(mlir::Type operand);

/// `data` with `scales` as an operand of a matmul; `data` itself where there are none.
mlir::Value bundle(mlir::OpBuilder &builder, mlir::Location loc, Format format, mlir::Value data,
                   mlir::Value scales);
/// Erases the fp4.scaled below `root` that nothing reads, and casts that only they read.
void eraseUnusedBundles(mlir::Operation *root);

} // namespace fp4
