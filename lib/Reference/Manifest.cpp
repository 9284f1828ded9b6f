//===- Manifest.cpp - The description in a compiled library ---------------===//

#include "fp4/Reference/Manifest.h"

#include "fp4/ISA/BufferShape.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace fp4::harness {
namespace {

using nlohmann::json;
constexpr int kSchema = 1, kMaxDepth = 32;

struct Spelling {
  ElementType type;
  std::string_view text;
};
constexpr Spelling kSpellings[] = {{ElementType::BF16, "bf16"},
                                   {ElementType::F16, "f16"},
                                   {ElementType::F32, "f32"},
                                   {ElementType::F4E2M1FN, "f4E2M1FN"},
                                   {ElementType::F6E2M3FN, "f6E2M3FN"},
                                   {ElementType::F6E3M2FN, "f6E3M2FN"},
                                   {ElementType::F8E4M3FN, "f8E4M3FN"},
                                   {ElementType::F8E5M2, "f8E5M2"},
                                   {ElementType::F8E8M0FNU, "f8E8M0FNU"},
                                   {ElementType::I64, "i64"},
                                   {ElementType::I8, "i8"},
                                   {ElementType::I32, "i32"}};

/// Names of layouts by number of Layout.
constexpr std::string_view kLayouts[] = {"linear", "tiled_128x4", "wgmma_rows"};

/// A JSON value and its place in the manifest. Accessors throw an Error, which parse() catches: the
/// exception never leaves this file.
struct Field {
  const json &value;
  std::string path;

  [[noreturn]] void fail(std::string_view expected) const {
    throw Error{ErrorKind::Usage,
                fmt::format("manifest: '{}' must be {}, but got {}", path, expected,
                            value.is_discarded() ? "nothing" : value.dump().substr(0, 60)),
                "the library and this tool may be of different versions"};
  }
  Field at(const char *key) const {
    std::string where = path.empty() ? key : path + "." + key;
    if (!value.is_object() || !value.contains(key))
      throw Error{ErrorKind::Usage, fmt::format("manifest: '{}' is missing", where),
                  "the library and this tool may be of different versions"};
    return {value.at(key), where};
  }
  bool has(const char *key) const { return value.is_object() && value.contains(key); }
  std::string string() const {
    if (!value.is_string())
      fail("a string");
    return value.get<std::string>();
  }
  int64_t integer() const {
    if (!value.is_number_integer())
      fail("an integer");
    return value.get<int64_t>();
  }
  bool boolean() const {
    if (!value.is_boolean())
      fail("true or false");
    return value.get<bool>();
  }
  template <typename Fn> void each(Fn fn) const {
    if (!value.is_array())
      fail("an array");
    size_t i = 0;
    for (const json &item : value)
      fn(Field{item, fmt::format("{}[{}]", path, i++)});
  }
};

Type parseType(const Field &field) {
  Type type;
  field.at("shape").each([&](Field dim) {
    int64_t size = dim.integer();
    if (size < -1 || size == 0)
      dim.fail("a positive size, or -1 for a dynamic one");
    type.shape.push_back(size);
  });
  auto element = parseElementType(field.at("type").string());
  if (!element)
    field.at("type").fail(element.error().note);
  type.element = *element;
  if (field.has("layout")) {
    std::string layout = field.at("layout").string();
    const auto known = std::ranges::find(kLayouts, layout);
    if (known == std::end(kLayouts))
      field.at("layout").fail("linear, tiled_128x4 or wgmma_rows");
    type.layout = Layout(known - std::begin(kLayouts));
  }
  return type;
}

std::vector<std::string> parseNames(const Field &field) {
  std::vector<std::string> names;
  field.each([&](Field name) { names.push_back(name.string()); });
  return names;
}

std::vector<Operand> parseOperands(const Field &field) {
  std::vector<Operand> operands;
  field.each([&](Field item) {
    operands.push_back({item.at("name").string(), parseType(item)});
    if (item.has("dims"))
      operands.back().dims = parseNames(item.at("dims"));
    if (item.has("dims") && operands.back().dims.size() != operands.back().type.shape.size())
      item.at("dims").fail("as long as 'shape'");
    if (item.has("strided"))
      operands.back().strided = item.at("strided").boolean();
  });
  return operands;
}

ProgramOp parseOp(const Field &field) {
  ProgramOp op;
  op.op = field.at("op").string();
  op.operands = parseNames(field.at("operands"));
  op.results = parseNames(field.at("results"));
  field.at("result_types").each([&](Field type) { op.resultTypes.push_back(parseType(type)); });
  if (op.results.size() != op.resultTypes.size())
    field.at("result_types").fail("as long as 'results'");
  if (field.has("attributes")) {
    Field attributes = field.at("attributes");
    for (auto &[key, value] : attributes.value.items())
      op.attributes[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return op;
}

Function parseFunction(const Field &field) {
  Function function;
  function.name = field.at("name").string();
  function.symbol = field.at("symbol").string();
  function.arguments = parseOperands(field.at("arguments"));
  function.results = parseOperands(field.at("results"));
  function.hasProgram = field.has("program");
  if (function.hasProgram)
    field.at("program").each([&](Field op) { function.program.push_back(parseOp(op)); });
  if (field.has("fused"))
    field.at("fused").each([&](Field op) { function.fused.push_back(parseOp(op)); });
  if (field.has("returns"))
    function.returns = parseNames(field.at("returns"));
  if (function.hasProgram && function.returns.size() != function.results.size())
    field.at("returns").fail("as long as 'results'");
  return function;
}

KernelResources parseKernel(const Field &field) {
  KernelResources kernel;
  auto number = [&](const char *key) {
    return field.has(key) ? static_cast<uint64_t>(field.at(key).integer()) : 0;
  };
  kernel.module = field.at("module").string();
  kernel.name = field.at("name").string();
  kernel.registers = static_cast<uint32_t>(number("registers"));
  kernel.spillBytes = static_cast<uint32_t>(number("spill_bytes"));
  kernel.sharedBytes = static_cast<uint32_t>(number("shared_bytes"));
  kernel.ptxBytes = number("ptx_bytes");
  kernel.cubinBytes = number("cubin_bytes");
  return kernel;
}

Manifest parseManifest(const Field &root) {
  Manifest manifest;
  if (int64_t schema = root.at("schema").integer(); schema != kSchema)
    root.at("schema").fail(std::to_string(kSchema));
  manifest.compiler = root.at("compiler").string();
  manifest.target = root.at("target").string();
  root.at("functions").each([&](Field f) { manifest.functions.push_back(parseFunction(f)); });
  if (root.has("kernels"))
    root.at("kernels").each([&](Field k) { manifest.kernels.push_back(parseKernel(k)); });
  return manifest;
}

/// `unit` times all sizes; the largest number there is if that overflows.
uint64_t product(uint64_t unit, const std::vector<int64_t> &sizes) {
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(unit, static_cast<uint64_t>(size), &unit))
      return UINT64_MAX;
  return unit;
}

} // namespace

std::string_view spelling(ElementType type) {
  for (const Spelling &entry : kSpellings)
    if (entry.type == type)
      return entry.text;
  return "unknown";
}

Expected<ElementType> parseElementType(std::string_view text) {
  std::string known;
  for (const Spelling &entry : kSpellings) {
    if (entry.text == text)
      return entry.type;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.text);
  }
  return makeError(ErrorKind::Usage, fmt::format("unknown element type '{}'", text),
                   "one of " + known);
}

