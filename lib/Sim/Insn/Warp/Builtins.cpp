//===- Builtins.cpp - The device functions that CUDA's runtime provides ---===//
//
// vprintf(format, arguments): the arguments lie in memory one after the other, each aligned to its
// size, as C promotes them. __assertfail ends the kernel with the words of the assertion.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Warp/Call.h"
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <mutex>

using namespace fp4;
using namespace fp4::sim;

namespace {

constexpr size_t kMaxString = 1 << 16;

/// The zero-terminated string at a generic address. False after an error.
bool readString(ExecContext &cx, uint64_t address, int lane, std::string &out) {
  out.clear();
  while (out.size() < kMaxString) {
    const std::byte *c = cx.readable(Space::Generic, address + out.size(), 1, 1, lane);
    if (!c)
      return false;
    if (*c == std::byte(0))
      return true;
    out += static_cast<char>(*c);
  }
  return true;
}

/// Takes the arguments of one lane from memory, in order.
class ArgumentReader {
public:
  ArgumentReader(ExecContext &cx, uint64_t address, int lane)
      : cx(cx), address(address), lane(lane) {}
  bool take(uint32_t bytes, uint64_t &value) {
    address = (address + bytes - 1) / bytes * bytes;
    const std::byte *place = cx.readable(Space::Generic, address, bytes, bytes, lane);
    if (!place)
      return false;
    value = 0;
    std::memcpy(&value, place, bytes);
    address += bytes;
    return true;
  }

private:
  ExecContext &cx;
  uint64_t address;
  int lane;
};

/// One conversion specification: "%-8.3lf".
struct Conversion {
  std::string flags; ///< flags with width and precision, stars replaced
  bool isLong = false;
  char kind = 0;
};

bool isOneOf(char c, const char *set) { return c && std::strchr(set, c); }

/// Parses a conversion from behind the '%'. False after an error or at the end of the format.
bool parseConversion(const std::string &format, size_t &at, ArgumentReader &arguments,
                     Conversion &out) {
  for (; at < format.size() && isOneOf(format[at], "-+ #0123456789.*"); ++at) {
    uint64_t star = 0;
    if (format[at] != '*')
      out.flags += format[at];
    else if (!arguments.take(4, star))
      return false;
    else
      out.flags += std::to_string(static_cast<int32_t>(star));
  }
  for (; at < format.size() && isOneOf(format[at], "hlLqjzt"); ++at)
    out.isLong |= format[at] != 'h' && format[at] != 'L';
  out.kind = at < format.size() ? format[at++] : '\0';
  return true;
}

template <typename T> std::string print(const std::string &format, T value) {
  int length = std::snprintf(nullptr, 0, format.c_str(), value);
  std::string text(static_cast<size_t>(std::max(length, 0)) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), value);
  text.pop_back();
  return text;
}

bool convert(ExecContext &cx, int lane, ArgumentReader &arguments, const Conversion &c,
             std::string &out) {
  uint64_t value = 0;
  std::string start = "%" + c.flags, text;
  bool isFloat = isOneOf(c.kind, "fFeEgGaA"), isPointer = isOneOf(c.kind, "sp");
  if (!isFloat && !isPointer && !isOneOf(c.kind, "diuoxXc")) {
    out += start + c.kind; // as CUDA does: what is not known is printed
    return true;
  }
  if (!arguments.take(isFloat || isPointer || c.isLong ? 8 : 4, value))
    return false;
  if (isFloat)
    out += print(start + c.kind, std::bit_cast<double>(value));
  else if (c.kind == 'p')
    out += print(start + "p", reinterpret_cast<void *>(value));
  else if (c.kind == 'c')
    out += print(start + "c", static_cast<int>(value));
  else if (c.kind != 's' && isOneOf(c.kind, "di"))
    out += print(start + "lld", static_cast<long long>(c.isLong ? static_cast<int64_t>(value)
                                                                : static_cast<int32_t>(value)));
  else if (c.kind != 's')
    out += print(start + "ll" + c.kind, static_cast<unsigned long long>(value));
  else if (!readString(cx, value, lane, text))
    return false;
  else
    out += print(start + "s", text.c_str());
  return true;
}

/// Formats the text that one lane prints. False after an error.
bool formatLane(ExecContext &cx, int lane, uint64_t formatAddress, uint64_t argumentAddress,
                std::string &out) {
  std::string format;
  if (!readString(cx, formatAddress, lane, format))
    return false;
  ArgumentReader arguments(cx, argumentAddress, lane);
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    if (++at < format.size() && format[at] == '%') {
      out += format[at++];
      continue;
    }
    Conversion conversion;
    if (!parseConversion(format, at, arguments, conversion) ||
        !convert(cx, lane, arguments, conversion, out))
      return false;
  }
  return true;
}

void emit(ExecContext &cx, const std::string &text) {
  std::lock_guard<std::mutex> guard(cx.launch().lock);
  if (cx.launch().options->print)
    cx.launch().options->print(text);
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
}

Outcome wrongShape(ExecContext &cx, const char *name, size_t expected, const CallSite &site) {
  return cx.fail(
      fmt::format("'{}' expects {} arguments, but got {}", name, expected, site.arguments.size()));
}

Outcome vprintf(ExecContext &cx, const CallSite &site) {
  if (site.arguments.size() != 2)
    return wrongShape(cx, "vprintf", 2, site);
  std::string text;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    size_t before = text.size();
    if (!formatLane(cx, lane, argumentValue(cx, site.arguments[0], lane),
                    argumentValue(cx, site.arguments[1], lane), text))
      return Outcome::Error;
    if (!site.results.empty())
      setArgument(cx, site.results[0], lane, text.size() - before);
  }
  emit(cx, text);
  return Outcome::Next;
}

/// (message, file, line, function, size of a character)
Outcome assertFail(ExecContext &cx, const CallSite &site) {
  if (site.arguments.size() != 5)
    return wrongShape(cx, "__assertfail", 5, site);
  int lane = cx.firstLane();
  auto argument = [&](size_t i) { return argumentValue(cx, site.arguments[i], lane); };
  std::string message, file, function;
  if (!readString(cx, argument(0), lane, message) || !readString(cx, argument(1), lane, file) ||
      !readString(cx, argument(3), lane, function))
    return Outcome::Error;
  return cx.fail(fmt::format("assertion failed: {}", message),
                 fmt::format("{}:{}: {}", file, static_cast<uint32_t>(argument(2)), function),
                 lane);
}

struct Row {
  std::string_view name;
  Builtin function;
};
constexpr Row kBuiltins[] = {{"vprintf", vprintf}, {"__assertfail", assertFail}};

} // namespace

Builtin fp4::sim::findBuiltin(std::string_view name) {
  for (const Row &row : kBuiltins)
    if (row.name == name)
      return row.function;
  return nullptr;
}

std::string fp4::sim::builtinNames() {
  std::string names;
  for (const Row &row : kBuiltins)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}
