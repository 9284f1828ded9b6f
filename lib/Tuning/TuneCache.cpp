//===- TuneCache.cpp - Plans that a search has found before ---------------===//

#include "fp4/Tuning/TuneCache.h"

#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <cstdlib>

namespace fp4::tuning {
namespace {

namespace json = llvm::json;

std::string hashOf(llvm::StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

std::string folder() {
  const auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string own = variable("FP4_TUNE_CACHE"); !own.empty())
    return own == "off" ? "" : own;
  llvm::SmallString<128> path(variable("XDG_CACHE_HOME"));
  if (path.empty()) {
    path = variable("HOME");
    if (path.empty())
      return "";
    llvm::sys::path::append(path, ".cache");
  }
  llvm::sys::path::append(path, "fp4", "tune");
  return path.str().str();
}

std::string spell(const json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

json::Object toJson(const TunedPlans &tuned, const std::string &key) {
  json::Object object{{"schema", 1},
                      {"key", key},
                      {"plans", json::Array(tuned.plans)},
                      {"predicted_microseconds", tuned.microseconds},
                      {"before_microseconds", tuned.before},
                      {"predictions", int64_t(tuned.predictions)},
                      {"verified", tuned.verified}};
  if (tuned.measured) {
    object["measured_microseconds"] = *tuned.measured;
    object["device"] = tuned.device;
  }
  return object;
}

/// Returns true for deeply nested text: the cache writes shallow files, and the parser recurses.
bool nestsDeeply(llvm::StringRef text) {
  constexpr int most = 32;
  int depth = 0;
  return llvm::any_of(text, [&](char c) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    return depth > most;
  });
}

/// Reads an entry; every field but `measured` must be there.
std::optional<TunedPlans> fromJson(const json::Object &object) {
  TunedPlans tuned;
  const json::Array *plans = object.getArray("plans");
  auto now = object.getNumber("predicted_microseconds");
  auto before = object.getNumber("before_microseconds");
  auto predictions = object.getInteger("predictions");
  auto verified = object.getBoolean("verified");
  if (!plans || !now || !before || !predictions || !verified)
    return std::nullopt;
  for (const json::Value &plan : *plans) {
    if (!plan.getAsString())
      return std::nullopt;
    tuned.plans.push_back(plan.getAsString()->str());
  }
  tuned.microseconds = *now;
  tuned.before = *before;
  tuned.predictions = uint64_t(*predictions);
  tuned.verified = *verified;
  if (auto measured = object.getNumber("measured_microseconds"))
    tuned.measured = *measured;
  tuned.device = object.getString("device").value_or("").str();
  return tuned;
}

} // namespace

TuneCache::TuneCache(const std::string &question) : key(hashOf(question)) {
  llvm::SmallString<128> path(folder());
  if (path.empty())
    return;
  llvm::sys::path::append(path, key + ".json");
  file = path.str().str();
}

std::optional<TunedPlans> TuneCache::read(bool &damaged) const {
  damaged = false;
  if (file.empty() || !llvm::sys::fs::exists(file))
    return std::nullopt;
  damaged = true;
  Expected<std::string> text = readText(file);
  if (!text || nestsDeeply(*text))
    return std::nullopt;
  llvm::Expected<json::Value> value = json::parse(*text);
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  json::Object *object = value->getAsObject();
  if (!object)
    return std::nullopt;
  const std::string sum = object->getString("sha256").value_or("").str();
  object->erase("sha256");
  if (object->getString("key") != llvm::StringRef(key) || object->getInteger("schema") != 1 ||
      hashOf(spell(json::Value(json::Object(*object)))) != sum)
    return std::nullopt;
  std::optional<TunedPlans> tuned = fromJson(*object);
  damaged = !tuned;
  return tuned;
}

Status TuneCache::write(const TunedPlans &tuned) const {
  if (file.empty())
    return {};
  const std::string where = llvm::sys::path::parent_path(file).str();
  if (std::error_code error = llvm::sys::fs::create_directories(where))
    return makeError(ErrorKind::Usage, "cannot create '" + where + "': " + error.message(),
                     "FP4_TUNE_CACHE names another folder, or is 'off'");
  json::Object object = toJson(tuned, key);
  object["sha256"] = hashOf(spell(json::Value(json::Object(object))));
  return writeFile(file, spell(json::Value(std::move(object))) + "\n");
}

} // namespace fp4::tuning