bool Type::isDynamic() const {
  for (int64_t dim : shape)
    if (dim < 0)
      return true;
  return false;
}

std::string_view spelling(Layout layout) { return kLayouts[size_t(layout)]; }

uint64_t Type::elements() const { return product(1, shape); }

std::vector<int64_t> Type::bufferShape() const {
  const unsigned bits = element == ElementType::F4E2M1FN ? 4 : 8 * storageBytes();
  return hw::bufferShape({shape, bits, layout == Layout::Tiled128x4}, hw::RowPitch::Dense);
}

unsigned Type::storageBytes() const {
  switch (element) {
  case ElementType::I64:
    return 8;
  case ElementType::F32:
  case ElementType::I32:
    return 4;
  case ElementType::BF16:
  case ElementType::F16:
    return 2;
  default:
    return 1;
  }
}

uint64_t Type::bufferBytes() const { return product(storageBytes(), bufferShape()); }

std::string Type::str() const {
  std::string text;
  for (int64_t dim : shape)
    text += (dim < 0 ? std::string("?") : std::to_string(dim)) + "x";
  text += spelling(element);
  return layout == Layout::Linear ? text : fmt::format("{}, {}", text, spelling(layout));
}

Expected<Manifest> Manifest::parse(std::string_view text) {
  // Functions that print a value recurse, so nesting has a limit.
  bool deep = false;
  auto keep = [&](int depth, json::parse_event_t, json &) {
    deep |= depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  json root = json::parse(text, keep, /*allow_exceptions=*/false);
  if (deep)
    return makeError(ErrorKind::Usage,
                     fmt::format("manifest: values must nest at most {} deep", kMaxDepth),
                     "the library was not emitted by this compiler, or is damaged");
  if (root.is_discarded())
    return makeError(ErrorKind::Usage, "manifest: must be JSON, but does not parse",
                     "the library was not emitted by this compiler, or is damaged");
  try {
    return parseManifest(Field{root, ""});
  } catch (Error &error) {
    return tl::unexpected<Error>(std::move(error));
  }
}

Expected<const Function *> Manifest::find(std::string_view name) const {
  if (functions.empty())
    return makeError(ErrorKind::Usage, "the library has no functions");
  std::string known;
  for (const Function &function : functions) {
    if (function.name == name)
      return &function;
    known += (known.empty() ? "" : ", ") + function.name;
  }
  if (name.empty() && functions.size() == 1)
    return &functions.front();
  if (name.empty())
    return makeError(ErrorKind::Usage, "the library has several functions: " + known,
                     "name one of them (--function)");
  return makeError(ErrorKind::Usage, fmt::format("the library has no function named '{}'", name),
                   "its functions are " + known);
}

} // namespace fp4::harness
