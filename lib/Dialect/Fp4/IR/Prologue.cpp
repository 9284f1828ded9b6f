//===- Prologue.cpp - Operations that the kernels of their readers compute ===//
#include "fp4/Dialect/Fp4/IR/Prologue.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "fp4/Numerics/RowReduction.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp4;

namespace {

linalg::LinalgOp linalgOf(linalg::GenericOp op) {
  return cast<linalg::LinalgOp>(op.getOperation());
}

RankedTensorType resultType(linalg::GenericOp op) {
  return cast<RankedTensorType>(op.getResult(0).getType());
}

/// Returns true when `input` has an element for each iteration of the loops of `op`.
bool isWhole(linalg::GenericOp op, OpOperand *input) {
  if (!op.getMatchingIndexingMap(input).isIdentity())
    return false;
  auto type = cast<RankedTensorType>(input->get().getType());
  return isRowReduction(op) ? type.getRank() == 2 : type.getShape() == resultType(op).getShape();
}

bool transformsOnTensorCore(std::optional<fp4::HadamardAttr> transform) {
  return transform && transform->getArithmetic() == fp4::HadamardArithmetic::TensorCore;
}

/// The inputs that are integers, one for each row: a kernel by rows loads them.
SmallVector<OpOperand *> integersOf(linalg::GenericOp op) {
  return llvm::filter_to_vector(linalgOf(op).getDpsInputOperands(), [&](OpOperand *input) {
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    if (!type || !type.getElementType().isSignlessInteger(32) || !fp4::isNumbersOfRows(type))
      return false;
    auto [row, column] = indexPairOf(linalgOf(op), input);
    return row && !column;
  });
}

/// Why no kernel computes an elementwise operation, or a reduction of rows.
std::string whyNotComputed(linalg::GenericOp op) {
  if (isRowReduction(op))
    return rowsInputOf(op) ? whyNotInMemory(linalgOf(op), integersOf(op))
                           : "no operand has an element for each of the matrix";
  if (std::string reason = whyNotElementwise(linalgOf(op)); !reason.empty())
    return reason;
  if (std::string reason = hasIndexExpressions(linalgOf(op)) ? whyNotOnMatrix(linalgOf(op)) : "";
      !reason.empty())
    return reason;
  return whyNotInMemory(linalgOf(op), integersOf(op));
}

/// Returns true when the kernel of a reader of `op` needs a whole row for it, or stores it.
bool isOfRows(linalg::GenericOp op) {
  return isRowReduction(op) || isStored(op) || isNumbersOfRows(op.getResult(0).getType()) ||
         hasIndexExpressions(linalgOf(op)) || !integersOf(op).empty() ||
         llvm::any_of(op->getOperands(), [](Value operand) {
           linalg::GenericOp prologue = prologueOf(operand);
           return prologue && !isStored(prologue); // another kernel may store it
         });
}

std::string whyNotRowsOfQuantizer(QuantizeOp op) {
  if (op.getOutputs() != Outputs::Rowwise)
    return "the quantizer runs along columns";
  if (cast<RankedTensorType>(op.getInput().getType()).isDynamicDim(1))
    return "the columns are dynamic";
  if (op.isGrouped())
    return "the quantizer has groups";
  if (op.getHadamard())
    return "the quantizer transforms its input";
  if (op.hasSquareBlocks())
    return "the blocks have several rows";
  if (op.getRecipe().getDecisions().adaptive != numerics::Adaptive::Off)
    return "the recipe compares two scales of a block";
  return "";
}

std::string whyNotRowsOfAmax(AmaxOp op) {
  if (op.isGrouped())
    return "the amax has groups";
  return op.getPerColumn() ? "the amax runs along columns" : "";
}

/// Returns true for an operation that a row kernel may have as its last one. The amax that a
/// quantizer of rows has to itself is in the kernel of the quantizer.
bool mayBeRoot(Operation *op) {
  auto amax = dyn_cast<AmaxOp>(op);
  if (!amax)
    return isa<QuantizeOp, TopKOp, linalg::GenericOp>(op);
  return whyNotRowsOfAmax(amax).empty() && !fp4::quantizerOfRows(amax);
}

} // namespace

bool fp4::readsIntegersOfRows(linalg::GenericOp op) { return !integersOf(op).empty(); }

bool fp4::isNumbersOfRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && (tensor.getRank() == 1 || (tensor.getRank() == 2 && tensor.getDimSize(1) == 1));
}

linalg::GenericOp fp4::prologueOf(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  return op && op->hasAttr(kPrologueAttr) ? op : linalg::GenericOp();
}

