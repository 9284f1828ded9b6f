//===- FenceEvent.h - Fences, and what a warp comes to know ---------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/MemoryModel.h"

namespace fp4::sim {

enum class FenceKind : uint8_t {
  Thread,         ///< fence / membar: order, scope
  ProxyAsync,     ///< fence.proxy.async: `space` restricts it
  ProxyTensormap, ///< fence.proxy.tensormap: `order` is Release, or Acquire of the map at `groups`
  ProxyAlias,
  MbarrierInit,  ///< fence.mbarrier_init.release.cluster
  Tcgen05Before, ///< tcgen05.fence::before_thread_sync
  Tcgen05After,
  Tcgen05WaitLd,
  Tcgen05WaitSt,
  TicketWaited, ///< the warp knows that ticket `groups` is done: it used a register of a tcgen05.ld
                ///< before its wait, or waited for a cp.async
  /// A wgmma names a register that was used otherwise since the last wgmma.fence: instruction
  /// `groups` - 1 used it as `use` says. `groups` 0: the warp has executed no wgmma.fence.
  WgmmaUnfenced,
  GridTrigger, ///< griddepcontrol.launch_dependents
  GridWait,    ///< griddepcontrol.wait
  BulkCommit,  ///< cp.async.bulk.commit_group
  BulkWait,    ///< cp.async.bulk.wait_group passed; `groups` may still be pending
};

/// The use that an instruction made of a register of a wgmma.
enum class RegisterUse : uint8_t { Read, Write, Product };

struct FenceEvent {
  Actor actor;
  CodePoint at;
  FenceKind kind{};
  MemOrder order = MemOrder::AcqRel;
  Scope scope = Scope::Cta;
  Space space = Space::Generic;
  uint32_t laneMask = 0;
  uint64_t groups = 0;
  bool readOnly = false; ///< BulkWait: .read, the sources were read
  uint32_t reg = 0;      ///< WgmmaUnfenced: the register, by its place in the warp's
  RegisterUse use{};     ///< WgmmaUnfenced: use of the register; an MMA is one of another shape,
                         ///< or reads A where another accumulated
};

} // namespace fp4::sim
