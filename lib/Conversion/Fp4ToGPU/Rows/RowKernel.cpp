//===- RowKernel.cpp - Kernels in which a team of threads has a row -------===//
//
// The last operation of a chain along rows, with its prologues (fp4/Dialect/Fp4/IR/Prologue.h): a
// quantizer, an elementwise operation on matrices, or a reduction of rows. The numbers of a row
// come first, reductions in the order of the program. Each chunk of the row is computed, stored and
// quantized afterwards.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"
#include "Rows/RowAmax.h"
#include "Rows/RowElements.h"
#include "Rows/RowQuantizer.h"
#include "Rows/RowTopK.h"
#include "Rows/RowTurns.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/Plans/RowTeams.h"

using namespace mlir;
using namespace fp4;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns true when something beside the quantizer reads the amaxes of `ofRows`. Amaxes of a
/// copy for few rows (RowCases.cpp) have a buffer already where the program reads the original.
static bool isReadElsewhere(AmaxOp ofRows, const LoweringContext &context) {
  return !ofRows->hasOneUse() || context.buffers.contains(ofRows.getAmax());
}

static void lowerQuantizer(QuantizeOp op, LoweringContext &context) {
  KernelBuilder kernel = makeRowKernel(op, "row_quantize", context);
  Value hostRows = kernel.hostRows(op.getInput());
  AmaxOp ofRows = amaxOfRows(op);
  if (!ofRows)
    kernel.expectAmaxes("amax", op.getAmax(), hostRows);
  Value rows = kernel.scalar(hostRows);
  int64_t columns = typeOf(op.getInput()).getDimSize(1);
  RowElements row(kernel, op, rows, columns, RowQuantizer::chunksOf(op), context.noArithmetic);
  Value amax = op.getAmax() && !ofRows ? kernel.input(op.getAmax()) : Value();
  Value input = op.getInput(); // the operand is a buffer once it is stored
  RowQuantizer quantizer(op, kernel, row, context, rows, amax);
  if (ofRows)
    quantizer.computeAmax(ofRows.getNan());
  quantizer.beginStrip(hostRows);
  quantizer.beginRow();
  row.begin(hostRows, [&] { quantizer.beginTensor(); });
  bool isAmaxRead = ofRows && isReadElsewhere(ofRows, context);
  RankedTensorType amaxes = ofRows ? typeOf(ofRows.getAmax()) : RankedTensorType();
  RowElements::ResultRows ofData = row.rowsOfResult(op.getData());
  RowElements::ResultRows ofScales = row.rowsOfResult(op.getScales());
  Value data = kernel.output(op.getData(), hostRows);
  quantizer.setResults({data, ofData}, {kernel.output(op.getScales(), hostRows), ofScales});
  Value placeOfAmaxes = isAmaxRead ? kernel.output(ofRows.getAmax(), hostRows) : Value();
  quantizer.begin();
  quantizer.copyNext();
  if (isAmaxRead)
    row.team().forEachRow([&] {
      row.storeNumber(placeOfAmaxes, amaxes, quantizer.tensorAmax(), row.ownRow());
    });
  row.forEachChunk([&](const RowElements::Chunk &chunk) {
    row.storeChunk(chunk);
    quantizer.quantize(row.words(input, chunk), chunk);
  });
  row.storeNumbers();
  quantizer.endRow();
  row.team().launch(quantizer.hostCtas(hostRows));
}

static void lowerTopK(TopKOp op, LoweringContext &context) {
  KernelBuilder kernel = makeRowKernel(op, "top_k", context);
  Value hostRows = kernel.hostRows(op.getScores()), rows = kernel.scalar(hostRows);
  RowTopK topK(kernel, op, rows, context.noArithmetic);
  RowElements best(kernel, /*op=*/nullptr, rows, int64_t(op.getK()),
                   chunksOfRow(typeOf(op.getScores()).getDimSize(1)), context.noArithmetic);
  topK.emit(best, hostRows);
  best.team().launch(hostRows);
}

static StringRef kindOf(linalg::GenericOp op) {
  return topKOf(op) ? "top_k" : isRowReduction(op) ? "reduce_rows" : "rows";
}

namespace {

/// A result in memory, and the rows of it that a thread writes.
struct Output {
  RankedTensorType type;
  RowElements::ResultRows rows;
  Value base;
};

} // namespace

static SmallVector<Output> outputsOf(linalg::GenericOp op, KernelBuilder &kernel, RowElements &row,
                                     Value hostRows) {
  SmallVector<Output> outputs;
  for (Value result : op.getResults()) {
    Output output{typeOf(result), row.rowsOfResult(result), {}};
    output.base = kernel.output(result, hostRows); // from here on a buffer
    outputs.push_back(output);
  }
  return outputs;
}

static void lowerGeneric(linalg::GenericOp op, LoweringContext &context) {
  bool reduces = isRowReduction(op);
  KernelBuilder kernel = makeRowKernel(op, kindOf(op), context);
  TopKOp before = topKOf(op);
  Value hostRows = kernel.hostRows(before ? before.getScores() : rowsInputOf(op));
  Value rows = kernel.scalar(hostRows);
  int64_t columns = matrixOf(op).getDimSize(1);
  RowElements row(kernel, op, rows, columns, chunksOfRow(widestMatrixOf(op).getDimSize(1)),
                  context.noArithmetic);
  if (before)
    RowTopK(kernel, before, rows, context.noArithmetic).emit(row, hostRows);
  RowTurns turns(kernel, row);
  turns.begin({hostRows}, [] { return false; });
  turns.take();
  row.begin(hostRows);
  SmallVector<Output> outputs = outputsOf(op, kernel, row, hostRows);
  SmallVector<Value> numbers;
  if (reduces)
    numbers = row.reduce(op);
  turns.copyNext();
  if (reduces)
    row.team().forEachRow([&] {
      const Output &to = outputs.front();
      row.storeNumber(to.base, to.type, numbers[row.team().selectedRow()], row.selectedOf(to.rows));
    });
  row.forEachChunk([&](const RowElements::Chunk &chunk) {
    row.storeChunk(chunk);
    if (reduces)
      return;
    SmallVector<Value> values(outputs.size());
    if (!context.noArithmetic)
      values = row.results(op, chunk);
    for (auto [value, to] : llvm::zip_equal(values, outputs))
      row.store(to.base, to.type, value, chunk, row.selectedOf(to.rows));
  });
  row.storeNumbers();
  turns.end();
  row.team().launch(turns.ctas(hostRows));
}

LogicalResult fp4::lowerRows(Operation *op, LoweringContext &context) {
  if (std::string reason = whyNotRowKernel(op); !reason.empty()) {
    InFlightDiagnostic diag = op->emitOpError("has no kernel by rows: ") << reason;
    auto quantize = dyn_cast<QuantizeOp>(op);
    AmaxOp amax = quantize ? ownAmaxOfRows(quantize) : AmaxOp();
    if (prologuesOf(op).empty() && !(amax && amax->hasAttr(kPrologueAttr)))
      diag.attachNote() << "give it a matrix with static columns as an operand";
    else
      diag.attachNote() << "remove the attribute " << kPrologueAttr << " from what it reads";
    return diag;
  }
  if (auto topK = dyn_cast<TopKOp>(op))
    lowerTopK(topK, context);
  else if (auto quantize = dyn_cast<QuantizeOp>(op))
    lowerQuantizer(quantize, context);
  else if (auto amax = dyn_cast<AmaxOp>(op))
    lowerRowAmax(amax, context);
  else
    lowerGeneric(cast<linalg::GenericOp>(op), context);
  return success();
}
