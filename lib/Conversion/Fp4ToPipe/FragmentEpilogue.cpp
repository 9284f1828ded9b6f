//===- FragmentEpilogue.cpp - GEMMs whose sums are in registers -----------===//

#include "FragmentEpilogue.h"

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Columns of a fragment that an instruction has at least.
static constexpr int64_t kFewestColumns = 8;

void FragmentEpilogue::buildTiles(TileBuilder::WorkBody body) {
  numM = countTilesM();
  bool reducesLate =
      gemm.work.hasWorkspace() && !gemm.work.stream; // and reads sums beside the alpha
  if (gemm.results.alpha == Results::Alpha::One && !reducesLate && !gemm.problem.dual)
    alphaOfAll = LoadScalarOp::create(b, b.getF32Type(), alpha);
  if (gemm.results.quantizer && !gemm.problem.dual)
    results.emplace(b, gemm, derived);
  b.forEachWork(numM, gemm.work.stream ? b.constant(1) : countWorksN(), body);
  gpu::ReturnOp::create(b);
}

/// Counts tiles along m, from the dynamic rows that the kernel is given, or from the table of the
/// groups.
Value FragmentEpilogue::countTilesM() {
  if (gemm.work.stream)
    return b.constant(gemm.work.streamWorks);
  if (gemm.problem.groups)
    return countTilesOfGroups();
  if (rows)
    return arith::DivUIOp::create(b, b.add(rows, b.constant(gemm.tiling.tileM - 1)),
                                  b.constant(gemm.tiling.tileM));
  return b.constant(gemm.tilesM());
}

Value FragmentEpilogue::load(Value map, Value row, Value column, int64_t depth) {
  auto box = cast<TensorMapType>(map.getType());
  SmallVector<int64_t> size(box.getShape());
  if (depth)
    size.back() = depth;
  auto type = SharedType::get(size, box.getElementType(), box.getLayout());
  return LoadOp::create(b, type, map, row, column, Value(), Value(), Value(), DirectionAttr(),
                        existingRows(map, row))
      .getResult();
}

Value FragmentEpilogue::loadScales(Value from, Value rowBlock, Value kBlock, Value blocks,
                                   int64_t rows) {
  auto type = SharedType::get(
      {int64_t(llvm::alignTo(rows, kScaleBlockRows)), gemm.tiling.tileK / gemm.problem.block},
      gemm.problem.scaleType, Layout::Tiled128x4);
  return LoadScalesOp::create(b, type, from, rowBlock, kBlock, blocks, Value(), Value(), Value(),
                              /*in_bounds=*/false)
      .getResult();
}

Value FragmentEpilogue::convert(Value tile, Value scales, Value blocks) {
  Type half = gemm.problem.block == 16 ? Type(b.getF16Type()) : Type(b.getBF16Type());
  auto type =
      SharedType::get(cast<SharedType>(tile.getType()).getShape(), half, Layout::Swizzle128B);
  return ConvertTileOp::create(b, type, tile, scales, blocks, Value()).getResult();
}

/// Codes of 4 bits are as they are in memory or prepacked, as bytes.
static numerics::BlockFormat formatOfCodes(Type data, int64_t block) {
  using enum numerics::BlockFormat;
  if (isa<Float8E4M3FNType>(data))
    return MXFP8E4M3;
  if (isa<Float8E5M2Type>(data))
    return MXFP8E5M2;
  return block == 16 ? NVFP4 : MXFP4;
}

int FragmentEpilogue::restoringExponent() const {
  if (gemm.takesBytes()) // weights are e4m3 and have powers of their own
    return 0;
  bool hasFloats = gemm.floatA() && (gemm.route.activations != Reach::Pre || gemm.prepackedB());
  int ofB = numerics::convertedExponent(formatOfCodes(gemm.dataTypeB(), gemm.problem.block));
  return hasFloats
             ? -ofB
             : -ofB -
                   numerics::convertedExponent(formatOfCodes(gemm.dataTypeA(), gemm.problem.block));
}

