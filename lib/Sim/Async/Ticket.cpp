//===- Ticket.cpp - Names of asynchronous operations and their engines ----===//
#include "Ticket.h"
#include "Sim/State/Cluster.h"

namespace fp4::sim {

std::string_view stringify(TicketKind kind) {
  switch (kind) {
  case TicketKind::Tma:
    return "tma";
  case TicketKind::Bulk:
    return "bulk";
  case TicketKind::ThreadCopy:
    return "cp.async";
  case TicketKind::Mma:
    return "tcgen05.mma";
  case TicketKind::Wgmma:
    return "wgmma";
  case TicketKind::TmemCopy:
    return "tcgen05.cp";
  case TicketKind::TmemShift:
    return "tcgen05.shift";
  case TicketKind::Commit:
    return "tcgen05.commit";
  case TicketKind::TmemLoad:
    return "tcgen05.ld";
  case TicketKind::TmemStore:
    return "tcgen05.st";
  case TicketKind::ClusterLaunch:
    return "clusterlaunchcontrol";
  }
  return "unknown";
}

std::string_view stringify(Engine engine) {
  switch (engine) {
  case Engine::Tma:
    return "tma";
  case Engine::BulkStore:
    return "bulk_store";
  case Engine::Tensor:
    return "tensor";
  case Engine::ScaleCopy:
    return "scale_copy";
  case Engine::Threads:
    return "threads";
  case Engine::WorkQueue:
    return "work_queue";
  }
  return "unknown";
}

Engine engineOf(TicketKind kind) {
  switch (kind) {
  case TicketKind::Tma:
  case TicketKind::Bulk:
    return Engine::Tma;
  case TicketKind::Mma:
  case TicketKind::Wgmma:
  case TicketKind::TmemShift:
  case TicketKind::Commit:
    return Engine::Tensor;
  case TicketKind::TmemCopy:
    return Engine::ScaleCopy;
  case TicketKind::ThreadCopy:
  case TicketKind::TmemLoad:
  case TicketKind::TmemStore:
    return Engine::Threads;
  case TicketKind::ClusterLaunch:
    return Engine::WorkQueue;
  }
  return Engine::Threads;
}

Actor Ticket::actor(const Cluster &cluster) const {
  return {uint32_t(cluster.index), issuer.rank, issuer.warp, id};
}

CodePoint Ticket::at() const { return {pc, insn ? insn->line : 0}; }

} // namespace fp4::sim
