//===- Call.cpp - One call of a function of libfp4 ------------------------===//

#include "Call.h"

#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <mutex>

namespace fp4::python {

// Never destroyed, as `exchange`.
Object &raiseError = *new Object;

namespace {

/// Memory between two calls of one stream, which run in its order.
class Pool {
public:
  /// The smallest piece that is large enough; null where there is none.
  dlpack::ManagedTensor *take(int32_t deviceId, uint64_t stream, uint64_t bytes) {
    std::scoped_lock lock(mutex_);
    auto &pieces = pieces_[{deviceId, stream}];
    auto found = pieces.lower_bound(bytes);
    return found == pieces.end() ? nullptr : pieces.extract(found).mapped();
  }

  /// False where the stream has enough.
  bool keep(int32_t deviceId, uint64_t stream, dlpack::ManagedTensor *piece) {
    constexpr size_t kMostPieces = 4;
    constexpr uint64_t kMostBytes = 16 << 20; // of a piece: split-K of a matmul of few rows
    const auto bytes = uint64_t(piece->tensor.shape[0]);
    std::scoped_lock lock(mutex_);
    auto &pieces = pieces_[{deviceId, stream}];
    if (bytes > kMostBytes || pieces.size() >= kMostPieces)
      return false;
    pieces.emplace(bytes, piece);
    return true;
  }

private:
  std::mutex mutex_; ///< guards the pieces, by their bytes
  std::map<std::pair<int32_t, uint64_t>, std::multimap<uint64_t, dlpack::ManagedTensor *>> pieces_;
};

Pool &pool = *new Pool; // never destroyed, as `exchange`

/// Returns true if the driver does not say that no graph is captured. Nobody captures the default
/// stream.
bool isCapturing(uint64_t stream) {
  using Ask = int (*)(void *stream, int *status);
  static const auto ask = [] {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); // torch has loaded it
    return driver ? reinterpret_cast<Ask>(dlsym(driver, "cuStreamIsCapturing")) : nullptr;
  }();
  int status = 0;
  return stream && (!ask || ask(reinterpret_cast<void *>(stream), &status) != 0 || status != 0);
}

} // namespace

uint64_t Temporary::allocate(void *context, uint64_t bytes, uint64_t stream) {
  auto &self = *static_cast<Temporary *>(context);
  if (self.count_ == self.owned_.size())
    return 0;
  self.isReused_ = !isCapturing(stream);
  dlpack::ManagedTensor *made = self.isReused_ ? pool.take(self.deviceId_, stream, bytes) : nullptr;
  int64_t shape = int64_t(std::max<uint64_t>(bytes, 1)), stride = 1;
  dlpack::Tensor prototype = {nullptr,   dlpack::kCuda, self.deviceId_, 1,
                              {1, 8, 1}, &shape,        &stride,        0};
  if (!made && (exchange.api->allocate(&prototype, &made, &self, fail) != 0 || !made))
    return 0;
  self.owned_[self.count_++] = made;
  return addressOf(made->tensor);
}

void Temporary::free(void *context, uint64_t address, uint64_t stream) {
  auto &self = *static_cast<Temporary *>(context);
  for (size_t i = 0; i < self.count_; ++i) {
    if (addressOf(self.owned_[i]->tensor) != address)
      continue;
    if (self.isReused_ && pool.keep(self.deviceId_, stream, self.owned_[i]))
      self.take(i);
    else
      self.drop(i);
    return;
  }
}

Call::Call(const Route &route, const Plan &plan) : route_(route), plan_(plan) {
  std::ranges::copy(plan.arguments, arguments_.begin());
  std::ranges::copy(plan.results, results_.begin());
}

fp4_error *Call::onCuda(uint64_t stream, Temporary &memory) {
  const fp4_allocator allocator = memory.functions();
  const fp4_call_options options = {sizeof(options), stream, &allocator};
  return call(&options);
}

fp4_error *Call::onHost(bool areResultsGiven) {
  fp4_error *error = nullptr;
  std::array<uint64_t, kMostOperands> outputs;
  for (size_t i = 0; i < plan_.arguments.size() && !error; ++i)
    error = upload(arguments_[i]);
  for (size_t i = 0; i < plan_.results.size() && !error; ++i) {
    outputs[i] = results_[i].address;
    error = areResultsGiven ? upload(results_[i]) : allocate(results_[i]);
  }
  if (!error)
    error = call(nullptr);
  for (size_t i = 0; i < plan_.results.size() && !error; ++i)
    error = library.fp4_device_copy_from(route_.device, reinterpret_cast<void *>(outputs[i]),
                                         results_[i].address, results_[i].bytes);
  for (size_t i = 0; i < count_; ++i) // the error of the call is the one to tell
    if (fp4_error *second = library.fp4_device_free(route_.device, owned_[i]))
      library.fp4_error_destroy(second);
  return error;
}

fp4_error *Call::call(const fp4_call_options *options) {
  return library.fp4_function_call(route_.function, arguments_.data(), plan_.arguments.size(),
                                   results_.data(), plan_.results.size(), options);
}

fp4_error *Call::allocate(fp4_tensor &tensor) {
  fp4_error *error = library.fp4_device_allocate(route_.device, tensor.bytes, &tensor.address);
  if (!error)
    owned_[count_++] = tensor.address;
  return error;
}

fp4_error *Call::upload(fp4_tensor &tensor) {
  auto *from = reinterpret_cast<const void *>(tensor.address);
  fp4_error *error = allocate(tensor);
  return error ? error
               : library.fp4_device_copy_to(route_.device, tensor.address, from, tensor.bytes);
}

Object raise(fp4_error *error, const std::string &cause) {
  Object raised = Object::owned(PyObject_CallFunction(
      raiseError.get(), "isss", int(library.fp4_error_get_kind(error)),
      library.fp4_error_get_message(error), library.fp4_error_get_note(error), cause.c_str()));
  library.fp4_error_destroy(error);
  return {};
}

} // namespace fp4::python
