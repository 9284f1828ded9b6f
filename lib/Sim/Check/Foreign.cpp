//===- Foreign.cpp - Knowledge about other clusters -----------------------===//
#include "Foreign.h"

using namespace fp4::sim::check;

const Known *Foreign::find(uint32_t cluster) const {
  const size_t at = cluster / kInPart;
  return at < parts.size() && parts[at] ? (*parts[at])[cluster % kInPart].get() : nullptr;
}

void Foreign::join(KnownPtr &mine, const KnownPtr &other) {
  if (!other || mine == other || (mine && mine->covers(*other)))
    return;
  if (!mine || other->covers(*mine)) {
    mine = other;
    return;
  }
  auto both = std::make_shared<Known>(*mine);
  both->join(*other);
  mine = std::move(both);
}

void Foreign::join(PartPtr &mine, const PartPtr &other) {
  if (covers(mine, other))
    return;
  if (covers(other, mine)) {
    mine = other;
    return;
  }
  auto both = std::make_shared<Part>(*mine);
  for (size_t i = 0; i < kInPart; ++i)
    join((*both)[i], (*other)[i]);
  mine = std::move(both);
}

bool Foreign::covers(const PartPtr &mine, const PartPtr &other) {
  if (!other || mine == other)
    return true;
  for (size_t i = 0; mine && i < kInPart; ++i) {
    const KnownPtr &a = (*mine)[i], &b = (*other)[i];
    if (b && a != b && !(a && a->covers(*b)))
      return false;
  }
  return mine != nullptr;
}

void Foreign::join(uint32_t cluster, const Known &known) {
  Foreign other;
  other.parts.resize(cluster / kInPart + 1);
  auto part = std::make_shared<Part>();
  (*part)[cluster % kInPart] = std::make_shared<const Known>(known);
  other.parts.back() = std::move(part);
  join(other);
}

void Foreign::join(const Foreign &other) {
  if (parts.size() < other.parts.size())
    parts.resize(other.parts.size());
  for (size_t i = 0; i < other.parts.size(); ++i)
    join(parts[i], other.parts[i]);
}

bool Foreign::covers(const Foreign &other) const {
  static const PartPtr none;
  for (size_t i = 0; i < other.parts.size(); ++i)
    if (!covers(i < parts.size() ? parts[i] : none, other.parts[i]))
      return false;
  return true;
}

void Foreign::fence() {
  for (PartPtr &part : parts) {
    std::shared_ptr<Part> fenced;
    for (size_t i = 0; part && i < kInPart; ++i) {
      const KnownPtr &known = (*part)[i];
      if (!known || known->async.covers(known->generic))
        continue;
      if (!fenced)
        fenced = std::make_shared<Part>(*part);
      auto now = std::make_shared<Known>(*known);
      now->async.join(now->generic);
      (*fenced)[i] = std::move(now);
    }
    if (fenced)
      part = std::move(fenced);
  }
}

ForeignPtr fp4::sim::check::foreignOf(uint32_t cluster, const Known &known) {
  auto foreign = std::make_shared<Foreign>();
  foreign->join(cluster, known);
  return foreign;
}

void fp4::sim::check::join(ForeignPtr &mine, const ForeignPtr &other) {
  if (!other || other == mine || (mine && mine->covers(*other)))
    return;
  if (!mine || other->covers(*mine)) {
    mine = other;
    return;
  }
  auto both = std::make_shared<Foreign>(*mine);
  both->join(*other);
  mine = std::move(both);
}
