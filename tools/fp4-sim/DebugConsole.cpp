//===- DebugConsole.cpp - Commands and answers of a debugger in words -----===//
#include "DebugConsole.h"
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <sstream>

using namespace fp4;
using namespace fp4::harness;

namespace {

using Words = std::vector<std::string>;

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failed == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

tl::unexpected<Error> wrong(const std::string &what) {
  return makeError(ErrorKind::Usage, what, "help lists the commands");
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

Expected<Json> go(const std::string &what, const Words &words, DebugFocus &focus) {
  Json command = {{"do", what}, {"warp", focus.warp}};
  if (words.size() > 1) {
    const auto count = number(words[1]);
    if (!count)
      return wrong(fmt::format("'{}' is no number of steps", words[1]));
    command["count"] = *count;
  }
  return command;
}

/// break 12 | FILE:12 | mbarrier.try_wait | barriers | kernel NAME
Expected<Json> breakAt(const Words &words) {
  if (words.size() == 3 && words[1] == "kernel")
    return Json{{"do", "break"}, {"kernel", words[2]}};
  if (words.size() != 2)
    return wrong("break expects a line, FILE:LINE, an opcode, 'barriers' or 'kernel NAME'");
  if (const auto line = number(words[1]))
    return Json{{"do", "break"}, {"line", *line}};
  const size_t colon = words[1].rfind(':');
  if (const auto line =
          colon == std::string::npos ? std::nullopt : number(words[1].substr(colon + 1)))
    return Json{{"do", "break"}, {"file", words[1].substr(0, colon)}, {"line", *line}};
  return Json{{"do", "break"}, {"opcode", words[1]}};
}

Expected<Json> deleteOne(const Words &words) {
  const auto id = words.size() == 2 ? number(words[1]) : std::nullopt;
  if (!id)
    return wrong("delete expects the number of a breakpoint");
  return Json{{"do", "delete"}, {"breakpoint", *id}};
}

/// warp 3: the number of `warps`
Expected<Json> chooseWarp(const Words &words, DebugFocus &focus) {
  const auto warp = words.size() == 2 ? number(words[1]) : std::nullopt;
  if (!warp)
    return wrong("warp expects the number of a warp in the list of 'warps'");
  focus.warp = *warp;
  return Json{{"do", "groups"}, {"warp", focus.warp}};
}

Expected<Json> chooseLane(const Words &words, DebugFocus &focus) {
  const auto lane = words.size() == 2 ? number(words[1]) : std::nullopt;
  if (!lane || *lane > 31)
    return wrong("lane expects a number from 0 to 31");
  focus.lane = int(*lane);
  return Json{{"do", "groups"}, {"warp", focus.warp}};
}

Expected<Json> registers(const Words &words, const DebugFocus &focus) {
  Json command = {{"do", "registers"}, {"warp", focus.warp}};
  if (focus.lane >= 0)
    command["lane"] = focus.lane;
  if (words.size() > 1)
    command["only"] = Words(words.begin() + 1, words.end());
  return command;
}

/// print %r4 [TYPE]
Expected<Json> print(const Words &words, const DebugFocus &focus) {
  if (words.size() != 2 && words.size() != 3)
    return wrong("print expects a register, and perhaps a type");
  return Json{{"do", "register"},
              {"warp", focus.warp},
              {"name", words[1]},
              {"type", words.size() == 3 ? words[2] : ""}};
}

/// TYPE ROWSxCOLUMNS and pairs of a word and a number.
Expected<Json> shape(Json command, const Words &words, size_t from) {
  if (words.size() > from)
    command["type"] = words[from];
  if (words.size() > from + 1) {
    const std::string &text = words[from + 1];
    const size_t by = text.find('x');
    const auto rows = number(text.substr(0, by)),
               columns = by == std::string::npos ? std::nullopt : number(text.substr(by + 1));
    if (!rows || !columns)
      return wrong(fmt::format("'{}' is no ROWSxCOLUMNS", text));
    command["rows"] = *rows;
    command["columns"] = *columns;
  }
  for (size_t i = from + 2; i < words.size(); i += 2) {
    const auto value = i + 1 < words.size() ? number(words[i + 1]) : std::nullopt;
    if (!value || (words[i] != "pitch" && words[i] != "swizzle" && words[i] != "lane"))
      return wrong(fmt::format("'{}' is no 'pitch', 'swizzle' or 'lane' with a number", words[i]));
    command[words[i]] = *value;
  }
  return command;
}

Expected<Json> tile(const Words &words, const DebugFocus &focus) {
  if (words.size() < 2)
    return wrong("tile expects a shared variable or an address");
  return shape({{"do", "tile"}, {"warp", focus.warp}, {"place", words[1]}}, words, 2);
}

Expected<Json> tensor(const Words &words, const DebugFocus &focus) {
  const auto column = words.size() > 1 ? number(words[1]) : std::nullopt;
  if (!column)
    return wrong("tensor expects a column of tensor memory");
  return shape({{"do", "tensor"}, {"warp", focus.warp}, {"column", *column}}, words, 2);
}

/// The line of the warp, with those around.
Expected<Json> list(const Words &words, const DebugFocus &focus) {
  const auto line = words.size() == 2 ? number(words[1]) : std::nullopt;
  if (words.size() > 2 || (words.size() == 2 && !line))
    return wrong("list expects a line of the PTX, or nothing");
  Json command = {{"do", "source"}, {"warp", focus.warp}};
  if (line)
    command["line"] = *line;
  return command;
}

struct Command {
  std::string_view name, brief, arguments, help;
  std::function<Expected<Json>(const Words &, DebugFocus &)> make;
};

Command plain(std::string_view name, std::string_view brief, std::string_view help,
              std::string word = "") {
  if (word.empty())
    word = name;
  return {name, brief, "", help, [word](const Words &words, DebugFocus &focus) -> Expected<Json> {
            if (words.size() > 1)
              return wrong(fmt::format("{} expects nothing behind it", words[0]));
            return Json{{"do", word}, {"warp", focus.warp}};
          }};
}

const std::vector<Command> &commands() {
  static const std::vector<Command> all = {
      {"break", "b", "LINE | FILE:LINE | OPCODE | barriers | kernel NAME", "stop there",
       [](const Words &w, DebugFocus &) { return breakAt(w); }},
      plain("breakpoints", "", "list the breakpoints"),
      {"delete", "d", "N", "forget a breakpoint",
       [](const Words &w, DebugFocus &) { return deleteOne(w); }},
      plain("continue", "c", "go on"),
      {"step", "s", "[COUNT]", "go on for instructions of the warp",
       [](const Words &w, DebugFocus &f) { return go("step", w, f); }},
      {"next", "n", "", "go on to another line of the warp",
       [](const Words &w, DebugFocus &f) { return go("next", w, f); }},
      plain("warps", "w", "list the warps of the cluster"),
      {"warp", "", "N", "look at another warp", chooseWarp},
      {"lane", "", "N", "look at another lane", chooseLane},
      plain("where", "", "show where the lanes of the warp are", "groups"),
      {"list", "l", "[LINE]", "show the PTX",
       [](const Words &w, DebugFocus &f) { return list(w, f); }},
      {"registers", "r", "[NAME...]", "show registers of the lane",
       [](const Words &w, DebugFocus &f) { return registers(w, f); }},
      {"print", "p", "NAME [TYPE]", "show a register in all lanes",
       [](const Words &w, DebugFocus &f) { return print(w, f); }},
      plain("mbarriers", "m", "list mbarriers with their phases"),
      plain("barriers", "", "list barriers of CTAs and of the cluster"),
      plain("tickets", "t", "list asynchronous operations in flight"),
      {"tile", "", "PLACE [TYPE [ROWSxCOLUMNS [pitch N] [swizzle N]]]", "show shared memory",
       [](const Words &w, DebugFocus &f) { return tile(w, f); }},
      {"tensor", "", "COLUMN [TYPE [ROWSxCOLUMNS [lane N]]]", "show tensor memory",
       [](const Words &w, DebugFocus &f) { return tensor(w, f); }},
      plain("quit", "q", "end the program"),
      plain("help", "h", "list the commands"),
  };
  return all;
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

std::string placeText(const Json &place) {
  std::string text = fmt::format("{:>5}  {}", place["line"].get<uint32_t>(),
                                 place["instruction"].get<std::string>());
  if (place.contains("file"))
    text += fmt::format("  ({}:{})",
                        std::filesystem::path(place["file"].get<std::string>()).filename().string(),
                        place["source_line"].get<uint32_t>());
  return text;
}

std::string groupsText(const Json &groups, std::string_view indent) {
  if (groups.empty())
    return fmt::format("{}has exited\n", indent);
  std::string text;
  for (const Json &group : groups) {
    text +=
        fmt::format("{}lanes {} {}\n", indent, group["lanes"].get<std::string>(), placeText(group));
    if (group.contains("waits"))
      text += fmt::format("{}  waits for {}\n", indent, group["waits"].get<std::string>());
  }
  return text;
}

std::string warpsText(const Json &warps, const DebugFocus &focus) {
  std::string text;
  for (const Json &warp : warps) {
    const auto id = warp["warp"].get<uint32_t>();
    text += fmt::format("{} {:>3}  {}\n", id == focus.warp ? '*' : ' ', id,
                        warp["name"].get<std::string>());
    text += groupsText(warp["groups"], "       ");
  }
  return text;
}

std::string registersText(const Json &command, const Json &registers) {
  std::string text;
  const Json only = command.value("only", Json::array());
  for (const Json &reg : registers) {
    if (!only.empty() && std::ranges::find(only, reg["name"]) == only.end())
      continue;
    text += fmt::format("  {:<8} .{:<5} {}{}\n", reg["name"].get<std::string>(),
                        reg["type"].get<std::string>(), reg["value"].get<std::string>(),
                        reg["same"].get<bool>() ? "" : "  (lanes differ)");
  }
  return text.empty() ? "no such register\n" : text;
}

std::string lanesText(const Json &value) {
  const Json &lanes = value["lanes"];
  std::string text =
      fmt::format("{} .{}:", value["name"].get<std::string>(), value["type"].get<std::string>());
  const bool same = std::ranges::all_of(lanes, [&](const Json &v) { return v == lanes.front(); });
  if (same && !lanes.empty())
    return text + fmt::format(" {} in all lanes\n", lanes.front().get<std::string>());
  unsigned column = 0;
  constexpr unsigned perLine = 8;
  for (const auto &[lane, v] : lanes.items())
    text +=
        fmt::format("{}{:>4}: {:<10}", column++ % perLine ? "" : "\n", lane, v.get<std::string>());
  return text + "\n";
}

std::string listed(const Json &all, std::string_view none) {
  std::string text;
  for (const Json &one : all) {
    text += "  ";
    if (one.contains("rank"))
      text += fmt::format("rank {}  ", one["rank"].get<uint32_t>());
    for (const char *key : {"name", "address", "state", "history", "what"})
      if (one.contains(key) && !one[key].get<std::string>().empty())
        text += one[key].get<std::string>() + (std::string_view(key) == "state" ? "; " : "  ");
    while (text.ends_with(' ') || text.ends_with(';'))
      text.pop_back();
    text += '\n';
  }
  return text.empty() ? fmt::format("{}\n", none) : text;
}

std::string tileText(const Json &value) {
  size_t width = 1;
  for (const Json &row : value["rows"])
    for (const Json &cell : row)
      width = std::max(width, cell.get_ref<const std::string &>().size());
  std::string text;
  unsigned number = 0;
  for (const Json &row : value["rows"]) {
    text += fmt::format("{:>4} |", number++);
    for (const Json &cell : row)
      text += fmt::format(" {:>{}}", cell.get_ref<const std::string &>(), width);
    text += '\n';
  }
  return text;
}

std::string breakpointText(const Json &b) {
  std::string place = b.value("kernel", "");
  if (!place.empty())
    place = fmt::format("kernel '{}'", place);
  else if (const std::string opcode = b.value("opcode", ""); !opcode.empty())
    place = opcode;
  else
    place = fmt::format("{}line {}", b.value("file", "").empty() ? "" : b.value("file", "") + ", ",
                        b.value("line", 0u));
  const uint32_t stops = b.value("stops_at", 0u);
  return fmt::format("  breakpoint {}: {}{}\n", b["breakpoint"].get<int>(), place,
                     stops || !b.value("kernel", "").empty() ? "" : " (nowhere in this kernel)");
}

/// Nine lines of the PTX around the line.
std::string sourceText(const Json &value, uint32_t line) {
  constexpr uint32_t around = 4;
  std::istringstream stream(value["text"].get<std::string>());
  std::string text, one;
  for (uint32_t at = 1; std::getline(stream, one); ++at)
    if (at + around >= line && at <= line + around)
      text += fmt::format("{} {:>5}  {}\n", at == line ? '>' : ' ', at, one);
  return text.empty() ? "the PTX has no such line\n" : text;
}

} // namespace

Expected<Json> harness::parseCommand(const std::string &line, DebugFocus &focus) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  if (words.empty())
    return wrong("an empty command");
  for (const Command &command : commands())
    if (words[0] == command.name || words[0] == command.brief)
      return command.make(words, focus);
  return wrong(fmt::format("there is no command '{}'", words[0]));
}

std::string harness::commandHelp() {
  std::string text;
  for (const Command &command : commands())
    text += fmt::format("  {:<12} {:<3} {:<52} {}\n", command.name, command.brief,
                        command.arguments, command.help);
  return text;
}

std::string harness::describeStop(const Json &event) {
  std::string text = event["text"].get<std::string>();
  if (!text.ends_with('\n'))
    text += '\n';
  return text + fmt::format("{} {}, lanes {}, {}:{}:{}\n{}\n", event["warp"].get<uint32_t>(),
                            event["name"].get<std::string>(), event["lanes"].get<std::string>(),
                            event["program"].get<std::string>(), event["line"].get<uint32_t>(),
                            event["column"].get<uint32_t>(), placeText(event));
}

/// The places at which the answer to a break says that it stops.
static std::string breakpointPlaces(const Json &value, bool atKernel) {
  const auto line = value["stops_at"].get<uint32_t>();
  const auto places = value.value("places", size_t(1));
  if (!line)
    return atKernel ? "" : ", nowhere in this kernel";
  return places > 1 ? fmt::format(" at {} places, the first at line {}", places, line)
                    : fmt::format(" at line {}", line);
}

std::string harness::describeAnswer(const Json &command, const Json &answer,
                                    const DebugFocus &focus) {
  if (answer.is_null())
    return "";
  if (answer.contains("error"))
    return fmt::format("error: {}\n", answer["error"].get<std::string>());
  const std::string what = command["do"];
  const Json value = answer.value("value", Json());
  if (what == "break")
    return fmt::format("  breakpoint {}{}\n", value["breakpoint"].get<int>(),
                       breakpointPlaces(value, command.contains("kernel")));
  if (what == "delete" || what == "breakpoints") {
    std::string text;
    for (const Json &b : value)
      text += breakpointText(b);
    return text.empty() ? "no breakpoints\n" : text;
  }
  if (what == "warps")
    return warpsText(value, focus);
  if (what == "groups")
    return groupsText(value, "  ");
  if (what == "registers")
    return registersText(command, value);
  if (what == "register")
    return lanesText(value);
  if (what == "tile" || what == "tensor")
    return tileText(value);
  if (what == "source")
    return sourceText(value, command.value("line", value["line"].get<uint32_t>()));
  if (what == "mbarriers" || what == "barriers")
    return listed(value, fmt::format("no {} are in use", what));
  return what == "tickets" ? listed(value, "nothing is in flight") : "";
}
