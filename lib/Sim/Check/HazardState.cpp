//===- HazardState.cpp - What the hazard checker remembers of a cluster ---===//
#include "HazardState.h"

namespace fp4::sim::check {

WarpState &ClusterState::warp(const Agent &agent) {
  auto [it, fresh] = warps.try_emplace(warpIndex(agent));
  if (fresh) {
    it->second.clocks.generic.setWarp(warpIndex(agent), 1);
    it->second.clocks.loose.setWarp(warpIndex(agent), 1);
  }
  return it->second;
}

Clocks &ClusterState::clocks(const Agent &agent) {
  return agent.ticket ? ticket(agent.ticket).clocks : warp(agent).clocks;
}

std::vector<Access> *ClusterState::granule(uint32_t sharedAddress) {
  constexpr uint32_t limit = 1 << 18; // no CTA has more; what lies beyond is an error elsewhere
  const uint32_t offset = sharedAddress & ((1u << rankShift) - 1);
  if (offset >= limit)
    return nullptr;
  auto &granules = shadow[sharedAddress >> rankShift];
  if (granules.size() <= offset / granuleBytes)
    granules.resize(offset / granuleBytes + 1);
  return &granules[offset / granuleBytes];
}

void ClusterState::advance(WarpState &state, const Agent &agent) {
  ++state.epoch;
  state.clocks.generic.setWarp(warpIndex(agent), state.epoch);
  state.clocks.loose.setWarp(warpIndex(agent), state.epoch);
}

void ClusterState::fork(const TicketEvent &event, uint64_t sequence) {
  WarpState &issuer = warp(event.agent);
  TicketInfo &info = ticket(event.id);
  info.clocks = issuer.clocks;
  info.issued = sequence;
  info.engine = event.engine;
  info.pipelined = event.engine == "tcgen05.mma" || event.engine == "tcgen05.cp" ||
                   event.engine == "tcgen05.shift";
  if (info.pipelined)
    issuer.pipeline.addTicket(event.id);
  if (event.engine == "tcgen05.commit")
    for (VectorClock *clock : {&info.clocks.generic, &info.clocks.async, &info.clocks.loose})
      clock->join(issuer.pipeline);
  if (event.bulkGroup)
    groups[{warpIndex(event.agent), event.lane}].open.push_back(event.id);
  advance(issuer, event.agent);
}

void ClusterState::complete(uint64_t id) {
  // Its signals follow this event, and nothing else of any ticket comes between.
  if (finished && finished != id)
    tickets.erase(finished);
  ticket(id).clocks.addTicket(id);
  finished = id;
}

} // namespace fp4::sim::check
