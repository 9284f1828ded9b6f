//===- Trace.cpp - The simulation over time, for the page -----------------===//
//
// A trace has an event in each line. The page gets arrays of numbers:
//
//   warps   cluster, CTA rank, warp, SM or -1
//   spans   warp, from, length, name, line; of a stretch in which the warp runs also: percent of
//           issuing, name of the activity that took most of it, last line; else three zeros
//   marks   warp, at, name, line, name of the mbarrier
//   async   cluster, kind, from, length, name, line, warp
//
// `barriers` has the variable of each mbarrier by its address.
//
// A name is an index of `names`. Times are nanoseconds, or numbers of events, since the launch.
//
//===----------------------------------------------------------------------===//
#include "fp4/Explorer/Explorer.h"
#include "fp4/Sim/Program.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

namespace fp4::explorer {
namespace {

/// Items of all launches that a page shows, those of one at least, and launches.
constexpr size_t kMost = 150'000, kLeast = 500, kLaunches = kMost / kLeast;

class Names {
public:
  int64_t operator()(const std::string &name) {
    const auto [found, added] = index.emplace(name, int64_t(list.size()));
    if (added)
      list.push_back(name);
    return found->second;
  }
  Json list = Json::array();

private:
  std::map<std::string, int64_t> index;
};

/// One launch.
class Reader {
public:
  Reader(const Json &arguments, Names &names, size_t most) : names(names), most(most) {
    for (const char *key : {"program", "kernel", "unit"})
      launch[key] = arguments.value(key, "");
    launch["label"] = sim::displayName(launch["kernel"].get<std::string>());
    scale = launch["unit"] == "ns" ? 1000 : 1;
    for (const char *key : {"warps", "spans", "marks", "async"})
      launch[key] = Json::array();
    launch["barriers"] = Json::object();
  }

  void read(const Json &event) {
    const std::string phase = event.value("ph", "");
    if (phase == "M")
      return open(event);
    if (phase != "E" && phase != "e" && items >= most)
      cut = true;
    else
      item(phase, event);
  }

  /// Leaves out all events after this launch.
  void cutHere() { cut = true; }

  Json finish() {
    const bool fails =
        std::ranges::any_of(warps, [](const auto &entry) { return entry.second.alive; });
    end += fails ? std::max<int64_t>(1, end / 20) : 0; // to show that the warps wait
    for (auto &[track, warp] : warps)
      if (warp.alive) {
        spanOfAll(warp, warp.end);
        put("spans",
            {warp.index, warp.end, end - warp.end, names("does not end"), warp.line, 0, 0, 0});
      }
    for (auto &[key, event] : begun)
      putAsync(event, end);
    launch["end"] = end;
    launch["cut"] = cut;
    return std::move(launch);
  }

private:
  struct Warp {
    int64_t index = 0, begin = 0, end = 0, line = 0;
    bool alive = true;
  };

  int64_t time(const Json &event, const char *key) {
    const int64_t when = std::llround(event.value(key, 0.0) * scale);
    return when;
  }
  int64_t since(int64_t when) {
    if (origin < 0)
      origin = when;
    end = std::max(end, when - origin);
    return when - origin;
  }
  void put(const char *list, std::initializer_list<int64_t> values) {
    Json &array = launch[list];
    for (int64_t value : values)
      array.push_back(value);
    ++items;
  }

  void open(const Json &event) {
    const Json &arguments = event["args"];
    Warp &warp = warps[event.value("tid", int64_t(0))];
    warp.index = int64_t(launch["warps"].size() / 4);
    for (const char *key : {"cluster", "cta", "warp", "sm"})
      launch["warps"].push_back(arguments.value(key, int64_t(-1)));
  }

