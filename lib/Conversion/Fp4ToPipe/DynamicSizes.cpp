//===- DynamicSizes.cpp - Dynamic sizes of a matmul -----------------------===//

#include "DynamicSizes.h"
#include "GemmArguments.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/OperandNames.h"
#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp4;

std::string fp4::placeOfOperand(BlockScaledMatmulOp op, StringRef name) {
  return placeOfOperand(op, "matmul", name);
}

static bool isPacked(Value tensor) {
  return isa<Float4E2M1FNType>(cast<RankedTensorType>(tensor.getType()).getElementType());
}

/// Elements of a row of `buffer`, which holds `tensor`.
static Value elementsOfRow(OpBuilder &b, Location loc, Value tensor, Value buffer) {
  Value bytes = memref::DimOp::create(b, loc, buffer, 1);
  if (!isPacked(tensor))
    return bytes;
  return arith::MulIOp::create(b, loc, bytes, arith::ConstantIndexOp::create(b, loc, 2));
}

/// Columns of the result beside prepacked weights: those of an alpha that has as many, or of all
/// rows of tiles.
static Value columnsOfTiles(OpBuilder &b, BlockScaledMatmulOp op, const GemmBuffers &adaptor) {
  Location loc = op.getLoc();
  auto dim = [&](Value buffer, int64_t dimension) -> Value {
    return memref::DimOp::create(b, loc, buffer, dimension);
  };
  Value source = operandOfColumns(op);
  if (!source)
    return arith::MulIOp::create(b, loc, dim(adaptor.rhs, 0),
                                 arith::ConstantIndexOp::create(b, loc, hw::weightTileRows));
  return dim(source == op.getAlpha() ? adaptor.alpha : adaptor.alpha2, 1);
}

GemmSizes fp4::sizesOfGemm(OpBuilder &b, BlockScaledMatmulOp op, const GemmBuffers &adaptor) {
  GemmSizes sizes;
  if (hasDynamicColumns(op))
    sizes.columns = op.hasPrepackedRhs() ? columnsOfTiles(b, op, adaptor)
                                         : memref::DimOp::create(b, op.getLoc(), adaptor.rhs, 0);
  if (hasDynamicDepth(op))
    sizes.depth = elementsOfRow(b, op.getLoc(), op.getLhs(), adaptor.lhs);
  return sizes;
}

Value fp4::holdsFor(OpBuilder &b, Location loc, const Guard &guard, Value rows,
                    const GemmSizes &sizes) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value all;
  auto require = [&](arith::CmpIPredicate predicate, Value x, int64_t y) {
    Value holds = arith::CmpIOp::create(b, loc, predicate, x, constant(y));
    all = all ? arith::AndIOp::create(b, loc, all, holds).getResult() : holds;
  };
  std::pair<const SizeRange &, Value> ranges[] = {
      {guard.m, rows}, {guard.n, sizes.columns}, {guard.k, sizes.depth}};
  for (auto [range, size] : ranges) {
    if (range.least > 1)
      require(arith::CmpIPredicate::uge, size, range.least);
    if (range.most)
      require(arith::CmpIPredicate::ule, size, *range.most);
  }
  if (guard.kUnit && sizes.depth)
    require(arith::CmpIPredicate::eq,
            arith::RemUIOp::create(b, loc, sizes.depth, constant(*guard.kUnit)), 0);
  return all;
}

namespace {
/// The checks of one matmul.
class SizeChecks {
public:
  SizeChecks(OpBuilder &b, BlockScaledMatmulOp op) : b(b), op(op), loc(op.getLoc()) {}

