//===- FragmentSums.cpp - Sums in the registers of threads ----------------===//

#include "FragmentSums.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/ISA/StagedSums.h"
#include "fp4/Plans/WarpFragment.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Columns of a fragment that an instruction has at least.
static constexpr int64_t kFewestColumns = 8;

/// The size of a fragment of `plan`. The check of a plan has the fragment of a warp.
static std::array<int64_t, 2> sizeOfFragment(const Gemm &gemm, const KernelPlan &plan,
                                             FragmentKind kind) {
  const Tiling &tiling = gemm.tiling;
  int64_t warps = cast<RolePlanAttr>(plan.roles).getDriver(Engine::Tensor).getNumWarps();
  if (kind == FragmentKind::MmaSync)
    return *warpFragment(tiling.tileM, tiling.tileN, warps);
  return {Gemm::kWarpgroupRows, gemm.transposes() ? gemm.partRows() : tiling.tileN};
}

FragmentSums::FragmentSums(GemmKernel &kernel, const WorkLoop &works, const KernelPlan &plan)
    : kind(kernel.gemm.hasWarpFragments() ? FragmentKind::MmaSync : FragmentKind::Wgmma),
      size(sizeOfFragment(kernel.gemm, plan, kind)),
      threads(cast<RolePlanAttr>(plan.roles).getDriver(Engine::Threads).getNumThreads()),
      mostReduced(kMostReduced / plan.ctasPerSm.value_or(1)), b(kernel.b), gemm(kernel.gemm),
      args(kernel.args), works(works) {
  if (gemm.results.storesTiles)
    partColumns = gemm.storedColumns();
}

Value FragmentSums::create(int64_t slice) {
  auto type = FragmentType::get(b.getContext(), size, b.getF32Type(), kind);
  return gemm.bySlice(AccumulatorOp::create(b, type), slice);
}

void FragmentSums::forParts(llvm::function_ref<void(RankedTensorType, int64_t)> body) {
  int64_t width = size[1];
  for (int64_t first = 0; first < width; first += partColumns)
    body(DistributionAttr::tensorOf(kind, std::min(partColumns, width - first), b.getF32Type()),
         first);
}

IntegerAttr FragmentSums::placeOfSums(size_t part, int64_t first) {
  return b.getI64IntegerAttr((int64_t(part) * size[1] + first) / 2 * threads);
}

void FragmentSums::complete(ValueRange accs, const Tile &tile, Finish finish) {
  SmallVector<Value> all = gathered(accs), parts = partsOf(all);
  if (gemm.work.reducesInCluster)
    reduceInCluster(all, tile, finish);
  else if (gemm.work.stream)
    reduceShares(parts, tile.share, finish);
  else if (gemm.work.reducedCtas() > 1)
    reduce(parts, tile, finish);
  else if (gemm.work.ranges > 1)
    addSlices(parts, finish);
  else
    finishParts(parts, finish);
}

/// The sums of all k slices where the warpgroups of the first slice read them: the other slices
/// have theirs in registers of their own, and stage them in shared memory.
SmallVector<Value> FragmentSums::gathered(ValueRange accs) {
  SmallVector<Value> all(accs);
  if (gemm.work.sliceRoles.empty())
    return all;
  auto tile =
      SharedType::get({size[1] / hw::columnsOfSums, hw::sumsOfAccess * threads}, b.getF32Type());
  auto ofFragment = DistributionAttr::tensorOf(kind, size[1], b.getF32Type());
  for (int64_t slice = 1; slice < int64_t(all.size()); ++slice) {
    Value &sums = all[size_t(slice)];
    Value read = gemm.bySlice(ReadOp::create(b, ofFragment, sums, int64_t(0), int64_t(0)), slice);
    sums = gemm.bySlice(StageOp::create(b, tile, read, Value()), slice).getResult();
  }
  return all;
}

/// A cluster reduces fragments: sums in shared memory become one.
Value FragmentSums::inRegisters(Value sums) {
  if (isa<FragmentType>(sums.getType()))
    return sums;
  Value fragment = create();
  forParts([&](RankedTensorType type, int64_t first) {
    WriteOp::create(b, readPart(sums, 0, type, first), fragment, uint64_t(first));
  });
  return fragment;
}

/// Warps have several parts in one accumulator.
SmallVector<Value> FragmentSums::partsOf(ValueRange accs) const {
  int64_t perAccumulator = kind == FragmentKind::MmaSync ? size[0] / kWarpRows : 1;
  SmallVector<Value> parts;
  for (Value acc : accs)
    parts.append(size_t(perAccumulator), acc);
  return parts;
}

void FragmentSums::finishParts(ValueRange accs, Finish finish) {
  size_t count = accs.size() / (gemm.problem.dual ? 2 : 1);
  for (size_t part = 0; part < count; ++part) {
    auto read = [&](size_t number) {
      return [this, acc = accs[number], part](RankedTensorType type, int64_t first) {
        return readPart(acc, part, type, first);
      };
    };
    auto sums = read(part), second = read(accs.size() - count + part);
    finish(part, sums, gemm.problem.dual ? From(second) : From(), {});
  }
}

