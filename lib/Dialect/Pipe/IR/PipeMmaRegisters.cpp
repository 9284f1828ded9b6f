//===- PipeMmaRegisters.cpp - MMAs with accumulators in registers ---------===//
//
// Verifiers of the forms of pipe.mma that wgmma and mma.sync execute. Labels such as (C181) refer
// to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyFragment.h"
#include "VerifyMma.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Both operands in shared memory
//===----------------------------------------------------------------------===//

/// The MMA beside `product` in its block, in front of it or behind.
static MmaOp neighbourOf(MmaOp product, bool behind) {
  Operation *op = product;
  do
    op = behind ? op->getNextNode() : op->getPrevNode();
  while (op && !isa<MmaOp>(op));
  return cast_or_null<MmaOp>(op);
}

/// Returns true when everything that `product` multiplies is there by `op`, and its accumulator.
static bool isReadyBy(Operation *op, MmaOp product) {
  SmallVector<Value> needed = {product.getAccumulator(), product.getA(), product.getB()};
  if (product.getFactors())
    needed.push_back(product.getFactors());
  return llvm::all_of(needed, [&](Value value) { return isThereBy(op, value); });
}

/// (C625) Two MMAs begin together where the first says so, and the second.
static LogicalResult verifyNeighbours(MmaOp product) {
  bool leads = product.getChain() == MmaChain::Leads;
  MmaOp other = neighbourOf(product, /*behind=*/leads);
  bool agrees = other && other.getChain() == (leads ? MmaChain::Follows : MmaChain::Leads) &&
                other.getAccumulator() != product.getAccumulator();
  // Both begin at the place of the first.
  agrees = agrees && (leads || isReadyBy(other, product));
  if (agrees) // (C625)
    return success();
  return withNote(product.emitOpError("that begins together with its neighbour must have one with "
                                      "other sums that says so"),
                  "write 'chain leads' at the first MMA and 'chain follows' at the second, whose "
                  "tiles are there before the first, or neither");
}

/// (C625) The loop whose next iteration completes the accumulator exists.
static LogicalResult verifyLoop(MmaOp op) {
  if (op->getParentOfType<scf::ForOp>())
    return success();
  return withNote(op.emitOpError("with 'chain until_iteration' must be in a loop"),
                  "leave 'chain' out, and the accumulator is complete when the MMA ends");
}

/// (C625) The MMA that completes the accumulator of `op` exists.
static LogicalResult verifyNext(MmaOp op) {
  auto isNext = [&](Operation *user) {
    return isa<MmaOp>(user) && user->getBlock() == op->getBlock() && op->isBeforeInBlock(user);
  };
  if (llvm::any_of(op.getB().getUsers(), isNext))
    return success();
  return withNote(op.emitOpError("with 'chain until_mma' must have an MMA of the same B behind it "
                                 "in its block"),
                  "leave 'chain' out at the last MMA of this B");
}

LogicalResult fp4::pipe::verifyChain(MmaOp op) {
  switch (op.getChain()) {
  case MmaChain::Alone:
  case MmaChain::Replaces:
    return success();
  case MmaChain::Leads:
  case MmaChain::Follows:
    return verifyNeighbours(op);
  case MmaChain::UntilMma:
    return verifyNext(op);
  case MmaChain::UntilIteration:
    return verifyLoop(op);
  }
  llvm_unreachable("every place in a chain has its check");
}

/// (C220) Rows of whole lines of a swizzle, or of one panel of 64 bytes.
static LogicalResult verifyByteTiles(MmaOp op, SharedType a, SharedType b) {
  int64_t k = a.getColumns();
  Layout layout = k % kPromotedRowBytes ? Layout::Swizzle64B : Layout::Swizzle128B;
  bool fits = k > 0 && k % swizzleWidth(layout) == 0;
  for (auto [name, tile] : {std::pair("a", a), {"b", b}})
    if (!fits || tile != SharedType::get({tile.getRows(), k}, a.getElementType(), layout))
      return withNote(op.emitOpError()
                          << name << " must be f8E4M3FN with as many columns as a, a multiple of "
                          << "128 in layout swizzle_128B or else of 64 in swizzle_64B, but got "
                          << tile,
                      "load panels that are as wide as the swizzle");
  return success();
}

