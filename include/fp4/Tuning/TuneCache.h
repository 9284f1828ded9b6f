//===- TuneCache.h - Plans that a search has found before -----------------===//
//
// A folder with a file for each kernel, shape and target: $FP4_TUNE_CACHE, else
// $XDG_CACHE_HOME/fp4/tune, else ~/.cache/fp4/tune; FP4_TUNE_CACHE=off uses none. A file's name is
// the SHA-256 of everything that the search depends on, and the file holds the SHA-256 of its own
// text. A file that does not agree is treated as absent. Files appear whole or not at all, so
// processes may share the folder.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <optional>
#include <vector>

namespace fp4::tuning {

struct TunedPlans {
  std::vector<std::string> plans; ///< plans of each kernel
  double microseconds = 0;        ///< predicted, with these
  double before = 0;              ///< predicted, with the plans of the compiler
  uint64_t predictions = 0;       ///< predictions of the search
  bool verified = false;          ///< equal to the reference in the simulator
  std::optional<double> measured; ///< microseconds on `device`
  std::string device;
};

class TuneCache {
public:
  /// `question` is everything that the answer depends on.
  explicit TuneCache(const std::string &question);

  const std::string &path() const { return file; } ///< empty: there is no cache
  /// The known plans; `damaged` is set if there is a file which cannot be believed.
  std::optional<TunedPlans> read(bool &damaged) const;
  Status write(const TunedPlans &tuned) const;

private:
  std::string key, file;
};

} // namespace fp4::tuning
