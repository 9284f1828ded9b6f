//===- Run.cpp - One call whose plan is known -----------------------------===//
//
// CUDA tensors are used where they are, on torch's current stream. CPU tensors are copied to the
// device and back. The lock of Python is released while libfp4 works: launches may wait for the
// driver, and simulations take long.
//
//===----------------------------------------------------------------------===//

#include "Library.h"
#include "Route.h"

#include <algorithm>
#include <string>

namespace fp4::python {

// Never destroyed, as `exchange`.
Object &raiseError = *new Object;

namespace {

/// Temporary memory of a call from torch's caching allocator, which needs no lock of Python. The
/// memory goes back when its last use has been issued.
class Temporary {
public:
  explicit Temporary(int32_t deviceId) : deviceId_(deviceId) {}
  Temporary(const Temporary &) = delete;
  ~Temporary() {
    while (count_)
      drop(count_ - 1);
  }

  fp4_allocator functions() { return {this, allocate, free}; }
  /// "KIND: text" of torch where it had no memory.
  const std::string &failure() const { return failure_; }

private:
  static uint64_t allocate(void *context, uint64_t bytes, uint64_t) {
    auto &self = *static_cast<Temporary *>(context);
    int64_t shape = int64_t(std::max<uint64_t>(bytes, 1)), stride = 1;
    dlpack::Tensor prototype = {nullptr,   dlpack::kCuda, self.deviceId_, 1,
                                {1, 8, 1}, &shape,        &stride,        0};
    dlpack::ManagedTensor *made = nullptr;
    if (self.count_ == self.owned_.size() ||
        exchange.api->allocate(&prototype, &made, &self, fail) != 0 || !made)
      return 0;
    self.owned_[self.count_++] = made;
    return addressOf(made->tensor);
  }
  static void free(void *context, uint64_t address, uint64_t) {
    auto &self = *static_cast<Temporary *>(context);
    for (size_t i = 0; i < self.count_; ++i)
      if (addressOf(self.owned_[i]->tensor) == address)
        return self.drop(i);
  }
  static void fail(void *context, const char *kind, const char *message) {
    static_cast<Temporary *>(context)->failure_ = std::string(kind) + ": " + message;
  }
  void drop(size_t index) {
    dlpack::ManagedTensor *tensor = std::exchange(owned_[index], owned_[--count_]);
    if (tensor->deleter)
      tensor->deleter(tensor);
  }

  int32_t deviceId_;
  size_t count_ = 0;
  std::array<dlpack::ManagedTensor *, 64> owned_; ///< more than any program has at a time
  std::string failure_;
};

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

class Call {
public:
  Call(const Route &route, const Plan &plan, const Arguments &given)
      : route_(route), plan_(plan), given_(given) {
    std::ranges::copy(plan.arguments, arguments_.begin());
    std::ranges::copy(plan.results, results_.begin());
  }

  /// Issues the work to torch's current stream.
  fp4_error *onCuda(const Results &results, uint64_t stream, Temporary &memory) {
    for (size_t i = 0; i < given_.size(); ++i)
      arguments_[i].address = addressOf(given_[i]);
    for (size_t i = 0; i < plan_.results.size(); ++i)
      results_[i].address = addressOf(results.tensors[i]);
    const fp4_allocator allocator = memory.functions();
    const fp4_call_options options = {sizeof(options), stream, &allocator};
    return call(&options);
  }

  /// Copies arguments to the device and results back.
  fp4_error *onHost(const Results &results) {
    fp4_error *error = nullptr;
    for (size_t i = 0; i < given_.size() && !error; ++i)
      error = upload(arguments_[i], given_[i]);
    for (size_t i = 0; i < plan_.results.size() && !error; ++i)
      error = allocate(results_[i]);
    if (!error)
      error = call(nullptr);
    for (size_t i = 0; i < plan_.results.size() && !error; ++i)
      error = library.fp4_device_copy_from(route_.device,
                                           reinterpret_cast<void *>(addressOf(results.tensors[i])),
                                           results_[i].address, results_[i].bytes);
    for (size_t i = 0; i < count_; ++i) // the error of the call is the one to tell
      if (fp4_error *second = library.fp4_device_free(route_.device, owned_[i]))
        library.fp4_error_destroy(second);
    return error;
  }

private:
  fp4_error *call(const fp4_call_options *options) {
    return library.fp4_function_call(route_.function, arguments_.data(), given_.size(),
                                     results_.data(), plan_.results.size(), options);
  }
  fp4_error *allocate(fp4_tensor &tensor) {
    fp4_error *error = library.fp4_device_allocate(route_.device, tensor.bytes, &tensor.address);
    if (!error)
      owned_[count_++] = tensor.address;
    return error;
  }
  fp4_error *upload(fp4_tensor &tensor, const dlpack::Tensor &from) {
    fp4_error *error = allocate(tensor);
    return error ? error
                 : library.fp4_device_copy_to(route_.device, tensor.address,
                                              reinterpret_cast<const void *>(addressOf(from)),
                                              tensor.bytes);
  }

  const Route &route_;
  const Plan &plan_;
  const Arguments &given_;
  std::array<fp4_tensor, kMostOperands> arguments_, results_;
  size_t count_ = 0;
  std::array<uint64_t, 2 * kMostOperands> owned_; ///< device memory
};

/// Sets the exception of the package for `error`.
Object raise(fp4_error *error, const std::string &cause) {
  Object raised = Object::owned(PyObject_CallFunction(
      raiseError.get(), "isss", int(library.fp4_error_get_kind(error)),
      library.fp4_error_get_message(error), library.fp4_error_get_note(error), cause.c_str()));
  library.fp4_error_destroy(error);
  return {};
}

/// Returns true if torch's current device is that of the tensors.
bool isCurrent(const Arguments &arguments) {
  if (arguments.deviceType() == dlpack::kCpu || !exchange.currentDevice)
    return true;
  Object number = Object::owned(PyObject_CallNoArgs(exchange.currentDevice.get()));
  const long found = number ? PyLong_AsLong(number.get()) : -1;
  if (PyErr_Occurred())
    PyErr_Clear();
  return found == arguments.deviceId();
}

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
      (!given.object && !results.make(plan, isCurrent(arguments)))) {
    PyErr_Clear(); // the package tries again, and says what is wrong
    return {};
  }
  Temporary memory(arguments.deviceId());
  if (!route.gate->enter())
    return {};
  PyThreadState *thread = PyEval_SaveThread();
  Call call(route, plan, arguments);
  fp4_error *error = isCuda ? call.onCuda(results, reinterpret_cast<uint64_t>(stream), memory)
                            : call.onHost(results);
  route.gate->leave();
  PyEval_RestoreThread(thread);
  ran = true;
  if (error)
    return raise(error, memory.failure());
  return given.object ? Object::borrowed(given.object) : results.give(plan.results.size());
}

} // namespace fp4::python
