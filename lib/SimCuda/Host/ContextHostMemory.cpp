//===- ContextHostMemory.cpp - Memory that host and device share ----------===//
//
// Pinned, registered and managed memory and __managed__ variables have one address for both sides,
// as with CUDA's unified addressing. A launch has ended when it returns, so no data has to
// migrate.
//
//===----------------------------------------------------------------------===//
#include "Context.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/mman.h>

using namespace fp4;
using namespace fp4::simcuda;

static constexpr uint64_t kPage = 4096;

static uint64_t addressOf(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }
static uint64_t wholePages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Code Context::allocateHost(const char *function, void *&pointer, uint64_t bytes, HostMemory kind) {
  std::lock_guard guard(lock);
  pointer = nullptr;
  if (stickyCode != Success)
    return stickyCode;
  if (bytes == 0)
    return Success;
  pointer = bytes >> 40 ? nullptr : std::aligned_alloc(kPage, wholePages(bytes));
  if (!pointer)
    return quiet(MemoryAllocation);
  const std::string name = fmt::format("{} #{}", function, ++allocations);
  if (Status shared = simulator->memory().share(pointer, bytes, name); !shared)
    return fail(function, MemoryAllocation, shared.error());
  hostMemories[addressOf(pointer)] = kind;
  if (traced)
    trace(fmt::format("{}: {} bytes at {}", name, bytes, pointer));
  return Success;
}

Code Context::registerHost(const char *function, void *pointer, uint64_t bytes) {
  std::lock_guard guard(lock);
  if (!pointer || bytes == 0)
    return quiet(InvalidValue);
  const std::string name = fmt::format("{} #{}", function, ++allocations);
  if (Status shared = simulator->memory().share(pointer, bytes, name); !shared)
    return fail(function, HostMemoryAlreadyRegistered, shared.error());
  hostMemories[addressOf(pointer)] = HostMemory::Registered;
  return Success;
}

Code Context::lend(const char *function, void *pointer, uint64_t bytes, bool written) {
  std::lock_guard guard(lock);
  if (!pointer || bytes == 0)
    return quiet(InvalidValue);
  const std::string name = fmt::format("tensor #{}", ++allocations);
  if (Status lent = simulator->memory().lend(pointer, bytes, name, written); !lent)
    return fail(function, HostMemoryAlreadyRegistered, lent.error());
  hostMemories[addressOf(pointer)] = HostMemory::Lent;
  if (traced)
    trace(fmt::format("{}: {} bytes at {}", name, bytes, pointer));
  return Success;
}

Code Context::markWritten(const char *function, const void *pointer, uint64_t bytes) {
  std::lock_guard guard(lock);
  if (bytes && !simulator->memory().find(addressOf(pointer), bytes))
    return fail(function, InvalidValue,
                fmt::format("{} bytes at {} must be of a tensor", bytes, pointer));
  simulator->memory().markWritten(addressOf(pointer), bytes);
  return Success;
}

Code Context::releaseHost(const char *function, void *pointer, HostMemory kind) {
  std::lock_guard guard(lock);
  if (!pointer)
    return Success;
  auto found = hostMemories.find(addressOf(pointer));
  if (found == hostMemories.end() || found->second != kind)
    return fail(function, kind == HostMemory::Registered ? HostMemoryNotRegistered : InvalidValue,
                fmt::format("{} is not the address of such memory", pointer));
  hostMemories.erase(found);
  (void)simulator->memory().free(addressOf(pointer));
  if (kind != HostMemory::Registered && kind != HostMemory::Lent)
    std::free(pointer);
  return Success;
}

std::optional<HostMemory> Context::hostMemory(const void *pointer) const {
  std::lock_guard guard(lock);
  const sim::Allocation *allocation = simulator->memory().find(addressOf(pointer), 1);
  auto found = allocation ? hostMemories.find(allocation->address) : hostMemories.end();
  const bool known = found != hostMemories.end() && found->second != HostMemory::Lent;
  return known ? std::optional(found->second) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// __managed__ variables
//===----------------------------------------------------------------------===//

void Context::registerManaged(void **shadow, Module *module, std::string_view name) {
  std::lock_guard guard(lock);
  managedVariables[shadow] = {module, std::string(name)};
}

/// Maps host pages at the address that the variable has on the device; variables lie in pages of
/// their own.
Status Context::shareVariable(const sim::VariableInfo &variable) {
  sim::GlobalMemory &memory = simulator->memory();
  void *wanted = reinterpret_cast<void *>(variable.address);
  void *pages = mmap(wanted, wholePages(variable.size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (pages != wanted)
    return makeError(ErrorKind::Device,
                     fmt::format("the host has no memory at {} for '{}'", wanted, variable.name));
  FP4_TRY(memory.read(variable.address, pages, variable.size));
  FP4_TRY(memory.free(variable.address));
  FP4_TRY(memory.share(pages, variable.size, variable.name));
  hostMemories[variable.address] = HostMemory::Variable;
  return {};
}

Code Context::initializeManaged(Module &module) {
  std::lock_guard guard(lock);
  for (auto &[shadow, symbol] : managedVariables) {
    if (symbol.module != &module || *shadow)
      continue;
    auto variable = findVariable(module, symbol.name);
    if (!variable)
      return fail("__managed__", InvalidSymbol, variable.error());
    if (Status shared = shareVariable(*variable); !shared)
      return fail("__managed__", MemoryAllocation, shared.error());
    *shadow = reinterpret_cast<void *>(variable->address);
  }
  return Success;
}