LogicalResult fp4::pipe::verifyWgmmaShared(MmaOp op) {
  auto sums = op.getAccumulatorAs<FragmentType>();
  auto a = op.getAAs<SharedType>();
  SharedType b = op.getB().getType();
  if (failed(verifySums(op, "accumulator", sums))) // (C220)
    return failure();
  if (failed(verifyByteTiles(op, a, b))) // (C220)
    return failure();
  int64_t row = op.getARow(), rows = a.getRows();
  if (!hasRowsOfRole(op, row, rows))
    return withNote(op.emitOpError() << "a must have " << kFragmentRows
                                     << " rows for each warpgroup of its role, "
                                     << "from a multiple of " << kFragmentRows << " on, but got "
                                     << rows << " rows, from " << row << " on",
                    "load a higher tile, or begin at another multiple of 64 rows"); // (C220)
  if (b.getRows() != sums.getShape()[1])
    return withNote(op.emitOpError() << "b must have a row for each of the " << sums.getShape()[1]
                                     << " columns of the accumulator, but got " << b,
                    "load a row of b for each column"); // (C220)
  return success();
}

//===----------------------------------------------------------------------===//
// 16-bit floats
//===----------------------------------------------------------------------===//

/// The layout of rows of 16-bit floats: panels of 64 of them, or else of 32.
static Layout layoutOfFloats(int64_t columns) {
  return columns % (kPromotedRowBytes / 2) ? Layout::Swizzle64B : Layout::Swizzle128B;
}

/// (C660) A, whose columns are elements of K: in shared memory, or in registers.
static LogicalResult verifyFloatA(MmaOp op) {
  auto tile = dyn_cast<SharedType>(op.getA().getType());
  if (!tile) {
    auto type = cast<RankedTensorType>(op.getA().getType());
    int64_t k = hw::mmaRowBytes * 8 / type.getElementTypeBitWidth();
    if (type.getDimSize(1) % k == 0)
      return success();
    return withNote(op.emitOpError() << "a in registers must have a multiple of " << k
                                     << " columns, but got " << type,
                    "an instruction has " + Twine(k) + " elements of K"); // (C660)
  }
  int64_t row = op.getARow();
  Layout layout = isa<Float8E4M3FNType>(tile.getElementType()) ? Layout::Swizzle128B
                                                               : layoutOfFloats(tile.getColumns());
  if (tile.getLayout() == layout && hasRowsOfRole(op, row, tile.getRows()))
    return success();
  return withNote(op.emitOpError()
                      << "a must have layout " << stringifyLayout(layout) << " and "
                      << kFragmentRows
                      << " rows for each warpgroup of its role, from a multiple of "
                      << kFragmentRows << " on, but got " << tile << " from row " << row << " on",
                  "load a higher tile, or begin at another multiple of 64 rows"); // (C660)
}

/// (C660) B of bytes, which have no 'transposed'.
static LogicalResult verifyByteB(MmaOp op, ArrayRef<int64_t> shape) {
  SharedType b = op.getB().getType();
  Layout layout = shape[1] % kPromotedRowBytes ? Layout::Swizzle64B : Layout::Swizzle128B;
  bool isWhole = shape[1] % swizzleWidth(layout) == 0;
  if (isWhole && b == SharedType::get(shape, b.getElementType(), layout))
    return success();
  return withNote(op.emitOpError()
                      << "b must have " << shape[0] << " rows of " << shape[1]
                      << " elements of f8E4M3FN, a multiple of 128 in layout swizzle_128B or else "
                         "of 64 in swizzle_64B, but got "
                      << b,
                  "pipe.transpose_tile makes such a tile of rows of tokens"); // (C660)
}