FragmentEpilogue::PlacedTile FragmentEpilogue::placeTile(Value m, Value n) {
  PlacedTile tile;
  tile.column = tile.rowB = tile.scaleRowB = b.mul(n, gemm.tiling.tileN);
  if (!gemm.problem.groups) {
    tile.row = tile.scaleRowA = b.mul(m, gemm.tiling.tileM);
    return tile;
  }
  TileOfGroup place = tileOfGroup(m);
  tile.row = place.row;
  tile.scaleRowA = entry(table, m, 3);
  tile.rowB = b.add(tile.column, b.mul(place.group, gemm.n()));
  tile.scaleRowB = b.add(tile.column, b.mul(place.group, gemm.scaleRowsOfGroup()));
  tile.group = ofGroup(place);
  tile.group.scaleShift = b.sub(tile.scaleRowA, tile.row);
  return tile;
}

FragmentEpilogue::OfGroup FragmentEpilogue::ofGroup(const TileOfGroup &place) {
  return {place.rowLimit, alphaOfGroup(alpha, place.group), alphaOfGroup(alpha2, place.group),
          place.group, Value()};
}

Value FragmentEpilogue::newFragment() {
  auto type = FragmentType::get(b.getContext(), fragmentSize, b.getF32Type(), fragmentKind);
  return FragmentOp::create(b, type);
}

void FragmentEpilogue::forParts(llvm::function_ref<void(VectorType, int64_t)> body) {
  int64_t width = fragmentSize[1];
  for (int64_t first = 0; first < width; first += partColumns)
    body(VectorType::get({std::min(partColumns, width - first) / 2}, b.getF32Type()), first);
}

FragmentEpilogue::Place FragmentEpilogue::placeOfPart(Value row, Value column, int64_t first) {
  bool isTransposed = gemm.route.transposes();
  Value place = b.add(isTransposed ? row : column, b.constant(first));
  return isTransposed ? Place{place, column} : Place{row, place};
}

SmallVector<Value> FragmentEpilogue::alphasOfPlaces(Value row, Value column) {
  SmallVector<Value> alphas;
  forParts([&](VectorType type, int64_t first) {
    auto [atRow, atColumn] = placeOfPart(row, column, first);
    alphas.push_back(loadAlphas(type.getNumElements(), alpha,
                                [&](VectorType ofType, Value global, Value limit, bool) -> Value {
                                  return FragmentFactorsOp::create(
                                      b, ofType, global, atRow, atColumn, limit,
                                      gemm.route.transposes(), /*one_row=*/false);
                                }));
  });
  return alphas;
}

FragmentEpilogue::Factors FragmentEpilogue::broadcastAlphas(VectorType type, OfGroup group) {
  auto all = [&](Value scalar) -> Value {
    return scalar ? vector::BroadcastOp::create(b, type, scalar).getResult() : Value();
  };
  if (gemm.results.alpha != Results::Alpha::One)
    return {all(group.alpha), all(group.alpha2)};
  auto load = [&](Value from) -> Value {
    return from ? LoadScalarOp::create(b, b.getF32Type(), from).getResult() : Value();
  };
  return {all(alphaOfAll ? alphaOfAll : load(alpha)), all(load(alpha2))};
}

Value FragmentEpilogue::restored(Value sums, Restoring restoring) {
  sums = timesPower(sums, restoring.exponent);
  if (!restoring.powers)
    return sums;
  int64_t count = cast<VectorType>(sums.getType()).getNumElements();
  SmallVector<int64_t> order = llvm::map_to_vector(
      llvm::seq<int64_t>(count), [](int64_t i) { return i % 4; }); // two of each of two rows
  Value powers = vector::ShuffleOp::create(b, restoring.powers, restoring.powers, order);
  return arith::MulFOp::create(b, sums, powers);
}

