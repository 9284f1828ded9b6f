//===- Foreign.h - Calls with tensors of other frameworks -----------------===//
#pragma once

#include "Device.h"

#include <map>
#include <memory>
#include <mutex>

namespace fp4::capi {

/// A type code and the bits of an element, as DLPack numbers them.
struct ForeignType {
  uint8_t code = 0, bits = 0;
  bool operator==(const ForeignType &) const = default;
};

/// A tensor of another framework: two 4-bit elements are one uint8.
struct Foreign {
  ForeignType type;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides; ///< strides in elements; none: dense
  uint64_t address = 0;
};

struct ErrorDeleter {
  void operator()(fp4_error *error) const { fp4_error_destroy(error); }
};
using OwnedError = std::unique_ptr<fp4_error, ErrorDeleter>;

/// Finds the fp4_tensors of the arguments: Usage errors name the one whose dtype or shape does not
/// fit. Linear arguments tell the named sizes of tiled ones.
Expected<std::vector<fp4_tensor>> argumentsOf(const harness::Function &function,
                                              std::span<const Foreign> given);

/// Gives results, whose types are those of `described`, the addresses and rows of `given`. Usage
/// errors name the one whose dtype or shape does not fit.
Status placeResults(const harness::Function &function, std::span<const Foreign> given,
                    std::span<fp4_tensor> described);

/// A program and its executables, one for each device that called it.
class Deployment {
public:
  /// The only one of a program. Never destroyed: frameworks may call until the process ends, and
  /// the code of a program stays as long.
  static Deployment &of(const fp4_program &program);

  const harness::Manifest &manifest() const { return program_.program->manifest(); }

  /// Calls `function` with tensors in host memory in the simulator, and waits.
  OwnedError callOnHost(const harness::Function &function, std::span<const Foreign> arguments,
                        std::span<const Foreign> results);
  /// Issues the work of `function` to a stream of GPU number `ordinal`.
  OwnedError callOnCuda(int ordinal, const harness::Function &function,
                        std::span<const Foreign> arguments, std::span<const Foreign> results,
                        const fp4_call_options &options);

private:
  explicit Deployment(const fp4_program &program) : program_(program) {}

  struct Place {
    fp4_device *device = nullptr;
    fp4_executable *executable = nullptr;
  };
  struct Prepared {
    Place place;
    fp4_function *function = nullptr;
    std::vector<fp4_tensor> arguments, results;
  };

  OwnedError placeOn(const std::string &selector, Place &place);
  OwnedError prepare(const std::string &selector, const harness::Function &function,
                     std::span<const Foreign> arguments, std::span<const Foreign> results,
                     Prepared &prepared);

  fp4_program program_;
  std::mutex mutex_; ///< guards the places, by the selectors of their devices
  std::map<std::string, Place> places_;
};

} // namespace fp4::capi
