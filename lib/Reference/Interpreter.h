//===- Interpreter.h - One operation of a program on the host -------------===//
//
// Declarations that the reference's files share. A Step is one operation with its operands' values,
// the types its results have for them, and the results that its handler defines with lib/Numerics.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/Recipe.h"
#include "fp4/Reference/ProgramTypes.h"
#include "fp4/Reference/Reference.h"

namespace fp4::harness {

class Step {
public:
  Step(const ProgramOp &op, std::vector<const Tensor *> operands, std::vector<Type> types,
       unsigned threads, const DataResolver &data, const hw::TargetModel &target)
      : op(op), operands(std::move(operands)), types(std::move(types)), threads(threads), data(data),
        target(target), results(op.results.size()) {}

  const ProgramOp &op;
  std::vector<const Tensor *> operands;
  std::vector<Type> types; ///< types of the results, all static
  unsigned threads;
  const DataResolver &data; ///< finds the bytes of constants
  const hw::TargetModel &target;
  std::vector<ReferenceValue> results;

  tl::unexpected<Error> wrong(const std::string &what) const { return badProgram(op, what); }
  /// Checks that the manifest is as the handler expects: so many operands at least, so many
  /// results.
  Status expect(size_t operandCount, size_t resultCount) const;
  /// Operand number i of an operation with optional operands; null where it is absent.
  Expected<const Tensor *> optional(size_t i) const;
  /// All operands that the operation has for operand number i of its definition.
  Expected<std::span<const Tensor *const>> segment(size_t i) const;

  Expected<std::string> attribute(const char *name) const;
  std::string attributeOr(const char *name, const char *otherwise) const;
  Expected<uint64_t> integer(const char *name, uint64_t otherwise) const;

  /// Rows and columns of operand i, which must be a matrix.
  Expected<std::pair<uint64_t, uint64_t>> matrix(size_t i) const;

  Status define(size_t i, std::span<const uint8_t> bytes);
  /// Defines a bf16, f16 or f32 result by values, rounded to its type.
  Status defineFloats(size_t i, std::span<const float> values);
};

/// Rows of a matrix that belong together.
struct RowRange {
  uint64_t begin = 0, rows = 0;
};
/// The groups of attribute "groups", "130,0,62", of which `rows` is the sum; one of all `rows` if
/// it is absent.
Expected<std::vector<RowRange>> groupsOf(const Step &step, uint64_t rows);
/// The groups between `offsets`, numbers of the device, of `rows` rows.
Expected<std::vector<RowRange>> groupsBetween(const Tensor &offsets, uint64_t rows);
/// The bytes that no group has of a matrix of `rows` rows and `bytes` bytes.
std::vector<ByteRange> bytesOfNoGroup(std::span<const RowRange> groups, uint64_t rows,
                                      uint64_t bytes);

/// The sums of one of the GEMMs of fp4.blockscaled_matmul, behind its alpha and its steps, in fp32;
/// zero in rows of no group.
struct GemmSums {
  std::vector<float> values;
  std::vector<RowRange> groups;
  uint64_t rows, columns;
};
enum class WhichGemm { First, Second };
Expected<GemmSums> sumsOfGemm(Step &step, WhichGemm which);

numerics::FloatType floatType(ElementType type);
/// The values of a bf16, f16 or f32 tensor.
std::vector<float> floats(const Tensor &tensor);
inline float scalarOf(const Tensor &tensor) { return tensor.as<float>()[0]; }
inline std::span<const uint8_t> bytesOf(const Tensor &tensor) { return tensor.as<uint8_t>(); }
/// Scales in row-major order, whatever their layout.
Expected<std::vector<uint8_t>> linearScales(const Tensor &scales);

using Handler = Status (*)(Step &);

// Handlers of ReferenceViews.cpp.
Status runConstant(Step &step);
Status runReshape(Step &step);
Status runSlice(Step &step);
Status runConcat(Step &step);
Status runGather(Step &step);
Status runScatter(Step &step);
Status runEmpty(Step &step);
Status runTranspose(Step &step);
// Handlers of ReferenceQuantize.cpp.
Status runAmax(Step &step);
Status runHadamard(Step &step);
Status runHadamardAmax(Step &step);
Status runQuantize(Step &step);
Status runDequantize(Step &step);
// Handler of ReferenceAttention.cpp.
Status runAttention(Step &step);
// Handler of ReferenceBackward.cpp.
Status runAttentionBackward(Step &step);
// Handlers of ReferenceShards.cpp.
Status runStackScales(Step &step);
Status runInterleaveShards(Step &step);
// Handlers of ReferenceRouting.cpp.
Status runTopK(Step &step);
Status runExpertOrder(Step &step);
// Handlers of ReferenceElementwise.cpp.
Status runElementwise(Step &step);
Status runRowReduction(Step &step);
// Handlers of ReferenceMatmul.cpp.
Status runSwizzle(Step &step);
Status runUnswizzle(Step &step);
Status runAlpha(Step &step);
Status runMatmul(Step &step);
// Handlers of ReferenceBody.cpp.
Status runGemmWithBody(Step &step);
Status runPrepack(Step &step);
Status runUnprepack(Step &step);

} // namespace fp4::harness
