//===- Memory.cpp - Caches and device memory with a clock -----------------===//
#include "Sim/Time/Memory.h"
#include <bit>

namespace fp4::sim {

static constexpr uint64_t stampUnit = 1 << 16;

//===----------------------------------------------------------------------===//
// L1
//===----------------------------------------------------------------------===//

void L1Cache::resize(uint64_t bytes) {
  sets = std::max<size_t>(1, std::bit_floor(bytes / kLineBytes / ways));
  table.assign(sets * ways, {});
  next.assign(sets, 0);
}

L1Cache::Way *L1Cache::find(uint64_t line) {
  Way *set = &table[(line ^ line >> 9) % sets * ways];
  for (unsigned i = 0; i < ways; ++i)
    if (set[i].line == line)
      return set + i;
  return nullptr;
}

L1Cache::Found L1Cache::access(const LineAccess &access) {
  Way *way = find(access.line);
  if (!way) {
    const size_t set = (access.line ^ access.line >> 9) % sets;
    way = &table[set * ways + next[set]++ % ways];
    *way = {access.line, 0, 0};
  }
  const Found found{way->ready, access.sectors & ~way->sectors};
  way->sectors |= access.sectors;
  return found;
}

void L1Cache::arrived(uint64_t line, double when) {
  if (Way *way = find(line))
    way->ready = std::max(way->ready, when);
}

//===----------------------------------------------------------------------===//
// L2 and device memory
//===----------------------------------------------------------------------===//

MemorySystem::MemorySystem(const Rates &rates, double gigahertz, uint64_t l2Size, double share)
    : l2Latency(rates[TimingRate::L2Latency]), deviceLatency(rates[TimingRate::MemoryLatency]),
      portRate(rates[TimingRate::L2PortBytes]),
      l2Rate(rates[TimingRate::L2Terabytes] * 1e3 / gigahertz * share),
      sharedRate(rates[TimingRate::L2SharedTerabytes] * 1e3 / gigahertz * share),
      deviceRate(rates[TimingRate::MemoryTerabytes] * 1e3 / gigahertz * share),
      turnaround(rates[TimingRate::MemoryTurnaround]),
      capacity(uint32_t(double(l2Size) * share / stampUnit)) {}

void MemorySystem::touch(const LineAccess &access, const Server &port, double now, Touched &sum) {
  constexpr float together = 2000; // cycles: about two turns of a ring of stages
  const uint64_t page = access.line / pageLines;
  if (page != lastPage) {
    auto &lines = pages[page];
    if (!lines)
      lines = std::make_unique<Line[]>(pageLines);
    lastPage = page;
    lastLines = lines.get();
  }
  Line &line = lastLines[access.line % pageLines];
  const uint32_t stamp = uint32_t(deviceBytes / stampUnit) + 1;
  if (line.stamp && stamp - line.stamp > capacity)
    line.sectors = 0; // displaced since
  const uint64_t bytes = uint64_t(std::popcount(access.sectors)) * kSectorBytes;
  const uint32_t missing = access.sectors & ~line.sectors;
  sum.bytes += bytes;
  sum.missing += uint64_t(std::popcount(missing)) * kSectorBytes;
  if (line.by && line.by != &port && float(now) - line.when < together)
    sum.shared += bytes;
  line.stamp = stamp;
  line.sectors |= uint8_t(access.sectors);
  line.when = float(now);
  line.by = &port;
}

/// When the last of the bytes is through every queue on its way, latency not counted.
double MemorySystem::transfer(Server &port, double now, const Touched &touched, bool write) {
  l2Bytes += touched.bytes;
  deviceBytes += touched.missing;
  const double inL2 =
      double(touched.bytes - touched.shared) / l2Rate + double(touched.shared) / sharedRate;
  double end = std::max(port.serve(now, double(touched.bytes) / portRate), l2.serve(now, inL2));
  if (!touched.missing)
    return end;
  constexpr double memory = 1 << 22; // bytes over which reads and writes mix
  const double bytes = double(touched.missing), fade = std::max(0.0, 1 - bytes / memory);
  read_ = read_ * fade + (write ? 0 : bytes);
  written = written * fade + (write ? bytes : 0);
  const double writes = written / (read_ + written);
  end = std::max(end, device.serve(now, bytes / deviceRate * (1 + turnaround * writes * writes)));
  return end;
}

double MemorySystem::read(Server &port, double now, std::span<const LineAccess> lines) {
  Touched touched;
  for (const LineAccess &access : lines)
    touch(access, port, now, touched);
  return transfer(port, now, touched, false) + (touched.missing ? deviceLatency : l2Latency);
}

/// What is written goes to device memory some time, as what was written before does now.
double MemorySystem::write(Server &port, double now, std::span<const LineAccess> lines) {
  Touched touched;
  for (const LineAccess &access : lines)
    touch(access, port, now, touched);
  return transfer(port, now, touched, true) + l2Latency;
}

namespace {

/// The lines of runs, one after the other.
template <typename F> void forLines(std::span<const GlobalRun> runs, F &&f) {
  for (const GlobalRun &run : runs)
    for (uint64_t at = run.address, end = run.address + run.bytes; at < end;) {
      const uint64_t line = at / kLineBytes, stop = std::min(end, (line + 1) * kLineBytes);
      const unsigned first = unsigned(at % kLineBytes / kSectorBytes),
                     last = unsigned((stop - 1) % kLineBytes / kSectorBytes);
      f(LineAccess{line, (2u << last) - (1u << first)});
      at = stop;
    }
}

} // namespace

double MemorySystem::read(Server &port, double now, std::span<const GlobalRun> runs) {
  Touched touched;
  forLines(runs, [&](const LineAccess &access) { touch(access, port, now, touched); });
  return transfer(port, now, touched, false) + (touched.missing ? deviceLatency : l2Latency);
}

double MemorySystem::write(Server &port, double now, std::span<const GlobalRun> runs) {
  Touched touched;
  forLines(runs, [&](const LineAccess &access) { touch(access, port, now, touched); });
  return transfer(port, now, touched, true) + l2Latency;
}

} // namespace fp4::sim