/// Adds the sums over the k slices of a CTA that has all of them.
void FragmentSums::addSlices(ValueRange accs, Finish finish) {
  auto sums = [&](RankedTensorType type, int64_t first) {
    Value sum;
    for (Value acc : accs) {
      Value next = readPart(acc, 0, type, first);
      sum = sum ? arith::AddFOp::create(b, sum, next).getResult() : next;
    }
    return sum;
  };
  finish(0, sums, {}, {});
}

/// Every CTA of a cluster has the sums of some columns of the first fragment, equally many if there
/// are enough.
void FragmentSums::reduceInCluster(ValueRange accs, const Tile &tile, Finish finish) {
  int64_t width = size[1], ctas = gemm.work.reducedCtas();
  while (partColumns > kFewestColumns && (partColumns * ctas > width || width % partColumns != 0))
    partColumns -= kFewestColumns;
  auto fragments = llvm::map_to_vector(accs, [&](Value sums) { return inRegisters(sums); });
  ReduceOp::create(b, /*sums=*/Type(), fragments, b.getI64IntegerAttr(partColumns),
                   /*maximum=*/false, /*rows=*/IntegerAttr(), /*place=*/IntegerAttr());
  auto sums = [&](RankedTensorType type, int64_t first) {
    return readPart(fragments.front(), 0, type, first);
  };
  finish(0, sums, {}, [&](int64_t first) {
    Value place = b.constant(first / partColumns % ctas);
    return b.compare(arith::CmpIPredicate::eq, tile.part, place);
  });
}

/// Leaves the sums of a part of a tile in `row` of the workspace.
void FragmentSums::leave(Value acc, size_t part, Value row) {
  forParts([&](RankedTensorType type, int64_t first) {
    StoreOp::create(b, readPart(acc, part, type, first), args.workspace, row, /*column=*/Value(),
                    /*rows=*/Value())
        .setFirstAttr(placeOfSums(part, first));
  });
}

void FragmentSums::finishSums(size_t part, ArrayRef<Value> sums, Finish finish) {
  finish(part, [&](RankedTensorType, int64_t first) { return sums[size_t(first / partColumns)]; },
         {}, {});
}

/// The last CTA of a tile adds the sums that all CTAs have left, from the first to the last.
void FragmentSums::reduce(ValueRange accs, const Tile &tile, Finish finish) {
  auto ranges = size_t(gemm.work.ranges);
  Value tiles = b.mul(works.numM, gemm.tilesN());
  auto rowOf = [&](Value range) { return b.add(b.mul(range, tiles), tile.index); };
  for (auto [number, acc] : llvm::enumerate(accs)) {
    Value range = tile.part;
    if (ranges > 1)
      range = b.add(b.mul(range, gemm.work.ranges), b.constant(int64_t(number % ranges)));
    leave(acc, number / ranges, rowOf(range));
  }
  Value last = CountPartialOp::create(b, args.counters, tile.index, gemm.work.reducedCtas());
  b.when(last, [&] {
    size_t parts = accs.size() / ranges;
    bool keepsOwn = keepsOwnSums(int64_t(parts));
    for (size_t part = 0; part < parts; ++part)
      finishSums(part,
                 keepsOwn ? sumWithOwn(accs[part], part, tile.part, rowOf)
                          : sumOfLeft(part, tile.index, tiles),
                 finish);
  });
}

/// The sums of all split-K parts: those of CTA `part` are in its registers. As many parts as there
/// is room for beside these are read before any is added, since ptxas moves no addition in front of
/// a branch.
SmallVector<Value> FragmentSums::sumWithOwn(Value acc, size_t number, Value part,
                                            llvm::function_ref<Value(Value)> rowOf) {
  if (gemm.work.splits == 2) // in either order
    return addAll(readAll(acc, number), fetchAll(number, rowOf(complement(part))));
  int64_t together = mostReduced / (size[1] / 2) - 1;
  SmallVector<Value> sums;
  for (int64_t first = 0; first < gemm.work.splits; first += together) {
    SmallVector<SmallVector<Value>> next;
    for (int64_t range = first; range < std::min(first + together, gemm.work.splits); ++range)
      next.push_back(ownOrLeft(acc, number, part, range, rowOf(b.constant(range))));
    for (SmallVector<Value> &range : next)
      sums = sums.empty() ? range : addAll(sums, range);
  }
  return sums;
}

/// The sums of part `range`: what CTA `range` has in its registers, and others in `row` of the
/// workspace.
SmallVector<Value> FragmentSums::ownOrLeft(Value acc, size_t number, Value part, int64_t range,
                                           Value row) {
  Value isOwn = b.compare(arith::CmpIPredicate::eq, part, b.constant(range));
  return chooseSums(
      isOwn, [&] { return readAll(acc, number); }, [&] { return fetchAll(number, row); });
}

