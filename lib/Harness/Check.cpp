//===- Check.cpp - The hazard checker on a command line -------------------===//

#include "fp4/Harness/Check.h"
#include "fp4/Harness/Simulation.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

std::string ruleNames() {
  std::string names;
  for (sim::HazardRule rule : sim::hazardRules())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", stringify(rule));
  return names;
}

/// Parses a whole number. CLI11 wraps negative numbers and cuts off large ones.
std::string wholeNumber(const std::string &text) {
  uint64_t value = 0;
  const char *end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && last == end
             ? ""
             : "must be a whole number from 0 to 2^64 - 1, but got '" + text + "'";
}

void addSeedOption(CLI::App &app, uint64_t &seed, const std::string &seedOf) {
  app.add_option("--seed", seed, "seed of " + seedOf)->capture_default_str()->check(wholeNumber);
}

void addOrderOptions(CLI::App &app, sim::SimulationOptions &options) {
  app.add_option("--max-orders", options.maxOrders,
                 "orders of each launch that run with --policy exhaustive; 0: all")
      ->capture_default_str()
      ->check(wholeNumber);
  app.add_option("--replay", options.replay,
                 "with --policy exhaustive: run this one order, which a report named; or the name "
                 "of a file that holds it");
}

} // namespace

void addExplainOption(CLI::App &app) {
  app.add_option_function<std::string>(
         "--explain",
         [](const std::string &name) {
           auto rule = sim::parseHazardRule(name);
           if (!rule)
             throw CLI::ValidationError("--explain",
                                        "unknown rule '" + name + "', known: " + ruleNames());
           std::fputs(sim::explain(*rule).c_str(), stdout);
           throw CLI::Success();
         },
         "say what a rule of the hazard checker means: " + ruleNames())
      ->trigger_on_parse();
}

static void addTimeOptions(CLI::App &app, sim::SimulationOptions &options) {
  app.add_flag("--time", options.time,
               "predict the time of every kernel, what bounds it and what its warps wait for "
               "(docs/concepts/time-model.md)");
  app.add_flag_callback(
      "--time-only", [&options] { options.time = options.timesOnly = true; },
      "predict times and compute no results: matrices are not multiplied, and of a large grid only "
      "a sample runs");
  app.add_option("--sample-after", options.sampleAfter,
                 "warp instructions after which --time goes on with a sample of a large grid; 0: "
                 "never")
      ->capture_default_str()
      ->check(wholeNumber);
  app.add_option("--mix", options.mix,
                 "source of the machine instructions of --time: ptx estimates them, cubin counts "
                 "them with ptxas and nvdisasm, auto does what it can")
      ->capture_default_str()
      ->check(CLI::IsMember({"ptx", "cubin", "auto"}));
  app.add_option("--clock", options.clock,
                 "GHz of the SMs that --time predicts for; 0: as in the target's table "
                 "of rates")
      ->capture_default_str();
}

void addSimulationOptions(CLI::App &app, sim::SimulationOptions &options,
                          const std::string &seedOf) {
  app.add_option("--policy", options.policy,
                 "completion of asynchronous operations of the simulator: eager, lazy, random, "
                 "delay, timed; exhaustive: in every order that makes a difference")
      ->capture_default_str();
  app.add_option(
         "--clusters", options.clusters,
         "CTAs that get the larger cluster size which a launch prefers: mixed: some, by the seed; "
         "preferred: all; fallback: none")
      ->capture_default_str()
      ->check(CLI::IsMember({"mixed", "preferred", "fallback"}));
  addOrderOptions(app, options);
  addTimeOptions(app, options);
  addSeedOption(app, options.seed, seedOf);
  app.add_option("--check", options.check,
                 "look for hazards in the simulator: default accepts what published kernels rely "
                 "on, strict follows the PTX text, off is faster")
      ->expected(0, 1)
      ->default_str("default")
      ->check(CLI::IsMember({"default", "strict", "off"}));
  addExplainOption(app);
  app.add_option("--unwritten", options.unwritten,
                 "uses of shared memory and reads of tensor memory that was never written are an "
                 "error, or are ignored")
      ->capture_default_str()
      ->check(CLI::IsMember({"error", "ignore"}));
  app.add_flag("--stats", options.statistics,
               "count bank conflicts and uncoalesced accesses in the simulator");
  app.add_option("--timeline", options.timeline,
                 "write the simulation to this file, as a trace that ui.perfetto.dev opens");
  app.add_option("--threads", options.hostThreads,
                 "host threads; 0: all; the strict check uses one");
  app.add_option(
         "--limit", options.spinLimit,
         "warp instructions of a cluster without progress after which the simulator stops a "
         "kernel as endless; 0: never")
      ->capture_default_str()
      ->check(wholeNumber);
}

void addJsonOption(CLI::App &app, bool &json) {
  app.add_flag("--json", json, "print the report as one JSON object");
}

std::optional<Error> reportHazards(const std::vector<sim::HazardReport> &hazards) {
  if (hazards.empty())
    return std::nullopt;
  for (const sim::HazardReport &report : hazards)
    std::fputs(report.text().c_str(), stderr);
  return Error{ErrorKind::Hazard,
               fmt::format("{} hazard{} found", hazards.size(), hazards.size() == 1 ? "" : "s"),
               fmt::format("--explain {} says what that means", stringify(hazards.front().rule))};
}

} // namespace fp4::harness
