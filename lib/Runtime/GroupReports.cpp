//===- GroupReports.cpp - Errors of groups that kernels find --------------===//

#include "fp4/Runtime/Device.h"
#include "fp4/Support/GroupRows.h"

namespace fp4::rt {

Expected<DevicePtr> GroupReports::place(const void *owner, const char *what) {
  std::scoped_lock lock(mutex_);
  if (auto it = places_.find({owner, what}); it != places_.end())
    return it->second;
  FP4_ASSIGN(auto address, device_.allocateShared(sizeof(GroupReport)));
  places_.emplace(Operand(owner, what), address);
  return address;
}

Status GroupReports::take(const void *owner) {
  std::scoped_lock lock(mutex_);
  Status found;
  for (const auto &[operand, address] : places_) {
    if (owner && operand.first != owner)
      continue;
    GroupReport report;
    FP4_TRY(device_.readShared(std::as_writable_bytes(std::span(&report, 1)), address));
    if (report.state != GroupReport::kWritten)
      continue;
    const int64_t none = GroupReport::kNone;
    FP4_TRY(device_.writeShared(address, std::as_bytes(std::span(&none, 1))));
    found = tl::unexpected<Error>(groupError(operand.second, report));
    owner = operand.first; // one call leaves a report for each of its operands
  }
  return found;
}

void GroupReports::drop(const void *owner) {
  std::scoped_lock lock(mutex_);
  std::erase_if(places_, [&](const auto &place) {
    if (place.first.first != owner)
      return false;
    (void)device_.freeShared(place.second);
    return true;
  });
}

} // namespace fp4::rt
