//===- SourcePlace.cpp - Places in the source of a program ----------------===//
//
// Instructions have the innermost frame of .loc. The outer frames are read from the text when a
// report needs them: `.loc F L C, function_name N, inlined_at F L C`, where the place of the call
// is again that of a .loc if its function was inlined too.
//
//===----------------------------------------------------------------------===//
#include "Sim/State/SourcePlace.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <memory>
#include <optional>

using namespace fp4::sim;

namespace {

using Frame = std::array<uint32_t, 3>; ///< file, line, column

constexpr std::string_view kLoc = ".loc", kInlined = "inlined_at";

/// The three numbers at the begin of `text`.
std::optional<Frame> readFrame(std::string_view text) {
  Frame frame{};
  for (uint32_t &number : frame) {
    text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc())
      return std::nullopt;
    text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  }
  return frame;
}

/// The place of the call in the line of a .loc.
std::optional<Frame> callOf(std::string_view line) {
  const size_t at = line.find(kInlined);
  return at == std::string_view::npos ? std::nullopt : readFrame(line.substr(at + kInlined.size()));
}

/// The line of text that begins at `begin`.
std::string_view lineAt(std::string_view text, size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// The call of the .loc above a line of the text.
std::optional<Frame> callAbove(std::string_view text, uint32_t line) {
  size_t begin = 0;
  for (uint32_t i = 1; i < line && begin < text.size(); ++i)
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  const size_t at = text.rfind(kLoc, begin);
  return at == std::string_view::npos ? std::nullopt : callOf(lineAt(text, at));
}

/// The call through which the frame of a call was inlined itself.
std::optional<Frame> callAround(std::string_view text, const Frame &inner) {
  for (size_t at = text.find(kLoc); at != std::string_view::npos; at = text.find(kLoc, at + 1)) {
    const std::string_view line = lineAt(text, at);
    if (readFrame(line) == inner)
      if (const auto call = callOf(line))
        return call;
  }
  return std::nullopt;
}

std::string describe(const ProgramImpl &program, const Frame &frame) {
  return frame[0] && frame[0] < program.files.size() && frame[1]
             ? fmt::format("{}:{}:{}", program.files[frame[0]], frame[1], frame[2])
             : "";
}

} // namespace

std::string fp4::sim::sourcePlace(const ProgramImpl &program, const Insn &insn) {
  constexpr unsigned deepest = 32;
  std::string inner = describe(program, {insn.debugFile, insn.debugLine, insn.debugColumn});
  if (!insn.debugFile)
    return inner;
  std::optional<Frame> outer = callAbove(program.text, insn.line);
  for (unsigned depth = 0; outer && depth < deepest; ++depth) {
    const auto around = callAround(program.text, *outer);
    if (!around)
      break;
    outer = around;
  }
  const std::string call = outer ? describe(program, *outer) : "";
  if (inner.empty() || call.empty())
    return inner + call;
  return inner + ", inlined at " + call;
}
