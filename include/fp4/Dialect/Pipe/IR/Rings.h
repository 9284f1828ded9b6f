//===- Rings.h - Channels that several blocks of code share ----------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fp4::pipe {

/// The name of the ring of a pipe.load of a sequential kernel, a StringAttr. Tiles of one ring are
/// stages of one channel, in the order in which they are loaded, whatever blocks of code they are
/// in. Without it the tiles of a block have a channel of their own.
inline constexpr llvm::StringLiteral kRingAttr = "pipe.ring";

/// A UnitAttr at an accumulator of a ring, and then at the channel: the tile has the numbers that
/// the consumer left there when the producer takes it again, so that an MMA may add to sums which
/// threads have scaled.
inline constexpr llvm::StringLiteral kKeptAttr = "pipe.kept";

/// The names of the roles that consume a channel, in the order of its consumers, an ArrayAttr of
/// StringAttr: roles of one engine and one number of threads are told apart by them.
inline constexpr llvm::StringLiteral kConsumerRolesAttr = "pipe.consumer_roles";

} // namespace fp4::pipe
