//===- DebugAdapter.cpp - The Debug Adapter Protocol ----------------------===//
#include "DebugAdapter.h"
#include "fp4/Support/JsonText.h"
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <poll.h>
#include <unistd.h>
#include <utility>

using namespace fp4;
using namespace fp4::harness;

namespace {

constexpr std::string_view kLength = "Content-Length:";

/// The meaning of a reference to variables, with the number of the warp above.
enum Scope : unsigned { Registers = 1, Mbarriers, Barriers, Tickets, Scopes };
constexpr std::pair<Scope, const char *> kScopes[] = {{Registers, "registers"},
                                                      {Mbarriers, "mbarriers"},
                                                      {Barriers, "barriers"},
                                                      {Tickets, "tickets"}};
constexpr uint32_t kFrames = 64; ///< groups of lanes that a warp may have

Json capabilities() {
  return {{"supportsConfigurationDoneRequest", true},
          {"supportsFunctionBreakpoints", true},
          {"supportsTerminateRequest", true}};
}

bool isPtx(std::string_view path) { return path.ends_with(".ptx"); }

} // namespace

DebugAdapter::DebugAdapter(int socket, int other, int in, int out)
    : DebugClient(socket, other), in(in), out(out) {
  if (pipe2(outputs, O_CLOEXEC) != 0)
    outputs[0] = outputs[1] = -1;
}

