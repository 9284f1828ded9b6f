//===- Program.cpp - Programs and calls of fp4-c/Program.h -----------------===//

#include "Device.h"

#include "fp4/Harness/Verdict.h"

#include <fmt/format.h>

using namespace fp4;
using namespace fp4::capi;
using harness::ElementType;
using harness::Layout;

struct fp4_executable {
  LoadedProgram loaded;
};

static_assert(FP4_BF16 == int(ElementType::BF16) && FP4_F16 == int(ElementType::F16) &&
              FP4_F32 == int(ElementType::F32) && FP4_F4E2M1FN == int(ElementType::F4E2M1FN) &&
              FP4_F6E2M3FN == int(ElementType::F6E2M3FN) &&
              FP4_F6E3M2FN == int(ElementType::F6E3M2FN) &&
              FP4_F8E4M3FN == int(ElementType::F8E4M3FN) &&
              FP4_F8E5M2 == int(ElementType::F8E5M2) &&
              FP4_F8E8M0FNU == int(ElementType::F8E8M0FNU) && FP4_I64 == int(ElementType::I64));
static_assert(FP4_LINEAR == int(Layout::Linear) && FP4_TILED_128X4 == int(Layout::Tiled128x4));

namespace {

Expected<Buffer> bufferOf(const fp4_tensor &tensor) {
  auto refuse = [](const char *what, const char *expected, int64_t got) {
    return makeError(ErrorKind::Usage,
                     fmt::format("{} of a tensor must be {}, but got {}", what, expected, got));
  };
  if (tensor.rank < 0 || tensor.rank > FP4_MAX_RANK)
    return refuse("the rank", "0 to 4", tensor.rank);
  if (tensor.element < FP4_BF16 || tensor.element > FP4_I64)
    return refuse("the element type", "an fp4_element_type", tensor.element);
  if (tensor.layout < FP4_LINEAR || tensor.layout > FP4_TILED_128X4)
    return refuse("the layout", "an fp4_layout", tensor.layout);
  Buffer buffer;
  buffer.type.element = static_cast<ElementType>(tensor.element);
  buffer.type.layout = static_cast<Layout>(tensor.layout);
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] < 0)
      return refuse("a size", "at least 0", tensor.sizes[i]);
    buffer.type.shape.push_back(tensor.sizes[i]);
  }
  buffer.address = tensor.address;
  buffer.bytes = tensor.bytes;
  return buffer;
}

Expected<std::vector<Buffer>> buffersOf(const fp4_tensor *tensors, size_t count) {
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < count; ++i) {
    FP4_ASSIGN(auto buffer, bufferOf(tensors[i]));
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

/// Results without an address say nothing yet.
Expected<std::vector<Buffer>> resultsOf(const fp4_tensor *tensors, size_t count) {
  std::vector<Buffer> buffers(count);
  for (size_t i = 0; i < count; ++i)
    if (tensors[i].address) {
      FP4_ASSIGN(buffers[i], bufferOf(tensors[i]));
    }
  return buffers;
}

void describe(const harness::Type &type, fp4_tensor &tensor) {
  tensor.element = static_cast<int32_t>(type.element);
  tensor.layout = static_cast<int32_t>(type.layout);
  tensor.rank = static_cast<int32_t>(type.shape.size());
  std::copy(type.shape.begin(), type.shape.end(), tensor.sizes);
}

/// The allocator of a C program.
class CAllocator final : public rt::Allocator {
public:
  explicit CAllocator(const fp4_allocator &allocator) : allocator_(allocator) {}

  Expected<rt::DevicePtr> allocate(uint64_t bytes, rt::StreamHandle stream) override {
    if (uint64_t address = allocator_.allocate(allocator_.context, bytes, stream))
      return address;
    return makeError(ErrorKind::Device,
                     fmt::format("the caller's allocator has no {} bytes", bytes));
  }
  Status free(rt::DevicePtr address, rt::StreamHandle stream) override {
    allocator_.free(allocator_.context, address, stream);
    return {};
  }

private:
  const fp4_allocator &allocator_;
};

Expected<const harness::Function *> find(const fp4_executable &executable, const char *name) {
  return executable.loaded.program().manifest().find(name ? name : "");
}

Expected<harness::Tensor> download(rt::Device &device, const Buffer &buffer) {
  harness::Tensor tensor(buffer.type);
  if (buffer.bytes < tensor.bytes.size())
    return makeError(ErrorKind::Usage, fmt::format("a buffer of {} must have {} bytes, but got {}",
                                                   buffer.type.str(), tensor.bytes.size(),
                                                   buffer.bytes));
  FP4_TRY(device.copyToHost(tensor.bytes, buffer.address));
  return tensor;
}

/// Compares the results of `function` with its reference.
Status verify(const LoadedProgram &loaded, const harness::Function &function,
              std::span<const Buffer> arguments, std::span<const Buffer> results) {
  rt::Device &device = loaded.device();
  FP4_TRY(device.synchronize());
  if (!function.hasProgram)
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' has no program for the reference", function.name));
  if (results.size() != function.results.size())
    return makeError(ErrorKind::Usage, fmt::format("the function has {} results, but got {}",
                                                   function.results.size(), results.size()));
  std::vector<harness::Tensor> values;
  for (const Buffer &argument : arguments) {
    FP4_ASSIGN(auto value, download(device, argument));
    values.push_back(std::move(value));
  }
  auto data = [&](const std::string &symbol) -> Expected<const void *> {
    FP4_ASSIGN(void *address, loaded.program().resolve(symbol));
    return address;
  };
  FP4_ASSIGN(auto expected, harness::runReference(function, values, 0, data));
  for (size_t i = 0; i < results.size(); ++i) {
    FP4_ASSIGN(auto got, download(device, results[i]));
    harness::Verdict verdict = harness::judge(function.results[i].name, got, expected[i]);
    if (!verdict.passed)
      return makeError(ErrorKind::Mismatch,
                       fmt::format("result '{}' differs from {} in {} of {} elements\n{}",
                                   verdict.name, verdict.method, verdict.mismatches,
                                   verdict.elements, verdict.details));
  }
  return {};
}

constexpr fp4_error *kSuccess = nullptr;

} // namespace

