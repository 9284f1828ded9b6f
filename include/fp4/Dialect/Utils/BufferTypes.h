//===- BufferTypes.h - Device buffers of logical tensors ------------------===//
//
// Defines the device buffer of every tensor, as a memref. All conversions ask here; shapes and
// pitches are those of fp4/ISA/BufferShape.h.
//
//   tensor                                     device buffer                      bytes per row
//   tensor<RxKxT>, T in bf16 f16 f32           memref<RxKxT>                      K * sizeof(T)
//   tensor<f32>                                memref<f32>                        4
//   tensor<2xi64>                              memref<2xi64>                      16
//   tensor<RxKxf4E2M1FN>                       memref<RxPxi8>                     P
//   tensor<RxBx{f8E4M3FN,f8E8M0FNU}>           memref<RxBxi8>                     B
//   tensor<RxKx{f6E2M3FN,f6E3M2FN,f8E5M2}>     memref<RxKxi8>                     K
//   the same, #fp4.scale_layout<tiled_128x4>   memref<ceil(R/128) x ceil(B/4) x 512 x i8>
//
// Tensors of more than two dimensions have the same buffers with the other sizes in front. For
// f4E2M1FN, K must then be a multiple of 32.
//
// f4E2M1FN has two elements per byte, even k in the low nibble. P is K/2 rounded up to 16, because
// TMA needs such a pitch; bytes between K/2 and P are never read. Users have dense rows, P = K/2:
// see userBufferType. Padding bytes of tiled scales are zero.
//
// The rows R may be dynamic. Columns are dynamic where they are the rows of another tensor, as in
// the transposed outputs of a quantization. The f4E2M1FN buffer of a matrix with dynamic columns is
// a view of K/2 bytes of each row of P bytes: memref<R x K/2 x i8, strided<[P, 1]>>, here and at
// function boundaries.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fp4 {

/// On a gpu.alloc: the memory is zero, and the kernels that get it leave it zero. Nobody frees it,
/// and kernels that follow one another may have the same (fp4rt_counters).
inline constexpr llvm::StringLiteral kCountersAttr = "fp4.counters";

/// On a gpu.alloc of 8 x i64: memory in which kernels report rows of groups that do not fit, with
/// the name of their operand. The runtime owns it and reads it (fp4rt_group_report).
inline constexpr llvm::StringLiteral kGroupReportAttr = "fp4.group_report";

/// Allocates counters; `sizes` are the dynamic ones of `type`, a buffer of i32.
mlir::Value allocateCounters(mlir::OpBuilder &builder, mlir::Location loc, mlir::MemRefType type,
                             mlir::ValueRange sizes = {});

/// The buffer of `type` in device memory. Null if there is none: dynamic columns of types other
/// than f4E2M1FN and scales, or an element type that is not listed above.
mlir::MemRefType deviceBufferType(mlir::RankedTensorType type);

/// The buffer of `type` as a user passes or receives it; equals deviceBufferType unless rows of
/// packed fp4 elements are padded there.
mlir::MemRefType userBufferType(mlir::RankedTensorType type);

/// The dynamic sizes of deviceBufferType(type), given the number of logical rows and columns as an
/// index, each of which may be null where it is static.
llvm::SmallVector<mlir::Value> bufferDynamicSizes(mlir::OpBuilder &builder, mlir::Location loc,
                                                  mlir::RankedTensorType type, mlir::Value rows,
                                                  mlir::Value columns = {});

/// Allocates the device buffer of `type`; rows and columns as above.
mlir::Value allocateBuffer(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::RankedTensorType type, mlir::Value rows, mlir::Value columns = {});

/// The number of logical rows of `buffer`, which holds a tensor of `type`, as an index. `type` is a
/// matrix and either static or row-major: the rows of dynamic tiled scales cannot be recovered.
mlir::Value logicalRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                        mlir::Value buffer);

/// Converts ranked tensors to their device buffers and keeps every other type. While a conversion
/// is partial, builtin.unrealized_conversion_cast joins the values on both sides;
/// -reconcile-unrealized-casts removes these operations when everything is converted.
class BufferTypeConverter : public mlir::TypeConverter {
public:
  BufferTypeConverter();
};

} // namespace fp4
