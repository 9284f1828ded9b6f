//===- PtxFolder.cpp - PTX files by the kernels that they have ------------===//
#include "PtxFolder.h"
#include "fp4/SimCuda/ElfFile.h"
#include "fp4/SimCuda/Fatbin.h"
#include "fp4/Support/InputFile.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;
namespace fs = std::filesystem;

std::vector<std::string> fp4::simcuda::kernelNames(std::string_view ptx) {
  constexpr std::string_view keyword = ".entry", space = " \t\r\n";
  std::vector<std::string> names;
  for (size_t at = ptx.find(keyword); at != std::string_view::npos; at = ptx.find(keyword, at)) {
    at += keyword.size();
    const size_t begin = std::min(ptx.find_first_not_of(space, at), ptx.size());
    const size_t end = std::min(ptx.find_first_of(" \t\r\n(){;", begin), ptx.size());
    if (begin > at && end > begin)
      names.emplace_back(ptx.substr(begin, end - begin));
  }
  return names;
}

void PtxFolder::read() {
  files.clear();
  std::vector<fs::path> found;
  std::error_code failed;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, failed))
    if (entry.path().extension() == ".ptx")
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  for (const fs::path &file : found) {
    const auto bytes = readBytes(file.string());
    if (!bytes)
      continue;
    const std::string_view text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
    const std::string target = targetOf(text);
    for (const std::string &kernel : kernelNames(text))
      files[kernel].push_back({file.string(), target});
  }
}

Expected<std::string> PtxFolder::fileOf(std::string_view kernel, std::string_view chip) {
  auto found = files.find(kernel);
  if (found == files.end()) {
    read();
    found = files.find(kernel);
  }
  if (found == files.end())
    return makeError(ErrorKind::Device, fmt::format("no .ptx file of '{}' has the kernel", path));
  std::string targets;
  for (const File &file : found->second) {
    if (runsOn(file.target, chip))
      return file.path;
    targets += (targets.empty() ? "" : ", ") + file.target;
  }
  return makeError(
      ErrorKind::Device,
      fmt::format("'{}' has PTX of the kernel for {}, but not for {}", path, targets, chip));
}
