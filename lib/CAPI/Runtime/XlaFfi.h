//===- XlaFfi.h - The structures of XLA's FFI that a handler reads --------===//
//
// https://github.com/openxla/xla/blob/main/xla/ffi/api/c_api.h (version 0.1 and later 0.x, which
// append members). Nobody packages the header alone, so these few declarations stand here;
// test/scripts/frameworks.sh compares them with the header of jaxlib.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp4::xla {

constexpr int kMajorVersion = 0, kMinorVersion = 1;
constexpr int kMetadata = 1;            ///< type of an extension
constexpr int kExecute = 3;             ///< a stage
constexpr int kBuffer = 1, kString = 4; ///< types of an argument or result, of an attribute
constexpr int kInvalidArgument = 3, kNotFound = 5, kFailedPrecondition = 9, kInternal = 13,
              kUnavailable = 14; ///< codes of errors

enum DataType : int {
  kS8 = 2,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kF16 = 10,
  kF32 = 11,
  kBF16 = 16,
  kF8E5M2 = 19,
  kF8E4M3FN = 20,
  kF8E8M0FNU = 33
};

/// The beginning of every struct that is passed.
struct Header {
  size_t size;
  struct Extension *extensions;
};

struct Extension {
  size_t size;
  int type;
  Extension *next;
};

struct Version {
  Header header;
  int major, minor;
};

struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

struct Buffer {
  Header header;
  int type;
  void *data;
  int64_t rank;
  int64_t *dims;
};

struct Span {
  const char *begin;
  size_t size;
};

struct Operands {
  Header header;
  int64_t size;
  int *types;
  void **values;
};

struct Attributes {
  Header header;
  int64_t size;
  int *types;
  Span **names;
  void **values;
};

struct ErrorArguments {
  Header header;
  const char *message;
  int code;
};

struct DestroyArguments {
  Header header;
  void *error;
};

struct StreamArguments {
  Header header;
  void *context;
  void *stream;
};

struct OrdinalArguments {
  Header header;
  void *context;
  int32_t ordinal;
};

struct AllocateArguments {
  Header header;
  void *context;
  size_t bytes, alignment;
  void *data;
};

struct FreeArguments {
  Header header;
  void *context;
  size_t bytes;
  void *data;
};

/// The functions of XLA. A function returns an error or null.
struct Api {
  Header header;
  Version version;
  const void *internal;
  void *(*createError)(ErrorArguments *);
  void *others1[1]; // GetMessage
  void (*destroyError)(DestroyArguments *);
  void *others2[1]; // Handler_Register
  void *(*getStream)(StreamArguments *);
  void *others3[4]; // Type_Register, ExecutionContext_Get, State_Set, State_Get
  void *(*allocate)(AllocateArguments *);
  void *(*free)(FreeArguments *);
  void *others4[6]; // thread pools, futures, RunId
  void *(*getOrdinal)(OrdinalArguments *);
};

struct Frame {
  Header header;
  const Api *api;
  void *context;
  int stage;
  Operands arguments, results;
  Attributes attributes;
};

} // namespace fp4::xla
