//===- Driver.h - Many cases in processes that may die --------------------===//
//
// Case i of a run is made from the seed and i alone, so that each can be made again. A worker makes
// and runs cases one after the other and says in shared memory which; when it dies or hangs, the
// driver writes the case to a file, prints its seed and number, and a new worker goes on behind it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Random.h"
#include <filesystem>
#include <string>
#include <vector>

namespace fp4::fuzz {

class Target {
public:
  virtual ~Target() = default;
  virtual const char *name() const = 0;
  /// Reads what cases are made from; false where the corpus has nothing of it.
  virtual bool load(const std::vector<std::filesystem::path> &corpus) = 0;
  virtual std::string make(Random &random) { return {}; }
  /// Case `number`, of a target that can list its cases: it has `count`, without a seed.
  virtual std::string make(uint64_t number, Random &random) { return make(random); }
  virtual uint64_t count() const { return 0; }
  /// Must return for every input.
  virtual void run(const std::string &input) = 0;
  /// Returns true when the last case may have damaged the process, which then runs no other.
  virtual bool spent() const { return false; }
};

struct DriverOptions {
  uint64_t cases = 1000, first = 0, seed = 1;
  unsigned timeout = 20;    ///< seconds that one case may take
  unsigned jobs = 1;        ///< workers at once
  unsigned perWorker = 500; ///< cases of one process: what leaks stays small
  unsigned memory = 0;      ///< MiB of address space of a worker; 0: no limit
  std::filesystem::path out = ".";
};

/// Runs all cases; how many failed.
uint64_t drive(Target &target, const DriverOptions &options);

/// The command line that all fuzzers share: [options] CORPUS...; --reproduce FILE runs one case again,
/// --show NUMBER prints one.
int fuzzMain(int argc, char **argv, Target &target);

/// The text of a file.
std::string slurp(const std::filesystem::path &path);
/// Every file with one of these endings in or below `corpus`, in order.
std::vector<std::filesystem::path> filesOf(const std::vector<std::filesystem::path> &corpus,
                                           const std::vector<std::string> &endings);

} // namespace fp4::fuzz
