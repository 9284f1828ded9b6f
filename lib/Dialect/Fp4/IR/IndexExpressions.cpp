//===- IndexExpressions.cpp - Elements of other rows and columns ----------===//
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"

#include "fp4/Dialect/Fp4/IR/RowNumbers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace fp4;

namespace {

constexpr unsigned kRow = 0, kColumn = 1;
/// The smallest number that no result has: divisions of negative numbers have none.
constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

/// The value of an expression, or kNone.
int64_t valueOf(AffineExpr expression, int64_t at) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expression))
    return constant.getValue();
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary)
    return at;
  int64_t x = valueOf(binary.getLHS(), at), y = valueOf(binary.getRHS(), at);
  if (x == kNone || y == kNone)
    return kNone;
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return x + y;
  case AffineExprKind::Mul:
    return x * y;
  case AffineExprKind::FloorDiv:
    return x < 0 || y <= 0 ? kNone : x / y;
  case AffineExprKind::Mod:
    return x < 0 || y <= 0 ? kNone : x % y;
  default:
    return kNone;
  }
}

bool isLoop(AffineExpr expression, unsigned loop) {
  auto dim = dyn_cast_if_present<AffineDimExpr>(expression);
  return dim && dim.getPosition() == loop;
}

/// The positive divisor of d0 floordiv n or d0 mod n; none for other expressions.
std::optional<int64_t> divisorOfRow(AffineExpr row, unsigned loop) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(row);
  auto divisor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
  bool isDivision =
      row.getKind() == AffineExprKind::FloorDiv || row.getKind() == AffineExprKind::Mod;
  if (!divisor || !isDivision || !isLoop(binary.getLHS(), loop) || divisor.getValue() <= 0)
    return std::nullopt;
  return divisor.getValue();
}

/// The positive constant on the right of an expression; 0 without one.
int64_t constantOf(AffineBinaryOpExpr expression) {
  auto constant = dyn_cast<AffineConstantExpr>(expression.getRHS());
  return constant ? std::max<int64_t>(constant.getValue(), 0) : 0;
}

/// Returns true for d0 * n and d0 * n + c with positive n and c: the result has one row for n rows
/// of the input. linalg compares static sizes.
bool isMultipleOfRow(AffineExpr row, unsigned loop) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(row);
  if (binary && row.getKind() == AffineExprKind::Add && constantOf(binary))
    binary = dyn_cast<AffineBinaryOpExpr>(binary.getLHS());
  return binary && binary.getKind() == AffineExprKind::Mul && constantOf(binary) &&
         isLoop(binary.getLHS(), loop);
}

/// Why rows of an input are not found; `rows` may be dynamic.
std::string whyNotRow(AffineExpr row, unsigned loop, int64_t rows) {
  if (isLoop(row, loop) || isMultipleOfRow(row, loop))
    return "";
  std::optional<int64_t> divisor = divisorOfRow(row, loop);
  if (!divisor)
    return "the row of an operand is not d0, d0 divided by a number, or d0 * n + c";
  bool isModulo = row.getKind() == AffineExprKind::Mod;
  if (isModulo && (ShapedType::isDynamic(rows) || rows < *divisor))
    return llvm::formatv("an operand has fewer rows than the {0} that are read", *divisor).str();
  return "";
}

/// Why columns of an input with `size` columns are not found from those of the result.
std::string whyNotColumn(AffineExpr column, unsigned loop, int64_t columns, int64_t size) {
  if (isLoop(column, loop))
    return "";
  if (ShapedType::isDynamic(columns) || ShapedType::isDynamic(size))
    return "the columns are dynamic";
  for (int64_t at = 0; at < columns; ++at) {
    int64_t found = valueOf(column, at);
    if (found == kNone)
      return "the column of an operand divides a negative number, or rounds up";
    if (found < 0 || found >= size)
      return llvm::formatv("column {0} of the result reads column {1} of an operand with {2}", at,
                           found, size)
          .str();
  }
  return "";
}

/// The loop that alone an expression is of, the first one for a constant; none where there are
/// several.
std::optional<unsigned> onlyLoopOf(AffineExpr index, unsigned loops) {
  SmallVector<unsigned> found;
  for (unsigned loop = 0; loop < loops; ++loop)
    if (index.isFunctionOfDim(loop))
      found.push_back(loop);
  if (found.size() > 1)
    return std::nullopt;
  return found.empty() ? 0 : found.front();
}

/// Why one dimension of an input, of `size`, is not found. The last loop is that of the columns.
std::string whyNotDimension(linalg::LinalgOp op, AffineExpr index, unsigned loop, int64_t size) {
  if (!index.isFunctionOfDim(loop))
    return size == 1 ? "" : "an operand is read in part";
  bool isColumn = loop + 1 == op.getNumLoops();
  return isColumn ? whyNotColumn(index, loop, op.getStaticLoopRanges()[loop], size)
                  : whyNotRow(index, loop, size);
}

} // namespace

bool fp4::isIndexedByExpressions(linalg::LinalgOp op, OpOperand *input) {
  return !op.getMatchingIndexingMap(input).isProjectedPermutation(/*allowZeroInResults=*/true);
}