/// (C660) A transposed B that has more columns than the accumulator.
static LogicalResult verifyColumnsOfB(MmaOp op, int64_t columns, int64_t k, Type element) {
  constexpr int64_t panel = kPromotedRowBytes / 2;
  SharedType b = op.getB().getType();
  Layout layout = layoutOfFloats(b.getColumns());
  int64_t unit = layout == Layout::Swizzle128B ? panel : panel / 2;
  auto first = int64_t(op.getBColumn());
  bool fits = b.getColumns() % unit == 0 && first >= 0 && first % unit == 0 &&
              columns % unit == 0 && first + columns <= b.getColumns();
  if (fits && b == SharedType::get({k, b.getColumns()}, element, layout))
    return success();
  return withNote(op.emitOpError()
                      << "b must have " << k << " rows of a multiple of " << panel
                      << " elements of a, and the " << columns
                      << " columns of the accumulator from a multiple of " << panel
                      << " on, in layout swizzle_128B, or of " << panel / 2
                      << " in swizzle_64B, but got " << b << " from column " << first << " on",
                  "load a row for each element of K, and a column for each of the accumulator");
}

/// (C660) Factors are a number of each row of sums that the MMA adds to.
static LogicalResult verifyFactors(MmaOp op) {
  Value factors = op.getFactors();
  if (!factors)
    return success();
  auto expected =
      DistributionAttr::tensorOf(FragmentKind::Wgmma, 1, Float32Type::get(op.getContext()));
  if (factors.getType() == expected && op.getAccumulate())
    return success();
  return withNote(op.emitOpError() << "factors must be " << expected
                                   << " beside 'accumulate', but got " << factors.getType(),
                  "pipe.reduce_rows makes a number of each row; an MMA without 'accumulate' "
                  "overwrites its sums"); // (C660)
}

LogicalResult fp4::pipe::verifyWgmmaFloat(MmaOp op) {
  auto sums = op.getAccumulatorAs<FragmentType>();
  if (failed(verifySums(op, "accumulator", sums)) || failed(verifyFactors(op)) ||
      failed(verifyFloatA(op))) // (C660)
    return failure();
  auto a = dyn_cast<SharedType>(op.getA().getType());
  int64_t k = a ? a.getColumns() : cast<RankedTensorType>(op.getA().getType()).getDimSize(1);
  Type element = a ? a.getElementType() : getElementTypeOrSelf(op.getA().getType());
  SmallVector<int64_t> shape = {sums.getShape()[1], k};
  if (op.getTransposed())
    std::swap(shape[0], shape[1]);
  if (isa<Float8E4M3FNType>(element))
    return verifyByteB(op, shape);
  if (op.getTransposed())
    return verifyColumnsOfB(op, sums.getShape()[1], k, element);
  // Rows of one swizzle each: a box of TMA, or panels of boxes.
  Layout layout = layoutOfFloats(shape[1]);
  bool isWhole = shape[1] % (swizzleWidth(layout) / 2) == 0 && op.getBColumn() == 0;
  SharedType b = op.getB().getType();
  if (isWhole && b == SharedType::get(shape, element, layout))
    return success();
  return withNote(op.emitOpError() // (C660)
                      << "b must have " << shape[0] << " rows of " << shape[1]
                      << " elements of a, a multiple of 64 in layout swizzle_128B or else of 32 in "
                         "swizzle_64B, but got "
                      << b,
                  "load a row for each column of the accumulator, or write 'transposed'");
}

//===----------------------------------------------------------------------===//
// A dequantized in registers
//===----------------------------------------------------------------------===//

LogicalResult fp4::pipe::verifyWgmmaDequantized(MmaOp op) {
  auto acc = op.getAccumulatorAs<FragmentType>();
  auto a = op.getAAs<SharedType>(), scales = op.getAScalesAs<SharedType>();
  SharedType b = op.getB().getType();
  if (failed(verifySums(op, "accumulator", acc))) // (C181)
    return failure();
  if (failed(verifyConvertible(op, "a", a, scales))) // (C180)
    return failure();
  if (op.getInOrder() && isa<Float8E4M3FNType, Float8E5M2Type>(a.getElementType()))
    return withNote(op.emitOpError()
                        << "a must have elements of 4 or 6 bits with 'in_order', but got " << a,
                    "elements of 8 bits are converted in the order of registers: leave 'in_order' "
                    "out, and convert b too"); // (C181)
  if (a.getRows() % kFragmentRows || !hasWarpgroups(op, a.getRows()))
    return withNote(op.emitOpError() << "a must have " << kFragmentRows
                                     << " rows for each warpgroup of its role, but got " << a,
                    "let 'a' have 64 rows for each 4 warps of the role"); // (C181)
  // Weights of 4 bits become what the activations beside them are.
  Type element = convertedType(scales.getElementType());
  bool mayBeHalf = op.getInOrder() && isa<Float4E2M1FNType>(a.getElementType());
  if ((element.isF16() && b.getElementType().isBF16()) || (mayBeHalf && b.getElementType().isF16()))
    element = b.getElementType();
  auto expected =
      SharedType::get({acc.getShape()[1], a.getColumns()}, element, Layout::Swizzle128B);
  if (b != expected)
    return withNote(op.emitOpError() << "b must be " << expected << ", but got " << b,
                    "convert b with pipe.dequantize, or load a tile of this type"); // (C181)
  return success();
}