/// The program's output becomes events: stdout belongs to the protocol.
void DebugAdapter::inProgram() {
  DebugClient::inProgram();
  if (outputs[1] >= 0) {
    dup2(outputs[1], STDOUT_FILENO);
    dup2(outputs[1], STDERR_FILENO);
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void DebugAdapter::write(Json message) {
  message["seq"] = ++sequence;
  const std::string body = jsonText(message);
  const std::string text = fmt::format("{} {}\r\n\r\n{}", kLength, body.size(), body);
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(out, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      open = false;
      return;
    }
    done += size_t(count);
  }
}

void DebugAdapter::event(const std::string &name, Json body) {
  Json message = {{"type", "event"}, {"event", name}, {"body", std::move(body)}};
  if (answering)
    late.push_back(std::move(message));
  else
    write(std::move(message));
}

/// Takes the first whole message of the buffer.
bool DebugAdapter::takeMessage(Json &message) {
  const size_t end = buffer.find("\r\n\r\n"), at = buffer.find(kLength);
  if (end == buffer.npos)
    return false;
  size_t length = 0;
  if (at < end) {
    const size_t first = buffer.find_first_not_of(' ', at + kLength.size());
    std::from_chars(buffer.data() + first, buffer.data() + end, length);
  }
  constexpr size_t separator = 4;
  if (buffer.size() - end - separator < length)
    return false;
  message = Json::parse(buffer.substr(end + separator, length), nullptr, false);
  buffer.erase(0, end + separator + length);
  return true;
}

void DebugAdapter::readRequests() {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::read(in, bytes.data(), bytes.size());
  if (count <= 0 && !(count < 0 && errno == EINTR)) {
    open = false;
    return;
  }
  buffer.append(bytes.data(), size_t(std::max<ssize_t>(count, 0)));
  Json message;
  while (open && takeMessage(message))
    handle(message);
}

void DebugAdapter::passOutput() {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::read(outputs[0], bytes.data(), bytes.size());
  if (count > 0)
    event("output", {{"category", "stdout"}, {"output", std::string(bytes.data(), size_t(count))}});
  else if (count == 0)
    outputs[0] = -1;
}

void DebugAdapter::beside(pid_t child) {
  connect();
  program = child;
  signal(SIGPIPE, SIG_IGN);
  if (outputs[1] >= 0)
    close(outputs[1]);
  bool runs = true;
  while (open && (runs || outputs[0] >= 0)) {
    std::array<pollfd, 3> waits{
        {{in, POLLIN, 0}, {runs ? socket.number() : -1, POLLIN, 0}, {outputs[0], POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0)
      continue;
    if (waits[0].revents)
      readRequests();
    if (waits[2].revents)
      passOutput();
    while (open && runs && hasNext()) {
      const Json message = next();
      runs = !message.is_null();
      if (runs)
        meetEvent(message);
    }
  }
  if (!open)
    end(program);
}

void DebugAdapter::ended(int code) {
  event("exited", {{"exitCode", code}});
  event("terminated", Json::object());
}

//===----------------------------------------------------------------------===//
// Stops
//===----------------------------------------------------------------------===//

void DebugAdapter::meetEvent(const Json &stop) {
  stands = true;
  programName = stop["program"];
  focus = {stop["warp"].get<uint32_t>(), -1};
  if (!launched) {
    launched = true;
    if (configured)
      begin();
    return;
  }
  const std::string reason = stop["reason"];
  const bool fault = reason == "error" || reason == "hazard";
  const std::string text = stop["text"];
  if (fault)
    event("output", {{"category", "stderr"}, {"output", text}});
  event("stopped", {{"reason", fault                ? "exception"
                               : reason == "launch" ? "entry"
                                                    : reason},
                    {"description", text.substr(0, text.find('\n'))},
                    {"text", text.substr(0, text.find('\n'))},
                    {"threadId", focus.warp},
                    {"allThreadsStopped", true}});
}

/// The program stands at its first instruction, and the client has said where to stop.
void DebugAdapter::begin() {
  for (const Json &command : waitingBreakpoints)
    ask(command);
  waitingBreakpoints.clear();
  if (stopAtBegin) {
    event("stopped", {{"reason", "entry"}, {"threadId", focus.warp}, {"allThreadsStopped", true}});
    return;
  }
  go("continue", Json::object());
}

/// The answer of the program; an empty list if it does not know.
Json DebugAdapter::valueOf(const Json &command) {
  const Json reply = ask(command);
  return reply.is_object() ? reply.value("value", Json::array()) : Json::array();
}

/// Lets the program go on. Returns the body of the response; the program that refuses still stands.
Json DebugAdapter::go(const std::string &what, const Json &arguments) {
  Json command = {{"do", what}};
  if (arguments.contains("threadId"))
    command["warp"] = arguments.at("threadId").get<uint32_t>();
  const Json reply = ask(command);
  if (reply.contains("error"))
    return {{"error", reply["error"]}};
  stands = false;
  return what == "continue" ? Json{{"allThreadsContinued", true}} : Json::object();
}

/// A program that runs answers when it looks at the socket; before its first kernel it does not.
void DebugAdapter::install(const Json &command) {
  if (!launched || (!configured && !stands))
    waitingBreakpoints.push_back(command);
  else if (stands)
    ask(command);
  else
    tell(command);
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void DebugAdapter::handle(const Json &request) {
  if (!request.is_object() || !request.contains("type") || request["type"] != "request")
    return;
  Json response = {{"type", "response"}, {"request_seq", 0}, {"success", true}, {"command", ""}};
  answering = true;
  try {
    response["request_seq"] = request.at("seq").get<int64_t>();
    response["command"] = request.at("command").get<std::string>();
    const Json arguments = request.value("arguments", Json());
    response["body"] =
        answer(response["command"], arguments.is_null() ? Json::object() : arguments);
    if (response["body"].contains("error"))
      refuse(response, response["body"]["error"]);
  } catch (const Json::exception &error) { // a field is missing or of another type
    const std::string_view text = error.what();
    refuse(response, fmt::format("a request expects the fields of the protocol: {}",
                                 text.substr(text.find(' ') + 1)));
  }
  answering = false;
  write(response);
  for (Json &message : std::exchange(late, Json::array()))
    write(std::move(message));
  if (response["success"] == true)
    follow(response["command"]);
}

void DebugAdapter::refuse(Json &response, const std::string &why) {
  response["success"] = false;
  response["message"] = why;
}

/// The consequences of a request that come behind its response.
void DebugAdapter::follow(const std::string &command) {
  if (command == "initialize")
    event("initialized", Json::object());
  if (command == "configurationDone") {
    configured = true;
    if (launched && stands)
      begin();
  }
  if (command == "disconnect" || command == "terminate")
    open = false;
}

/// Requests that let the program go on, and the debugger's words for them. A kernel has no caller.
static const std::map<std::string, std::string> kMoves = {
    {"continue", "continue"}, {"next", "next"}, {"stepIn", "step"}, {"stepOut", "continue"}};

Json DebugAdapter::answer(const std::string &command, const Json &arguments) {
  if (command == "initialize")
    return capabilities();
  if (command == "launch" || command == "attach") {
    stopAtBegin = arguments.value("stopOnEntry", false);
    return Json::object();
  }
  if (command == "setBreakpoints")
    return setBreakpoints(arguments);
  if (command == "setFunctionBreakpoints")
    return setFunctionBreakpoints(arguments);
  if (command == "pause") {
    if (!stands || !configured)
      tell({{"do", "pause"}});
    return Json::object();
  }
  if (command == "threads")
    return threads();
  static const std::array quiet = {"configurationDone", "disconnect", "terminate",
                                   "setExceptionBreakpoints"};
  if (std::ranges::find(quiet, command) != quiet.end())
    return Json::object();
  // The stop at the first instruction is this adapter's until the client is done.
  if (!stands || !configured)
    return {{"error", "the program runs"}};
  if (const auto move = kMoves.find(command); move != kMoves.end())
    return go(move->second, arguments);
  if (command == "stackTrace")
    return stackTrace(arguments);
  if (command == "scopes")
    return scopes(arguments);
  if (command == "variables")
    return variables(arguments);
  if (command == "evaluate")
    return evaluate(arguments);
  if (command == "source")
    return {{"content", valueOf({{"do", "source"}}).value("text", "")}};
  return {{"error", fmt::format("'{}' is not supported", command)}};
}

Json DebugAdapter::setBreakpoints(const Json &arguments) {
  const Json source = arguments.value("source", Json::object());
  const std::string path = source.value("path", source.value("name", ""));
  // A source without a path is the PTX, which the client got by its reference.
  const bool ptx = isPtx(path) || source.value("sourceReference", 0) != 0;
  if (isPtx(path) && std::filesystem::exists(path))
    ptxPath = path;
  const std::string file = ptx ? "" : path;
  std::vector<uint32_t> lines; // all of them, before any old one is forgotten
  for (const Json &breakpoint : arguments.value("breakpoints", Json::array()))
    lines.push_back(breakpoint.at("line"));
  install({{"do", "clear"}, {"file", file}});
  Json result = Json::array();
  for (const uint32_t line : lines) {
    install({{"do", "break"}, {"file", file}, {"line", line}});
    result.push_back({{"verified", true}, {"line", line}});
  }
  return {{"breakpoints", result}};
}

Json DebugAdapter::setFunctionBreakpoints(const Json &arguments) {
  std::vector<std::string> names;
  for (const Json &breakpoint : arguments.at("breakpoints"))
    names.push_back(breakpoint.at("name"));
  install({{"do", "clear_names"}});
  Json result = Json::array();
  for (const std::string &name : names) {
    install({{"do", "break"}, {"opcode", name}});
    install({{"do", "break"}, {"kernel", name}});
    result.push_back({{"verified", true}});
  }
  return {{"breakpoints", result}};
}

/// A client may ask at any time; while the program runs nobody knows its warps.
Json DebugAdapter::threads() {
  Json list = Json::array();
  const Json warps = stands ? valueOf({{"do", "warps"}}) : Json::array();
  for (const Json &warp : warps)
    if (!warp["groups"].empty())
      list.push_back({{"id", warp["warp"]}, {"name", warp["name"]}});
  if (list.empty())
    list.push_back({{"id", 1}, {"name", "program"}});
  return {{"threads", list}};
}

Json DebugAdapter::sourceOf(const Json &place) const {
  if (place.contains("file") && std::filesystem::exists(place["file"].get<std::string>()))
    return {{"path", place["file"]}};
  if (!ptxPath.empty())
    return {{"path", ptxPath}};
  return {{"name", programName}, {"sourceReference", 1}};
}

/// A frame for each group of lanes.
Json DebugAdapter::stackTrace(const Json &arguments) {
  const uint32_t thread = arguments.at("threadId");
  Json frames = Json::array();
  uint32_t number = 0;
  const Json groups = valueOf({{"do", "groups"}, {"warp", thread}});
  for (const Json &group : groups) {
    const Json source = sourceOf(group);
    const bool own =
        group.contains("file") && source.contains("path") && source["path"] == group["file"];
    std::string name = fmt::format("lanes {}: {}", group["lanes"].get<std::string>(),
                                   group["instruction"].get<std::string>());
    if (group.contains("waits"))
      name += ", waits for " + group["waits"].get<std::string>();
    frames.push_back({{"id", thread * kFrames + number++},
                      {"name", name},
                      {"source", source},
                      {"line", own ? group["source_line"] : group["line"]},
                      {"column", own ? Json(1) : group["column"]}});
  }
  return {{"stackFrames", frames}, {"totalFrames", frames.size()}};
}

Json DebugAdapter::scopes(const Json &arguments) const {
  const uint32_t thread = arguments.at("frameId").get<uint32_t>() / kFrames;
  Json list = Json::array();
  for (const auto &[scope, name] : kScopes)
    list.push_back(
        {{"name", name}, {"variablesReference", thread * Scopes + scope}, {"expensive", false}});
  return {{"scopes", list}};
}

Json DebugAdapter::variables(const Json &arguments) {
  const uint32_t reference = arguments.at("variablesReference");
  const uint32_t thread = (reference - 1) / Scopes, which = (reference - 1) % Scopes;
  if (which >= std::size(kScopes))
    return {{"error", "there are no such variables"}};
  Json list = Json::array();
  const Json all = valueOf({{"do", kScopes[which].second}, {"warp", thread}});
  for (const Json &one : all) {
    const std::string rank =
        one.contains("rank") ? fmt::format("rank {} ", one["rank"].get<int>()) : "";
    const std::string name = one.contains("ticket")
                                 ? fmt::format("{}", one["ticket"].get<uint64_t>())
                                 : rank + one["name"].get<std::string>();
    Json variable = {{"name", name}, {"variablesReference", 0}};
    for (const char *key : {"value", "state", "what"})
      if (one.contains(key))
        variable["value"] = one[key];
    if (one.contains("type"))
      variable["type"] = one["type"];
    if (one.contains("same") && !one["same"].get<bool>())
      variable["value"] = one["value"].get<std::string>() + " (lanes differ)";
    list.push_back(std::move(variable));
  }
  return {{"variables", list}};
}

/// A command of the prompt that looks at something.
Json DebugAdapter::evaluate(const Json &arguments) {
  if (arguments.contains("frameId"))
    focus.warp = arguments.at("frameId").get<uint32_t>() / kFrames;
  const std::string text = arguments.at("expression");
  // A register by its name alone, as editors ask for it.
  const Expected<Json> command =
      parseCommand(text.starts_with('%') ? "print " + text : text, focus);
  if (!command)
    return {{"error", command.error().message}};
  const std::string what = (*command)["do"];
  if (what == "continue" || what == "step" || what == "next" || what == "quit")
    return {{"error", fmt::format("use the editor's own '{}'", what)}};
  const std::string result =
      what == "help" ? commandHelp() : describeAnswer(*command, ask(*command), focus);
  return {{"result", result}, {"variablesReference", 0}};
}
