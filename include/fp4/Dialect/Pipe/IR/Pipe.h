//===- Pipe.h - The pipe dialect ------------------------------------------===//
//
// Kernels as tiles in typed buffers that flow between warp roles through channels. Types carry the
// hardware layout, and every op names the engine that executes it. See PipeDialect.td for the three
// forms of a kernel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/RowSets.h"

#include "fp4/Dialect/Pipe/IR/PipeDialect.h.inc"
#include "fp4/Dialect/Pipe/IR/PipeModifiers.h.inc"

namespace fp4::pipe {
// Enumerations, whose enumerators are in headers of their own.
enum class Engine : uint32_t;       // Engines.h
enum class FragmentKind : uint32_t; // Fragments.h
enum class Layout : uint32_t;       // Layouts.h
enum class Raster : uint32_t;       // Schedules.h

/// Use of a stage by an op on a channel. The producer acquires the stage, announces the bytes of
/// its loads, fills and commits it. The consumer waits for the stage and releases it, before that
/// perhaps a part of it, and may await that its own release is complete.
enum class ChannelUse {
  Acquire,
  Announce,
  Fill,
  Commit,
  Wait,
  PartialRelease,
  Release,
  AwaitRelease
};
/// The layout of a type that names none.
inline constexpr Layout kLinear{0}; // Layouts.h compares it
/// Returns true for scales in tiles of 128 x 4, and in such tiles for each half of the rows.
bool isTiledScales(Layout layout);
/// The sets of rows of a tile of f32 scales; one set in other layouts.
hw::RowSets rowSets(Layout layout);
bool isHalvedScales(Layout layout);
class DistributionAttr;
/// The distribution of a tensor whose elements are in the registers of threads; null for any other
/// type.
DistributionAttr distributionOf(mlir::Type type);
/// Returns true for such a tensor of one column of a fragment, which all threads of a row have.
bool areRowNumbers(mlir::Type type);
/// The elements that one thread has of such a tensor, in the order of
/// include/fp4/ISA/FragmentLayout.h. A vector is returned as it is, any other type as null.
mlir::VectorType vectorOfThread(mlir::Type type);
/// Returns true for a fragment of wgmma, or lanes, rounded to f8E4M3FN, which is operand A of MMAs,
/// and the words (i32) that a thread has of it in their order.
bool isRoundedA(mlir::Type type);
mlir::VectorType wordsOfThread(mlir::Type type);
} // namespace fp4::pipe

#include "fp4/Dialect/Pipe/IR/PipeAttrInterfaces.h.inc"
#include "fp4/Dialect/Pipe/IR/PipeInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeTypes.h.inc"
#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeOps.h.inc"

namespace fp4::hw {
enum class SwizzleMode : uint8_t;
} // namespace fp4::hw

namespace fp4::pipe {

/// Rows and scale columns of one scale tile, which has 512 bytes.
inline constexpr int64_t kScaleBlockRows = 128, kScaleBlockColumns = 4, kScaleBlockBytes = 512;
/// Elements of K that one block-scaled MMA instruction covers (kinds mxf4 and mxf4nvf4).
inline constexpr int64_t kMmaK = 64;
/// Elements of 4 or 6 bits to which TMA adds padding at a time, 8 or 4 bytes for each 16 of them:
/// what a box of a padded layout has in a row, and of which the rows of its tensor are multiples.
inline constexpr int64_t kPaddedRun = 128;
/// Elements of K that one MMA instruction of 16-bit types covers (kind f16).
inline constexpr int64_t kDenseMmaK = 16;
/// Rows of the TMEM accumulator and of an A tile.
inline constexpr int64_t kMmaM = 128;
/// Columns of a result, and elements of K, that share an f32 scale of B.
inline constexpr int64_t kPromotedBlock = 128;
/// Scale blocks of so many columns that a tile of `columns` columns can reach into, which begins at
/// a multiple of its columns.
int64_t promotedBlocks(int64_t columns);
/// Returns the first and the last of these scale blocks that a column of such a tile can be in.
std::pair<int64_t, int64_t> promotedBlocksAt(int64_t columns, int64_t column);

/// The swizzle that TMA and tcgen05 apply to a tile of this layout.
hw::SwizzleMode swizzleMode(Layout layout);
/// Bytes of a swizzled row: 32, 64 or 128; 0 for layouts without a swizzle.
int64_t swizzleWidth(Layout layout);
/// Returns true when 16 packed elements of 4 or 6 bits take 16 bytes in shared memory.
bool isPadded(Layout layout);
/// Bits of an element in global memory, 0 where there is no such number. Codes of 6 bits take a
/// byte each, except where TMA adds padding to packed ones.
int64_t bitsInMemory(mlir::Type elementType, Layout layout);
/// Device buffer of a kernel argument; the rules of BufferTypes.h.
mlir::MemRefType getBufferType(GlobalType type);

/// Bytes from one row of a row-major matrix to the next, or ShapedType::kDynamic.
int64_t rowPitchOf(mlir::MemRefType buffer);

} // namespace fp4::pipe
