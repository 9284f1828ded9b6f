//===- Hadamard.cpp - Kernels around the Hadamard transform ---------------===//
//
// fp4.hadamard transforms; fp4.hadamard_amax reads once and keeps two maxima. The two kernels walk
// over pieces. A piece is the part of the blocks that one thread holds, 16 elements along the
// transform.
//
//   dimension 1   16 elements of a row: 32 bytes.
//   dimension 0   16 rows of up to 8 neighbouring columns: 16 loads of up to 16 bytes, side by side
//                 with those of the neighbouring threads. Nothing is transposed: the two columns
//                 in a register are elements of two lines.
//
// Blocks of 32, 64 and 128 are spread over 2, 4 and 8 neighbouring lanes. All lanes of a warp stay
// active to the end (Butterfly.h).
//
// Scale and rounding to bf16 are monotonic, so the amax after the transform is that of the sums,
// scaled and rounded once at the end.
//
//===----------------------------------------------------------------------===//
#include "Hadamard/Butterfly.h"
#include "HostDivisor.h"
#include "Lowering.h"
#include "Reduce/GridMax.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kLine = 16; ///< elements along the transform in a thread
constexpr int64_t kElementBytes = 2;

/// The words (i32) that a thread loads, one list per access.
using Accesses = SmallVector<SmallVector<Value>>;
/// Elements (f32) along the transform, kLine per line.
using Lines = SmallVector<SmallVector<Value>>;

/// The places of the pieces of a matrix, and the words of them that make a line.
class Pieces {
public:
  Pieces(KernelBuilder &kernel, Scalars &s, RankedTensorType type, int64_t dimension, int64_t size)
      : kernel(kernel), b(kernel.body()), s(s), columns(type.getDimSize(1)),
        alongRows(dimension == 1), parts(size / kLine),
        width(alongRows                        ? kLine
              : ShapedType::isDynamic(columns) ? kColumns
                                               : std::gcd<int64_t>(columns, kColumns)) {}

  /// Dynamic columns (an index), of which there are whole accesses.
  void takeColumns(Value given) {
    hostAccesses = arith::DivUIOp::create(kernel.host(), given, constIndex(kernel.host(), width));
    if (!alongRows)
      accesses.emplace(kernel, hostAccesses);
  }
  /// Columns that have whole accesses are a multiple of so many.
  static constexpr int64_t kColumns = 8;

  /// The number of pieces in a matrix of `rows`, an index.
  Value count(Value rows) {
    ImplicitLocOpBuilder &host = kernel.host();
    if (!alongRows)
      rows = arith::DivUIOp::create(host, rows, constIndex(host, kLine));
    return arith::MulIOp::create(host, rows,
                                 hostAccesses ? hostAccesses : constIndex(host, columns / width));
  }

  int64_t countStatic(int64_t rows) const {
    return (alongRows ? rows : rows / kLine) * (columns / width);
  }

  /// The place of piece number `item` (i32) in a matrix at `base`.
  Value pointer(Value base, Value item) {
    if (alongRows)
      return address(b, base, item, kLine * kElementBytes);
    Value part = remainder(item, parts), rest = divide(item, parts);
    if (accesses)
      return dynamicPointer(base, Int32(b, part), Int32(b, rest));
    Value chunk = remainder(rest, columns / width), block = divide(rest, columns / width);
    Value line = arith::AddIOp::create(b, arith::MulIOp::create(b, block, s.integer(parts)), part);
    return address(b, address(b, base, line, kLine * rowBytes()), chunk, width * kElementBytes);
  }

  Accesses loadPiece(Value pointer) {
    Accesses loaded;
    for (int64_t i = 0; i < (alongRows ? 1 : kLine); ++i)
      loaded.push_back(loadAccess(rowOfPiece(pointer, i)));
    return loaded;
  }

  void storePiece(const Accesses &accesses, Value pointer) {
    for (auto [i, words] : llvm::enumerate(accesses))
      storeAccess(words, rowOfPiece(pointer, int64_t(i)));
  }

  /// Calls `body` with a line, or with the two that share words; where it returns lines, they
  /// replace them. Strip by strip, so that few lines are alive at once.
  void forEachStrip(Accesses &accesses, llvm::function_ref<Lines(Lines)> body) {
    if (alongRows) {
      if (Lines lines = body(split(accesses.front())); !lines.empty())
        accesses.front() = join(lines);
      return;
    }
    for (size_t strip = 0; strip < accesses.front().size(); ++strip) {
      Lines lines = body(split(llvm::map_to_vector(accesses, [&](auto &a) { return a[strip]; })));
      if (lines.empty())
        continue;
      for (auto [access, word] : llvm::zip_equal(accesses, join(lines)))
        access[strip] = word;
    }
  }

  /// Neighbouring lanes that hold a block.
  unsigned lanes() const { return static_cast<unsigned>(parts); }

private:
  int64_t rowBytes() const { return columns * kElementBytes; }
  int64_t accessBytes() const { return width * kElementBytes; }

