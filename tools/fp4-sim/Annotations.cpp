//===- Annotations.cpp - Findings as annotations of GitHub Actions --------===//
//
// docs.github.com, "Workflow commands for GitHub Actions": a line "::error PROPERTIES::MESSAGE", in
// which some characters are written as %XX. python/fp4/testing.py writes the same for pytest.
//
//===----------------------------------------------------------------------===//
#include "Annotations.h"
#include "fp4/Sim/Program.h"
#include <filesystem>
#include <fmt/format.h>
#include <regex>

using namespace fp4;
namespace fs = std::filesystem;

namespace {

std::string escaped(const std::string &text, std::string_view characters) {
  std::string result;
  for (const char c : text)
    result += characters.find(c) == characters.npos
                  ? std::string(1, c)
                  : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return result;
}

/// Annotations name files as they are called in the repository, in whose folder the job runs.
std::string inRepository(const std::string &file) {
  std::error_code failed;
  const fs::path inside = fs::path(file).lexically_relative(fs::current_path(failed));
  return failed || inside.empty() || *inside.begin() == ".." ? file : inside.string();
}

std::string annotation(const std::string &file, const std::string &line, const std::string &column,
                       const std::string &title, const std::string &message) {
  const auto property = [](const std::string &text) { return escaped(text, "%\r\n:,"); };
  return fmt::format("::error file={},line={},col={},title={}::{}\n", property(inRepository(file)),
                     line, column, property(title), escaped(message, "%\r\n"));
}

} // namespace

std::string harness::annotationOf(const nlohmann::ordered_json &hazard) {
  static const std::regex located("(.+):([0-9]+):([0-9]+)");
  const auto &second = hazard["second"], &first = hazard["first"];
  const std::string message = fmt::format(
      "kernel '{}': {} ({})\n{}: {}\n{}: {}\nmissing: {}",
      sim::displayName(hazard["kernel"].get<std::string>()), hazard["message"].get<std::string>(),
      hazard["place"].get<std::string>(), first["what"].get<std::string>(),
      first["source"].get<std::string>(), second["what"].get<std::string>(),
      second["source"].get<std::string>(), hazard["missing"].get<std::string>());
  const std::string origin = second.value("origin", ""), rule = hazard["rule"];
  if (std::smatch at; std::regex_match(origin, at, located))
    return annotation(at[1], at[2], at[3], rule, message);
  return annotation(hazard["program"], std::to_string(second["line"].get<unsigned>()),
                    std::to_string(second["column"].get<unsigned>()), rule, message);
}

std::string harness::annotationOf(const std::string &message) {
  static const std::regex place(" at (\\S+):([0-9]+):([0-9]+)"
                                "(?: \\((?:\\S+, inlined at )?(\\S+):([0-9]+):([0-9]+)\\))?");
  const std::string title = message.starts_with("deadlock") ? "deadlock" : "kernel failed";
  std::smatch at;
  if (!std::regex_search(message, at, place))
    return fmt::format("::error title={}::{}\n", title, escaped(message, "%\r\n"));
  const size_t source = at[4].matched ? 4 : 1;
  return annotation(at[source], at[source + 1], at[source + 2], title, message);
}
