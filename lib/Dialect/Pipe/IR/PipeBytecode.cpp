//===- PipeBytecode.cpp - Versions of bytecode of the pipe dialect ---------===//
//
// Bytecode of the first release carries no version of the dialect, and counts as version 1. Version
// 2 has the column of B from which pipe.mma multiplies; it is 0 in older files.
//
//===----------------------------------------------------------------------===//
#include "PipeBytecode.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/Encoding.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
/// Version 2 of pipe.mma has a column of B.
constexpr uint64_t kVersion = 2, kColumnOfB = 2;

struct PipeVersion : DialectVersion {
  explicit PipeVersion(uint64_t number) : number(number) {}
  uint64_t number;
};

/// Attributes and types are written in their textual form, which MLIR does by itself.
struct PipeBytecode : BytecodeDialectInterface {
  explicit PipeBytecode(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override { writer.writeVarInt(kVersion); }

  std::unique_ptr<DialectVersion> readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number > 0 && number <= kVersion)
      return std::make_unique<PipeVersion>(number);
    withNote(reader.emitError() << "bytecode must have version 1 to " << kVersion
                                << " of the pipe dialect, but has version " << number,
             "a newer compiler wrote it: update this one, or write text there");
    return nullptr;
  }
};
} // namespace

void fp4::pipe::addBytecode(PipeDialect *dialect) { dialect->addInterfaces<PipeBytecode>(); }

/// The attributes of version 1 in their order, then those that later versions have added.
LogicalResult MmaOp::readProperties(DialectBytecodeReader &reader, OperationState &state) {
  auto &prop = state.getOrAddProperties<Properties>();
  const bool hasSparseSizes =
      reader.getBytecodeVersion() >= bytecode::kNativePropertiesODSSegmentSize;
  auto &sizes = prop.operandSegmentSizes;
  DenseI32ArrayAttr dense;
  if (failed(reader.readOptionalAttribute(prop.a_row)) ||
      failed(reader.readOptionalAttribute(prop.chain)) ||
      failed(reader.readOptionalAttribute(prop.fencing)) ||
      failed(reader.readOptionalAttribute(prop.in_order)) ||
      failed(reader.readOptionalAttribute(prop.k_depth)) ||
      (!hasSparseSizes && failed(reader.readAttribute(dense))) ||
      failed(reader.readOptionalAttribute(prop.part)) ||
      failed(reader.readOptionalAttribute(prop.transposed)) ||
      failed(reader.readOptionalAttribute(prop.without_powers)) ||
      (hasSparseSizes && failed(reader.readSparseArray(MutableArrayRef(sizes)))))
    return failure();
  if (dense && dense.size() != int64_t(sizes.size()))
    return withNote(reader.emitError() << "pipe.mma must have " << sizes.size()
                                       << " sizes of operands, but has " << dense.size(),
                    "the file is damaged: write it again");
  if (dense)
    llvm::copy(dense.asArrayRef(), sizes.begin());
  FailureOr<const DialectVersion *> version = reader.getDialectVersion<PipeDialect>();
  if (succeeded(version) && static_cast<const PipeVersion *>(*version)->number >= kColumnOfB)
    return reader.readOptionalAttribute(prop.b_column);
  prop.b_column = IntegerAttr::get(IntegerType::get(reader.getContext(), 64), 0);
  return success();
}

void MmaOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &prop = getProperties();
  const bool hasSparseSizes =
      writer.getBytecodeVersion() >= bytecode::kNativePropertiesODSSegmentSize;
  writer.writeOptionalAttribute(prop.a_row);
  writer.writeOptionalAttribute(prop.chain);
  writer.writeOptionalAttribute(prop.fencing);
  writer.writeOptionalAttribute(prop.in_order);
  writer.writeOptionalAttribute(prop.k_depth);
  if (!hasSparseSizes)
    writer.writeAttribute(DenseI32ArrayAttr::get(getContext(), prop.operandSegmentSizes));
  writer.writeOptionalAttribute(prop.part);
  writer.writeOptionalAttribute(prop.transposed);
  writer.writeOptionalAttribute(prop.without_powers);
  if (hasSparseSizes)
    writer.writeSparseArray(ArrayRef(prop.operandSegmentSizes));
  writer.writeOptionalAttribute(prop.b_column);
}