bool fp4::isStored(linalg::GenericOp op) {
  return isa_and_present<StringAttr>(op->getAttr(kPrologueAttr));
}

bool fp4::isBeside(Operation *op) {
  auto text = op->getAttrOfType<StringAttr>(kPrologueAttr);
  return text && text.getValue() == kBesidePrologue;
}

bool fp4::isBehind(Operation *user, Operation *op) {
  Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
  return inBlock && op->isBeforeInBlock(inBlock);
}

RankedTensorType fp4::matrixOf(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  Value input = generic ? rowsInputOf(generic) : op->getOperand(0);
  bool isOfInput = !generic || isRowReduction(generic) || isNumbersOfRows(resultType(generic));
  if (!input || isOfInput)
    return input ? cast<RankedTensorType>(input.getType()) : RankedTensorType();
  return resultType(generic);
}

/// The shape of the matrix of an operation; empty where no operand has its rows.
static ArrayRef<int64_t> shapeOfRows(Operation *op) {
  RankedTensorType type = fp4::matrixOf(op);
  return type ? type.getShape() : ArrayRef<int64_t>();
}

bool fp4::hasRowsOf(linalg::GenericOp op, Operation *root) {
  ArrayRef<int64_t> mine = shapeOfRows(op), ofRoot = shapeOfRows(root);
  if (mine.empty() || ofRoot.empty() || mine.front() != ofRoot.front())
    return false;
  bool isNumbers = !isRowReduction(op) && isNumbersOfRows(rowsInputOf(op).getType());
  return isNumbers || mine.back() == ofRoot.back();
}

/// The earlier operation of a block; either may be null.
static Operation *earlier(Operation *x, Operation *y) {
  if (!x || !y)
    return x ? x : y;
  return x->isBeforeInBlock(y) ? x : y;
}

Operation *fp4::firstKernelOf(Operation *op) {
  Operation *first = nullptr;
  if (isBeside(op)) {
    for (Value operand : op->getOperands())
      if (linalg::GenericOp prologue = prologueOf(operand);
          prologue && prologue->getBlock() == op->getBlock())
        first = earlier(first, firstKernelOf(prologue));
    return first;
  }
  llvm::SetVector<Operation *> readers(op->user_begin(), op->user_end());
  for (size_t i = 0; i < readers.size(); ++i) {
    Operation *reader = readers[i];
    if (reader->getBlock() != op->getBlock() || isBeside(reader))
      continue;
    if (reader->hasAttr(kPrologueAttr))
      readers.insert(reader->user_begin(), reader->user_end());
    else if (mayBeRoot(reader))
      first = earlier(first, reader);
  }
  return first;
}

Operation *fp4::kernelOf(Operation *op) {
  return op->hasAttr(kPrologueAttr) ? firstKernelOf(op) : op;
}

TopKOp fp4::topKOf(Operation *op) {
  SmallVector<Operation *> computed = {op};
  llvm::append_range(computed, prologuesOf(op));
  for (Operation *step : computed)
    for (Value operand : step->getOperands())
      if (auto topK = operand.getDefiningOp<TopKOp>();
          topK && topK->hasAttr(kPrologueAttr) && kernelOf(topK) == op)
        return topK;
  return {};
}

std::string fp4::whyNotBefore(TopKOp op) {
  Operation *root = kernelOf(op);
  if (!isa_and_present<linalg::GenericOp>(root) || topKOf(root) != op)
    return "no 'linalg.generic' behind it needs its values first";
  SmallVector<linalg::GenericOp> prologues = prologuesOf(root);
  for (OpOperand &use : op->getUses()) {
    Operation *reader = use.getOwner();
    if (isBehind(reader, root))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(reader);
    if (!generic || (reader != root && !llvm::is_contained(prologues, generic)))
      return ("'" + reader->getName().getStringRef() + "' reads it before the kernel that " +
              "would compute it")
          .str();
    if (isIndexedByExpressions(linalgOf(generic), &use))
      return "'linalg.generic' reads other rows or columns of it";
    if (std::string reason = whyNotIndexedByRows(use); !reason.empty())
      return reason;
  }
  return whyNotRowKernel(root);
}

RankedTensorType fp4::widestMatrixOf(Operation *op) {
  TopKOp topK = topKOf(op);
  return matrixOf(topK ? topK.getOperation() : op);
}

