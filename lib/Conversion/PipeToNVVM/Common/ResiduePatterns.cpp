//===- ResiduePatterns.cpp - Boxes of no more rows than exist -----------------------===//
//
// An H200 loads a box up to three times more slowly if it reaches beyond the rows of its tensor
// (notebook/weight-limits.md). So a map with a residue is followed by another map, whose box
// has the rows behind the last whole box. A load that finds fewer rows than a box takes the second
// map.
//
// Rows that such a load leaves out of its tile must have values, because MMAs read whole tiles.
// Every thread but those that load clears these rows of all stages when the kernel begins, while
// the first loads are on their way: a kernel of one box along the rows loads nothing there. If a
// kernel has more boxes, whole ones may come first, and the loads wait for the zeros.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "Int32.h"

#include "fp4/ISA/TensorMap.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fp4;

/// The barrier of the threads that clear rows; all other barriers have lower numbers.
static constexpr int64_t kTailBarrier = 15;
/// Bytes of the widest store of a thread, of which every row has a multiple.
static constexpr int64_t kPiece = 16;

namespace {

/// Tiles of stages whose boxes have `box` rows of a tensor with `rows`.
struct ResidueTiles {
  Value rows;
  int64_t box;
  llvm::SetVector<std::pair<Operation *, unsigned>> tiles; ///< channels and places in their payload
  llvm::SmallDenseSet<Value> firstRows;                    ///< first rows of their boxes
};

/// Emits code that clears rows of stages.
class RowClearer {
public:
  RowClearer(ImplicitLocOpBuilder &b, const KernelState &state, pipe::RoleAttr loader)
      : b(b), state(state), firstLoader(32 * loader.getFirstWarp()),
        numLoaders(loader.getNumThreads()), thread(b, state.threadIndex) {}

  void emit(ArrayRef<ResidueTiles> found);

private:
  int64_t numClearing() const { return state.numThreads - numLoaders; }
  Value placeOfThread();
  void clear(const ResidueTiles &tailed);

  ImplicitLocOpBuilder &b;
  const KernelState &state;
  int64_t firstLoader, numLoaders;
  Int32 thread;
};

struct LowerExistingRows : PipePattern<pipe::ExistingRowsOp> {
  using PipePattern::PipePattern;

  /// Lowers to min(rows - row, box), and `box` where no rows are left.
  LogicalResult matchAndRewrite(pipe::ExistingRowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Int32 others = Int32(b, adaptor.getRows()) - Int32(b, adaptor.getRow()) - 1;
    Value most = constantI32(b, op.getLoc(), int64_t(op.getBox()) - 1);
    rewriter.replaceOp(op, Value(Int32(b, arith::MinUIOp::create(b, others, most)) + 1));
    return success();
  }
};

} // namespace

/// The place of this thread among those that clear, which surround the ones that load.
Value RowClearer::placeOfThread() {
  if (firstLoader == 0)
    return thread - numLoaders;
  if (firstLoader + numLoaders == state.numThreads)
    return thread;
  return arith::SelectOp::create(b, thread < Int32(b, firstLoader), thread, thread - numLoaders);
}

/// Clears the pieces of a box behind its last row that exists, in every panel of every stage.
void RowClearer::clear(const ResidueTiles &tailed) {
  Int32 left = Int32(b, tailed.rows) % tailed.box;
  Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(VectorType::get(4, b.getI32Type())));
  for (auto [op, index] : tailed.tiles) {
    auto channel = cast<pipe::ChannelOp>(op);
    auto tile = cast<pipe::SharedType>(channel.getType().getPayload()[index]);
    int64_t panels = tile.getPanels(), piecesOfRow = tile.getInnerBytes() / panels / kPiece;
    auto loop = scf::ForOp::create(b, left * piecesOfRow + Int32(b, placeOfThread()),
                                   constantI32(b, b.getLoc(), tailed.box * piecesOfRow),
                                   constantI32(b, b.getLoc(), numClearing()));
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(loop.getBody());
    Value piece = stridedPointer(b, b.getLoc(), state.sharedBase, loop.getInductionVar(), kPiece);
    for (int64_t stage = 0; stage < int64_t(*channel.getDepth()); ++stage)
      for (int64_t panel = 0; panel < panels; ++panel) {
        int64_t place = (*channel.getPayload())[index] + stage * channel.getStageStride(index) +
                        panel * (tile.getBytes() / panels);
        LLVM::StoreOp::create(b, zeros, offsetPointer(b, b.getLoc(), piece, place),
                              unsigned(kPiece));
      }
  }
}

