//===- StagedSums.h - Sums of a fragment in shared memory -----------------===//
//
// Sums that another role adds are staged by the tiles of a fragment (FragmentLayout.h): a row of
// shared memory has those of all threads of a role, one thread after the other, and each thread
// stores or loads its own in one access.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/FragmentLayout.h"

namespace fp4::hw {

/// Columns of a fragment whose sums are a row.
inline constexpr int64_t columnsOfSums = fragmentTileColumns;
/// Sums of a thread in a row, 16 bytes.
inline constexpr int64_t sumsOfAccess =
    fragmentElements(FragmentKind::Wgmma, fragmentRows(FragmentKind::Wgmma), fragmentTileColumns);
static_assert(sumsOfAccess * sizeof(float) == 16);

} // namespace fp4::hw
