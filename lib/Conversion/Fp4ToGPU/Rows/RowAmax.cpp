//===- RowAmax.cpp - Amaxes of what a row kernel computes -----------------===//
#include "Rows/RowAmax.h"

#include "Reduce/GridMax.h"

#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

SmallVector<Value> fp4::emitAmaxesOfRows(RowElements &row, Scalars &s, Value matrix,
                                         NanPolicy nan) {
  Type element = cast<RankedTensorType>(matrix.getType()).getElementType();
  ImplicitLocOpBuilder &b = row.team().builder();
  SmallVector<Value> amaxes = row.largest([&](const RowTeam::Chunk &chunk) {
    Value amax = s.amax(row.words(matrix, chunk), element, nan == NanPolicy::Propagate);
    return magnitudeBits(b, s, amax);
  });
  for (Value &amax : amaxes)
    amax = s.fromBits(amax);
  return amaxes;
}

/// The largest of the magnitudes, NaN before others.
static Value largestOf(Scalars &s, ImplicitLocOpBuilder &b, ArrayRef<Value> magnitudes) {
  Value bits = s.bits(magnitudes.front());
  for (Value other : magnitudes.drop_front())
    bits = arith::MaxUIOp::create(b, bits, s.bits(other));
  return s.fromBits(bits);
}

void fp4::lowerRowAmax(AmaxOp op, LoweringContext &context) {
  KernelBuilder kernel = makeRowKernel(op, "row_amax", context);
  ImplicitLocOpBuilder &b = kernel.body(), &host = kernel.host();
  Value input = op.getInput(); // the operand is a buffer once it is stored
  Value hostRows = kernel.hostRows(input), rows = kernel.scalar(hostRows);
  auto type = cast<RankedTensorType>(op.getAmax().getType());
  int64_t columns = cast<RankedTensorType>(input.getType()).getDimSize(1);
  RowElements row(kernel, op, rows, columns, chunksOfRow(columns), context.noArithmetic);
  row.begin(hostRows);
  Value buffer = kernel.allocate(op.getAmax(), hostRows);
  if (!op.getPerRow())
    gpu::MemsetOp::create(host, TypeRange(), ValueRange(), buffer, constF32(host, 0));
  Value result = kernel.pointer(buffer, type);
  Scalars s(b, context.target);
  SmallVector<Value> amaxes = context.noArithmetic
                                  ? SmallVector<Value>(size_t(row.team().rowsOfThread()),
                                                       row.mixedNumber())
                                  : emitAmaxesOfRows(row, s, input, op.getNan());
  row.forEachChunk([&](const RowTeam::Chunk &chunk) { row.storeChunk(chunk); });
  row.storeNumbers();
  if (op.getPerRow())
    row.team().forEachRow([&] {
      row.storeNumber(result, type, amaxes[row.team().selectedRow()], row.ownRow());
    });
  else
    emitBlockMax(kernel, s, largestOf(s, b, amaxes), [&](Value bits) {
      LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, result, bits,
                                LLVM::AtomicOrdering::monotonic, "device");
    });
  row.team().launch(hostRows);
}
