//===- Program.cpp - Programs and calls of fp4-c/Program.h -----------------===//

#include "Device.h"

#include "fp4/Harness/Verdict.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

using namespace fp4;
using namespace fp4::capi;
using harness::ElementType;
using harness::Layout;

/// A function and the plans of the types that it was called with.
struct fp4_function {
  /// The most plans that are kept: as many as the batch sizes of a server may be; the oldest goes
  /// first.
  static constexpr size_t kMostPlans = 256;
  struct Known {
    std::vector<fp4_tensor> arguments;
    std::shared_ptr<const CallPlan> plan;
  };

  const LoadedFunction &loaded;
  std::mutex mutex = {}; ///< guards the members below
  std::vector<Known> known = {};
  size_t oldest = 0;
};

struct fp4_executable {
  LoadedProgram loaded;
  std::mutex mutex = {}; ///< guards the members below
  std::map<const LoadedFunction *, fp4_function> functions = {};
};

static_assert(FP4_BF16 == int(ElementType::BF16) && FP4_F16 == int(ElementType::F16) &&
              FP4_F32 == int(ElementType::F32) && FP4_F4E2M1FN == int(ElementType::F4E2M1FN) &&
              FP4_F6E2M3FN == int(ElementType::F6E2M3FN) &&
              FP4_F6E3M2FN == int(ElementType::F6E3M2FN) &&
              FP4_F8E4M3FN == int(ElementType::F8E4M3FN) &&
              FP4_F8E5M2 == int(ElementType::F8E5M2) &&
              FP4_F8E8M0FNU == int(ElementType::F8E8M0FNU) && FP4_I64 == int(ElementType::I64) &&
              FP4_I8 == int(ElementType::I8) && FP4_I32 == int(ElementType::I32));
static_assert(FP4_LINEAR == int(Layout::Linear) && FP4_TILED_128X4 == int(Layout::Tiled128x4) &&
              FP4_WGMMA_ROWS == int(Layout::WgmmaRows));

