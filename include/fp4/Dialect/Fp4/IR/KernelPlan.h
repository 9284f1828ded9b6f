//===- KernelPlan.h - The plan of an operation's kernel -------------------===//
//
// Decisions that fp4-plan-kernels makes for an operation and that a lowering obeys. `#fp4.plan`
// carries them. A new field is a member of KernelPlan or of one of its parts, and a row of the
// table in KernelPlan.cpp, by which plans are parsed, printed, completed and verified
// (docs/concepts/plans.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Routes/Route.h"

#include "mlir/IR/Attributes.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace mlir {
class AsmParser;
class AsmPrinter;
} // namespace mlir

namespace fp4 {

enum class KernelFamily : uint32_t; // Fp4Plan.td
enum class ResultStore : uint32_t;
enum class CtaOrder : uint32_t;
enum class AmaxKernel : uint32_t;
enum class LaunchDependents : uint32_t;
enum class ReductionPlace : uint32_t;

/// Sizes from `least` to `most`, both included; without `most` the range has no end.
struct SizeRange {
  int64_t least = 1;
  std::optional<int64_t> most;

  bool operator==(const SizeRange &) const = default;
  bool isAll() const { return least == 1 && !most; }
  bool has(int64_t size) const {
    return std::max<int64_t>(size, 1) >= least && size <= most.value_or(INT64_MAX);
  }
};

/// The sizes of a GEMM for which a plan holds.
struct Guard {
  SizeRange m, n, k;
  std::optional<int64_t> kUnit; ///< divisor of K

  bool operator==(const Guard &) const = default;
  bool isAll() const { return *this == Guard(); }
  bool isOfRows() const { return *this == Guard{m, {}, {}, {}}; }
};

/// Decisions about the parts in which k is summed.
struct SplitPlan {
  std::optional<ReductionPlace> reduction; ///< place of the reduction of split-K parts
  std::optional<int64_t> kSlices;          ///< k slices of a CTA
  bool slicedK = false;                    ///< warpgroups of their own for each k slice

  bool operator==(const SplitPlan &) const = default;
};

/// Decisions about the pipeline of a kernel of tiles: its buffers, and warps of its roles.
struct PipelinePlan {
  std::optional<int64_t> stages, accumulators;
  std::optional<int64_t> epilogueWarps; ///< warps that read accumulators in tensor memory
  std::optional<int64_t> mmaWarps;      ///< warps that multiply, and copy scales to tensor memory

  bool operator==(const PipelinePlan &) const = default;
};

/// Decisions about a kernel whose threads stream over elements, without tiles.
struct StreamPlan {
  std::optional<int64_t> blocksPerThread, itemsPerThread; ///< items of reduce_rows are rows
  std::optional<int64_t> lanesPerBlock;
  std::optional<int64_t> singleRows; ///< rows behind strips that have a CTA each
  std::optional<int64_t> grid;
  bool cacheHints = false;
  std::optional<CtaOrder> order;
  std::optional<AmaxKernel> amax;

  bool operator==(const StreamPlan &) const = default;
};

/// Each field may be left open. Fp4Plan.td says what the fields mean and which family has which.
struct KernelPlan {
  KernelFamily family = {};
  route::Route route;               ///< core, operands, sums; or the axes that are asked for
  std::array<int64_t, 3> tile = {}; ///< extents of m, n and k; 0 where there is no such dimension
  std::array<int64_t, 3> cluster = {};  ///< CTAs along m and n
  std::array<int64_t, 3> fallback = {}; ///< CTAs along m and n where `cluster` finds no room
  SplitPlan split;
  bool pair = false;
  std::optional<ResultStore> store;
  std::optional<int64_t> strip;
  mlir::Attribute schedule; ///< a pipe::WorkScheduleAttrInterface
  mlir::Attribute roles;    ///< a pipe::RolePlanAttr
  PipelinePlan pipeline;
  std::optional<int64_t> threads, ctasPerSm;
  StreamPlan stream;
  std::optional<LaunchDependents> pdl;
  std::array<int64_t, 3> waveCost = {}; ///< predicted costs: a launch, a wave, a k tile of a wave
  Guard guard; ///< conditions of a case of `dispatch`; no field of the text

  bool operator==(const KernelPlan &) const = default;

  /// Returns this plan, with its open fields taken from `other`.
  KernelPlan orElse(const KernelPlan &other) const;
  /// Names of the fields that have a value in both plans, and not the same one: orElse ignores
  /// those of `other`.
  llvm::SmallVector<llvm::StringRef> fieldsUnlike(const KernelPlan &other) const;
  /// Names of the fields that have a value, and of all fields of the family.
  llvm::SmallVector<llvm::StringRef> fieldsGiven() const;
  llvm::SmallVector<llvm::StringRef> fieldsOfFamily() const;
  /// A field that a complete plan of this family has and this plan lacks; empty if there is none.
  llvm::StringRef missingField() const;
};

llvm::hash_code hash_value(const KernelPlan &plan);

/// The member of a plan to which pointers to members lead: memberOf<&KernelPlan::pipeline,
/// &PipelinePlan::stages>(plan).
template <auto... path, typename Plan> auto &memberOf(Plan &plan) { return (plan.*....*path); }

/// Parse and print a plan as inside of #fp4.plan<...>.
mlir::ParseResult parsePlan(mlir::AsmParser &parser, KernelPlan &plan);
void printPlan(mlir::AsmPrinter &printer, const KernelPlan &plan);
/// The attribute that `text` stands for in the options of tools: a #fp4.case where it begins with a
/// guard, else a #fp4.plan.
std::string spellPlan(llvm::StringRef text);

namespace route {
llvm::hash_code hash_value(const Route &route);
} // namespace route

} // namespace fp4
