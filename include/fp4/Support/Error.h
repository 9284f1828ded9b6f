//===- Error.h - Checked results for the LLVM-free floors -----------------===//
//
// Every function below the compiler that can fail returns Expected<T> or Status. An Error has the
// sentence that the user reads (lower case, no full stop, "must/expects X, but got Y"), an optional
// note with the remedy, and the class that determines the exit code of a tool.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fp4 {

/// The classes of failure, with the exit code each gives a tool (docs/reference/diagnostics.md).
enum class ErrorKind : int {
  Mismatch = 1,    ///< the result differs from the reference
  Usage = 2,       ///< command line, file or input data
  Compile = 3,     ///< the program does not verify or does not compile
  Device = 4,      ///< the device, its driver or its resources
  Simulation = 5,  ///< the simulated program is wrong: deadlock, unsupported instruction
  Hazard = 6,      ///< the simulator's checker found a race or a missing fence
  Internal = 70,   ///< a broken promise of our own
};

struct Error {
  ErrorKind kind = ErrorKind::Usage;
  std::string message;  ///< description of the fault, with the value found and the value expected
  std::string note;     ///< remedy; may be empty
};

template <typename T> using Expected = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> makeError(ErrorKind kind, std::string message,
                                       std::string note = "") {
  return tl::unexpected<Error>(Error{kind, std::move(message), std::move(note)});
}

/// Exit code of a tool that stops with `error`.
inline int exitCode(const Error &error) { return static_cast<int>(error.kind); }

/// "error: MESSAGE\nnote: NOTE\n", the form every LLVM-free tool prints.
std::string format(const Error &error);

} // namespace fp4

// Macros that pass an error on to the caller. FP4_TRY is for expressions without a value,
// FP4_ASSIGN for expressions with one.

/// Returns the error of a Status or Expected expression from the current function.
#define FP4_TRY(expr)                                                                              \
  do {                                                                                             \
    if (auto fp4TryResult = (expr); !fp4TryResult)                                                 \
      return tl::unexpected<::fp4::Error>(std::move(fp4TryResult.error()));                        \
  } while (false)

/// Assigns the value of an Expected expression to `target`, a variable or the declaration of one,
/// or returns its error from the current function. Two statements: not the body of an `if` by
/// itself.
#define FP4_ASSIGN(target, expr) FP4_ASSIGN_FROM(FP4_UNIQUE(fp4Assigned, __LINE__), target, expr)

#define FP4_ASSIGN_FROM(result, target, expr)                                                      \
  auto result = (expr);                                                                            \
  if (!result)                                                                                     \
    return tl::unexpected<::fp4::Error>(std::move(result.error()));                                \
  target = std::move(*result)
#define FP4_UNIQUE(name, line) FP4_CONCATENATE(name, line)
#define FP4_CONCATENATE(a, b) a##b
