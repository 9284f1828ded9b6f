//===- Rasters.cpp - Common part of the schedules -------------------------===//

#include "Rasters.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Routes/Route.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#include "fp4/Dialect/Pipe/IR/PipeRasters.cpp.inc"

bool fp4::pipe::hasWidth(Raster raster) {
  switch (raster) {
  case Raster::AlongM:
  case Raster::AlongN:
    return false;
  case Raster::Panels:
    return true;
  }
  llvm_unreachable("all rasters are handled");
}

std::string fp4::pipe::rasterNames() {
  auto spell = [](Raster raster) {
    return stringifyRaster(raster).str() + (hasWidth(raster) ? "<WIDTH>" : "");
  };
  return llvm::join(llvm::map_range(allRasters(), spell), ", ");
}

/// Row and column of tile `t` in panels of `width` columns, the last of which may be narrower.
static std::pair<int64_t, int64_t> placeInPanels(int64_t t, int64_t rows, int64_t columns,
                                                 int64_t width) {
  int64_t first = t / (rows * width) * width, within = t % (rows * width);
  int64_t actual = std::min(width, columns - first);
  return {within / actual, first + within % actual};
}

std::pair<int64_t, int64_t> TileOrder::placeOf(int64_t t, int64_t rows, int64_t columns) const {
  switch (raster) {
  case Raster::AlongM:
    return {t % rows, t / rows};
  case Raster::AlongN:
    return {t / columns, t % columns};
  case Raster::Panels:
    return placeInPanels(t, rows, columns, width);
  }
  llvm_unreachable("all rasters are handled");
}

ParseResult fp4::pipe::parseTileOrder(AsmParser &parser, Raster &raster, int64_t &width) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  (void)parser.parseOptionalKeyword(&name);
  std::optional<Raster> known = symbolizeRaster(name);
  if (!known)
    return withNote(parser.emitError(loc) << "unknown raster '" << name << "'",
                    "known: " + rasterNames());
  raster = *known;
  width = 0;
  if (failed(parser.parseOptionalLess()))
    return success();
  return failure(parser.parseInteger(width) || parser.parseGreater());
}

void fp4::pipe::printTileOrder(AsmPrinter &printer, Raster raster, int64_t width) {
  printer << stringifyRaster(raster);
  if (width)
    printer << '<' << width << '>';
}

LogicalResult fp4::pipe::verifyOrder(function_ref<InFlightDiagnostic()> emitError,
                                     TileOrder order) {
  StringRef name = stringifyRaster(order.raster);
  if (hasWidth(order.raster) && (order.width < 1 || order.width > INT32_MAX))
    return withNote(emitError() << name << " must be 1 to " << INT32_MAX << " tiles wide, but got "
                                << order.width,
                    "write the width of a panel in tiles, such as " + name + "<8>");
  if (!hasWidth(order.raster) && order.width)
    return withNote(emitError() << "raster " << name << " must have no width, but got "
                                << order.width,
                    "leave the width out: the rasters are " + rasterNames());
  return success();
}

/// `count` is known to be a multiple of `unit`.
static bool isMultiple(Value count, Value unit) {
  APInt all, one;
  return matchPattern(count, m_ConstantInt(&all)) && matchPattern(unit, m_ConstantInt(&one)) &&
         !one.isZero() && all.urem(one) == 0;
}

/// `width`, or all columns where there are fewer: the tiles of a whole panel are then no more than
/// all tiles, which 32 bits hold. The tiles of narrow panels always fit.
static Value columnsOfPanel(I32Builder i32, Value numN, int64_t width) {
  constexpr int64_t narrow = 64;
  APInt value;
  if (matchPattern(numN, m_ConstantInt(&value)))
    return i32.constant(std::min(width, value.getSExtValue()));
  return width <= narrow ? i32.constant(width) : i32.min(i32.constant(width), numN);
}

/// The quotient of x and `d` is the high word of x times this, where x d is below 2^32.
static int32_t inverse(uint64_t d) { return static_cast<int32_t>(((1ull << 32) + d - 1) / d); }

