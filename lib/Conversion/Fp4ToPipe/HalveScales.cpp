//===- HalveScales.cpp - Scale tiles of 64 rows ---------------------------===//
//
// The two CTAs of a pair with 128 rows read the scales of their 64 rows of A from the same columns
// of tensor memory. One scale tile has the words of all these rows, those of rows 64 to 127 in the
// second half of each 16 bytes, and neither TMA nor tcgen05.cp moves bytes within 16. The kernel
// here does so before the GEMM: a thread takes the 16 bytes of a line and leaves 16 in two scale
// tiles.
//
// The scales of B are in two halves of the TMEM lanes. If the halves have 128 columns, their scale
// tiles are those of memory. Tiles of fewer columns have halves within a scale tile, or in two, so
// another kernel gives each half a scale tile: a thread gathers the words of a line.
//
//===----------------------------------------------------------------------===//

#include "ItemLaunch.h"
#include "OperandKernels.h"

#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kLineWords = 4, kLineBytes = hw::scaleUnitBytes, kLines = hw::scaleUnitRowStep;

/// Scales in so many rows of scale tiles.
pipe::GlobalType scalesOf(BlockScaledMatmulOp op, int64_t rowBlocks, int64_t columnBlocks) {
  int64_t rows = ShapedType::isDynamic(rowBlocks) ? rowBlocks : rowBlocks * pipe::kScaleBlockRows;
  return pipe::GlobalType::get({rows, columnBlocks * pipe::kScaleBlockColumns},
                               scaleType(op.getContext(), op.getFormat()),
                               pipe::Layout::Tiled128x4);
}

/// Line `item` of all scale tiles, of which a row has `columnBlocks`.
void halveLine(ImplicitLocOpBuilder &b, Value source, Value dest, Int32 item,
               int64_t columnBlocks) {
  auto four = VectorType::get(kLineWords, b.getI32Type());
  Value loaded = load(b, four, address(b, source, item, kLineBytes), kLineBytes);
  Int32 block = item / kLines, line = item % kLines;
  Int32 row = block / columnBlocks, column = block % columnBlocks;
  for (int64_t half = 0; half < 2; ++half) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < kLineWords / 2; ++i)
      words.push_back(vector::ExtractOp::create(b, loaded, half * kLineWords / 2 + i));
    words.append(kLineWords / 2, Int32(b, 0));
    Int32 to = hw::scaleBlockIndex<Int32>(row * 2 + half, column, columnBlocks) * kLines + line;
    store(b, vector::FromElementsOp::create(b, four, words), address(b, dest, to, kLineBytes),
          kLineBytes);
  }
}

/// Line `item` of all scale tiles of halves: its words are of rows 32 apart, which have the same
/// line of one scale tile in `source` or of two. Behind the last row of a group they are zero.
void gatherLine(ImplicitLocOpBuilder &b, Value source, Value dest, Int32 item,
                const ScaleHalves &halves, int64_t rowBlocks, int64_t columnBlocks) {
  int64_t ofGroup = rowBlocks / halves.groups, words = halves.rows / kLines;
  Int32 block = item / kLines, line = item % kLines;
  Int32 row = block / columnBlocks, column = block % columnBlocks;
  Int32 group = row / halves.blocks, first = row % halves.blocks * words;
  SmallVector<Value> line4;
  for (int64_t i = 0; i < kLineWords; ++i) {
    if (i >= words) {
      line4.push_back(Int32(b, 0));
      continue;
    }
    Int32 place = first + i, inGroup = minimum(place / kLineWords, Int32(b, ofGroup - 1));
    Int32 from = hw::scaleBlockIndex<Int32>(group * ofGroup + inGroup, column, columnBlocks);
    Int32 word = (from * kLines + line) * kLineWords + place % kLineWords;
    Value loaded = load(b, b.getI32Type(), address(b, source, word, 4), 4);
    line4.push_back(select(place < ofGroup * kLineWords, {b, loaded}, Int32(b, 0)));
  }
  auto four = VectorType::get(kLineWords, b.getI32Type());
  store(b, vector::FromElementsOp::create(b, four, line4), address(b, dest, item, kLineBytes),
        kLineBytes);
}

using LineBody =
    llvm::function_ref<void(ImplicitLocOpBuilder &, Value source, Value dest, Int32 item)>;

/// A thread has a line of `rows` rows of scale tiles. If the rows are dynamic, the last argument
/// has twice their number.
gpu::GPUFuncOp buildLineKernel(RewriterBase &rewriter, BlockScaledMatmulOp op, StringRef kind,
                               pipe::GlobalType from, pipe::GlobalType to, int64_t rows,
                               int64_t columnBlocks, LineBody body) {
  bool isDynamic = ShapedType::isDynamic(rows);
  SmallVector<Type> types = {from, to};
  if (isDynamic)
    types.push_back(rewriter.getI32Type());
  ItemKernel kernel(rewriter, op, kind, types);
  Value source = kernel.pointer(0), dest = kernel.pointer(1);
  Int32 item = kernel.item(), existing = kernel.size(rows);
  if (isDynamic)
    existing = existing / 2;
  kernel.when(item / (columnBlocks * kLines) < existing,
              [&] { body(kernel.b, source, dest, item); });
  return kernel.finish();
}

} // namespace

Value fp4::halveScales(RewriterBase &rewriter, BlockScaledMatmulOp op, Value scales) {
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(scales.getType());
  int64_t rowBlocks = type.getDimSize(0), columnBlocks = type.getDimSize(1);
  int64_t halfBlocks = type.isDynamicDim(0) ? rowBlocks : 2 * rowBlocks;
  gpu::GPUFuncOp kernel =
      buildLineKernel(rewriter, op, "halve", scalesOf(op, rowBlocks, columnBlocks),
                      scalesOf(op, halfBlocks, columnBlocks), rowBlocks, columnBlocks,
                      [&](ImplicitLocOpBuilder &b, Value source, Value dest, Int32 item) {
                        halveLine(b, source, dest, item, columnBlocks);
                      });
  Value count, halves;
  if (type.isDynamicDim(0)) {
    count = memref::DimOp::create(rewriter, loc, scales, 0);
    halves = arith::MulIOp::create(rewriter, loc, count,
                                   arith::ConstantIndexOp::create(rewriter, loc, 2));
  } else {
    count = arith::ConstantIndexOp::create(rewriter, loc, rowBlocks);
  }
  Value blocks = blocksOfRows(rewriter, loc, count, columnBlocks * kLines);
  return launchItems(rewriter, loc, kernel, scales, blocks, halves);
}

Value fp4::splitScales(RewriterBase &rewriter, BlockScaledMatmulOp op, Value scales,
                       const ScaleHalves &halves) {
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(scales.getType());
  int64_t rowBlocks = type.getDimSize(0), columnBlocks = type.getDimSize(1);
  int64_t halfBlocks = halves.groups * halves.blocks;
  gpu::GPUFuncOp kernel =
      buildLineKernel(rewriter, op, "split", scalesOf(op, rowBlocks, columnBlocks),
                      scalesOf(op, halfBlocks, columnBlocks), halfBlocks, columnBlocks,
                      [&](ImplicitLocOpBuilder &b, Value source, Value dest, Int32 item) {
                        gatherLine(b, source, dest, item, halves, rowBlocks, columnBlocks);
                      });
  Value count = arith::ConstantIndexOp::create(rewriter, loc, halfBlocks);
  Value blocks = blocksOfRows(rewriter, loc, count, columnBlocks * kLines);
  return launchItems(rewriter, loc, kernel, scales, blocks);
}