  void item(const std::string &phase, const Json &event) {
    const int64_t when = since(time(event, "ts"));
    const Json arguments = event.value("args", Json::object());
    if (phase == "b")
      begun[keyOf(event)] = {event, when};
    if (phase == "e")
      if (auto found = begun.find(keyOf(event)); found != begun.end()) {
        putAsync(found->second, when);
        begun.erase(found);
      }
    if (phase == "b" || phase == "e")
      return;
    Warp &warp = warps[event.value("tid", int64_t(0))];
    if (phase == "B")
      warp.begin = warp.end = when;
    if (phase == "E")
      close(warp, when);
    if (phase == "X")
      slice(warp, event, arguments, when);
    if (const std::string symbol = arguments.value("symbol", ""); !symbol.empty())
      launch["barriers"][arguments.value("mbarrier", "")] = symbol;
    if (phase == "i")
      put("marks", {warp.index, when, names(event.value("name", "")),
                    warp.line = arguments.value("ptx line", int64_t(0)),
                    names(arguments.value("mbarrier", ""))});
    warp.end = std::max(warp.end, when);
  }

  void slice(Warp &warp, const Json &event, const Json &arguments, int64_t when) {
    const int64_t length = time(event, "dur");
    warp.line = arguments.value("ptx line", int64_t(0));
    put("spans", {warp.index, when, length, names(event.value("name", "")), warp.line,
                  std::llround(arguments.value("issue", 0.0) * 100),
                  names(arguments.value("most", "")), arguments.value("last line", int64_t(0))});
    warp.end = since(origin + when + length);
  }

  void close(Warp &warp, int64_t when) {
    spanOfAll(warp, when);
    warp.alive = false;
  }

  /// Without times a warp has one span.
  void spanOfAll(const Warp &warp, int64_t to) {
    if (launch["unit"] != "ns")
      put("spans", {warp.index, warp.begin, to - warp.begin, names("warp"), 0, 0, 0, 0});
  }

  struct Begun {
    Json event;
    int64_t from = 0;
  };
  static std::string keyOf(const Json &event) {
    return event.value("cat", "") + " " + event.value("id", "");
  }
  void putAsync(const Begun &begin, int64_t to) {
    const std::string id = begin.event.value("id", "");
    const Json arguments = begin.event.value("args", Json::object());
    put("async", {std::stoll(id.substr(0, id.find('.'))), names(begin.event.value("cat", "")),
                  begin.from, to - begin.from, names(begin.event.value("name", "")),
                  arguments.value("ptx line", int64_t(0)), arguments.value("warp", int64_t(0))});
  }

  Names &names;
  size_t most;
  Json launch;
  double scale = 1;
  int64_t origin = -1, end = 0;
  size_t items = 0;
  bool cut = false;
  std::map<int64_t, Warp> warps;
  std::map<std::string, Begun> begun;
};

/// Returns the event of a line of the trace; null for the brackets around them.
Json eventOf(std::string line) {
  if (!line.empty() && line.back() == ',')
    line.pop_back();
  Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  return event.is_object() ? event : Json();
}

size_t countLaunches(const std::string &path) {
  std::ifstream file(path);
  size_t count = 0;
  for (std::string line; std::getline(file, line);)
    count += line.find("\"process_name\"") != line.npos;
  return count;
}

} // namespace

void readTrace(const std::string &path, Json &data) {
  Names names;
  std::vector<Reader> launches;
  names("");
  const size_t most = std::max(kLeast, kMost / std::max<size_t>(1, countLaunches(path)));
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json event = eventOf(std::move(line));
    if (event.is_null())
      continue;
    if (event.value("name", "") == "process_name") {
      if (launches.size() == kLaunches) {
        launches.back().cutHere();
        break;
      }
      launches.emplace_back(event["args"], names, most);
    } else if (!launches.empty()) {
      launches.back().read(event);
    }
  }
  data["launches"] = Json::array();
  for (Reader &launch : launches)
    data["launches"].push_back(launch.finish());
  data["names"] = std::move(names.list);
}

} // namespace fp4::explorer
