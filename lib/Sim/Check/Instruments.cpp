//===- Instruments.cpp - What watches a simulation ------------------------===//
#include "fp4/Sim/Instruments.h"

#include <fmt/format.h>

namespace fp4::sim {

Expected<SimOptions> settingsOf(const SimulationOptions &options) {
  FP4_ASSIGN(auto policy, parseCompletionPolicy(options.policy));
  if (options.unwritten != "error" && options.unwritten != "ignore")
    return makeError(ErrorKind::Usage,
                     fmt::format("unknown mode '{}' of --unwritten", options.unwritten),
                     "choose error or ignore");
  SimOptions settings;
  settings.target = options.target;
  settings.policy = policy;
  settings.seed = options.seed;
  settings.hostThreads = options.hostThreads;
  settings.spinLimit = options.spinLimit;
  if (options.unwritten == "ignore")
    settings.uninitializedReads = UninitializedReads::Ignore;
  return settings;
}

Expected<std::unique_ptr<Instruments>> Instruments::create(const SimulationOptions &options,
                                                           SimOptions &settings) {
  const std::string check = options.check.empty() ? "default" : options.check;
  const bool strict = check == "strict";
  if (check != "off" && check != "default" && !strict)
    return makeError(ErrorKind::Usage, fmt::format("unknown mode '{}' of --check", check),
                     "choose default, strict or off");
  std::unique_ptr<Instruments> instruments(new Instruments());
  if (check != "off") {
    instruments->checker_ = std::make_unique<HazardChecker>(HazardOptions{.strict = strict});
    instruments->observers_.add(instruments->checker_.get());
  }
  if (options.statistics) {
    instruments->statistics_ = std::make_unique<AccessStatistics>();
    instruments->observers_.add(instruments->statistics_.get());
  }
  if (!options.timeline.empty()) {
    FP4_ASSIGN(auto file, OutputFile::open(options.timeline));
    instruments->timelineFile_ = std::move(file);
    instruments->timeline_ = std::make_unique<Timeline>(instruments->timelineFile_->stream());
    instruments->observers_.add(instruments->timeline_.get());
  }
  // The checker alone needs no list; none at all is faster still.
  settings.observer = options.statistics || !options.timeline.empty()
                          ? static_cast<Observer *>(&instruments->observers_)
                          : instruments->checker_.get();
  settings.judgement = strict ? Judgement::Letter : Judgement::Practice;
  settings.trackWrites = strict; // memory needs its first write
  return instruments;
}

std::vector<HazardReport> Instruments::hazards() const {
  return checker_ ? checker_->reports() : std::vector<HazardReport>();
}

void Instruments::clearHazards() {
  if (checker_)
    checker_->clear();
}

std::vector<AccessCount> Instruments::wasteful() const {
  return statistics_ ? statistics_->wasteful() : std::vector<AccessCount>();
}

std::string Instruments::timelineDraft() const {
  return timelineFile_ ? timelineFile_->temporary() : "";
}

Status Instruments::finish() {
  if (!timeline_)
    return {};
  observers_.remove(timeline_.get());
  timeline_.reset(); // ends the JSON
  Status written = timelineFile_->commit();
  timelineFile_.reset();
  return written;
}

void Instruments::abandonTimeline() {
  (void)timeline_.release();
  (void)timelineFile_.release();
}

} // namespace fp4::sim