fp4_error *fp4_program_load(const char *path, fp4_program **program) {
  return guarded([&] {
    *program = nullptr;
    std::shared_ptr<const Program> loaded;
    FP4_C_ASSIGN(loaded, Program::load(stringOf(path)));
    *program = new fp4_program{std::move(loaded)};
    return kSuccess;
  });
}

const char *fp4_program_get_manifest(const fp4_program *program) {
  return program->program->manifestText().c_str();
}

void fp4_program_destroy(fp4_program *program) { delete program; }

fp4_error *fp4_executable_create(const fp4_program *program, fp4_device *device,
                                 fp4_executable **executable) {
  return guarded([&] {
    *executable = new fp4_executable{LoadedProgram(program->program, *device->device)};
    return kSuccess;
  });
}

void fp4_executable_destroy(fp4_executable *executable) { delete executable; }

fp4_error *fp4_executable_describe(const fp4_executable *executable, const char *function,
                                   const fp4_tensor *arguments, size_t numArguments,
                                   fp4_tensor *results, size_t numResults) {
  return guarded([&] {
    const harness::Function *found = nullptr;
    FP4_C_ASSIGN(found, find(*executable, function));
    std::vector<Buffer> buffers;
    FP4_C_ASSIGN(buffers, buffersOf(arguments, numArguments));
    std::vector<harness::Type> given, types;
    for (const Buffer &buffer : buffers)
      given.push_back(buffer.type);
    FP4_C_ASSIGN(types, executable->loaded.resultTypes(*found, given));
    if (types.size() != numResults)
      return usage(fmt::format("the function has {} results, but got places for {}", types.size(),
                               numResults));
    for (size_t i = 0; i < types.size(); ++i) {
      describe(types[i], results[i]);
      results[i].bytes = types[i].bufferBytes();
    }
    return kSuccess;
  });
}

fp4_error *fp4_executable_call(fp4_executable *executable, const char *function,
                               const fp4_tensor *arguments, size_t numArguments,
                               fp4_tensor *results, size_t numResults,
                               const fp4_call_options *options) {
  return guarded([&] {
    const fp4_call_options c = optionsOf(options);
    const harness::Function *found = nullptr;
    FP4_C_ASSIGN(found, find(*executable, function));
    std::vector<Buffer> in, out;
    FP4_C_ASSIGN(in, buffersOf(arguments, numArguments));
    FP4_C_ASSIGN(out, resultsOf(results, numResults));
    std::optional<CAllocator> allocator;
    if (c.allocator)
      allocator.emplace(*c.allocator);
    Status status = executable->loaded.call(
        *found, in, out, {.stream = c.stream, .allocator = allocator ? &*allocator : nullptr});
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i].address)
        continue; // the call failed before it had one
      describe(out[i].type, results[i]);
      results[i].address = out[i].address;
      results[i].bytes = out[i].bytes;
    }
    return wrap(status);
  });
}

fp4_error *fp4_executable_verify(fp4_executable *executable, const char *function,
                                 const fp4_tensor *arguments, size_t numArguments,
                                 const fp4_tensor *results, size_t numResults) {
  return guarded([&] {
    const harness::Function *found = nullptr;
    FP4_C_ASSIGN(found, find(*executable, function));
    std::vector<Buffer> in, out;
    FP4_C_ASSIGN(in, buffersOf(arguments, numArguments));
    FP4_C_ASSIGN(out, buffersOf(results, numResults));
    return wrap(verify(executable->loaded, *found, in, out));
  });
}