/// The value of a constant, or of a product of constants.
static std::optional<uint64_t> knownCount(Value count) {
  APInt value;
  if (matchPattern(count, m_ConstantInt(&value)))
    return value.getZExtValue();
  auto product = count.getDefiningOp<arith::MulIOp>();
  auto x = product ? knownCount(product.getLhs()) : std::nullopt;
  auto y = product ? knownCount(product.getRhs()) : std::nullopt;
  return x && y ? std::optional(*x * *y) : std::nullopt;
}

/// x / d, where x is less than a number of tiles that is no more than 2^20, and d is one too, or
/// more than all of them by a seventieth. (x + 1/2) / d is at least 1 / 2d away from an integer.
/// The inverse, its product and its rounding are off by 2^-22 of it together, which is less, since
/// x + 1/2 is less than 2^21.
static Value divideSmall(I32Builder i32, Value x, Value d) {
  Type f32 = i32.b.getF32Type();
  auto toFloat = [&](Value number) -> Value {
    return arith::UIToFPOp::create(i32.b, i32.loc, f32, number);
  };
  Value half = arith::ConstantOp::create(i32.b, i32.loc, i32.b.getF32FloatAttr(0.5f));
  Value between = arith::AddFOp::create(i32.b, i32.loc, toFloat(x), half);
  Value inverse = NVVM::RcpApproxFtzF32Op::create(i32.b, i32.loc, f32, toFloat(d));
  Value quotient = arith::MulFOp::create(i32.b, i32.loc, between, inverse);
  return arith::FPToUIOp::create(i32.b, i32.loc, i32.b.getI32Type(), quotient);
}

/// Roles that multiply by wgmma have no registers to spare, which a second way to divide takes.
static bool sparesRegisters(OpBuilder &b) {
  FailureOr<hw::TargetModel> target = targetOf(b.getInsertionBlock()->getParentOp());
  return succeeded(target) && !route::hasCore(*target, route::Core::Wgmma);
}

/// t / d, where t and d are below and at most `total`. A division by a variable takes twice as many
/// instructions as one of small numbers does, on the path to the first load.
static Value divideByVariable(I32Builder i32, Value t, Value total, Value d) {
  constexpr int64_t most = 1 << 20;
  if (!sparesRegisters(i32.b))
    return i32.div(t, d);
  auto isSmall = arith::CmpIOp::create(i32.b, i32.loc, arith::CmpIPredicate::ule, total,
                                       i32.constant(most));
  auto choose = scf::IfOp::create(
      i32.b, i32.loc, isSmall,
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, divideSmall({b, loc}, t, d));
      },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, I32Builder{b, loc}.div(t, d));
      });
  return choose.getResult(0);
}

/// Row and column of tile `t`, of `total`, in rows of `size`. LLVM divides numbers that it knows to
/// be small in 16 bits, which ptxas makes ten more instructions of, on the path to the first load.
static TilePlace rowAndColumn(I32Builder i32, Value t, Value total, Value size) {
  std::optional<uint64_t> all = knownCount(total), row = knownCount(size);
  if (!row) {
    Value quotient = divideByVariable(i32, t, total, size);
    return {quotient, i32.sub(t, i32.mul(quotient, size))};
  }
  if (!all || *row == 0 || llvm::isPowerOf2_64(*row) || *all * *row >> 32)
    return {i32.div(t, size), i32.rem(t, size)};
  Value quotient = i32.highWord(t, i32.constant(inverse(*row)));
  return {quotient, i32.sub(t, i32.mul(quotient, size))};
}

/// The two widths of panels, and how many are whole, of a known number of tiles; null where a panel
/// has the width of all others, or anything is not known.
struct PanelWidths {
  uint64_t whole, last, panels;

