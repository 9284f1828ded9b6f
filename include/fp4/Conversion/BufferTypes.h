//===- BufferTypes.h - Device buffers of logical tensors ------------------===//
//
// The one authority on what a tensor becomes in device memory. Every conversion asks here.
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
// Matrices stacked in more dimensions have the buffers of these with the sizes in front; of f4E2M1FN,
// where K is a multiple of 32.
//
// f4E2M1FN is packed two to a byte, even k in the low nibble. P is K/2 rounded up to 16, because TMA
// wants such a pitch; bytes between K/2 and P are never read. Users have dense rows, P = K/2: the
// type of a buffer at a function boundary is userBufferType. Padding bytes of tiled scales are zero.
//
// The rows R may be dynamic. Columns are dynamic where they are the rows of another tensor, which is
// so in the transposed outputs of a quantization. Their f4E2M1FN buffer is a view, K/2 bytes of each
// of P: memref<RxK/2xi8, strided<[P, 1]>>, here and at function boundaries.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fp4 {

/// Bytes of a row of `columns` packed fp4 elements, as users store it.
int64_t denseRowBytes(int64_t columns);

/// Bytes from one row of packed fp4 elements to the next in a buffer that the compiler owns.
int64_t paddedRowBytes(int64_t columns);

/// The buffer of `type` in device memory; null if `type` has none (dynamic columns of other types
/// than f4E2M1FN and scales, or an element type that is not above, which manifests have no word for).
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

/// Ranked tensors to their device buffers, every other type to itself. Values on both sides of a
/// conversion that is still partial are joined by builtin.unrealized_conversion_cast, which
/// -reconcile-unrealized-casts removes when all is converted.
class BufferTypeConverter : public mlir::TypeConverter {
public:
  BufferTypeConverter();
};

} // namespace fp4