bool fp4::hasIndexExpressions(linalg::LinalgOp op) {
  return !loopsReadBy(*op.getBlock()).empty() ||
         llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
           return isIndexedByExpressions(op, input) || gatherOf(input->get());
         });
}

std::string fp4::whyNotIndexExpressions(linalg::LinalgOp op, OpOperand *input) {
  if (!isIndexedByExpressions(op, input))
    return "";
  auto type = dyn_cast<RankedTensorType>(input->get().getType());
  AffineMap map = op.getMatchingIndexingMap(input);
  if (!type || map.getNumSymbols())
    return "an operand is indexed by more than loops";
  unsigned last = 0; // loops are read in their order
  for (auto [index, size] : llvm::zip_equal(map.getResults(), type.getShape())) {
    std::optional<unsigned> loop = onlyLoopOf(index, op.getNumLoops());
    if (!loop)
      return "a dimension of an operand is indexed by several loops";
    std::string reason = whyNotDimension(op, index, *loop, size);
    if (!reason.empty())
      return reason;
    if (index.isFunctionOfDim(*loop) && *loop < last)
      return "an operand is transposed";
    last = std::max(last, *loop);
  }
  return "";
}

std::string fp4::whyNotOnMatrix(linalg::LinalgOp op) {
  if (op.getNumLoops() != 2)
    return "an operand of an operation that is on no matrix is indexed by more than loops";
  bool hasTwo = llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    return op.getMatchingIndexingMap(input).getNumResults() <= 2;
  });
  return hasTwo ? "" : "an operand of an operation on a matrix has more than two dimensions";
}

SmallVector<unsigned> fp4::loopsReadBy(Block &body) {
  std::set<unsigned> loops;
  for (auto index : body.getOps<linalg::IndexOp>())
    loops.insert(static_cast<unsigned>(index.getDim()));
  return SmallVector<unsigned>(loops.begin(), loops.end());
}

std::optional<unsigned> fp4::loopOf(Value value) {
  Operation *cast = value.getDefiningOp();
  if (!isa_and_present<arith::IndexCastOp, arith::IndexCastUIOp>(cast) ||
      !value.getType().isSignlessInteger(32))
    return std::nullopt;
  auto index = cast->getOperand(0).getDefiningOp<linalg::IndexOp>();
  return index ? std::optional<unsigned>(index.getDim()) : std::nullopt;
}

IndexPair fp4::indexPairOf(linalg::LinalgOp op, OpOperand *input) {
  IndexPair index;
  AffineMap map = op.getMatchingIndexingMap(input);
  for (AffineExpr result : map.getResults()) {
    if (result.isFunctionOfDim(kRow))
      index.row = result;
    else if (map.getNumDims() > kColumn && result.isFunctionOfDim(kColumn))
      index.column = result;
  }
  return index;
}

std::optional<ChunkWindow> fp4::chunkWindowOf(AffineExpr column, int64_t columns, int64_t chunk) {
  if (columns % chunk != 0)
    return std::nullopt;
  ChunkWindow window;
  window.isOwn = true;
  for (int64_t first = 0; first < columns; first += chunk) {
    SmallVector<int64_t> places;
    for (int64_t lane = 0; lane < chunk; ++lane)
      places.push_back(valueOf(column, first + lane));
    int64_t least = *llvm::min_element(places);
    for (int64_t &place : places)
      place -= least;
    if (first == 0)
      window.lanes = places;
    else if (window.lanes != places)
      return std::nullopt;
    window.alignment = std::gcd(window.alignment, least);
    window.isOwn &= least == first;
  }
  window.span = *llvm::max_element(window.lanes) + 1;
  window.lane = llvm::find(window.lanes, 0) - window.lanes.begin();
  if (window.alignment == 0) // all windows begin at 0
    window.alignment = chunk;
  return window.span <= chunk ? std::optional(window) : std::nullopt;
}

bool fp4::readsOtherHalf(AffineExpr column, int64_t columns, int64_t chunk) {
  if (columns % (2 * chunk) != 0)
    return false;
  return llvm::all_of(llvm::seq<int64_t>(0, columns), [&](int64_t at) {
    return valueOf(column, at) / chunk == (at + columns / 2) % columns / chunk;
  });
}

bool fp4::sharesRows(AffineExpr row, int64_t rows) {
  auto quotient = dyn_cast_if_present<AffineBinaryOpExpr>(row);
  if (!quotient || quotient.getKind() != AffineExprKind::FloorDiv ||
      !isa<AffineDimExpr>(quotient.getLHS()))
    return false;
  auto divisor = dyn_cast<AffineConstantExpr>(quotient.getRHS());
  return divisor && rows > 1 && divisor.getValue() % rows == 0;
}

bool fp4::repeatsInHalves(AffineExpr column, int64_t columns) {
  int64_t half = columns / 2;
  auto firstHalf = llvm::seq<int64_t>(0, half);
  auto repeats = [&](int64_t at) { return valueOf(column, at) == valueOf(column, at + half); };
  auto isFirst = [&](int64_t at) { return valueOf(column, at) == valueOf(column, 0); };
  return columns % 2 == 0 && llvm::all_of(firstHalf, repeats) && !llvm::all_of(firstHalf, isFirst);
}