  /// Part `part` of a piece of 16 rows whose columns are dynamic: chunk and block are in `rest`.
  Value dynamicPointer(Value base, Int32 part, Int32 rest) {
    Int32 block = accesses->quotient(rest), perRow = accesses->divisor();
    Value first = rows(base, (block * parts + part) * kLine, 1);
    return address(b, first, rest - block * perRow, accessBytes());
  }
  /// `count * times` rows of dynamic columns behind `base`.
  Value rows(Value base, Int32 count, int64_t times) {
    auto wide = [&](Value x) -> Value { return arith::ExtUIOp::create(b, b.getI64Type(), x); };
    Value bytes =
        arith::MulIOp::create(b, wide(accesses->divisor()), constI64(b, times * accessBytes()));
    Value offset = arith::MulIOp::create(b, wide(count), bytes);
    return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base, offset);
  }
  Value rowOfPiece(Value pointer, int64_t row) {
    return accesses && row ? rows(pointer, Int32(b, 1), row)
                           : advance(b, pointer, row * (accesses ? 0 : rowBytes()));
  }
  bool isHalfWord() const { return width == 1; }
  VectorType accessType() { return VectorType::get(width / 2, b.getI32Type()); }
  Value remainder(Value x, int64_t y) { return arith::RemUIOp::create(b, x, s.integer(y)); }
  Value divide(Value x, int64_t y) { return arith::DivUIOp::create(b, x, s.integer(y)); }

  SmallVector<Value> loadAccess(Value pointer) {
    if (isHalfWord())
      return {arith::ExtUIOp::create(b, b.getI32Type(),
                                     load(b, b.getI16Type(), pointer, kElementBytes))};
    Value data = load(b, accessType(), pointer, width * kElementBytes);
    SmallVector<Value> words;
    for (int64_t lane = 0; lane < width / 2; ++lane)
      words.push_back(vector::ExtractOp::create(b, data, lane));
    return words;
  }

  void storeAccess(ArrayRef<Value> words, Value pointer) {
    Value data = isHalfWord()
                     ? arith::TruncIOp::create(b, b.getI16Type(), words.front()).getResult()
                     : vector::FromElementsOp::create(b, accessType(), words).getResult();
    store(b, data, pointer, width * kElementBytes);
  }

  Lines split(ArrayRef<Value> words) {
    SmallVector<Value> elements = s.widen(words, b.getBF16Type());
    if (alongRows)
      return {elements};
    Lines lines(isHalfWord() ? 1 : 2);
    for (auto [i, element] : llvm::enumerate(elements))
      if (i % 2 < lines.size())
        lines[i % 2].push_back(element);
    return lines;
  }

  SmallVector<Value> join(const Lines &lines) {
    SmallVector<Value> words;
    if (alongRows)
      for (int64_t i = 0; i < kLine; i += 2)
        words.push_back(s.packBF16(lines[0][i], lines[0][i + 1]));
    else
      for (int64_t i = 0; i < kLine; ++i)
        words.push_back(s.packBF16(lines[0][i], isHalfWord() ? s.constant(0) : lines[1][i]));
    return words;
  }

  KernelBuilder &kernel;
  ImplicitLocOpBuilder &b;
  Scalars &s;
  int64_t columns;
  Value hostAccesses;                  ///< accesses of a row whose columns are dynamic
  std::optional<HostDivisor> accesses; ///< divisor in the kernel, where pieces cross rows
  bool alongRows;
  int64_t parts; ///< pieces of a block
  int64_t width; ///< elements of an access
};

