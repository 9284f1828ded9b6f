//===- DebugConsole.h - Commands and answers of a debugger in words -------===//
#pragma once

#include "fp4/Support/Error.h"
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fp4::harness {

using Json = nlohmann::ordered_json;

/// The warp and the lane that a person looks at.
struct DebugFocus {
  uint32_t warp = 1;
  int lane = -1; ///< -1: the first that lives
};

/// The command of the protocol that a line of words asks for. `focus` changes with "warp" and
/// "lane", whose answer shows where the warp is. Errors name the word.
Expected<Json> parseCommand(const std::string &line, DebugFocus &focus);
/// The answer to the command, as lines of text.
std::string describeAnswer(const Json &command, const Json &answer, const DebugFocus &focus);
/// A stop, as lines of text.
std::string describeStop(const Json &event);
/// The commands, a line each.
std::string commandHelp();

} // namespace fp4::harness
