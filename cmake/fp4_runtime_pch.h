// The headers that most sources of the LLVM-free libraries include, in the release preset; see
// FP4Helpers.cmake.
#pragma once
#include "fp4/ISA/TargetModel.h"
#include "fp4/Support/Error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
