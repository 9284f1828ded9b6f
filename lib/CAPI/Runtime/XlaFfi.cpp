//===- XlaFfi.cpp - Emitted functions as XLA calls them -------------------===//
//
// One handler serves all programs: the attributes of a call name the program by its content, so
// that an executable in a cache of XLA names the same program in another process.
//
//===----------------------------------------------------------------------===//

#include "XlaFfi.h"

#include "Foreign.h"
#include "fp4-c/Frameworks.h"

#include <fmt/format.h>

using namespace fp4;
using namespace fp4::capi;

namespace {

struct Programs {
  std::mutex mutex; ///< guards the map
  std::map<std::string, Deployment *, std::less<>> byKey;
};
Programs &programs = *new Programs; // never destroyed: XLA may call until the process ends

Deployment *findProgram(std::string_view key) {
  std::scoped_lock lock(programs.mutex);
  auto found = programs.byKey.find(key);
  return found == programs.byKey.end() ? nullptr : found->second;
}

/// The type of DLPack; a code that no operand takes where it has none.
ForeignType typeOf(int type) {
  switch (type) {
  case xla::kS8:
    return {0, 8};
  case xla::kS32:
    return {0, 32};
  case xla::kS64:
    return {0, 64};
  case xla::kU8:
    return {1, 8};
  case xla::kU16:
    return {1, 16};
  case xla::kF16:
    return {2, 16};
  case xla::kF32:
    return {2, 32};
  case xla::kBF16:
    return {4, 16};
  case xla::kF8E4M3FN:
    return {10, 8};
  case xla::kF8E5M2:
    return {12, 8};
  case xla::kF8E8M0FNU:
    return {14, 8};
  default:
    return {255, uint8_t(type)};
  }
}

int codeOf(fp4_error_kind kind) {
  switch (kind) {
  case FP4_ERROR_USAGE:
    return xla::kInvalidArgument;
  case FP4_ERROR_DEVICE:
    return xla::kUnavailable;
  case FP4_ERROR_HAZARD:
  case FP4_ERROR_SIMULATION:
    return xla::kFailedPrecondition;
  default:
    return xla::kInternal;
  }
}

/// One call of XLA.
class XlaCall {
public:
  explicit XlaCall(xla::Frame &frame) : frame_(frame), api_(*frame.api) {}

  void *run(bool onCuda) {
    Deployment *program = nullptr;
    const harness::Function *function = nullptr;
    if (void *error = find(program, function))
      return error;
    std::vector<Foreign> arguments, results;
    if (!read(frame_.arguments, arguments) || !read(frame_.results, results))
      return fail(xla::kInvalidArgument, "operands of a call must be buffers",
                  "tokens and tuples are none");
    OwnedError error = onCuda ? callOnCuda(*program, *function, arguments, results)
                              : program->callOnHost(*function, arguments, results);
    if (!error)
      return nullptr;
    return fail(codeOf(fp4_error_get_kind(error.get())), fp4_error_get_message(error.get()),
                fp4_error_get_note(error.get()));
  }

  void *fail(int code, const std::string &message, const std::string &note) {
    const std::string text = note.empty() ? message : message + "\nnote: " + note;
    xla::ErrorArguments arguments = {{sizeof(arguments), nullptr}, text.c_str(), code};
    return api_.createError(&arguments);
  }

private:
  std::string_view attribute(std::string_view name) const {
    for (int64_t i = 0; i < frame_.attributes.size; ++i) {
      const xla::Span &found = *frame_.attributes.names[i];
      if (std::string_view(found.begin, found.size) != name ||
          frame_.attributes.types[i] != xla::kString)
        continue;
      const auto &value = *static_cast<const xla::Span *>(frame_.attributes.values[i]);
      return {value.begin, value.size};
    }
    return {};
  }

  void *find(Deployment *&program, const harness::Function *&function) {
    const std::string_view key = attribute("program");
    if (!(program = findProgram(key)))
      return fail(
          xla::kNotFound, fmt::format("this process has no program '{}'", key),
          "load its library with fp4.jax.load, or add it with fp4_xla_add, before the call");
    auto found = program->manifest().find(attribute("function"));
    if (!found)
      return fail(xla::kNotFound, found.error().message, found.error().note);
    function = *found;
    return nullptr;
  }

