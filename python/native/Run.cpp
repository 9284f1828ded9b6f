//===- Run.cpp - One call whose plan is known -----------------------------===//
//
// CUDA tensors are used where they are, on torch's current stream. CPU tensors are copied to the
// device and back. The lock of Python is released while libfp4 works: launches may wait for the
// driver, and simulations take long.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <algorithm>

namespace fp4::python {
namespace {

/// The tensors of torch that the results are written to.
struct Results {
  std::array<Object, kMostOperands> objects;
  std::array<dlpack::Tensor, kMostOperands> tensors;

  void take(const Given &given) {
    for (size_t i = 0; i < given.tensors.size(); ++i)
      tensors[i] = given.tensors[i];
  }

  /// False, with a Python exception, where torch makes none.
  bool make(const Plan &plan, bool here) {
    for (size_t i = 0; i < plan.makers.size(); ++i) {
      objects[i] = plan.makers[i](here);
      if (!objects[i] || exchange.api->tensorFromObject(objects[i].get(), &tensors[i]) != 0)
        return false;
    }
    return true;
  }

  /// One, a tuple of several, or None.
  Object give(size_t count) {
    if (count == 0)
      return Object::borrowed(Py_None);
    if (count == 1)
      return std::move(objects[0]);
    Object tuple = Object::owned(PyTuple_New(Py_ssize_t(count)));
    for (size_t i = 0; tuple && i < count; ++i)
      PyTuple_SetItem(tuple.get(), Py_ssize_t(i), objects[i].release());
    return tuple;
  }
};

} // namespace

Object runPlan(const Route &route, const Plan &plan, const Arguments &arguments, const Given &given,
               bool &ran) {
  ran = false;
  const bool isCuda = arguments.deviceType() == dlpack::kCuda;
  Results results;
  void *stream = nullptr;
  if (given.object)
    results.take(given);
  if ((isCuda && exchange.api->currentWorkStream(dlpack::kCuda, arguments.deviceId(), &stream)) ||
      (!given.object &&
       !results.make(plan, exchange.isCurrent(arguments.deviceType(), arguments.deviceId())))) {
    PyErr_Clear(); // the package tries again, and says what is wrong
    return {};
  }
  Temporary memory(arguments.deviceId());
  if (!route.gate->enter())
    return {};
  PyThreadState *thread = PyEval_SaveThread();
  Call call(route, plan);
  for (size_t i = 0; i < arguments.size(); ++i)
    call.setArgument(i, addressOf(arguments[i]));
  for (size_t i = 0; i < plan.results.size(); ++i)
    call.setResult(i, addressOf(results.tensors[i]));
  fp4_error *error = isCuda ? call.onCuda(reinterpret_cast<uint64_t>(stream), memory)
                            : call.onHost(given.object != nullptr);
  route.gate->leave();
  PyEval_RestoreThread(thread);
  ran = true;
  if (error)
    return raise(error, memory.failure());
  return given.object ? Object::borrowed(given.object) : results.give(plan.results.size());
}

} // namespace fp4::python