/// Adds the sums of all split-K parts, which are `step` rows of the workspace apart. All loads of
/// one split-K part are on their way before any sum is stored. With many split-K parts ptxas would
/// load more than registers hold.
SmallVector<Value> FragmentSums::sumOfLeft(size_t number, Value row, Value step) {
  constexpr int64_t mostWrittenOut = 4;
  if (gemm.work.splits > mostWrittenOut)
    return sumOfRows(number, row, step, b.constant(gemm.work.splits));
  SmallVector<Value> sums = fetchAll(number, row);
  for (int64_t range = 1; range < gemm.work.splits; ++range) {
    row = b.add(row, step);
    sums = addAll(sums, fetchAll(number, row));
  }
  return sums;
}

/// Loads row `row` of the workspace, of part `number` of a tile.
SmallVector<Value> FragmentSums::fetchAll(size_t number, Value row) {
  SmallVector<Value> sums;
  forParts([&](RankedTensorType type, int64_t first) {
    sums.push_back(
        FetchOp::create(b, type, args.workspace, row, Value(), placeOfSums(number, first)));
  });
  return sums;
}

SmallVector<Value> FragmentSums::readAll(Value acc, size_t number) {
  SmallVector<Value> sums;
  forParts([&](RankedTensorType type, int64_t first) {
    sums.push_back(readPart(acc, number, type, first));
  });
  return sums;
}

Value FragmentSums::readPart(Value acc, size_t number, RankedTensorType type, int64_t first) {
  int64_t row = kind == FragmentKind::MmaSync ? int64_t(number) * kWarpRows : 0;
  return ReadOp::create(b, type, acc, first, row);
}

/// Returns the other one of two parts.
Value FragmentSums::complement(Value part) { return b.sub(b.constant(1), part); }

SmallVector<Value> FragmentSums::addAll(ValueRange sums, ValueRange more) {
  return llvm::map_to_vector(llvm::zip_equal(sums, more), [&](auto pair) -> Value {
    return arith::AddFOp::create(b, std::get<0>(pair), std::get<1>(pair));
  });
}

/// The sums in `count` rows of the workspace, two at least, which are `step` apart: from the first
/// to the last. The loads of the first two rows are on their way together.
SmallVector<Value> FragmentSums::sumOfRows(size_t number, Value row, Value step, Value count) {
  auto rowOf = [&](Value i) { return b.add(row, b.mul(i, step)); };
  SmallVector<Value> first = fetchAll(number, row), second = fetchAll(number, b.add(row, step));
  auto rows = scf::ForOp::create(b, b.constant(2), count, b.constant(1), addAll(first, second));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rows.getBody());
  SmallVector<Value> next = fetchAll(number, rowOf(rows.getInductionVar()));
  scf::YieldOp::create(b, addAll(rows.getRegionIterArgs(), next));
  return SmallVector<Value>(rows.getResults());
}

/// Adds the sums of a shared tile. With two parts, this CTA has one of them in registers.
SmallVector<Value> FragmentSums::sumOfShared(Value acc, size_t number, const Tile::Share &share) {
  Value areTwo = b.compare(arith::CmpIPredicate::eq, share.parts, b.constant(2));
  auto ofBoth = [&] {
    SmallVector<Value> own = readAll(acc, number);
    return addAll(own, fetchAll(number, b.add(share.firstSums, complement(share.part))));
  };
  auto ofMore = [&] { return sumOfRows(number, share.firstSums, b.constant(1), share.parts); };
  return chooseSums(areTwo, ofBoth, ofMore);
}

SmallVector<Value> FragmentSums::chooseSums(Value condition,
                                            llvm::function_ref<SmallVector<Value>()> sums,
                                            llvm::function_ref<SmallVector<Value>()> others) {
  SmallVector<Type> types;
  forParts([&](RankedTensorType type, int64_t) { types.push_back(type); });
  return chooseValues(b, types, condition, sums, others);
}

/// The CTA that has all of a tile finishes it. Every CTA of a shared tile leaves its sums, and the
/// last one to come adds all of them.
void FragmentSums::reduceShares(ValueRange accs, const Tile::Share &share, Finish finish) {
  auto compare = [&](arith::CmpIPredicate holds) -> Value {
    return b.compare(holds, share.parts, b.constant(1));
  };
  b.when(compare(arith::CmpIPredicate::eq), [&] { finishParts(accs, finish); });
  b.when(compare(arith::CmpIPredicate::ne), [&] {
    Value own = b.add(share.firstSums, share.part);
    for (auto [part, acc] : llvm::enumerate(accs))
      leave(acc, part, own);
    b.when(CountPartialOp::create(b, args.counters, share.counter, share.parts, IntegerAttr()),
           [&] {
             ofLast = true;
             for (auto [part, acc] : llvm::enumerate(accs))
               finishSums(part, sumOfShared(acc, part, share), finish);
             ofLast = false;
           });
  });
}