SmallVector<linalg::GenericOp> fp4::prologuesOf(Operation *op) {
  llvm::SetVector<Operation *> found;
  Operation *kernel = isa<TopKOp>(op) ? kernelOf(op) : op;
  SmallVector<Operation *> open = {op};
  auto add = [&](linalg::GenericOp prologue) {
    bool isComputed = !isStored(prologue) || firstKernelOf(prologue) == kernel;
    if (isComputed && found.insert(prologue))
      open.push_back(prologue);
  };
  while (!open.empty()) {
    Operation *next = open.pop_back_val();
    for (Value operand : next->getOperands())
      if (linalg::GenericOp prologue = prologueOf(operand))
        add(prologue);
    for (Operation *user : next->getUsers())
      if (next != op && isBeside(user))
        add(cast<linalg::GenericOp>(user));
  }
  auto inOrder = llvm::map_to_vector(
      found, [](Operation *prologue) { return cast<linalg::GenericOp>(prologue); });
  llvm::sort(inOrder, [](linalg::GenericOp x, linalg::GenericOp y) {
    return x->getBlock() == y->getBlock() && x->isBeforeInBlock(y);
  });
  return inOrder;
}

bool fp4::isRowKernel(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!mayBeRoot(op) || op->hasAttr(kPrologueAttr))
    return false;
  auto quantize = dyn_cast<QuantizeOp>(op);
  AmaxOp amax = quantize ? ownAmaxOfRows(quantize) : AmaxOp();
  bool usesOtherPlaces =
      isScattered(op) ||
      (generic && (hasIndexExpressions(linalgOf(generic)) || !integersOf(generic).empty()));
  return usesOtherPlaces || isa<TopKOp>(op) || topKOf(op) || (generic && isRowReduction(generic)) ||
         (amax && amax->hasAttr(kPrologueAttr)) || llvm::any_of(prologuesOf(op), isOfRows);
}

/// The amax that a quantizer has for its input, in its block and without a plan; null where there
/// is none.
static AmaxOp amaxOfInput(QuantizeOp quantize) {
  auto amax = quantize.getAmax() ? quantize.getAmax().getDefiningOp<AmaxOp>() : AmaxOp();
  bool isOfInput = amax && amax.getInput() == quantize.getInput() &&
                   amax->getBlock() == quantize->getBlock() &&
                   !amax->hasAttr(Fp4Dialect::kPlanAttr);
  return isOfInput ? amax : AmaxOp();
}

AmaxOp fp4::ownAmaxOfRows(QuantizeOp quantize) {
  AmaxOp amax = amaxOfInput(quantize);
  bool isOwn = amax && quantize.getPerRow() && amax.getPerRow() && !amax.isGrouped();
  bool isFirst = isOwn && llvm::all_of(amax->getUsers(), [&](Operation *user) {
                   return user == quantize || isBehind(user, quantize);
                 });
  return isFirst ? amax : AmaxOp();
}

QuantizeOp fp4::quantizerOfRows(AmaxOp amax) {
  for (Operation *user : amax->getUsers())
    if (auto quantize = dyn_cast<QuantizeOp>(user); quantize && ownAmaxOfRows(quantize) == amax)
      return quantize;
  return {};
}

AmaxOp fp4::amaxOfTensor(QuantizeOp quantize) {
  AmaxOp amax = amaxOfInput(quantize);
  return amax && !amax.getPerRow() && mayBeRoot(amax) ? amax : AmaxOp();
}

AmaxOp fp4::amaxOfRows(QuantizeOp quantize) {
  return isRowKernel(quantize) ? ownAmaxOfRows(quantize) : AmaxOp();
}

/// Why a kernel by rows does not compute the prologues of `op`, which a pass or a person has
/// marked.
static std::string whyNotPrologues(Operation *op) {
  for (linalg::GenericOp prologue : prologuesOf(op))
    if (!fp4::hasRowsOf(prologue, op))
      return "a prologue has other rows and columns";
  TopKOp topK = topKOf(op);
  bool isOfElements = isa<linalg::GenericOp>(op);
  return topK && !isOfElements
             ? ("'" + op->getName().getStringRef() + "' computes no 'fp4.top_k'").str()
             : "";
}

