//===- SharedMemory.cpp - Memory that kernels write and the host reads ----===//

#include "CudaDevice.h"

#include <atomic>
#include <cstring>
#include <fmt/format.h>

namespace fp4::rt {
using namespace cuda;

/// Allocates pages of the host that every kernel can write: with unified addresses, at the address
/// that the host has.
Expected<DevicePtr> CudaDevice::allocateShared(uint64_t bytes) {
  constexpr unsigned kPortable = 1, kDeviceMap = 2; // CU_MEMHOSTALLOC_...
  Entered entered(*this);
  FP4_TRY(entered.status);
  CaptureMode mode = CaptureRelaxed;
  FP4_TRY(check(driver_.ThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode",
                "allocating memory for reports"));
  void *address = nullptr;
  Status status = check(driver_.MemHostAlloc(&address, bytes, kPortable | kDeviceMap),
                        "cuMemHostAlloc", fmt::format("allocating {} bytes for reports", bytes));
  driver_.ThreadExchangeStreamCaptureMode(&mode);
  FP4_TRY(status);
  std::memset(address, 0, bytes);
  return reinterpret_cast<DevicePtr>(address);
}

Status CudaDevice::freeShared(DevicePtr address) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.MemFreeHost(reinterpret_cast<void *>(address)), "cuMemFreeHost",
               fmt::format("freeing {:#x}", address));
}

/// Reads by words, as kernels write them; the first one first.
Status CudaDevice::readShared(std::span<std::byte> to, DevicePtr from) {
  for (size_t at = 0; at + sizeof(uint64_t) <= to.size(); at += sizeof(uint64_t)) {
    auto *word = reinterpret_cast<uint64_t *>(from + at);
    const uint64_t value = std::atomic_ref(*word).load(std::memory_order_acquire);
    std::memcpy(to.data() + at, &value, sizeof(value));
  }
  return {};
}

Status CudaDevice::writeShared(DevicePtr to, std::span<const std::byte> from) {
  for (size_t at = 0; at + sizeof(uint64_t) <= from.size(); at += sizeof(uint64_t)) {
    uint64_t value = 0;
    std::memcpy(&value, from.data() + at, sizeof(value));
    auto *word = reinterpret_cast<uint64_t *>(to + at);
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  return {};
}

} // namespace fp4::rt
