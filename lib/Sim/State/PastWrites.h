//===- PastWrites.h - Writes of launches that may still run ---------------===//
//
// A launch that may begin before others have ended (Dependence.h) is simulated behind them, and yet
// finds memory as if they had not written: their writes are undone until it waits for them, or gets
// no further. If no other launch changed these bytes in between, a device may show the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Dependence.h"
#include "fp4/Sim/GlobalMemory.h"
#include <map>
#include <shared_mutex>

namespace fp4::sim {

/// The writes of one launch.
class WriteJournal {
public:
  explicit WriteJournal(GlobalMemory &memory) : memory(memory) {}
  /// Keeps bytes that are about to be written. Several host threads may call it.
  void note(uint64_t address, uint64_t bytes);
  /// The launch has ended.
  void close();
  /// Takes back what is still as the launch left it.
  void undo();
  /// The launch has ended only now: writes again what undo took back. `beside` is the journal of
  /// one that ran meanwhile, or null.
  void redo(WriteJournal *beside);

private:
  struct Block {
    std::vector<std::byte> before, after;
    std::vector<bool> undone;
  };
  void keep(uint64_t address, uint64_t bytes);
  std::byte *find(uint64_t address, const Block &block) const;

  GlobalMemory &memory;
  std::shared_mutex lock;
  std::map<uint64_t, Block> blocks;       ///< changed bytes by address
  std::map<uint64_t, std::string> owners; ///< names of the allocations that have them, by address
};

using Journals = std::vector<std::shared_ptr<WriteJournal>>; ///< journals in order of the launches

/// The journals of launches that later ones may depend on.
class PastWrites {
public:
  /// Journals of launches that may run when a launch begins: those it waits for, and the rest.
  struct Beside {
    Journals waited, others;
    bool empty() const { return waited.empty() && others.empty(); }
    void undo() const;
  };
  Beside besideOf(const Dependence &dependence);
  bool used() const { return dependents > 0; }
  uint64_t launches() const { return dependents; } ///< launches so far that depend on others
  /// A launch has ended. `awaited`: behind what it depends on.
  void keep(const LaunchRef &mark, std::shared_ptr<WriteJournal> journal, Beside beside,
            bool awaited);

private:
  struct Kept {
    std::weak_ptr<const LaunchMark> mark;
    std::shared_ptr<WriteJournal> journal;
    Journals running; ///< journals of launches that ran when this one ended
  };
  std::vector<Kept> kept;
  uint64_t dependents = 0;
};

} // namespace fp4::sim