bool MmaOp::hasByteTiles() {
  auto tile = dyn_cast<SharedType>(getA().getType());
  return tile && tile.getElementType().isInteger(8) && tile.getInnerBytes() == hw::byteTileBytes;
}

/// (C191) Three warpgroups have 64 rows each of two tiles with 128, from row 0 or 64 on.
static LogicalResult verifyGroupsOfWeights(MmaOp op) {
  constexpr int64_t groups = 3;
  if (!op.getNext() && !op.getAScaleRow())
    return verifyTwoWarpgroups(op);
  if (op.getNext() && op.getAScaleRow() && op.getNext().getType() == op.getA().getType() &&
      hasWarpgroups(op, groups * kFragmentRows) && !takesWarpMmas(op))
    return success();
  return withNote(op.emitOpError()
                      << "must be in a role of three warpgroups and have more than " << kFewColumns
                      << " columns, a row of a and 'next', tiles of one type, or neither of both",
                  "write 'from %row' and 'next %tile' where warps 0 to 12 multiply 192 rows");
}

LogicalResult fp4::pipe::verifyWgmmaPrepacked(MmaOp op) {
  auto acc = op.getAccumulatorAs<FragmentType>();
  auto weights = op.getAAs<SharedType>();
  SharedType b = op.getB().getType();
  if (failed(verifySums(op, "accumulator", acc)) || failed(verifyGroupsOfWeights(op))) // (C191)
    return failure();
  Type element = BFloat16Type::get(op.getContext());
  if (op.hasByteTiles())
    element = Float8E4M3FNType::get(op.getContext());
  else if (b.getElementType().isF16())
    element = b.getElementType();
  int64_t depth = weights.getRows() * hw::weightColumnsOf(weights.getInnerBytes());
  auto expected = SharedType::get({acc.getShape()[1], depth}, element, Layout::Swizzle128B);
  if (b != expected)
    return withNote(op.emitOpError() << "b must be " << expected << ", but got " << b,
                    "load activations of this type, as deep as the weights"); // (C191)
  return success();
}

/// Columns of an accumulator that register-resident weights are multiplied with.
static constexpr int64_t kResidentColumns = 256;

LogicalResult fp4::pipe::verifyWgmmaResident(MmaOp op) {
  auto acc = op.getAccumulatorAs<FragmentType>();
  auto sums = FragmentType::get(op.getContext(), {kFragmentRows, kResidentColumns},
                                Float32Type::get(op.getContext()), FragmentKind::Wgmma);
  if (acc != sums)
    return withNote(
        op.emitOpError() << "accumulator must be " << sums << ", but got " << acc,
        "write an accumulator of 256 columns; MMAs of prepacked weights in shared memory take "
        "others"); // (C318)
  if (!op.getNext())
    return withNote(op.emitOpError("'next' must be a tile of weights, but is missing"),
                    "write 'next %w' with the weights of the next k tile"); // (C318)
  if (failed(verifyResident(op, op.getAAs<FragmentType>(), "next", op.getNext().getType())))
    return failure();
  auto expected = SharedType::get({kResidentColumns, hw::byteTileColumns},
                                  Float8E4M3FNType::get(op.getContext()), Layout::Swizzle128B);
  if (op.getB().getType() != expected)
    return withNote(op.emitOpError()
                        << "b must be " << expected << ", but got " << op.getB().getType(),
                    "load 256 rows of one tile's depth of activations"); // (C318)
  return success();
}

//===----------------------------------------------------------------------===//
// Registers of warps
//===----------------------------------------------------------------------===//