void FragmentEpilogue::storeSums(SumsFrom sums, Value row, Value column, Restoring restoring,
                                 OfGroup group, PartGuard isStored, SumsFrom second) {
  using Alpha = Results::Alpha;
  Factors factors;
  bool isScalar = gemm.results.alpha == Alpha::One || group.alpha;
  Alpha ofLines = gemm.route.transposes() ? Alpha::Columns : Alpha::Rows; // alike in every part
  SmallVector<Value> ahead;
  if (!isStored && gemm.results.alpha == Alpha::Rows && loadsAlphasAhead())
    ahead = alphasOfPlaces(row, column);
  forParts([&](VectorType type, int64_t first) {
    OpBuilder::InsertionGuard restore(b);
    // Parts that have the factors of their rows in common take those of the first.
    bool isOwn = first == 0 || 2 * type.getNumElements() < partColumns;
    if (isStored) {
      auto branch = scf::IfOp::create(b, isStored(first), /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
      isOwn = true;
    }
    auto [atRow, atColumn] = placeOfPart(row, column, first);
    auto numbers = [&](VectorType ofType, Value global, Value limit, bool ofGroup) -> Value {
      return FragmentFactorsOp::create(b, ofType, global, ofGroup ? group.group : atRow, atColumn,
                                       limit, gemm.route.transposes(), ofGroup);
    };
    auto load = [&](Value from) {
      return from ? loadAlphas(type.getNumElements(), from, numbers) : Value();
    };
    if (isScalar)
      factors = broadcastAlphas(type, group);
    else if (!ahead.empty())
      factors.first = ahead[size_t(first / partColumns)];
    else if (alpha && (gemm.results.alpha != ofLines || isOwn))
      factors = {load(alpha), load(alpha2)};
    SmallVector<Sums> products = {{restored(sums(type, first), restoring), factors.first}};
    if (second)
      products.push_back({restored(second(type, first), restoring), factors.second});
    leave(convertSums(products, numbers), atRow, atColumn, group);
  });
  storeStaged(group);
}

/// Elements of some columns of a fragment, from (row, column) of the result on.
void FragmentEpilogue::leave(Value elements, Value row, Value column, OfGroup group) {
  if (gemm.results.storesElements)
    store(elements, row, column, group);
  if (!gemm.storesAtOnce())
    storeStaged(group);
  if (gemm.results.derives())
    derive(elements, row, column, group);
}

void FragmentEpilogue::store(Value elements, Value row, Value column, OfGroup group) {
  if (gemm.results.storesTiles)
    return stageTile(elements, row, column);
  constexpr int64_t fewestStaged = 8; // columns that stmatrix takes
  int64_t count = cast<VectorType>(elements.getType()).getNumElements();
  // All staged stores have one size; the columns behind the last whole part are stored directly.
  bool isStaged = gemm.stagesStores() && count % fewestStaged == 0 && 2 * count == partColumns;
  StoreFragmentOp::create(b, elements, result, row, column, group.rowLimit ? group.rowLimit : rows,
                          gemm.route.transposes(), isStaged, IntegerAttr());
}

void FragmentEpilogue::stageTile(Value elements, Value row, Value column) {
  auto box = cast<TensorMapType>(result.getType());
  auto type = SharedType::get(box.getShape(), box.getElementType(), box.getLayout());
  Value tile = StageFragmentOp::create(b, type, elements, Value()).getResult();
  staged.push_back({tile, elements, row, column});
}

/// Stores the staged parts. Rows behind a group belong to the next one, and the box of the last
/// tile of a group has some of them.
void FragmentEpilogue::storeStaged(OfGroup group) {
  SmallVector<StagedPart> parts = std::exchange(staged, {});
  auto storeWhole = [&] {
    for (const StagedPart &part : parts)
      StoreTileOp::create(b, part.tile, result, part.row, part.column,
                          /*halves=*/IntegerAttr());
  };
  if (parts.empty() || !gemm.storesEnds())
    return storeWhole();
  Value end = b.add(parts.front().row, b.constant(gemm.storedRows()));
  b.when(b.compare(arith::CmpIPredicate::sle, end, group.rowLimit), storeWhole);
  b.when(b.compare(arith::CmpIPredicate::sgt, end, group.rowLimit), [&] {
    for (const StagedPart &part : parts)
      StoreFragmentOp::create(b, part.elements, resultBuffer, part.row, part.column, group.rowLimit,
                              gemm.route.transposes(), /*staged=*/false, IntegerAttr());
  });
}

void FragmentEpilogue::storeSums(Value acc, Value row, Value column, Restoring restoring,
                                 OfGroup group, PartGuard isStored, Value second) {
  auto read = [&](Value from) {
    return [this, from](VectorType type, int64_t first) -> Value {
      return ReadFragmentOp::create(b, type, from, b.getI64IntegerAttr(first));
    };
  };
  auto sums = read(acc), ofSecond = read(second);
  storeSums(sums, row, column, restoring, group, isStored,
            second ? SumsFrom(ofSecond) : SumsFrom());
}

IntegerAttr FragmentEpilogue::placeOfSums(size_t part, int64_t first) {
  return b.getI64IntegerAttr((int64_t(part) * fragmentSize[1] + first) / 2 * threads);
}

void FragmentEpilogue::reduceSums(ValueRange accs, Value index, Value part,
                                  llvm::function_ref<void(size_t, SumsFrom)> finish) {
  Value tiles = b.mul(numM, gemm.tilesN());
  auto rowOf = [&](Value range) { return b.add(b.mul(range, tiles), index); };
  for (auto [number, acc] : llvm::enumerate(accs)) {
    Value range = part;
    if (gemm.work.ranges > 1)
      range = b.add(b.mul(part, gemm.work.ranges), b.constant(int64_t(number) % gemm.work.ranges));
    Value own = rowOf(range);
    forParts([&, acc = acc, number = number](VectorType type, int64_t first) {
      size_t partOfTile = number / size_t(gemm.work.ranges);
      LeaveFragmentOp::create(b, readPart(acc, partOfTile, type, first), workspace, own,
                              placeOfSums(partOfTile, first));
    });
  }
  Value last = CountPartialOp::create(b, counters, index, gemm.work.reducedCtas());
  auto branch = scf::IfOp::create(b, last, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  size_t parts = accs.size() / size_t(gemm.work.ranges);
  bool keepsOwn = keepsOwnSums(int64_t(parts));
  for (size_t number = 0; number < parts; ++number) {
    SmallVector<Value> sums =
        keepsOwn ? sumWithOwn(accs[number], number, part, rowOf) : sumOfLeft(number, index, tiles);
    finish(number, [&](VectorType, int64_t first) { return sums[size_t(first / partColumns)]; });
  }
}

/// The sums of all split-K parts: those of CTA `part` are in its registers. As many parts as there
/// is room for beside these are read before any is added, since ptxas moves no addition in front of
/// a branch.
SmallVector<Value> FragmentEpilogue::sumWithOwn(Value acc, size_t number, Value part,
                                                llvm::function_ref<Value(Value)> rowOf) {
  if (gemm.work.splits == 2) // in either order
    return addAll(readAll(acc, number), fetchAll(number, rowOf(complement(part))));
  int64_t together = kMostReduced / (fragmentSize[1] / 2) - 1;
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
SmallVector<Value> FragmentEpilogue::ownOrLeft(Value acc, size_t number, Value part, int64_t range,
                                               Value row) {
  Value isOwn = b.compare(arith::CmpIPredicate::eq, part, b.constant(range));
  return chooseSums(
      isOwn, [&] { return readAll(acc, number); }, [&] { return fetchAll(number, row); });
}

/// Adds the sums of all split-K parts, which are `step` rows of the workspace apart. All loads of
/// one split-K part are on their way before any sum is stored. With many split-K parts ptxas would
/// load more than registers hold.
SmallVector<Value> FragmentEpilogue::sumOfLeft(size_t number, Value row, Value step) {
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
SmallVector<Value> FragmentEpilogue::fetchAll(size_t number, Value row) {
  SmallVector<Value> sums;
  forParts([&](VectorType type, int64_t first) {
    sums.push_back(FetchFragmentOp::create(b, type, workspace, row, placeOfSums(number, first)));
  });
  return sums;
}

SmallVector<Value> FragmentEpilogue::readAll(Value acc, size_t number) {
  SmallVector<Value> sums;
  forParts(
      [&](VectorType type, int64_t first) { sums.push_back(readPart(acc, number, type, first)); });
  return sums;
}

Value FragmentEpilogue::readPart(Value acc, size_t number, VectorType type, int64_t first) {
  if (fragmentKind == FragmentKind::MmaSync)
    return ReadWarpFragmentOp::create(b, type, acc, int64_t(number) * kWarpRows, first);
  return ReadFragmentOp::create(b, type, acc, b.getI64IntegerAttr(first));
}

/// Returns the other one of two parts.
Value FragmentEpilogue::complement(Value part) { return b.sub(b.constant(1), part); }

SmallVector<Value> FragmentEpilogue::addAll(ValueRange sums, ValueRange more) {
  return llvm::map_to_vector(llvm::zip_equal(sums, more), [&](auto pair) -> Value {
    return arith::AddFOp::create(b, std::get<0>(pair), std::get<1>(pair));
  });
}

/// The sums in `count` rows of the workspace, two at least, which are `step` apart: from the first
/// to the last. The loads of the first two rows are on their way together.
SmallVector<Value> FragmentEpilogue::sumOfRows(size_t number, Value row, Value step, Value count) {
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
SmallVector<Value> FragmentEpilogue::sumOfShared(Value acc, size_t number, const Share &share) {
  Value areTwo = b.compare(arith::CmpIPredicate::eq, share.parts, b.constant(2));
  auto ofBoth = [&] {
    SmallVector<Value> own = readAll(acc, number);
    return addAll(own, fetchAll(number, b.add(share.firstSums, complement(share.part))));
  };
  auto ofMore = [&] { return sumOfRows(number, share.firstSums, b.constant(1), share.parts); };
  return chooseSums(areTwo, ofBoth, ofMore);
}

SmallVector<Value> FragmentEpilogue::chooseSums(Value condition,
                                                llvm::function_ref<SmallVector<Value>()> sums,
                                                llvm::function_ref<SmallVector<Value>()> others) {
  SmallVector<Type> types;
  forParts([&](VectorType type, int64_t) { types.push_back(type); });
  auto branch = scf::IfOp::create(b, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, sums());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, others());
  return SmallVector<Value>(branch.getResults());
}

void FragmentEpilogue::reductionShares(ValueRange accs, const Share &share,
                                       llvm::function_ref<void(size_t, SumsFrom)> finish) {
  auto compare = [&](arith::CmpIPredicate holds) -> Value {
    return b.compare(holds, share.parts, b.constant(1));
  };
  auto read = [&](Value acc, VectorType type, int64_t first) -> Value {
    return ReadFragmentOp::create(b, type, acc, b.getI64IntegerAttr(first));
  };
  b.when(compare(arith::CmpIPredicate::eq), [&] {
    for (auto [number, acc] : llvm::enumerate(accs))
      finish(number,
             [&, acc = acc](VectorType type, int64_t first) { return read(acc, type, first); });
  });
  b.when(compare(arith::CmpIPredicate::ne), [&] {
    Value own = b.add(share.firstSums, share.part);
    for (auto [number, acc] : llvm::enumerate(accs))
      forParts([&, acc = acc, number = number](VectorType type, int64_t first) {
        LeaveFragmentOp::create(b, read(acc, type, first), workspace, own,
                                placeOfSums(number, first));
      });
    b.when(CountPartialOp::create(b, counters, share.counter, share.parts, IntegerAttr()), [&] {
      for (auto [number, acc] : llvm::enumerate(accs)) {
        SmallVector<Value> sums = sumOfShared(acc, number, share);
        finish(number,
               [&](VectorType, int64_t first) { return sums[size_t(first / partColumns)]; });
      }
    });
  });
}

Value FragmentEpilogue::sumOfRanges(ValueRange accs, VectorType type, int64_t first) {
  Value sum;
  for (Value acc : accs) {
    Value next = ReadFragmentOp::create(b, type, acc, b.getI64IntegerAttr(first));
    sum = sum ? arith::AddFOp::create(b, sum, next).getResult() : next;
  }
  return sum;
}

Value FragmentEpilogue::placeOfRange() {
  Value place = gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x);
  return arith::IndexCastOp::create(b, b.getI32Type(), place);
}

void FragmentEpilogue::reduceInCluster(ValueRange accs, Value part, Value row, Value column,
                                       Restoring restoring) {
  int64_t width = fragmentSize[1];
  while (partColumns > kFewestColumns &&
         (partColumns * gemm.work.reducedCtas() > width || width % partColumns != 0))
    partColumns -= kFewestColumns;
  ReduceFragmentOp::create(b, accs, partColumns, IntegerAttr());
  storeSums(accs.front(), row, column, restoring, {}, [&](int64_t first) -> Value {
    Value block = b.constant(first / partColumns % gemm.work.reducedCtas());
    return b.compare(arith::CmpIPredicate::eq, part, block);
  });
}
