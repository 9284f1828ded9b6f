//===- TvmFfi.cpp - Emitted functions as apache-tvm-ffi calls them --------===//

#include "TvmFfi.h"

#include "Foreign.h"
#include "fp4-c/Frameworks.h"

#include <dlfcn.h>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::capi;

namespace {

/// The functions of the libtvm_ffi.so in this process; null where there is none.
const tvm::Api *findApi() {
  static std::mutex mutex;
  static tvm::Api api = {};
  std::scoped_lock lock(mutex);
  if (api.createFunction)
    return &api;
  void *handle = dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD);
  auto find = [&]<typename F>(F *&function, const char *name) {
    function = reinterpret_cast<F *>(dlsym(handle ? handle : RTLD_DEFAULT, name));
    return function != nullptr;
  };
  tvm::Api found = {};
  if (!find(found.createFunction, "TVMFFIFunctionCreate") ||
      !find(found.setGlobal, "TVMFFIFunctionSetGlobal") ||
      !find(found.decRef, "TVMFFIObjectDecRef") ||
      !find(found.setRaised, "TVMFFIErrorSetRaisedFromCStr") ||
      !find(found.getStream, "TVMFFIEnvGetStream"))
    return nullptr;
  api = found;
  return &api;
}

/// The context of a function that tvm-ffi owns.
struct TvmFunction {
  const tvm::Api &api;
  Deployment &program;
  const harness::Function &function;
};

struct Operands {
  int32_t deviceType = tvm::kCpu, deviceId = 0;
  std::vector<Foreign> all;
};

std::string placeOf(const tvm::Tensor &tensor) {
  return fmt::format("{}:{}", tensor.deviceType, tensor.deviceId);
}

Status readTensor(const std::string &function, int32_t index, const tvm::Any &value,
                  Operands &tensors) {
  const bool isObject = value.type == tvm::kTensor;
  if (!isObject && value.type != tvm::kTensorPointer)
    return makeError(ErrorKind::Usage,
                     fmt::format("operand {} of '{}' must be a tensor, but is of type {}", index,
                                 function, value.type),
                     "pass a tvm_ffi.Tensor, or an object that exports DLPack");
  const auto &tensor = *reinterpret_cast<const tvm::Tensor *>(static_cast<char *>(value.value) +
                                                              (isObject ? tvm::kTensorOffset : 0));
  if (tensor.deviceType != tvm::kCpu && tensor.deviceType != tvm::kCuda)
    return makeError(ErrorKind::Usage,
                     fmt::format("operand {} of '{}' must be on the CPU (DLPack device 1) or a "
                                 "CUDA device (2), but is on {}",
                                 index, function, placeOf(tensor)),
                     "copy it to one of these");
  if (tensors.all.empty()) {
    tensors.deviceType = tensor.deviceType;
    tensors.deviceId = tensor.deviceId;
  } else if (tensors.deviceType != tensor.deviceType || tensors.deviceId != tensor.deviceId) {
    return makeError(ErrorKind::Usage,
                     fmt::format("operands of '{}' must be on one device, but operand {} is on {} "
                                 "of DLPack, and those before it on {}:{}",
                                 function, index, placeOf(tensor), tensors.deviceType,
                                 tensors.deviceId),
                     "move them to one device");
  }
  const size_t rank = size_t(tensor.ndim);
  const ForeignType type = {tensor.code, tensor.bits};
  tensors.all.push_back({tensor.lanes == 1 ? type : ForeignType{255, tensor.bits},
                         {tensor.shape, rank},
                         {tensor.strides, tensor.strides ? rank : 0},
                         reinterpret_cast<uint64_t>(tensor.data) + tensor.byteOffset});
  return {};
}

OwnedError callTensors(TvmFunction &self, const tvm::Any *operands, int32_t count) {
  const harness::Function &function = self.function;
  const size_t numArguments = function.arguments.size();
  if (size_t(count) != numArguments + function.results.size())
    return OwnedError(
        usage(fmt::format("'{}' expects {} tensors, but got {}", function.name,
                          numArguments + function.results.size(), count),
              fmt::format("pass its {} arguments, and then a tensor for each of its {} results",
                          numArguments, function.results.size())));
  Operands tensors;
  for (int32_t i = 0; i < count; ++i)
    if (Status status = readTensor(function.name, i, operands[i], tensors); !status)
      return OwnedError(wrap(status));
  const std::span<const Foreign> all = tensors.all;
  const auto arguments = all.first(numArguments), results = all.subspan(numArguments);
  if (tensors.deviceType == tvm::kCpu)
    return self.program.callOnHost(function, arguments, results);
  void *stream = self.api.getStream(tensors.deviceType, tensors.deviceId);
  const fp4_call_options options = {sizeof(options), reinterpret_cast<uint64_t>(stream), nullptr};
  return self.program.callOnCuda(tensors.deviceId, function, arguments, results, options);
}

int call(void *pointer, const tvm::Any *operands, int32_t count, tvm::Any *result) {
  auto &self = *static_cast<TvmFunction *>(pointer);
  OwnedError error;
  try {
    error = callTensors(self, operands, count);
  } catch (const std::exception &exception) { // none may pass into the caller
    error.reset(wrap(Error{ErrorKind::Internal, exception.what(), ""}));
  }
  if (!error) {
    *result = {tvm::kNone, 0, nullptr};
    return 0;
  }
  const std::string note = fp4_error_get_note(error.get());
  const std::string text =
      fp4_error_get_message(error.get()) + (note.empty() ? "" : "\nnote: " + note);
  const bool isUsage = fp4_error_get_kind(error.get()) == FP4_ERROR_USAGE;
  self.api.setRaised(isUsage ? "ValueError" : "RuntimeError", text.c_str());
  return -1;
}

} // namespace

fp4_error *fp4_tvm_ffi_add(const fp4_program *program, const char *function, const char *name) {
  return guarded({{program, "program"}, {name, "name"}}, [&]() -> fp4_error * {
    const harness::Function *found = nullptr;
    FP4_C_ASSIGN(found, program->program->manifest().find(stringOf(function)));
    const tvm::Api *api = findApi();
    if (!api)
      return usage("libtvm_ffi.so must be in this process, but is not",
                   "import tvm_ffi, or load the library, before functions are added");
    auto *self = new TvmFunction{*api, Deployment::of(*program), *found};
    void *made = nullptr;
    auto destroy = [](void *pointer) { delete static_cast<TvmFunction *>(pointer); };
    if (api->createFunction(self, call, destroy, &made) != 0) {
      delete self;
      return wrap(Error{ErrorKind::Internal, "tvm-ffi made no function", ""});
    }
    const tvm::Text text = {name, std::strlen(name)};
    const int failed = api->setGlobal(&text, made, /*override=*/1);
    api->decRef(made);
    return failed ? usage(fmt::format("tvm-ffi refused the global name '{}'", name)) : nullptr;
  });
}
