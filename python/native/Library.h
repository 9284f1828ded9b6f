//===- Library.h - The functions of libfp4 that calls need ----------------===//
#pragma once

#include "fp4-c/Program.h"

#include <string>

namespace fp4::python {

/// Functions of fp4-c of the library that the package has loaded. The module links to no library:
/// which one there is, $FP4_LIBRARY decides.
struct Library {
#define FP4_LIBRARY_FUNCTIONS(FUNCTION)                                                            \
  FUNCTION(fp4_function_call)                                                                      \
  FUNCTION(fp4_device_allocate)                                                                    \
  FUNCTION(fp4_device_free)                                                                        \
  FUNCTION(fp4_device_copy_to)                                                                     \
  FUNCTION(fp4_device_copy_from)                                                                   \
  FUNCTION(fp4_error_get_kind)                                                                     \
  FUNCTION(fp4_error_get_message)                                                                  \
  FUNCTION(fp4_error_get_note)                                                                     \
  FUNCTION(fp4_error_destroy)
#define FP4_MEMBER(name) decltype(&::name) name = nullptr;
  FP4_LIBRARY_FUNCTIONS(FP4_MEMBER)
#undef FP4_MEMBER

  /// Fills the table. On failure returns what is wrong, and changes nothing.
  std::string load(const char *path);
};

extern Library library;

} // namespace fp4::python
