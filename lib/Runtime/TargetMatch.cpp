//===- TargetMatch.cpp - GPUs that run code of a target -------------------===//

#include "TargetMatch.h"

#include <charconv>

namespace fp4::rt {

TargetMatch matchTarget(std::string_view target, int major, int minor) {
  TargetMatch match;
  match.known = target.starts_with("sm_");
  if (match.known)
    target.remove_prefix(3);
  char suffix = 0;
  if (target.ends_with('a') || target.ends_with('f')) {
    suffix = target.back();
    target.remove_suffix(1);
  }
  int version = 0;
  auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), version);
  match.known &= error == std::errc() && end == target.data() + target.size() && version >= 10;
  if (!match.known)
    return match;
  int targetMajor = version / 10, targetMinor = version % 10;
  bool sameMajor = targetMajor == major, notOlder = minor >= targetMinor;
  if (suffix == 'a') {
    match.cubin = match.ptx = sameMajor && minor == targetMinor;
  } else if (suffix == 'f') {
    match.cubin = match.ptx = sameMajor && notOlder;
  } else {
    match.cubin = sameMajor && notOlder;
    match.ptx = major > targetMajor || match.cubin;
  }
  return match;
}

} // namespace fp4::rt
