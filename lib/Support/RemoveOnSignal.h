//===- RemoveOnSignal.h - Unfinished files of a process that is stopped ---===//
#pragma once

#include <string>

namespace fp4 {

/// Removes the file `path`, or the folder and its files, if a signal ends the process (SIGINT,
/// SIGTERM, SIGHUP, ...). A signal that the program itself handles is the program's. Gives a number
/// for keepOnSignal, -1 when there are too many files.
int removeOnSignal(const std::string &path);
void keepOnSignal(int slot);
/// Returns true when a signal has come: a file that is at the path now is for the caller to remove.
bool hasComeFor(int slot);

} // namespace fp4