  static std::optional<PanelWidths> of(Value numM, Value numN, Value columns) {
    APInt rows, all, width;
    if (!matchPattern(numM, m_ConstantInt(&rows)) || !matchPattern(numN, m_ConstantInt(&all)) ||
        !matchPattern(columns, m_ConstantInt(&width)))
      return std::nullopt;
    uint64_t whole = width.getZExtValue(), last = whole ? all.getZExtValue() % whole : 0;
    if (last < 2 || rows.getZExtValue() * whole * whole >> 32)
      return std::nullopt;
    return PanelWidths{whole, last, all.getZExtValue() / whole};
  }
};

/// Row and column of tile `within` of panel number `panel`, of `columns` columns but for the last
/// one.
static TilePlace placeInPanel(I32Builder i32, Value within, Value panel, Value numM, Value numN,
                              Value columns) {
  if (isMultiple(numN, columns))
    return rowAndColumn(i32, within, i32.mul(numM, columns), columns);
  auto widths = PanelWidths::of(numM, numN, columns);
  if (!widths) {
    Value left = i32.sub(numN, i32.mul(panel, columns)), actual = i32.min(left, columns);
    return {i32.div(within, actual), i32.rem(within, actual)};
  }
  // A division by a variable, which LLVM makes of two by constants, is a subroutine on the path to
  // the first load.
  Value isLast = i32.equal(panel, i32.constant(int64_t(widths->panels)));
  auto ofPanel = [&](int64_t last, int64_t whole) {
    return i32.select(isLast, i32.constant(last), i32.constant(whole));
  };
  Value row = i32.highWord(within, ofPanel(inverse(widths->last), inverse(widths->whole)));
  Value before = i32.mul(row, ofPanel(int64_t(widths->last), int64_t(widths->whole)));
  return {row, i32.sub(within, before)};
}

/// Tile number `t` in panels of `width` columns, the last of which may be narrower.
static TilePlace tileInPanels(I32Builder i32, Value t, Value numM, Value numN, int64_t width) {
  Value columns = columnsOfPanel(i32, numN, width);
  Value whole = i32.mul(numM, columns); // tiles of a whole panel
  auto [panel, within] = rowAndColumn(i32, t, i32.mul(numM, numN), whole);
  TilePlace place = placeInPanel(i32, within, panel, numM, numN, columns);
  return {place.m, i32.add(i32.mul(panel, columns), place.n)};
}

TilePlace fp4::pipe::tileOf(I32Builder i32, TileOrder order, Value t, ForEachWorkOp work) {
  Value numM = work.getNumM(), numN = work.getNumN();
  Value total = i32.mul(numM, numN);
  switch (order.raster) {
  case Raster::AlongM: {
    auto [n, m] = rowAndColumn(i32, t, total, numM);
    return {m, n};
  }
  case Raster::AlongN:
    return rowAndColumn(i32, t, total, numN);
  case Raster::Panels:
    return tileInPanels(i32, t, numM, numN, order.width);
  }
  llvm_unreachable("all rasters are handled");
}

Value fp4::pipe::workerOf(I32Builder i32, Value block, hw::ClusterShape cluster) {
  return cluster.m == 1 ? block : i32.div(block, i32.constant(cluster.m));
}

/// %clusterid says the same; ptxas computes it from the sizes that the launch gives, in ten
/// instructions and more.
static Value thisWorker(I32Builder i32, fp4::hw::ClusterShape cluster) {
  Value block = gpu::BlockIdOp::create(i32.b, i32.loc, gpu::Dimension::x);
  return workerOf(i32, i32.index(block), cluster);
}

WorkNumbers fp4::pipe::numbersOf(I32Builder i32, ForEachWorkOp work) {
  WorkNumbers numbers{clusterOf(work), i32.mul(work.getNumM(), work.getNumN()), Value()};
  numbers.first = thisWorker(i32, numbers.cluster);
  return numbers;
}

SmallVector<Value> fp4::pipe::moveBody(RewriterBase &rewriter, ForEachWorkOp work, Block *block,
                                       ValueRange arguments) {
  rewriter.mergeBlocks(work.getBody(), block, arguments);
  Operation *yield = &block->back();
  SmallVector<Value> yielded = llvm::to_vector(yield->getOperands());
  rewriter.eraseOp(yield);
  return yielded;
}