/// Rows of one instruction, and rows whose scales a register of a warp has.
static constexpr int64_t kInstructionRows = 16, kScaleRows = 32;

/// (C251) Rows of one panel; `isWide`: of any elements, an operand's of 6 or 8 bits.
static LogicalResult verifyWarpOperand(Operation *op, StringRef name, SharedType data,
                                       bool isWide) {
  int64_t bytes = data.getInnerBytes();
  bool fits = (bytes == 64 && data.getLayout() == Layout::Swizzle64B) ||
              (bytes == 128 && data.getLayout() == Layout::Swizzle128B);
  Type element = data.getElementType();
  if (fits && ((isWide && isByteElementType(element)) || isa<Float4E2M1FNType>(element)))
    return success();
  return withNote(op->emitOpError()
                      << name << " must be " << (isWide ? "of 4, 6 or 8 bits" : "f4E2M1FN")
                      << " with rows of 64 or 128 bytes and the swizzle of that width, but got "
                      << data,
                  "load rows of 64 bytes with swizzle_64B, or of 128 with swizzle_128B");
}

/// (C252) A column of scales for each scale block, and rows for all of `data`.
static LogicalResult verifyWarpScales(Operation *op, StringRef name, SharedType data,
                                      SharedType scales) {
  Type element = scales.getElementType();
  int64_t block = isa<Float8E4M3FNType>(element) ? 16 : isa<Float8E8M0FNUType>(element) ? 32 : 0;
  if (block && scales.isScales() && scales.getColumns() == data.getColumns() / block &&
      scales.getRows() >= data.getRows())
    return success();
  return withNote(op->emitOpError()
                      << "scales of " << name << " must be f8E4M3FN for each 16 or f8E8M0FNU for "
                      << "each 32 of " << data.getColumns()
                      << " elements, with layout tiled_128x4 and at least " << data.getRows()
                      << " rows, but got " << scales,
                  "load a column of scales for each block of k, in whole scale tiles of 128 rows");
}

LogicalResult fp4::pipe::verifyMmaSync(MmaOp op) {
  auto acc = op.getAccumulatorAs<FragmentType>();
  auto a = op.getAAs<SharedType>();
  SharedType b = op.getB().getType();
  int64_t rows = acc.getShape()[0], columns = acc.getShape()[1];
  if ((rows != kInstructionRows && rows % kScaleRows) || columns % kScaleRows)
    return withNote(op.emitOpError()
                        << "accumulator must be a fragment of mma_sync with " << kInstructionRows
                        << " rows or a multiple of " << kScaleRows << ", and a multiple of "
                        << kScaleRows << " columns, but got " << acc,
                    "write !pipe.fragment<32x32xf32, mma_sync>, or a multiple of it"); // (C250)
  bool isWide = op.getAtom()->kind == hw::MmaKind::MXF8F6F4;
  if (failed(verifyWarpOperand(op, "a", a, isWide)) ||
      failed(verifyWarpOperand(op, "b", b, isWide)))
    return failure(); // (C251)
  if (a.getColumns() != b.getColumns())
    return withNote(op.emitOpError()
                        << "a and b must have as many elements of k, but got " << a << " and " << b,
                    "load tiles of one depth");                   // (C251)
  if (failed(verifyFragments(op, acc, a.getRows(), b.getRows()))) // (C251)
    return failure();
  auto ofB = op.getBScalesAs<SharedType>();
  if (failed(verifyWarpScales(op, "b", b, ofB))) // (C252)
    return failure();
  if (isWide && !isa<Float8E8M0FNUType>(ofB.getElementType()))
    return withNote(
        op.emitOpError() << "scales of operands of 6 or 8 bits must be f8E8M0FNU, but got " << ofB,
        "quantize both operands to formats of f8E8M0FNU, such as mxfp4 and mxfp8"); // (C252)
  if (!op.getAScales())                                                             // unit scales
    return success();
  auto ofA = op.getAScalesAs<SharedType>();
  if (failed(verifyWarpScales(op, "a", a, ofA))) // (C252)
    return failure();
  if (ofA.getElementType() == ofB.getElementType())
    return success();
  return withNote(op.emitOpError()
                      << "scales of a and b must be of one type, but got " << ofA << " and " << ofB,
                  "quantize both operands with one type of scales"); // (C252)
}
