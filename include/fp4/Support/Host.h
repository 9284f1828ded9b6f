//===- Host.h - Facts about this machine and this program -----------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fp4 {

/// The folder of the library that has this function, or of the program; empty where the loader was
/// given a relative path.
std::string codeFolder();

/// Folders beside PATH in which programs of NVIDIA's toolkit may lie: those of $CUDA_HOME,
/// $CUDA_PATH and $CUDA_ROOT, and those of this build and of NVIDIA's wheels, beside the code.
std::vector<std::string> toolkitFolders();

/// The bytes of memory that this machine has.
uint64_t hostMemoryBytes();

/// Returns true for an Arm processor with dot products of bytes (Armv8.2), which servers have since
/// 2018.
bool hasArmByteDots();

} // namespace fp4