namespace {

bool hasStrides(const fp4_tensor &tensor) {
  return std::ranges::any_of(tensor.strides, [](int64_t stride) { return stride != 0; });
}

Expected<Buffer> bufferOf(const fp4_tensor &tensor) {
  auto refuse = [](const char *what, const char *expected, int64_t got) {
    return makeError(ErrorKind::Usage,
                     fmt::format("{} of a tensor must be {}, but got {}", what, expected, got));
  };
  if (tensor.rank < 0 || tensor.rank > FP4_MAX_RANK)
    return refuse("the rank", "0 to 4", tensor.rank);
  if (tensor.element < FP4_BF16 || tensor.element > FP4_I32)
    return refuse("the element type", "an fp4_element_type", tensor.element);
  if (tensor.layout < FP4_LINEAR || tensor.layout > FP4_WGMMA_ROWS)
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
  if (hasStrides(tensor))
    buffer.strides.assign(tensor.strides, tensor.strides + std::max(tensor.rank, 1));
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

bool hasType(const fp4_tensor &tensor, const harness::Type &type) {
  return tensor.element == static_cast<int32_t>(type.element) &&
         tensor.layout == static_cast<int32_t>(type.layout) &&
         std::ranges::equal(std::span(tensor.sizes, size_t(std::clamp(tensor.rank, 0, 4))),
                            type.shape) &&
         !hasStrides(tensor);
}

bool haveEqualTypes(std::span<const fp4_tensor> some, std::span<const fp4_tensor> others) {
  return std::ranges::equal(some, others, [](const fp4_tensor &one, const fp4_tensor &other) {
    return one.element == other.element && one.layout == other.layout && one.rank == other.rank &&
           std::equal(one.sizes, one.sizes + one.rank, other.sizes) &&
           std::ranges::equal(one.strides, other.strides);
  });
}

using Tensors = std::span<const fp4_tensor>;
using SharedPlan = std::shared_ptr<const CallPlan>;

SharedPlan knownPlan(fp4_function &function, Tensors arguments) {
  std::scoped_lock<std::mutex> lock(function.mutex);
  for (const fp4_function::Known &known : function.known)
    if (haveEqualTypes(known.arguments, arguments))
      return known.plan;
  return nullptr;
}

void keepPlan(fp4_function &function, Tensors arguments, SharedPlan plan) {
  fp4_function::Known known{{arguments.begin(), arguments.end()}, std::move(plan)};
  std::scoped_lock<std::mutex> lock(function.mutex);
  if (function.known.size() < fp4_function::kMostPlans)
    function.known.push_back(std::move(known));
  else
    function.known[function.oldest++ % fp4_function::kMostPlans] = std::move(known);
}

Expected<SharedPlan> planFor(fp4_function &function, Tensors arguments) {
  if (SharedPlan known = knownPlan(function, arguments))
    return known;
  FP4_ASSIGN(auto buffers, buffersOf(arguments.data(), arguments.size()));
  std::vector<harness::Type> types;
  std::vector<harness::Strides> strides;
  for (const Buffer &buffer : buffers) {
    types.push_back(buffer.type);
    strides.push_back(buffer.strides);
  }
  FP4_ASSIGN(auto made, LoadedFunction::planOf(function.loaded.function(), types, strides));
  auto plan = std::make_shared<const CallPlan>(std::move(made));
  keepPlan(function, arguments, plan);
  return plan;
}

/// The memory of the arguments and then of the results, whose buffers must fit their types.
Expected<std::vector<Memory>> memoryOf(const harness::Function &function, const CallPlan &plan,
                                       Tensors arguments, Tensors results) {
  std::vector<Memory> memory;
  memory.reserve(arguments.size() + results.size());
  for (const fp4_tensor &tensor : arguments)
    memory.push_back({tensor.address, tensor.address ? tensor.bytes : 0});
  for (size_t i = 0; i < results.size(); ++i) {
    const fp4_tensor &tensor = results[i];
    memory.push_back({tensor.address, tensor.address ? tensor.bytes : 0});
    if (!tensor.address || i >= plan.results.size() || hasType(tensor, plan.results[i]))
      continue;
    FP4_ASSIGN(auto buffer, bufferOf(tensor));
    FP4_ASSIGN(memory.back(), LoadedFunction::placeOf(function, plan, i, buffer));
  }
  return memory;
}

void describe(const harness::Type &type, fp4_tensor &tensor) {
  tensor.element = static_cast<int32_t>(type.element);
  tensor.layout = static_cast<int32_t>(type.layout);
  tensor.rank = static_cast<int32_t>(type.shape.size());
  std::copy(type.shape.begin(), type.shape.end(), tensor.sizes);
}

Expected<const harness::Function *> find(const Program &program, const char *name) {
  return program.manifest().find(name ? name : "");
}

/// Writes the types and bytes of the results for arguments of such types.
Status describeResults(const Program &program, const char *name, Tensors arguments,
                       std::span<fp4_tensor> results) {
  FP4_ASSIGN(const harness::Function *function, find(program, name));
  FP4_ASSIGN(auto buffers, buffersOf(arguments.data(), arguments.size()));
  std::vector<harness::Type> given;
  for (const Buffer &buffer : buffers)
    given.push_back(buffer.type);
  FP4_ASSIGN(auto plan, LoadedFunction::planOf(*function, given));
  if (plan.results.size() != results.size())
    return makeError(ErrorKind::Usage,
                     fmt::format("the function has {} results, but got places for {}",
                                 plan.results.size(), results.size()));
  for (size_t i = 0; i < results.size(); ++i) {
    describe(plan.results[i], results[i]);
    results[i].bytes = plan.results[i].bufferBytes();
  }
  return {};
}

/// The allocator of a C program.
class CAllocator final : public rt::Allocator {
public:
  explicit CAllocator(const fp4_allocator &allocator) : allocator_(allocator) {}

  Expected<rt::DevicePtr> allocate(uint64_t bytes, rt::StreamHandle stream) override {
    // An allocator that knows no empty memory answers 0, which is an error.
    if (uint64_t address =
            allocator_.allocate(allocator_.context, std::max<uint64_t>(bytes, 1), stream))
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

Expected<harness::Tensor> downloadRows(rt::Device &device, const Buffer &buffer,
                                       harness::Tensor tensor) {
  FP4_ASSIGN(auto words, harness::makeDescriptor(buffer.type, buffer.strides));
  const uint64_t bytes = harness::stridedBytes(buffer.type, words);
  if (buffer.bytes < bytes)
    return makeError(ErrorKind::Usage, fmt::format("a buffer of {} must have {} bytes, but got {}",
                                                   buffer.type.str(), bytes, buffer.bytes));
  std::vector<std::byte> memory(bytes);
  FP4_TRY(device.copyToHost(memory, buffer.address));
  for (const harness::MatrixRows &matrix : harness::matricesOf(buffer.type, words))
    for (uint64_t row = 0; row < matrix.rows; ++row)
      std::memcpy(&tensor.bytes[matrix.dense + row * matrix.width],
                  &memory[matrix.offset + row * matrix.pitch], matrix.width);
  return tensor;
}

Expected<harness::Tensor> download(rt::Device &device, const Buffer &buffer) {
  harness::Tensor tensor(buffer.type);
  if (!buffer.strides.empty())
    return downloadRows(device, buffer, std::move(tensor));
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
  const auto *target = hw::lookupTarget(loaded.program().manifest().target);
  FP4_ASSIGN(auto expected, harness::runReference(function, values, 0, data, target));
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

Expected<fp4_function *> functionOf(fp4_executable &executable, const char *name) {
  FP4_ASSIGN(const LoadedFunction *loaded, executable.loaded.function(stringOf(name)));
  std::scoped_lock<std::mutex> lock(executable.mutex);
  return &executable.functions.try_emplace(loaded, *loaded).first->second;
}

Status callFunction(fp4_function &function, Tensors arguments, std::span<fp4_tensor> results,
                    const fp4_call_options &options) {
  FP4_ASSIGN(auto plan, planFor(function, arguments));
  FP4_ASSIGN(auto memory, memoryOf(function.loaded.function(), *plan, arguments, results));
  const std::span in = std::span(memory).first(arguments.size());
  const std::span out = std::span(memory).subspan(arguments.size());
  std::optional<CAllocator> allocator;
  if (options.allocator && !(options.allocator->allocate && options.allocator->free))
    return makeError(ErrorKind::Usage, "an allocator must have both functions, but got a null one",
                     "leave 'allocator' null for the memory of the device");
  if (options.allocator)
    allocator.emplace(*options.allocator);
  FP4_TRY(function.loaded.call(
      *plan, in, out,
      {.stream = options.stream, .allocator = allocator ? &*allocator : nullptr}));
  for (size_t i = 0; i < out.size(); ++i) {
    describe(plan->results[i], results[i]);
    results[i].address = out[i].address;
    results[i].bytes = out[i].bytes;
    if (!out[i].pitch)
      std::ranges::fill(results[i].strides, 0);
  }
  return {};
}

constexpr fp4_error *kSuccess = nullptr;

} // namespace

fp4_error *fp4_program_load(const char *path, fp4_program **program) {
  return guarded({{path, "path"}, {program, "program"}}, [&] {
    *program = nullptr;
    std::shared_ptr<const Program> loaded;
    FP4_C_ASSIGN(loaded, Program::load(stringOf(path)));
    *program = new fp4_program{std::move(loaded)};
    return kSuccess;
  });
}

const char *fp4_program_get_manifest(const fp4_program *program) {
  return program ? program->program->manifestText().c_str() : "";
}

void fp4_program_destroy(fp4_program *program) { delete program; }

fp4_error *fp4_executable_create(const fp4_program *program, fp4_device *device,
                                 fp4_executable **executable) {
  return guarded({{program, "program"}, {device, "device"}, {executable, "executable"}}, [&] {
    *executable = new fp4_executable{LoadedProgram(program->program, *device->device)};
    return kSuccess;
  });
}

void fp4_executable_destroy(fp4_executable *executable) { delete executable; }

fp4_error *fp4_program_describe(const fp4_program *program, const char *function,
                                const fp4_tensor *arguments, size_t numArguments,
                                fp4_tensor *results, size_t numResults) {
  const Required needed[] = {{program, "program"},
                             {arguments, numArguments, "arguments"},
                             {results, numResults, "results"}};
  return guarded(needed, [&] {
    return wrap(describeResults(*program->program, function, {arguments, numArguments},
                                {results, numResults}));
  });
}

fp4_error *fp4_executable_describe(const fp4_executable *executable, const char *function,
                                   const fp4_tensor *arguments, size_t numArguments,
                                   fp4_tensor *results, size_t numResults) {
  const Required needed[] = {{executable, "executable"},
                             {arguments, numArguments, "arguments"},
                             {results, numResults, "results"}};
  return guarded(needed, [&] {
    return wrap(describeResults(executable->loaded.program(), function, {arguments, numArguments},
                                {results, numResults}));
  });
}

fp4_error *fp4_executable_get_function(fp4_executable *executable, const char *name,
                                       fp4_function **function) {
  return guarded({{executable, "executable"}, {function, "function"}}, [&] {
    *function = nullptr;
    FP4_C_ASSIGN(*function, functionOf(*executable, name));
    return kSuccess;
  });
}

fp4_error *fp4_function_call(fp4_function *function, const fp4_tensor *arguments,
                             size_t numArguments, fp4_tensor *results, size_t numResults,
                             const fp4_call_options *options) {
  const Required needed[] = {{function, "function"},
                             {arguments, numArguments, "arguments"},
                             {results, numResults, "results"},
                             sized(options)};
  return guarded(needed, [&] {
    return wrap(callFunction(*function, {arguments, numArguments}, {results, numResults},
                             optionsOf(options)));
  });
}

fp4_error *fp4_executable_call(fp4_executable *executable, const char *function,
                               const fp4_tensor *arguments, size_t numArguments,
                               fp4_tensor *results, size_t numResults,
                               const fp4_call_options *options) {
  const Required needed[] = {{executable, "executable"},
                             {arguments, numArguments, "arguments"},
                             {results, numResults, "results"},
                             sized(options)};
  return guarded(needed, [&] {
    fp4_function *found = nullptr;
    FP4_C_ASSIGN(found, functionOf(*executable, function));
    return wrap(callFunction(*found, {arguments, numArguments}, {results, numResults},
                             optionsOf(options)));
  });
}

fp4_error *fp4_executable_verify(fp4_executable *executable, const char *function,
                                 const fp4_tensor *arguments, size_t numArguments,
                                 const fp4_tensor *results, size_t numResults) {
  const Required needed[] = {{executable, "executable"},
                             {arguments, numArguments, "arguments"},
                             {results, numResults, "results"}};
  return guarded(needed, [&] {
    const harness::Function *found = nullptr;
    FP4_C_ASSIGN(found, find(executable->loaded.program(), function));
    std::vector<Buffer> in, out;
    FP4_C_ASSIGN(in, buffersOf(arguments, numArguments));
    FP4_C_ASSIGN(out, buffersOf(results, numResults));
    return wrap(verify(executable->loaded, *found, in, out));
  });
}