std::string fp4::whyNotRowKernel(Operation *op) {
  if (std::string reason = whyNotPrologues(op); !reason.empty())
    return reason;
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return whyNotRowsOfQuantizer(quantize);
  if (auto amax = dyn_cast<AmaxOp>(op))
    return whyNotRowsOfAmax(amax);
  if (isa<TopKOp>(op))
    return "";
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return ("'" + op->getName().getStringRef() + "' reads it from memory").str();
  if (isRowReduction(generic))
    return whyNotPrologue(generic);
  if (generic.getNumReductionLoops() > 0)
    return whyNotRowReduction(linalgOf(generic));
  for (Value result : generic.getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    if (type.getRank() != 2 || isNumbersOfRows(type))
      return "the reader is no operation on a matrix";
    if (type.isDynamicDim(1))
      return "the columns are dynamic";
  }
  if (std::string reason = whyNotComputed(generic); !reason.empty())
    return reason;
  return rowsInputOf(generic) ? "" : "no operand of the reader has an element for each result";
}

std::string fp4::whyNotPrologue(linalg::GenericOp op) {
  if (op->getNumResults() != 1)
    return "the operation has several results";
  auto type = dyn_cast<RankedTensorType>(op.getResult(0).getType());
  if (!type || (type.getRank() != 2 && !isNumbersOfRows(type)))
    return "the result is no matrix and no number for each row";
  if (std::string reason = whyNotComputed(op); !reason.empty())
    return reason;
  if (!isElementType(type.getElementType()))
    return "the elements are of 8 bits";
  RankedTensorType matrix = matrixOf(op);
  if (!matrix)
    return "no operand has an element for each of the result";
  return matrix.getRank() == 2 && matrix.isDynamicDim(1) ? "the columns are dynamic" : "";
}

/// Why a kernel does not compute the operand `use` at other columns: it computes whole chunks.
static std::string whyNotOtherColumns(linalg::GenericOp reader, OpOperand &use) {
  auto [row, column] = indexPairOf(linalgOf(reader), &use);
  if (!isa_and_present<AffineDimExpr>(row))
    return "'linalg.generic' reads other rows of it";
  if (!column)
    return "'linalg.generic' reads it along columns";
  std::optional<ChunkWindow> window =
      chunkWindowOf(column, resultType(reader).getDimSize(1), numerics::kReductionChunk);
  bool isOfChunks = window && (window->isOwn || window->alignment % numerics::kReductionChunk == 0);
  return isOfChunks ? "" : "'linalg.generic' reads columns of it that are no whole chunks of 16";
}

std::string fp4::whyNotIndexedByRows(OpOperand &use) {
  auto reader = cast<linalg::GenericOp>(use.getOwner());
  if (isIndexedByExpressions(linalgOf(reader), &use))
    return whyNotOtherColumns(reader, use);
  SmallVector<unsigned> dims = dimensionsOf(linalgOf(reader), use.getOperandNumber());
  bool isMatrix = !isNumbersOfRows(use.get().getType());
  if (dims.empty() || dims.front() != 0 || (isMatrix && dims != SmallVector<unsigned>{0, 1}))
    return "'linalg.generic' reads it along columns";
  return "";
}

std::string fp4::whyNotReader(OpOperand &use) {
  Operation *reader = use.getOwner();
  auto prologue = use.get().getDefiningOp<linalg::GenericOp>();
  bool needsRow = prologue && isOfRows(prologue);
  if (auto generic = dyn_cast<linalg::GenericOp>(reader)) {
    if (std::string reason = whyNotIndexedByRows(use); !reason.empty())
      return reason;
    if (generic->hasAttr(kPrologueAttr))
      return "";
    return isRowKernel(generic) ? whyNotRowKernel(generic)
                                : "'linalg.generic' reads it from memory";
  }
  if (isa<TopKOp>(reader))
    return whyNotRowKernel(reader);
  auto quantize = dyn_cast<QuantizeOp>(reader);
  if (quantize && needsRow)
    return &use == &quantize.getInputMutable() ? whyNotRowKernel(quantize)
                                               : "a quantizer reads its amax from memory";
  if (auto amax = dyn_cast<AmaxOp>(reader)) {
    return needsRow && !quantizerOfRows(amax) ? whyNotRowKernel(amax) : "";
  }
  if (!quantize)
    return ("'" + reader->getName().getStringRef() + "' reads it from memory").str();
  bool onTensorCore = transformsOnTensorCore(quantize.getHadamard()) ||
                      transformsOnTensorCore(quantize.getColumnwiseHadamard());
  return onTensorCore ? "the tensor core transforms it, which reads memory" : "";
}

Value fp4::rowsInputOf(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (isWhole(op, input))
      return input->get();
  if (!hasIndexExpressions(linalgOf(op)))
    return {};
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto [row, column] = indexPairOf(linalgOf(op), input);
    if (column && isa_and_present<AffineDimExpr>(row))
      return input->get();
  }
  return {};
}