/// Either kernel; the operations differ in what they do with a piece.
template <typename Op> class HadamardKernel {
public:
  HadamardKernel(Op op, StringRef kind, LoweringContext &context)
      : op(op), kernel(op, kind, context), b(kernel.body()), s(b, context.target),
        target(context.target), pieces(kernel, s, cast<RankedTensorType>(op.getInput().getType()),
                                       op.getDimension(), op.getSize()),
        butterfly(s, b, op.getTransform().options()) {}

  /// One piece per thread. All threads of the last CTA take part if lanes exchange elements.
  void emit() {
    Value rows = hostRows(), columns = takeColumns(), hostCount = pieces.count(rows);
    Value input = kernel.input(op.getInput());
    Value result = kernel.output(op.getResult(), rows, columns);
    Value count = kernel.scalar(hostCount), item = kernel.globalThread();
    WholeWarps warps(b, count, pieces.lanes());
    Accesses accesses;
    auto transform = [&](Value place) {
      accesses = pieces.loadPiece(pieces.pointer(input, place));
      pieces.forEachStrip(accesses, [&](Lines lines) {
        for (auto &line : lines)
          line = butterfly.transform(line);
        return lines;
      });
    };
    if (pieces.lanes() > 1)
      transform(warps.clamped(item));
    warps.ifOwn(item, [&] {
      if (pieces.lanes() == 1)
        transform(item);
      pieces.storePiece(accesses, pieces.pointer(result, item));
    });
    kernel.launchItems(hostCount);
  }

  void emitAmax() {
    Value rows = hostRows();
    takeColumns();
    Value hostCount = pieces.count(rows);
    Value results[] = {allocate(op.getBefore()), allocate(op.getAfter())};
    input = kernel.input(op.getInput());
    SmallVector<Value> pointers = {amaxPointer(results[0]), amaxPointer(results[1])};
    if (op.getGroups())
      return emitGroups(*op.getGroups(), pointers);
    Value count = kernel.scalar(hostCount);
    WholeWarps warps(b, count, pieces.lanes());
    SmallVector<Value> found =
        kernel.forEachItem(warps.bound(), zeros(), [&](Value item, ValueRange carried) {
          return includePiece(pieces.lanes() > 1 ? warps.clamped(item) : item, carried);
        });
    finishAmax(found, pointers, ctasOfGrid(kernel, target, /*maxima=*/2));
    kernel.launch(gridMaxCtas(kernel, target, hostCount));
  }

private:
  Value hostRows() {
    Value rows = kernel.hostRows(op.getInput());
    if (op.getDimension() == 0)
      kernel.expectMultiple(op.getInput(), rows, op.getSize());
    return rows;
  }

  /// Dynamic columns, which are checked: an index, or null.
  Value takeColumns() {
    Value columns = kernel.hostColumns(op.getInput());
    if (!columns)
      return {};
    bool alongRows = op.getDimension() == 1;
    kernel.expectColumns("input", columns, alongRows ? op.getSize() : Pieces::kColumns);
    pieces.takeColumns(columns);
    return columns;
  }

  /// Groups are whole pieces: their rows are multiples of the scale block where scale blocks cross
  /// rows.
  void emitGroups(ArrayRef<int64_t> groups, SmallVector<Value> pointers) {
    GroupedGrid grid(kernel, target, llvm::map_to_vector(groups, [&](int64_t rows) {
                       return pieces.countStatic(rows);
                     }));
    WholeWarps warps(b, grid.items(), pieces.lanes());
    SmallVector<Value> found =
        grid.forEachItem(warps.bound(), zeros(), [&](Value item, ValueRange carried) {
          Int32 inGroup(b, pieces.lanes() > 1 ? warps.clamped(item) : item);
          return includePiece(grid.firstItem() + inGroup, carried);
        });
    for (Value &pointer : pointers)
      pointer = address(b, pointer, grid.group(), 4);
    finishAmax(found, pointers, grid.ctasOfGroup(/*maxima=*/2));
    kernel.launch(constIndex(kernel.host(), grid.blocks()));
  }

  SmallVector<Value> zeros() { return {s.constant(0), s.constant(0)}; }

  /// The larger of what was found, before and after, and that of a piece.
  SmallVector<Value> includePiece(Value item, ValueRange found) {
    Accesses accesses = pieces.loadPiece(pieces.pointer(input, item));
    SmallVector<Value> words;
    for (auto &access : accesses)
      words.append(access);
    Value before = larger(found[0], s.amax(words, b.getBF16Type(), keepsNaN()));
    Value after = found[1];
    pieces.forEachStrip(accesses, [&](Lines lines) -> Lines {
      for (auto &line : lines)
        after = larger(after, butterfly.amax(line, keepsNaN()));
      return {};
    });
    return {before, after};
  }

  void finishAmax(SmallVector<Value> found, ArrayRef<Value> pointers, MaxCtas blocks) {
    found[1] = s.roundToBF16(s.multiply(found[1], butterfly.scale()));
    emitGridMax(kernel, s, found, pointers, blocks);
  }

  bool keepsNaN() { return op.getNan() == NanPolicy::Propagate; }
  Value larger(Value x, Value y) {
    return keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
  }

  /// The buffer of a result, with 0 for groups that no CTA has.
  Value allocate(Value result) {
    Value buffer = kernel.allocate(result, /*rows=*/Value());
    if (op.getGroups() && llvm::is_contained(*op.getGroups(), 0))
      gpu::MemsetOp::create(kernel.host(), TypeRange(), ValueRange(), buffer,
                            constF32(kernel.host(), 0));
    return buffer;
  }

  Value amaxPointer(Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    return kernel.pointer(buffer, RankedTensorType::get(type.getShape(), b.getF32Type()));
  }

  Op op;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  const hw::TargetModel &target;
  Pieces pieces;
  Butterfly butterfly;
  Value input;
};

} // namespace

LogicalResult fp4::lowerHadamard(HadamardOp op, LoweringContext &context) {
  HadamardKernel<HadamardOp>(op, "hadamard", context).emit();
  return success();
}

LogicalResult fp4::lowerHadamardAmax(HadamardAmaxOp op, LoweringContext &context) {
  HadamardKernel<HadamardAmaxOp>(op, "hadamard_amax", context).emitAmax();
  return success();
}
