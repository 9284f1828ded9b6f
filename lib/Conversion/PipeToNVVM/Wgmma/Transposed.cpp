//===- Transposed.cpp - Columns of a tile as rows of an operand B -----------===//
//
// A warp takes 32 rows of 16 columns of 8-bit elements at a time: four 8 x 8 matrices of pairs of
// neighbours in a row, below each other. ldmatrix.trans gives thread l the pairs of two rows, 2 (l
// % 4) and one more, of columns 2 (l / 4) and one more. A permutation of bytes of two matrices
// makes four elements of each column, 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 of 16 rows, c = l % 4:
// stmatrix stores them as bytes 4 c to 4 c + 3 of 16, in the row of the column.
//
//===----------------------------------------------------------------------===//
#include "Common/TileLines.h"

#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/PipeMma.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Rows and columns of the source that a warp takes at a time, and threads of a warp.
constexpr int64_t kPartRows = 32, kPartColumns = 16, kPartThreads = 32;
/// Bytes of a row of a matrix.
constexpr int64_t kLineOfMatrix = 16;

/// The address of byte `column` of the row of `line` that is in one of several panels.
Value placeInPanels(ImplicitLocOpBuilder &b, Value tile, pipe::SharedType type, Int32 row,
                    Int32 column) {
  int64_t width = pipe::swizzleWidth(type.getLayout());
  Value panel =
      stridedPointer(b, b.getLoc(), tile, column / width, int64_t(type.getRows()) * width);
  return TileLine(panel, type.getLayout(), row).at(column % width);
}

struct LowerTranspose : PipePattern<pipe::TransposeTileOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::TransposeTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getDest())
      return rewriter.notifyMatchFailure(op, "expects a destination");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Int32 thread = threadOfRole(b, op, state);
    int64_t warps = state.roles.at(op).getNumThreads() / kPartThreads;
    int64_t bands = op.getSource().getType().getRows() / kPartRows;
    int64_t parts = bands * (op.getTileType().getRows() / kPartColumns);
    int64_t together = partsTogether(parts, warps);
    Parts moved{b, op, adaptor, thread % kPartThreads, bands};
    auto loop =
        scf::ForOp::create(b, Value(thread / kPartThreads * together), constI32(b, int32_t(parts)),
                           constI32(b, int32_t(warps * together)));
    {
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(loop.getBody());
      moved.move(Int32(b, loop.getInductionVar()), together);
    }
    NVVM::SyncWarpOp::create(b, constI32(b, -1));
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Parts that a warp loads before it stores the first: as many as divide all and leave some to
  /// each warp, up to four.
  static int64_t partsTogether(int64_t parts, int64_t warps) {
    int64_t together = 4;
    while (together > 1 && (parts % together || parts / together < warps))
      together /= 2;
    return together;
  }

  /// Parts of the tile, those below each other first.
  struct Parts {
    ImplicitLocOpBuilder &b;
    pipe::TransposeTileOp op;
    OpAdaptor adaptor;
    Int32 lane;
    int64_t bands;

    Int32 rowOf(Int32 part) const { return part % bands * kPartRows; }
    Int32 columnOf(Int32 part) const { return part / bands * kPartColumns; }

    void move(Int32 first, int64_t count) {
      SmallVector<SmallVector<Value>> pairs;
      for (int64_t i = 0; i < count; ++i)
        pairs.push_back(load(first + i));
      for (int64_t i = 0; i < count; ++i)
        store(first + i, pairs[size_t(i)]);
    }

    SmallVector<Value> load(Int32 part) {
      Value place = placeInPanels(b, adaptor.getSource(), op.getSource().getType(),
                                  rowOf(part) + lane, columnOf(part) + int64_t(op.getFirst()));
      return loadMatrices(b, place, NVVM::MMALayout::col);
    }

    /// Matrix m has the 16 rows of half m / 2, and of every two columns the one of parity m % 2.
    void store(Int32 part, ArrayRef<Value> pairs) {
      SmallVector<Value> words;
      for (size_t half = 0; half < pairs.size(); half += 2)
        for (int32_t selector : {0x6420, 0x7531})
          words.push_back(NVVM::PermuteOp::create(b, b.getI32Type(), pairs[half], pairs[half + 1],
                                                  constI32(b, selector),
                                                  NVVM::PermuteMode::DEFAULT));
      Int32 matrix = lane / 8;
      Value place = placeInPanels(b, adaptor.getDest(), op.getTileType(),
                                  columnOf(part) + lane % 8 * 2 + matrix % 2,
                                  rowOf(part) + matrix / 2 * kLineOfMatrix);
      auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
      NVVM::StMatrixOp::create(b, place, words, NVVM::MMALayout::row, shape,
                               NVVM::LdStMatrixEltType::B16);
    }
  };
};

} // namespace

void fp4::populateTransposePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const KernelState &state) {
  patterns.add<LowerTranspose>(converter, patterns.getContext(), state);
}
