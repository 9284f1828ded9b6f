//===- Wrap.h - C++ values behind the handles of the C API ----------------===//
#pragma once

#include "fp4-c/Error.h"
#include "fp4/Program/Program.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

struct fp4_error {
  fp4::Error error;
};

struct fp4_program {
  std::shared_ptr<const fp4::Program> program;
};

namespace fp4::capi {

fp4_error *wrap(Error error);
fp4_error *wrap(const Status &status);
fp4_error *usage(std::string message, std::string note = "");

/// A requirement on a parameter, under its name.
struct Required {
  bool holds;
  const char *name;
  const char *must = "not be null";
  const char *remedy =
      "a handle is null where the call that makes it failed; texts and places for results "
      "are yours";

  Required(const void *pointer, const char *name) : holds(pointer), name(name) {}
  /// Requires an array, which may be absent if it is empty.
  Required(const void *array, uint64_t size, const char *name)
      : holds(array || !size), name(name) {}
};

/// Requires of an options struct, if there is one, that its caller wrote its size.
template <typename Options> Required sized(const Options *options) {
  Required required(nullptr, "options");
  required.holds = !options || options->size > sizeof(options->size);
  required.must = "have its size in the member 'size'";
  required.remedy = "write options.size = sizeof(options) before the other members";
  return required;
}

/// Runs `work`, which returns an fp4_error, if all `required` parameters hold. Exceptions become
/// errors: none may pass into C.
template <size_t N, typename Work> fp4_error *guarded(const Required (&required)[N], Work &&work) {
  try {
    for (const Required &one : required)
      if (!one.holds)
        return usage("'" + std::string(one.name) + "' must " + one.must, one.remedy);
    return work();
  } catch (const std::bad_alloc &) {
    return wrap(Error{ErrorKind::Device, "this machine has too little memory", ""});
  } catch (const std::exception &exception) {
    return wrap(Error{ErrorKind::Internal, exception.what(), ""});
  }
}

/// The options struct of a caller whose version has `size` bytes; members beyond keep their zeros.
template <typename Options> Options optionsOf(const Options *given) {
  Options options{};
  if (given)
    std::memcpy(&options, given, std::min<uint64_t>(given->size, sizeof(Options)));
  return options;
}

inline std::string stringOf(const char *text, const char *whenNull = "") {
  return text ? text : whenNull;
}

} // namespace fp4::capi

/// Stores the value of an Expected expression in `target`, or returns its error.
#define FP4_C_ASSIGN(target, expr)                                                                 \
  do {                                                                                             \
    auto fp4Result = (expr);                                                                       \
    if (!fp4Result)                                                                                \
      return ::fp4::capi::wrap(std::move(fp4Result.error()));                                      \
    target = std::move(*fp4Result);                                                                \
  } while (false)
