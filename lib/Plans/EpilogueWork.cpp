//===- EpilogueWork.cpp - Work of threads on the sums of a GEMM -----------===//
#include "EpilogueWork.h"
#include "InstructionCount.h"

#include "BlockQuantizer.h"
#include "ElementwiseEmitter.h"
#include "LaneTranspose.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Writes the operations of a thread on a chunk of its row into an MLIR block that nobody executes.
/// Values that come from elsewhere are arguments of the MLIR block.
class ChunkEmitter {
public:
  ChunkEmitter(BlockScaledMatmulOp product, const hw::TargetModel &target)
      : product(product), target(target), block(module->getBody()),
        b(product.getLoc(), OpBuilder::atBlockEnd(block)), s(b, target) {}

  SchedulerCycles conversion() {
    narrow(sums());
    return cycles();
  }
  SchedulerCycles all() {
    Value elements = narrow(applyBody());
    if (product.getAmax())
      s.amax(packedWords(b, elements), product.getElementType(), /*keepNaN=*/false);
    if (product.quantizesRows())
      quantize(elements);
    if (product.quantizesColumns())
      quantize(transposeLanes(b, s, elements, argument(b.getI32Type())));
    return cycles();
  }

private:
  Value argument(Type type) { return block->addArgument(type, b.getLoc()); }
  Value vectorArgument(Type element) {
    return argument(VectorType::get({EpilogueWork::kChunk}, element));
  }
  Value sums() {
    Value value = vectorArgument(b.getF32Type());
    if (product.getAlpha())
      value = arith::MulFOp::create(b, value, vectorArgument(b.getF32Type()));
    return value;
  }
  Value narrow(Value value) { return narrowTo(b, value, product.getElementType()); }
  Value applyBody();
  void quantize(Value elements);
  SchedulerCycles cycles() const {
    constexpr double columns = EpilogueWork::kChunk;
    SchedulerCycles all = countCycles(*block, target);
    return {all.alone / columns, all.busy / columns, all.instructions / columns};
  }

  BlockScaledMatmulOp product;
  const hw::TargetModel &target;
  /// Operations that no chunk repeats.
  OwningOpRef<ModuleOp> once = ModuleOp::create(product.getLoc());
  OwningOpRef<ModuleOp> module = ModuleOp::create(product.getLoc());
  Block *block;
  ImplicitLocOpBuilder b;
  Scalars s;
};

Value ChunkEmitter::applyBody() {
  if (product.getEpilogueBody().empty())
    return sums();
  SmallVector<Value> arguments = {sums()};
  if (product.isDual())
    arguments.push_back(sums());
  for (Value input : product.getEpilogueInputs()) {
    Type element = cast<RankedTensorType>(input.getType()).getElementType();
    arguments.push_back(widenToF32(b, vectorArgument(element)));
  }
  return emitElementwise(b, product.getEpilogueBody().front(), arguments).front();
}

/// A kernel computes values that depend only on the amax of the tensor once.
void ChunkEmitter::quantize(Value elements) {
  const numerics::Recipe &recipe = product.getQuantizeRecipe()->getDecisions();
  BlockQuantizer quantizer(s, b, recipe);
  Value amax;
  if (product.getQuantizeAmax())
    amax = once->getBody()->addArgument(b.getF32Type(), b.getLoc());
  b.setInsertionPointToEnd(once->getBody());
  quantizer.setTensorAmax(amax);
  b.setInsertionPointToEnd(block);
  SmallVector<Value> words = packedWords(b, elements);
  int64_t block = numerics::blockSizeOf(recipe.format); // of 128 a chunk has a part
  auto blocks = size_t(std::max<int64_t>(1, EpilogueWork::kChunk / block));
  for (size_t i = 0, each = words.size() / blocks; i < blocks; ++i)
    quantizer.quantize(ArrayRef(words).slice(i * each, each), product.getElementType());
}

} // namespace

/// Bytes of the codes and scales of an element, in all orientations.
static double derivedBytesOf(BlockScaledMatmulOp product) {
  if (!product.getQuantizeRecipe())
    return 0;
  const numerics::FormatFacts &format =
      numerics::factsOf(product.getQuantizeRecipe()->getDecisions().format);
  double code = numerics::isPacked(product.getQuantizeRecipe()->getDecisions().format) ? 0.5 : 1;
  double scale = format.scale == numerics::ScaleFormat::F32 ? 4 : 1;
  return (code + scale / format.blockSize) * (product.quantizesRows() + product.quantizesColumns());
}

/// Adds numbers of each column, for all rows or for those of a group, or a matrix with its bytes.
static void addInput(RankedTensorType input, EpilogueWork &work) {
  if (input.getRank() < 2 || input.getShape().back() == 1)
    return;
  if (input.getDimSize(0) == 1 || input.getRank() == 3)
    work.loadsColumns = true;
  else
    work.inputBytes += double(input.getElementTypeBitWidth()) / 8;
}

EpilogueWork fp4::epilogueWorkOf(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  EpilogueWork work;
  work.hasBody = !product.getEpilogueBody().empty();
  work.derives = !product.hasOnlyElements();
  if (work.isPlain())
    return work;
  work.storesElements = product.getResult() != nullptr;
  work.foldsAmax = product.getWithAmax();
  if (product.quantizesRows())
    work.group = numerics::elementsOfScaleWord(product.getQuantizeRecipe()->getDecisions().format);
  work.derivedBytes = derivedBytesOf(product);
  for (Value input : product.getEpilogueInputs())
    addInput(cast<RankedTensorType>(input.getType()), work);
  work.conversion = ChunkEmitter(product, target).conversion();
  work.column = ChunkEmitter(product, target).all();
  return work;
}
