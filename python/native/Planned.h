//===- Planned.h - Functions of torch whose calls are programs alone ------===//
//
// A planned function checks its arguments in Python, and runs programs. The first call with
// arguments of certain types, shapes and constants leaves a sequence: which programs ran, where
// their arguments came from, and which of their results the function returned. Later calls with
// such arguments run the sequence, and no Python code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Route.h"

namespace fp4::python {

/// The arguments of one call: tensors of one device, and None, numbers, strings and constants.
class Inputs {
public:
  /// False, and no exception, for arguments that no sequence is for.
  bool read(PyObject *const *objects, size_t count, bool recordsGradients);

  size_t size() const { return count_; }
  const dlpack::Tensor &operator[](size_t i) const { return tensors_[i]; }
  std::span<const int64_t> key() const { return {key_.data(), keySize_}; }
  /// Objects that the key has as an address or a hash.
  std::span<PyObject *const> constants() const { return {constants_.data(), numConstants_}; }
  int32_t deviceType() const { return tensors_[0].deviceType; }
  int32_t deviceId() const { return tensors_[0].deviceId; }

private:
  bool readTensor(PyObject *object, bool recordsGradients);
  bool readConstant(PyObject *object);

  static constexpr size_t kMostArguments = 32;
  size_t count_ = 0, keySize_ = 0, numConstants_ = 0;
  std::array<dlpack::Tensor, kMostOperands> tensors_;
  std::array<PyObject *, kMostArguments> constants_;
  std::array<int64_t, 2 * kMostArguments + (kMostWords + 1) * kMostOperands> key_;
};

/// A place in memory: `offset` bytes into a tensor of the call, or into a result of a step.
struct Source {
  static constexpr int32_t kArgument = -1, kEmpty = -2;

  int32_t step = kArgument; ///< kArgument: a tensor of the call; kEmpty: one without elements
  uint32_t index = 0;
  uint64_t offset = 0;
};

/// One call of a program.
struct Step {
  std::shared_ptr<const Route> route;
  std::shared_ptr<const Plan> plan;
  std::vector<Source> sources; ///< of each argument
  std::vector<Maker> makers;   ///< of each result, in the form that the function returns it
  std::vector<Source> targets; ///< instead: the tensors of the call that take each result
};

struct Sequence {
  std::vector<int64_t> key;
  std::vector<Object> constants;
  std::vector<Step> steps;     ///< none: calls with such arguments have no sequence
  std::vector<Maker> empties;  ///< of results without elements, which no program makes
  std::vector<Source> results; ///< of the function
};

/// Runs a sequence. Returns the results, a Python exception with null, or nothing and no exception
/// where the call did not run.
Object runSequence(const Sequence &sequence, const Inputs &inputs, bool &ran);

/// The type fp4._native.Planned, or null with a Python exception.
Object makePlannedType();

} // namespace fp4::python
