//===- Report.h - Errors, for people and for fp4-sim ----------------------===//
//
// Errors go at once to the stderr of fp4-sim, which passes it on as FP4_SIM_STDERR (number, device,
// inode) because a program may redirect descriptor 2, as pytest does. Facts that decide the exit
// code of `fp4-sim run` also go to the file FP4_SIM_REPORT, a line each, so a crash does not lose
// them:
//
//   fault JSON            a kernel failed: the simulated program is wrong, and the message, if any
//   hazard JSON           a report of the hazard checker
//   access JSON           an instruction whose accesses cost more than necessary
//   kernel JSON           a launch that has ended
//   time JSON             the predicted time of a launch
//   orders JSON           the orders of a launch that ran, with the policy exhaustive
//   refused               something that was requested does not exist: PTX, a device
//   missing cudaXyz       a function that is not implemented was called
//   timeline-begun FILE   a timeline is being written under this name; the tool removes leftovers
//   timeline-ended FILE   the timeline is complete
//   lost                  a file that was requested could not be written
//   launches N W S        at the end: launches, warp instructions, seconds
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <string_view>

#define FP4_HOST_API __attribute__((visibility("default")))

namespace fp4::simcuda {

/// Prints a text to fp4-sim's stderr, after the program's own output.
void print(std::string_view text);

/// Prints `error` after the name of the function that met it.
void printError(std::string_view function, const Error &error);

/// Appends a line to the report file, if there is one.
void reportLine(std::string_view line);

/// Prints a warning, unless the same was printed before.
FP4_HOST_API void warnOnce(std::string_view function, std::string_view message,
                           std::string_view note);

/// For the functions that we do not have: reports `function` once and counts it.
FP4_HOST_API void reportMissing(const char *function);

} // namespace fp4::simcuda
