//===- Program.h - Emitted code as functions that a program can call ------===//
//
// For programs that embed fp4 and have tensors of their own: load what was emitted, put it on a
// device, and call its functions with device buffers.
//
//   FP4_ASSIGN(auto program, fp4::Program::load("linear.so"));
//   fp4::LoadedProgram loaded(program, *device);
//   FP4_ASSIGN(auto *function, program->manifest().find("linear"));
//   FP4_TRY(loaded.call(*function, arguments, results, {.stream = stream}));
//
// fp4-run adds inputs, verification and reports on top (fp4/Harness/Runner.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Reference/Descriptor.h"
#include "fp4/Reference/Tensor.h"
#include "fp4/Runtime/Session.h"

#include <functional>
#include <mutex>

namespace fp4 {

/// Host code and manifest, independent of a device. The code stays loaded until the process ends.
class Program {
public:
  /// The address of a symbol of the host code.
  using Resolver = std::function<Expected<void *>(const std::string &symbol)>;

  /// Opens a library that fp4-runner --emit=so wrote and binds it to this process' runtime. Usage
  /// errors where the file is damaged, is no such library, calls functions of a later version, or
  /// has changed since this process loaded it.
  static Expected<std::shared_ptr<const Program>> load(const std::string &path);
  /// From a manifest and code that is in this process already.
  static Expected<std::shared_ptr<const Program>> create(std::string manifest, Resolver resolver);

  const harness::Manifest &manifest() const { return manifest_; }
  const std::string &manifestText() const { return text_; }
  Expected<void *> resolve(const std::string &symbol) const { return resolver_(symbol); }

private:
  Program() = default;

  std::string text_;
  harness::Manifest manifest_;
  Resolver resolver_;
};

/// A buffer in device memory (docs/guides/libraries.md). Elements and layout are those of `type`,
/// which is static: its shape counts logical elements. A strided argument or result may have
/// strides.
struct Buffer {
  harness::Type type;
  rt::DevicePtr address = 0; ///< a multiple of 16
  uint64_t bytes = 0; ///< size, at least type.bufferBytes(), with strides from first to last row
  harness::Strides strides = {}; ///< logical elements; none: dense
};

struct CallOptions {
  rt::StreamHandle stream = 0;
  rt::Allocator *allocator = nullptr; ///< null: the device's own
};

/// Device memory of one operand. `address` is a multiple of 16.
using Memory = rt::ResultBuffer;

class LoadedProgram;

/// Facts that all calls with arguments of certain static types share. A plan never changes.
struct CallPlan {
  std::vector<harness::Type> arguments, results;
  std::vector<uint64_t> argumentBytes, resultBytes; ///< Type::bufferBytes, or those of strided rows
  /// Descriptors (fp4/Reference/Descriptor.h), one after the other, without addresses. Descriptors
  /// of results are of dense buffers.
  std::vector<uint64_t> argumentWords, resultWords;
  std::vector<size_t> argumentOffsets, resultOffsets; ///< offset of each
};

/// One function of a program on a device, whose entry point is resolved. A caller that calls it
/// again and again keeps the plan of its types, and then a call neither interprets the program nor
/// looks anything up by name. Threads may share it.
class LoadedFunction {
public:
  LoadedFunction(LoadedProgram &loaded, const harness::Function &function, fp4_entry_function entry)
      : loaded_(loaded), function_(function), entry_(entry) {}

  const harness::Function &function() const { return function_; }

  /// Usage errors name the argument whose element type, layout, rank or size does not fit.
  /// `strides` are those of each argument, or there are none. Dense rows of a strided argument have
  /// strides too.
  static Expected<CallPlan> planOf(const harness::Function &function,
                                   std::span<const harness::Type> arguments,
                                   std::span<const harness::Strides> strides = {});

  /// Issues the work. `results` has one place per result: those whose address is 0 are allocated
  /// and are the caller's to free (Session::handOver). Address and bytes of `results` are written
  /// where the call succeeds.
  Status call(const CallPlan &plan, std::span<const Memory> arguments, std::span<Memory> results,
              const CallOptions &options = {}) const;

  /// The memory of result number `index` in the caller's `buffer`. Usage errors where that is for
  /// another type, and for strides that the result cannot have.
  static Expected<Memory> placeOf(const harness::Function &function, const CallPlan &plan,
                                  size_t index, const Buffer &buffer);

private:
  class Call;

  LoadedProgram &loaded_;
  const harness::Function &function_;
  fp4_entry_function entry_;
};

/// A program on one device: modules are loaded and constants are copied at their first use and stay
/// until the end. Threads may share it.
class LoadedProgram {
public:
  /// `device` must outlive this.
  LoadedProgram(std::shared_ptr<const Program> program, rt::Device &device)
      : program_(std::move(program)), device_(device), cache_(device) {}

  const Program &program() const { return *program_; }
  rt::Device &device() const { return device_; }
  rt::ModuleCache &cache() { return cache_; }

  /// The function `name`, resolved at the first call; an empty name is that of the only function.
  /// The function lives as long as this object.
  Expected<LoadedFunction *> function(std::string_view name);

  /// The static types of the results for arguments of these types. Usage errors name the argument
  /// whose element type, layout, rank or size the function does not take.
  Expected<std::vector<harness::Type>> resultTypes(const harness::Function &function,
                                                   std::span<const harness::Type> arguments) const;

  /// Issues the work of `function`. Results whose address is 0 are allocated and are the caller's
  /// to free (Session::handOver); `type`, `address` and `bytes` of those are written. On a GPU
  /// the call does not wait. A simulator has done the work on return; hazards that it found are a
  /// Simulation error.
  Status call(const harness::Function &function, std::span<const Buffer> arguments,
              std::span<Buffer> results, const CallOptions &options = {});

private:
  std::shared_ptr<const Program> program_;
  rt::Device &device_;
  rt::ModuleCache cache_;
  std::mutex mutex_; ///< guards the following members
  std::map<const harness::Function *, LoadedFunction> functions_;
};

} // namespace fp4