  void equal(StringRef what, StringRef name, Value found, Value expected, StringRef note) {
    std::string text = (what + " of " + placeOfOperand(op, name)).str();
    pipe::ExpectSizeOp::create(b, loc, text, found, expected, note);
  }
  /// `size` is a multiple of `unit`, of at least `least` of them.
  void multiple(StringRef what, StringRef name, Value size, int64_t unit, const Twine &note,
                int64_t least = 0) {
    Value units = quotientUp(size, unit);
    if (least)
      units = arith::MaxUIOp::create(b, loc, units, constant(least));
    equal(what, name, size, arith::MulIOp::create(b, loc, units, constant(unit)), note.str());
  }
  Value quotientUp(Value size, int64_t unit) {
    return arith::CeilDivUIOp::create(b, loc, size, constant(unit));
  }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value size(Value buffer, int64_t dimension) {
    return memref::DimOp::create(b, loc, buffer, dimension);
  }

private:
  OpBuilder &b;
  BlockScaledMatmulOp op;
  Location loc;
};
} // namespace

/// Elements of which K is a multiple: whole blocks, and rows of 16 bytes. TMA spreads runs of
/// elements of 6 bits, and of 4 beside 6 or 8.
static int64_t unitOfDepth(BlockScaledMatmulOp op, const Gemm &gemm) {
  bool packed = isPacked(op.getLhs()) || isPacked(op.getRhs());
  auto hasSix = [](Value data) { return isSixBitElementType(getElementTypeOrSelf(data)); };
  bool isSpread = gemm.spreadsCodes() && (hasSix(op.getLhs()) || hasSix(op.getRhs()));
  if (op.isMXF8F6F4() && (packed || isSpread))
    return pipe::kPaddedRun;
  int64_t ofRows = pipe::kRowUnitBytes * (packed ? 2 : 1);
  return op.hasF32Scales() ? ofRows : std::max(ofRows, blockSize(op.getFormat()));
}

/// Checks dimension `dimension` of prepacked weights: so many tiles of `unit` have `size`.
static void checkTiles(SizeChecks &checks, BlockScaledMatmulOp op, const GemmBuffers &adaptor,
                       int64_t dimension, Value size, int64_t unit) {
  std::string what = (Twine(dimension ? "columns" : "rows") + " of tiles").str();
  std::string note = (Twine("a tile has ") + Twine(unit) +
                      (dimension ? " of the columns of lhs"
                                 : " of the columns of the result, which an alpha of 1 x N has"))
                         .str();
  auto check = [&](StringRef name, Value buffer) {
    checks.equal(what, name, checks.size(buffer, dimension), checks.quotientUp(size, unit), note);
  };
  check("rhs", adaptor.rhs);
  if (op.isDual())
    check("rhs2", adaptor.rhs2);
}

/// Checks the columns of data of the rhs, and of the scales of both sides.
static void checkDepthOfPair(SizeChecks &checks, OpBuilder &b, BlockScaledMatmulOp op,
                             const GemmBuffers &adaptor, Value depth) {
  auto equal = [&](StringRef name, Value data, Value buffer) {
    checks.equal("columns", name, elementsOfRow(b, op.getLoc(), data, buffer), depth,
                 "both operands are contracted along their columns, of which lhs has so many");
  };
  if (!op.hasPrepackedRhs())
    equal("rhs", op.getRhs(), adaptor.rhs);
  if (!op.hasPrepackedRhs() && op.isDual())
    equal("rhs2", op.getRhs2(), adaptor.rhs2);
  Value blocks = checks.quotientUp(depth, blockSize(op.getFormat()));
  StringRef what = "columns";
  if (!op.hasF32Scales()) {
    blocks = checks.quotientUp(blocks, pipe::kScaleBlockColumns);
    what = "scale tiles of 4 columns";
  }
  std::pair<StringRef, Value> all[] = {{"lhs_scales", adaptor.lhsScales},
                                       {"rhs_scales", adaptor.rhsScales},
                                       {"rhs2_scales", adaptor.rhs2Scales}};
  for (auto [name, scales] : all)
    if (scales) // scales of e4m3 beside mxfp4 may be absent
      checks.equal(what, name, checks.size(scales, 1), blocks, "pass the scales of these elements");
}

