//===- View.h - The state of a cluster, for a debugger --------------------===//
//
// Each function returns what DebugServer.h says of the command with its name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/State/Cluster.h"
#include "Sim/State/Launch.h"
#include "fp4/Support/Error.h"
#include <nlohmann/json.hpp>

namespace fp4::sim::debug {

using Json = nlohmann::ordered_json;

/// The number of a warp in the protocol: from 1, by CTA rank and warp.
uint32_t numberOf(const Warp &warp);
Warp *warpOf(Cluster &cluster, uint32_t number);
/// "CTA (0,0,0) warp 3".
std::string nameOf(const Warp &warp);

/// The place of an instruction: "line", "column" and "instruction" of the PTX, and "file" and
/// "source_line" where .loc names them.
Json placeOf(const Launch &launch, uint32_t pc);
/// The PTX, with the line of an instruction.
Json sourceOf(const Launch &launch, uint32_t pc);
/// The groups of lanes of a warp, each with its place, "lanes" and, if it waits, "waits".
Json groupsOf(const Launch &launch, const Warp &warp);
Json warpsOf(const Cluster &cluster);
/// Values for one lane, and "same" where those of all live lanes are equal.
Json registersOf(const Launch &launch, const Warp &warp, int lane);
/// The values of all lanes of one register.
Expected<Json> registerOf(const Launch &launch, const Warp &warp, const std::string &name,
                          const std::string &type);
Json mbarriersOf(Cluster &cluster);
Json barriersOf(const Cluster &cluster);
Json ticketsOf(Cluster &cluster);

/// Rows of a tile of shared memory (Tiles.cpp): "place" is a variable, with an offset, or an
/// address; "type", "rows", "columns", "pitch" in bytes and "swizzle" say what lies there.
Expected<Json> tileOf(Cluster &cluster, uint32_t rank, const Json &request);
/// Rows of a tile of tensor memory: "column" and "lane" are the first.
Expected<Json> tensorTileOf(Cluster &cluster, uint32_t rank, const Json &request);
/// The bits of a number of a type in words: "1.5", "0x40"; empty for an unknown type.
std::string valueText(const std::string &type, uint64_t bits);
/// Bits of a type of valueText; 0: unknown.
unsigned valueBits(const std::string &type);

} // namespace fp4::sim::debug
