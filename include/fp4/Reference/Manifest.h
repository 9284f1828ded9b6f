//===- Manifest.h - Description of a compiled library ---------------------===//
//
// Schema 1 of the JSON that the compiler embeds as `fp4_manifest`: the functions with their
// argument and result types, the tensor program that the reference interpreter executes to verify
// them, and the kernels with the resources that ptxas reported.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::harness {

enum class ElementType {
  BF16,
  F16,
  F32,
  F4E2M1FN,
  F6E2M3FN,
  F6E3M2FN,
  F8E4M3FN,
  F8E5M2,
  F8E8M0FNU,
  I64,
  I8,
  I32
};
/// WgmmaRows: prepacked weights whose rows have one power of two (fp4/Numerics/ByteWeights.h).
/// Other prepacked weights are Linear.
enum class Layout { Linear, Tiled128x4, WgmmaRows };
std::string_view spelling(Layout layout);

/// "bf16", ..., and back; the note of the error lists the spellings that exist.
std::string_view spelling(ElementType type);
Expected<ElementType> parseElementType(std::string_view text);

/// A logical tensor. A negative dimension is dynamic.
struct Type {
  std::vector<int64_t> shape;
  ElementType element = ElementType::F32;
  Layout layout = Layout::Linear;

  bool isDynamic() const;
  /// Elements of a static type. Like bufferBytes, saturates instead of overflowing.
  uint64_t elements() const;
  /// The dense device buffer at a function boundary: f4 packs two per byte and row, tiled_128x4
  /// scales are ceil(R/128) x ceil(B/4) scale tiles.
  std::vector<int64_t> bufferShape() const;
  uint64_t bufferBytes() const;
  /// Bytes of one buffer element: 4, 2, or 1 for packed f4 pairs and scales.
  unsigned storageBytes() const;
  /// "256x1024xbf16", "256x64xf8E4M3FN, tiled_128x4".
  std::string str() const;
  bool operator==(const Type &) const = default;
};

struct Operand {
  std::string name;
  Type type;
  std::vector<std::string> dims = {}; ///< names of the dimensions: "M", "M/16", ""
  bool strided = false;               ///< an argument or result whose rows the caller places
};

/// One tensor operation of the verified program.
struct ProgramOp {
  std::string op; ///< "fp4.quantize"
  std::vector<std::string> operands, results;
  std::vector<Type> resultTypes;
  std::map<std::string, std::string> attributes;
};

struct Function {
  std::string name, symbol;
  std::vector<Operand> arguments, results;
  bool hasProgram = false;          ///< false: it has operations no reference knows
  std::vector<ProgramOp> program;   ///< operands: arguments a0, a1, .. or earlier results
  std::vector<std::string> returns; ///< one value per result
  std::vector<ProgramOp> fused;     ///< operations that became kernels: the program after fusion
};

struct KernelResources {
  std::string module, name;
  uint32_t registers = 0, spillBytes = 0, sharedBytes = 0;
  uint64_t ptxBytes = 0, cubinBytes = 0;
};

struct Manifest {
  std::string compiler, target;
  std::vector<Function> functions;
  std::vector<KernelResources> kernels;

  /// Checks every field. A wrong field is a Usage error that names its path
  /// ("functions[0].results").
  static Expected<Manifest> parse(std::string_view json);
  /// The function `name`; an empty name is that of the only function.
  Expected<const Function *> find(std::string_view name) const;
};

} // namespace fp4::harness