static void checkDepth(SizeChecks &checks, OpBuilder &b, BlockScaledMatmulOp op,
                       const GemmBuffers &adaptor, Value depth, const Gemm &gemm) {
  int64_t unit = unitOfDepth(op, gemm);
  checks.multiple("columns", "lhs", depth, unit,
                  "pad the contraction axis of both operands with zeros to a multiple of " +
                      Twine(unit),
                  /*least=*/1); // kernels have no sum of nothing
  if (op.hasPrepackedRhs())
    checkTiles(checks, op, adaptor, /*dimension=*/1, depth,
               hw::weightColumnsOf(cast<RankedTensorType>(op.getRhs().getType()).getDimSize(2)));
  checkDepthOfPair(checks, b, op, adaptor, depth);
}

/// Checks the rows of weights that are not prepacked, and of their scales.
static void checkRows(SizeChecks &checks, BlockScaledMatmulOp op, const GemmBuffers &adaptor,
                      Value columns) {
  auto checkScales = [&](StringRef name, Value scales) {
    checks.equal("scale tiles of 128 rows", name, checks.size(scales, 0),
                 checks.quotientUp(columns, pipe::kScaleBlockRows),
                 "pass the scales of the rows of rhs");
  };
  checkScales("rhs_scales", adaptor.rhsScales);
  if (!op.isDual())
    return;
  checks.equal("rows", "rhs2", checks.size(adaptor.rhs2, 0), columns,
               "both GEMMs have as many columns");
  checkScales("rhs2_scales", adaptor.rhs2Scales);
}

/// Checks operands that have a number for each column of the result.
static void checkColumns(SizeChecks &checks, BlockScaledMatmulOp op, const GemmBuffers &adaptor,
                         Value columns) {
  int64_t bits = op.getElementType().getIntOrFloatBitWidth(), block = 1;
  if (op.quantizesRows()) {
    numerics::BlockFormat format = op.getQuantizeRecipe()->getDecisions().format;
    bits = numerics::isPacked(format) ? 4 : 8;
    block = numerics::blockSizeOf(format);
  }
  auto take = [&](StringRef name, Value tensor, Value buffer) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getRank() != 2 || !type.isDynamicDim(1))
      return;
    bits = std::min<int64_t>(bits, type.getElementTypeBitWidth());
    checks.equal("columns", name, checks.size(buffer, 1), columns,
                 "rhs has as many rows as the result has columns");
  };
  if (op.getAlpha())
    take("alpha", op.getAlpha(), adaptor.alpha);
  if (op.getAlpha2())
    take("alpha2", op.getAlpha2(), adaptor.alpha2);
  for (auto [tensor, buffer] : llvm::zip_equal(op.getEpilogueInputs(), adaptor.inputs))
    take("epilogue_inputs", tensor, buffer);
  int64_t unit = std::max(block, pipe::kRowUnitBytes * 8 / bits);
  checks.multiple(
      "rows", "rhs", columns, unit,
      "rows of the result begin at multiples of 16 bytes; pad rhs with rows of zeros to a "
      "multiple of " +
          Twine(unit));
  if (op.hasPrepackedRhs())
    checkTiles(checks, op, adaptor, /*dimension=*/0, columns, hw::weightTileRows);
  else
    checkRows(checks, op, adaptor, columns);
}

void fp4::checkGemmSizes(OpBuilder &b, BlockScaledMatmulOp op, const GemmBuffers &adaptor,
                         const GemmSizes &sizes, const Gemm &gemm) {
  SizeChecks checks(b, op);
  if (sizes.depth)
    checkDepth(checks, b, op, adaptor, sizes.depth, gemm);
  if (sizes.columns)
    checkColumns(checks, op, adaptor, sizes.columns);
}

Value fp4::viewOf(OpBuilder &b, Location loc, Type type, Value buffer) {
  auto global = cast<pipe::GlobalType>(type);
  auto memory = cast<MemRefType>(buffer.getType());
  bool isSized = global.getRank() == 2 && global.hasDynamicColumns();
  if (MemRefType any = pipe::getBufferType(global);
      isSized && memory != any && memory.getLayout().isIdentity())
    buffer = memref::CastOp::create(b, loc, any, buffer);
  return pipe::ViewOp::create(b, loc, type, buffer);
}