void RowClearer::emit(ArrayRef<ResidueTiles> found) {
  Location loc = b.getLoc();
  Value hasResidue, waits,
      isOther = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, thread - firstLoader,
                                      constantI32(b, loc, numLoaders));
  auto either = [&](Value x, Value y) -> Value {
    return x ? arith::OrIOp::create(b, x, y).getResult() : y;
  };
  for (const ResidueTiles &tailed : found) {
    Value left = Int32(b, tailed.rows) % tailed.box, zero = constantI32(b, loc, 0);
    hasResidue = either(hasResidue, arith::CmpIOp::create(b, arith::CmpIPredicate::ne, left, zero));
    Value hasMore = tailed.firstRows.size() > 1 // also boxes without any row
                        ? arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult()
                        : arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, tailed.rows,
                                                constantI32(b, loc, tailed.box));
    waits = either(waits, hasMore);
  }
  emitIf(b, loc, hasResidue, [&] {
    emitIf(b, loc, isOther, [&] {
      for (const ResidueTiles &tailed : found)
        clear(tailed);
      emitProxyFence(b, loc);
    });
    Value count = arith::SelectOp::create(b, waits, constantI32(b, loc, state.numThreads),
                                          constantI32(b, loc, numClearing()));
    emitIf(b, loc, arith::OrIOp::create(b, isOther, waits), [&] {
      NVVM::BarrierOp::create(b, TypeRange(), constantI32(b, loc, kTailBarrier), count,
                              NVVM::BarrierReductionAttr(), /*reductionPredicate=*/Value());
    });
  });
}

/// The number of rows in front of the roles; a constant is made in each role that needs it.
static Value rowsOf(OpBuilder &b, pipe::ExistingRowsOp existing) {
  std::optional<int64_t> number = getConstantIntValue(existing.getRows());
  return number ? constantI32(b, existing.getLoc(), *number) : existing.getRows();
}

static SmallVector<ResidueTiles> findWithResidue(OpBuilder &b, pipe::RoleRegionOp region) {
  SmallVector<ResidueTiles> found;
  region.walk([&](pipe::LoadOp load) {
    if (!load.getMapType() || !load.getExisting())
      return;
    auto existing = load.getExisting().getDefiningOp<pipe::ExistingRowsOp>();
    auto *tailed = llvm::find_if(found, [&](const ResidueTiles &other) {
      return other.box == int64_t(existing.getBox()) &&
             isEqualConstantIntOrValue(other.rows, existing.getRows());
    });
    if (tailed == found.end()) {
      found.push_back({rowsOf(b, existing), int64_t(existing.getBox()), {}, {}});
      tailed = &found.back();
    }
    unsigned index = cast<OpResult>(load.getDest()).getResultNumber();
    tailed->tiles.insert({load.getChannel().getDefiningOp(), index});
    tailed->firstRows.insert(existing.getRow());
  });
  return found;
}

void fp4::clearBehindResidues(OpBuilder &builder, gpu::GPUFuncOp kernel, const KernelState &state) {
  for (auto region : kernel.getOps<pipe::RoleRegionOp>())
    if (SmallVector<ResidueTiles> found = findWithResidue(builder, region); !found.empty()) {
      ImplicitLocOpBuilder b(kernel.getLoc(), builder);
      RowClearer(b, state, region.getRole()).emit(found);
    }
}

Value fp4::mapOfLoad(OpBuilder &b, pipe::LoadOp load, Value map, Value rows) {
  if (!rows)
    return map;
  Location loc = load.getLoc();
  Value isPart = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, rows,
                                       constantI32(b, loc, load.getMapType().getRows()));
  Value residue = offsetPointer(b, loc, map, int64_t(hw::TensorMap::encodedBytes));
  return arith::SelectOp::create(b, loc, isPart, residue, map);
}

void fp4::populateResiduePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                  const KernelState &state) {
  patterns.add<LowerExistingRows>(converter, patterns.getContext(), state);
}
