//===- KernelPlan.h - The plan of an operation's kernel -------------------===//
//
// Decisions that fp4-plan-kernels makes for an operation and that a lowering obeys. `#fp4.plan`
// carries them. A new field is a member of KernelPlan and a row of the table in KernelPlan.cpp, by
// which plans are parsed, printed, completed and verified (docs/concepts/plans.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Routes/Route.h"

#include "mlir/IR/Attributes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <cstdint>
#include <optional>

namespace fp4 {

enum class KernelFamily : uint32_t; // Fp4Plan.td
enum class ResultStore : uint32_t;
enum class CtaOrder : uint32_t;
enum class AmaxKernel : uint32_t;
enum class PdlMode : uint32_t;
enum class ReductionPlace : uint32_t;

/// Each field may be left open. Fp4Plan.td says what the fields mean and which family has which.
struct KernelPlan {
  KernelFamily family = {};
  route::Route route;                      ///< core, operands, sums; or the axes that are asked for
  std::array<int64_t, 3> tile = {};        ///< 0 where there is no such dimension
  std::array<int64_t, 3> cluster = {};     ///< CTAs along m and n
  std::array<int64_t, 3> fallback = {};    ///< ... of clusters where `cluster` finds no room
  std::optional<ReductionPlace> reduction; ///< place of the reduction of split-K parts
  std::optional<int64_t> kSlices;          ///< k slices of a CTA
  bool pair = false;
  std::optional<ResultStore> store;
  std::optional<int64_t> epilogueWarps; ///< warps that read accumulators in tensor memory
  std::optional<int64_t> mmaWarps;      ///< warps that multiply, and copy scales to tensor memory
  std::optional<int64_t> strip;
  mlir::Attribute schedule; ///< a pipe::WorkScheduleAttrInterface
  mlir::Attribute roles;    ///< a pipe::RolePlanAttr
  std::optional<int64_t> stages, accumulators;
  std::optional<int64_t> threads, blocksPerThread, itemsPerThread;
  std::optional<int64_t> ctasPerSm, grid;
  bool cacheHints = false;
  std::optional<CtaOrder> order;
  std::optional<AmaxKernel> amax;
  std::optional<PdlMode> pdl;
  std::optional<int64_t> maxRows;       ///< most rows of lhs, in a small-M plan
  std::optional<int64_t> depthUnit;     ///< divisor of K, in a plan for dynamic K
  std::array<int64_t, 3> waveCost = {}; ///< predicted: of a launch, of a wave, of a k tile of one

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
namespace route {
llvm::hash_code hash_value(const Route &route);
} // namespace route

} // namespace fp4