  static bool read(const xla::Operands &operands, std::vector<Foreign> &tensors) {
    for (int64_t i = 0; i < operands.size; ++i) {
      if (operands.types[i] != xla::kBuffer)
        return false;
      const auto &buffer = *static_cast<const xla::Buffer *>(operands.values[i]);
      tensors.push_back({typeOf(buffer.type),
                         {buffer.dims, size_t(buffer.rank)},
                         {},
                         reinterpret_cast<uint64_t>(buffer.data)});
    }
    return true;
  }

  OwnedError callOnCuda(Deployment &program, const harness::Function &function,
                        std::span<const Foreign> arguments, std::span<const Foreign> results) {
    if (api_.header.size < offsetof(xla::Api, getOrdinal) + sizeof(api_.getOrdinal))
      return OwnedError(usage("this version of XLA must tell the number of a GPU, but has no "
                              "XLA_FFI_DeviceOrdinal_Get",
                              "install a later jaxlib"));
    xla::OrdinalArguments ordinal = {{sizeof(ordinal), nullptr}, frame_.context, 0};
    xla::StreamArguments stream = {{sizeof(stream), nullptr}, frame_.context, nullptr};
    if (drop(api_.getOrdinal(&ordinal)) || drop(api_.getStream(&stream)))
      return OwnedError(wrap(Error{ErrorKind::Device,
                                   "XLA has neither a GPU nor a stream for the "
                                   "call",
                                   ""}));
    const fp4_allocator allocator = {this, allocate, free};
    const fp4_call_options options = {sizeof(options), reinterpret_cast<uint64_t>(stream.stream),
                                      &allocator};
    return program.callOnCuda(ordinal.ordinal, function, arguments, results, options);
  }

  /// Destroys an error of XLA; true if there was one.
  bool drop(void *error) {
    xla::DestroyArguments arguments = {{sizeof(arguments), nullptr}, error};
    if (error)
      api_.destroyError(&arguments);
    return error;
  }

  /// Takes temporary memory of XLA, which gives it to other work in the order of the stream.
  static uint64_t allocate(void *context, uint64_t bytes, uint64_t) {
    auto &self = *static_cast<XlaCall *>(context);
    xla::AllocateArguments arguments = {
        {sizeof(arguments), nullptr}, self.frame_.context, bytes, 256, nullptr};
    if (self.drop(self.api_.allocate(&arguments)))
      return 0;
    const auto address = reinterpret_cast<uint64_t>(arguments.data);
    self.sizes_[address] = bytes;
    return address;
  }

  static void free(void *context, uint64_t address, uint64_t) {
    auto &self = *static_cast<XlaCall *>(context);
    auto found = self.sizes_.find(address);
    if (found == self.sizes_.end())
      return;
    xla::FreeArguments arguments = {{sizeof(arguments), nullptr},
                                    self.frame_.context,
                                    found->second,
                                    reinterpret_cast<void *>(address)};
    self.sizes_.erase(found);
    self.drop(self.api_.free(&arguments));
  }

  xla::Frame &frame_;
  const xla::Api &api_;
  std::map<uint64_t, uint64_t> sizes_; ///< bytes of temporary memory, by address
};

/// Tells XLA the version of these declarations, if that is what it asks for.
bool tellVersion(const xla::Frame &frame) {
  for (const xla::Extension *one = frame.header.extensions; one; one = one->next)
    if (one->type == xla::kMetadata) {
      auto &metadata = *reinterpret_cast<const xla::MetadataExtension *>(one)->metadata;
      metadata.version = {{sizeof(xla::Version), nullptr}, xla::kMajorVersion, xla::kMinorVersion};
      metadata.traits = 0; // modules are loaded at the first call, which no graph can capture
      return true;
    }
  return false;
}

void *handle(void *pointer, bool onCuda) {
  auto &frame = *static_cast<xla::Frame *>(pointer);
  if (tellVersion(frame) || frame.stage != xla::kExecute)
    return nullptr;
  XlaCall call(frame);
  try {
    return call.run(onCuda);
  } catch (const std::exception &exception) { // none may pass into XLA
    return call.fail(xla::kInternal, exception.what(), "");
  }
}

} // namespace

fp4_error *fp4_xla_add(const char *key, const fp4_program *program) {
  return guarded({{key, "key"}, {program, "program"}}, [&] {
    std::scoped_lock lock(programs.mutex);
    if (!programs.byKey.contains(key)) // a deployment is never destroyed
      programs.byKey.emplace(key, &Deployment::of(*program));
    return static_cast<fp4_error *>(nullptr);
  });
}

void *fp4_xla_call_sim(void *frame) { return handle(frame, false); }
void *fp4_xla_call_cuda(void *frame) { return handle(frame, true); }
