//===- ContextMemory.cpp - Device memory and copies -----------------------===//
#include "Context.h"
#include <cstring>
#include <fmt/format.h>
#include <vector>

using namespace fp4;
using namespace fp4::simcuda;

static uint64_t deviceAddress(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

Code Context::allocate(const char *function, uint64_t &address, uint64_t bytes) {
  std::lock_guard guard(lock);
  address = 0;
  if (stickyCode != Success)
    return stickyCode;
  if (bytes == 0)
    return Success; // a null pointer, as CUDA gives
  if (bytes > currentChip->memoryBytes - std::min(bytesInUse(), currentChip->memoryBytes))
    return quiet(MemoryAllocation);
  address = simulator->memory().allocate(bytes, fmt::format("{} #{}", function, ++allocations));
  if (traced)
    trace(fmt::format("{} #{}: {} bytes at {:#x}", function, allocations, bytes, address));
  return address ? Success
                 : fail(function, MemoryAllocation,
                        fmt::format("the host has no memory left for {} bytes", bytes));
}

Code Context::allocateAt(const char *function, uint64_t address, uint64_t bytes) {
  std::lock_guard guard(lock);
  if (simulator->memory().find(address, bytes))
    return Success;
  const std::string name = fmt::format("{} of a graph", function);
  if (Status made = simulator->memory().reserve(address, bytes, name, false); !made)
    return fail(function, MemoryAllocation, made.error());
  return Success;
}

Code Context::release(const char *function, uint64_t address) {
  std::lock_guard guard(lock);
  if (stickyCode != Success)
    return stickyCode;
  if (address == 0)
    return Success;
  if (auto host = hostMemory(reinterpret_cast<void *>(address)))
    return *host == HostMemory::Managed
               ? releaseHost(function, reinterpret_cast<void *>(address), HostMemory::Managed)
               : fail(function, InvalidValue,
                      fmt::format("{:#x} is host memory, not what it allocated", address));
  if (const sim::Allocation *found = find(address); found && found->lent)
    return fail(function, InvalidValue,
                fmt::format("{:#x} is in '{}', not what it allocated", address, found->name),
                "a tensor frees its memory itself");
  if (Status freed = simulator->memory().free(address); !freed)
    return fail(function, InvalidValue, freed.error());
  return Success;
}

bool Context::isDevice(const void *pointer) const {
  return find(deviceAddress(pointer)) != nullptr;
}

const sim::Allocation *Context::find(uint64_t address) const {
  std::lock_guard guard(lock);
  return simulator->memory().find(address, 1);
}

/// A pointer on the side that the kind of the copy names.
Status Context::checkSide(const void *pointer, uint64_t bytes, bool wantsDevice,
                          const char *side) const {
  uint64_t address = deviceAddress(pointer);
  const sim::GlobalMemory &memory = simulator->memory();
  if (wantsDevice && !memory.find(address, bytes))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} {} bytes of device memory at {:#x}, which is out of bounds",
                                 side, bytes, address),
                     memory.explain(address, bytes));
  const sim::Allocation *found = memory.find(address, 1);
  if (!wantsDevice && found && !found->shared())
    return makeError(ErrorKind::Usage,
                     fmt::format("{} host memory, but {:#x} is a device address", side, address),
                     memory.explain(address, bytes));
  return {};
}

Code Context::copy(const char *function, void *destination, const void *source, uint64_t bytes,
                   int kind) {
  std::lock_guard guard(lock);
  if (stickyCode != Success)
    return stickyCode;
  if (bytes == 0)
    return Success;
  if (kind < HostToHost || kind > Default)
    return quiet(InvalidMemcpyDirection);
  bool fromDevice = kind == Default ? isDevice(source) : kind >= DeviceToHost;
  bool toDevice =
      kind == Default ? isDevice(destination) : kind == HostToDevice || kind == DeviceToDevice;
  if (Status good = checkSide(source, bytes, fromDevice, "reads"); !good)
    return fail(function, InvalidValue, good.error());
  if (Status good = checkSide(destination, bytes, toDevice, "writes"); !good)
    return fail(function, InvalidValue, good.error());
  if (traced)
    trace(fmt::format("{}: {} bytes from {} {} to {} {}", function, bytes,
                      fromDevice ? "device" : "host", source, toDevice ? "device" : "host",
                      destination));
  sim::GlobalMemory &memory = simulator->memory();
  const void *from = fromDevice ? memory.translate(deviceAddress(source), bytes) : source;
  void *to = toDevice ? memory.translate(deviceAddress(destination), bytes) : destination;
  std::memmove(to, from, bytes);
  if (toDevice)
    memory.markWritten(deviceAddress(destination), bytes);
  return Success;
}

Code Context::fill(const char *function, void *destination, uint32_t value, unsigned width,
                   uint64_t count) {
  std::lock_guard guard(lock);
  if (stickyCode != Success)
    return stickyCode;
  if (count == 0)
    return Success;
  // Pinned host memory is device memory too; other host memory is not filled.
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, uint64_t(width), &bytes))
    return quiet(InvalidValue);
  if (Status good = checkSide(destination, bytes, /*wantsDevice=*/true, "writes"); !good)
    return fail(function, InvalidValue, good.error());
  if (deviceAddress(destination) % width != 0)
    return fail(function, InvalidValue,
                fmt::format("the address must be a multiple of {}, but got {:#x}", width,
                            deviceAddress(destination)));
  if (traced)
    trace(fmt::format("{}: {} times {:#x} in {} bytes to {}", function, count, value, width,
                      destination));
  if (width == 1 || value == 0) {
    (void)simulator->memory().fill(deviceAddress(destination), uint8_t(value), bytes);
    return Success;
  }
  auto *to = simulator->memory().translate(deviceAddress(destination), bytes);
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(to + i * width, &value, width);
  simulator->memory().markWritten(deviceAddress(destination), bytes);
  return Success;
}
