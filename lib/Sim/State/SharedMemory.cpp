//===- SharedMemory.cpp - Shared memory of one CTA, with poison -----------===//
#include "Sim/State/SharedMemory.h"
#include <algorithm>

using namespace fp4::sim;

void SharedMemory::reset(uint32_t bytes) {
  // A recognisable pattern, so that a read that slips through does not look like a zero.
  data.assign(bytes, std::byte{0xA5});
  validBits.assign((bytes + 63) / 64 + 1, 0);
  inFlight.clear();
  stored.clear();
}

static uint64_t bits(uint32_t from, uint32_t count) {
  return (count == 64 ? ~0ull : (1ull << count) - 1) << from;
}

/// Calls f(word, mask) for the words of [index, index + count).
template <typename F> static void forWords(uint32_t index, uint32_t count, F &&f) {
  while (count > 0) {
    uint32_t from = index % 64, part = std::min(count, 64 - from);
    if (!f(index / 64, bits(from, part)))
      return;
    index += part;
    count -= part;
  }
}

bool SharedMemory::valid(uint32_t offset, uint32_t bytes) const {
  bool all = true;
  forWords(offset - kSharedBase, bytes,
           [&](uint32_t word, uint64_t mask) { return all = (validBits[word] & mask) == mask; });
  return all;
}

void SharedMemory::markValid(uint32_t offset, uint32_t bytes) {
  forWords(offset - kSharedBase, bytes, [&](uint32_t word, uint64_t mask) {
    validBits[word] |= mask;
    return true;
  });
}

void SharedMemory::markUninitialized(uint32_t offset, uint32_t bytes) {
  for (uint32_t at = offset; at < offset + bytes && !stored.empty(); ++at)
    stored.erase(at);
  forWords(offset - kSharedBase, bytes, [&](uint32_t word, uint64_t mask) {
    validBits[word] &= ~mask;
    return true;
  });
}

void SharedMemory::poison(uint32_t offset, uint32_t bytes, uint64_t ticket) {
  markUninitialized(offset, bytes);
  std::erase_if(inFlight, [&](const Poison &p) { return valid(p.begin, p.end - p.begin); });
  inFlight.push_back({offset, offset + bytes, ticket});
}

void SharedMemory::storePoison(uint32_t offset, PoisonedByte byte) {
  markUninitialized(offset, 1);
  stored[offset] = byte;
}

std::optional<SharedMemory::BadByte> SharedMemory::firstBad(uint32_t offset, uint32_t bytes) const {
  for (uint32_t i = 0; i < bytes; ++i) {
    if (valid(offset + i, 1))
      continue;
    BadByte bad{offset + i, 0, nullptr};
    if (auto found = stored.find(offset + i); found != stored.end()) {
      bad.stored = &found->second;
      return bad;
    }
    for (const Poison &p : inFlight)
      if (p.begin <= offset + i && offset + i < p.end)
        bad.ticket = p.ticket;
    return bad;
  }
  return std::nullopt;
}
