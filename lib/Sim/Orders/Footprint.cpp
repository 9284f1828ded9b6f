//===- Footprint.cpp - Bytes and objects that a step of an order touched --===//
#include "Sim/Orders/Footprint.h"
#include <algorithm>

namespace fp4::sim {
namespace {

constexpr uint8_t kRead = uint8_t(ByteUse::Read), kPoison = uint8_t(ByteUse::Poison),
                  kWrite = uint8_t(ByteUse::Write);

bool overlap(const std::vector<ByteRange> &a, const std::vector<ByteRange> &b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].begin < b[j].end && b[j].begin < a[i].end)
      return true;
    a[i].end < b[j].end ? ++i : ++j;
  }
  return false;
}

void joinTouching(std::vector<ByteRange> &ranges) {
  if (ranges.size() < 2)
    return;
  std::ranges::sort(ranges, {}, &ByteRange::begin);
  size_t last = 0;
  for (const ByteRange &range : ranges)
    if (range.begin <= ranges[last].end)
      ranges[last].end = std::max(ranges[last].end, range.end);
    else
      ranges[++last] = range;
  ranges.resize(last + 1);
}

} // namespace

bool commute(uint8_t first, bool firstTicket, uint8_t second, bool secondTicket) {
  if (first == kPoison || second == kPoison)
    return (first == kPoison || firstTicket) && (second == kPoison || secondTicket);
  return first == second && first != kWrite;
}

/// A wait by state is an error when the phase after the one that it waits for is over, too.
static bool maySpoil(const ObjectAccess &wait, const ObjectAccess &arrival) {
  return wait.use == ObjectUse::Await && arrival.use == ObjectUse::Arrive && arrival.completes &&
         arrival.phase > wait.phase && wait.object >> 56 == uint64_t(ObjectKind::Mbarrier);
}

bool commute(const ObjectAccess &first, const ObjectAccess &second) {
  if (first.object != second.object)
    return true;
  if (first.use == ObjectUse::Write || second.use == ObjectUse::Write)
    return false;
  if (maySpoil(first, second) || maySpoil(second, first))
    return false;
  const auto passes = [](ObjectUse use) {
    return use == ObjectUse::Give || use == ObjectUse::Take;
  };
  if (passes(first.use) && passes(second.use))
    return true;
  const bool awaits = first.use == ObjectUse::Await || second.use == ObjectUse::Await;
  if (awaits || (first.use == ObjectUse::Read && second.use == ObjectUse::Read))
    return true; // whoever awaits a phase comes after it anyway
  // If the second takes the place of the last arrival, the first belongs to the next phase.
  return first.use == ObjectUse::Arrive && second.use == ObjectUse::Arrive &&
         first.phase == second.phase && !second.completes;
}

bool Footprint::readsOnly() const {
  for (uint8_t use = 0; use < kByteUses; ++use)
    if (use != kRead && !bytes[use].empty())
      return false;
  return absorbed.empty() && std::ranges::all_of(objects, [](const ObjectAccess &access) {
           return access.use == ObjectUse::Read;
         });
}

void Footprint::normalize() {
  for (auto &ranges : bytes)
    joinTouching(ranges);
  for (auto &ranges : earlier)
    joinTouching(ranges);
}

void Footprint::join(const Footprint &other) {
  auto &reads = bytes[kRead];
  reads.insert(reads.end(), other.bytes[kRead].begin(), other.bytes[kRead].end());
  objects.insert(objects.end(), other.objects.begin(), other.objects.end());
  visible += other.visible;
  normalize();
}

using UsedBytes = std::vector<ByteRange>[kByteUses];

static bool conflict(const UsedBytes &first, bool firstTicket, const UsedBytes &second,
                     bool secondTicket) {
  for (uint8_t a = 0; a < kByteUses; ++a)
    for (uint8_t b = 0; b < kByteUses && !first[a].empty(); ++b)
      if (!commute(a, firstTicket, b, secondTicket) && overlap(first[a], second[b]))
        return true;
  return false;
}

bool dependInside(const Footprint &first, const Footprint &second) {
  return conflict(first.earlier, first.ticket, second.bytes, second.ticket) ||
         conflict(first.bytes, first.ticket, second.earlier, second.ticket);
}

bool dependent(const Footprint &first, const Footprint &second) {
  if (first.everything || second.everything ||
      conflict(first.bytes, first.ticket, second.bytes, second.ticket))
    return true;
  for (const ObjectAccess &a : first.objects)
    for (const ObjectAccess &b : second.objects)
      if (!commute(a, b))
        return true;
  return false;
}

} // namespace fp4::sim
