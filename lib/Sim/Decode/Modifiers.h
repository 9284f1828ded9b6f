//===- Modifiers.h - Decoded modifiers of an instruction ------------------===//
//
// Each family of instructions has a struct for what its modifiers say, in a header for each room of
// lib/Sim/Insn. A bind function fills the struct, handlers and analyses read its members.
// `Modifiers` is one of these structs, or nothing for an instruction whose handler and operands say
// all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Modifiers/Copy.h"
#include "Sim/Decode/Modifiers/Memory.h"
#include "Sim/Decode/Modifiers/Scalar.h"
#include "Sim/Decode/Modifiers/TensorCore.h"
#include "Sim/Decode/Modifiers/Warp.h"
#include <variant>

namespace fp4::sim {

using Modifiers = std::variant<
    std::monostate,
    // Scalar.h
    FloatModifiers, MixedModifiers, TestModifiers, ConvertModifiers, PackModifiers,
    CompareModifiers, CarryModifiers, PermuteModifiers, LogicModifiers, ClockModifiers,
    WindowModifiers, SpaceModifiers,
    // Memory.h
    MemoryModifiers, AtomicModifiers, MatrixModifiers, StackModifiers,
    // Warp.h
    ShuffleModifiers, VoteModifiers, ReduxModifiers, BarrierModifiers, ClusterBarrierModifiers,
    FenceModifiers, RegisterModifiers, CallModifiers, ReturnModifiers, BranchTableModifiers,
    // Copy.h
    LaneCopyModifiers, CopyWaitModifiers, CopyArriveModifiers, MbarrierModifiers, BulkModifiers,
    BulkWaitModifiers, TensorModifiers, TensorMapModifiers, TensorMapCopyModifiers,
    RemoteStoreModifiers, CancelModifiers, FirstCtaModifiers,
    // TensorCore.h
    MmaModifiers, DoubleMmaModifiers, QuarterMmaModifiers, WmmaTransferModifiers, WmmaModifiers,
    SmallWmmaModifiers, DoubleWmmaModifiers, WgmmaModifiers, Tcgen05MmaModifiers,
    TmemTransferModifiers, TmemAllocModifiers, TmemCopyModifiers, TmemShiftModifiers,
    Tcgen05FenceModifiers, Tcgen05WaitModifiers, Tcgen05CommitModifiers>;

// Instructions are copied and read all the time: no struct above owns memory or is large.
static_assert(std::is_trivially_copyable_v<Modifiers> && sizeof(Modifiers) <= 24);

} // namespace fp4::sim
