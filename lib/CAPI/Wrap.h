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

/// Runs `work`, which returns an fp4_error, and makes errors of its exceptions: none may pass into
/// C.
template <typename Work> fp4_error *guarded(Work &&work) {
  try {
    return work();
  } catch (const std::bad_alloc &) {
    return wrap(Error{ErrorKind::Device, "this machine has too little memory", ""});
  } catch (const std::exception &exception) {
    return wrap(Error{ErrorKind::Internal, exception.what(), ""});
  }
}

/// Members of an options struct of which the caller's version has `size` bytes; the others keep
/// their zeros.
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
