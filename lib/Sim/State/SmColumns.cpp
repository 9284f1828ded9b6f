//===- SmColumns.cpp - Tensor memory that the CTAs of one SM share ---------===//
#include "Sim/State/SmColumns.h"
#include "fp4/ISA/TmemLayout.h"
#include <algorithm>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

static std::string nameOf(const std::array<uint32_t, 3> &cta) {
  return fmt::format("CTA ({},{},{})", cta[0], cta[1], cta[2]);
}

uint32_t SmColumns::enter(uint64_t cluster) {
  const std::lock_guard<std::mutex> guard(lock);
  uint64_t place = cluster % clusters.size();
  if (clusters[place] >= ctasPerSm)
    place = uint64_t(std::ranges::min_element(clusters) - clusters.begin());
  ++clusters[place];
  return uint32_t(place);
}

void SmColumns::leave(uint64_t cluster, uint32_t place) {
  const std::lock_guard<std::mutex> guard(lock);
  --clusters[place];
  std::erase_if(held, [&](const Held &one) { return one.call.owner.cluster == cluster; });
  std::erase_if(waiting, [&](const ColumnsCall &one) { return one.owner.cluster == cluster; });
}

std::optional<uint32_t> SmColumns::findFree(const ColumnsCall &call) const {
  const auto here = [&](const Held &one) {
    return one.call.owner == call.owner || meets(one.call.owner, call.owner);
  };
  if (call.exclusive)
    return std::ranges::any_of(held, here) ? std::nullopt : std::optional(0u);
  for (uint32_t first = 0; first + call.columns <= hw::tmemColumnCount;
       first += hw::tmemMinAllocColumns)
    if (std::ranges::none_of(held, [&](const Held &one) {
          return here(one) && (one.call.exclusive || (one.column < first + call.columns &&
                                                      first < one.column + one.call.columns));
        }))
      return first;
  return std::nullopt;
}

std::optional<uint32_t> SmColumns::take(const ColumnsCall &call) {
  const std::lock_guard<std::mutex> guard(lock);
  const auto sameCall = [&](const ColumnsCall &one) {
    return one.owner == call.owner && one.number == call.number;
  };
  for (const Held &one : held)
    if (sameCall(one.call))
      return one.column;
  const std::optional<uint32_t> column = findFree(call);
  std::erase_if(waiting, sameCall);
  if (column)
    held.push_back({call, *column});
  else
    waiting.push_back(call);
  return column;
}

bool SmColumns::available(const ColumnsCall &call) const {
  const std::lock_guard<std::mutex> guard(lock);
  return findFree(call).has_value() || std::ranges::any_of(held, [&](const Held &one) {
           return one.call.owner == call.owner && one.call.number == call.number;
         });
}

void SmColumns::give(const ColumnsOwner &owner, uint32_t column, uint32_t parts) {
  const std::lock_guard<std::mutex> guard(lock);
  const auto found = std::ranges::find_if(
      held, [&](const Held &one) { return one.call.owner == owner && one.column == column; });
  if (found != held.end() && ++found->given == parts)
    held.erase(found);
}

std::string SmColumns::describeOthers(const ColumnsOwner &owner) const {
  const std::lock_guard<std::mutex> guard(lock);
  std::string text;
  for (const Held &one : held) {
    if (!meets(one.call.owner, owner))
      continue;
    text +=
        fmt::format("{}columns {}..{} by {} since line {}", text.empty() ? "" : "; ", one.column,
                    one.column + one.call.columns - 1, nameOf(one.call.owner.cta), one.call.line);
    for (const ColumnsCall &wait : waiting)
      if (wait.owner == one.call.owner)
        text += fmt::format(", which waits at line {} for {} more", wait.line, wait.columns);
  }
  return text;
}

std::string SmColumns::describeWaiters(const ColumnsOwner &owner) const {
  const std::lock_guard<std::mutex> guard(lock);
  if (std::ranges::none_of(held, [&](const Held &one) { return one.call.owner == owner; }))
    return "";
  std::string text;
  for (const ColumnsCall &wait : waiting)
    if (meets(wait.owner, owner))
      text +=
          fmt::format("{}{} waits at line {} for {} columns of the tensor memory of this SM",
                      text.empty() ? "" : "; ", nameOf(wait.owner.cta), wait.line, wait.columns);
  return text;
}
