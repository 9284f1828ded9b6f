//===- FragmentResults.cpp - Results of fragments besides elements --------===//
//
// A maximum is taken of fragments as they are. Quantizers want whole blocks in one thread, so warps
// exchange what has been converted until each thread has a segment of one row (pipe.gather_rows);
// what follows is the code of TMEM lanes (ResultStores.cpp).
//
//===----------------------------------------------------------------------===//

#include "FragmentEpilogue.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Elements that are computed here, before others are, so that few sums are on their way at a time.
Value FragmentEpilogue::hold(Value elements) {
  VectorType type = vectorOfThread(elements.getType());
  SmallVector<Value> registers = computeHere(b, b.getLoc(), packedWords(b, b.toVector(elements)));
  auto words = VectorType::get(int64_t(registers.size()), b.getI32Type());
  Value held =
      vector::BitCastOp::create(b, type, vector::FromElementsOp::create(b, words, registers));
  return b.fromVector(cast<RankedTensorType>(elements.getType()), held);
}

/// Fragments of warpgroups have all columns of the tile, of which a section is gathered once it is
/// there; transposed, all rows of it, which are gathered behind the last.
void FragmentEpilogue::derive(Value elements, Place place, OfGroup group) {
  if (gemm.results.withAmax) {
    Value limit = args.rows;
    if (!limit && gemm.m() % gemm.tiling.workM()) // rows of a tile that do not exist
      limit = b.constant(gemm.m());
    amax = pipe::AmaxOp::create(b, b.getF32Type(), elements, place.row, place.column, limit,
                          args.columns ? args.columns : b.constant(gemm.n()), amax, isTransposed());
  }
  if (!gemm.results.quantizer)
    return;
  converted.push_back(hold(elements));
  if (gemm.transposes())
    return;
  int64_t ready = int64_t(converted.size()) * fragments.partColumns,
          section = gemm.gatheredSection(fragments.threads);
  if (fragments.kind == FragmentKind::Wgmma && ready == section)
    quantizeElements({place.row, b.add(place.column, b.constant(fragments.partColumns - section))},
                     group);
}

/// The row from which on threads store what they have quantized. In the last tile, and where they
/// have rows of their own, it is that of the tile; elsewhere other tiles have the rows of their
/// lanes, and they store nothing.
Value FragmentEpilogue::rowOfStores(Value row, OfGroup group) {
  constexpr int64_t behindAll = int64_t(1) << 30;
  Value limit = group.rowLimit ? group.rowLimit : args.rows;
  if (!limit)
    limit = b.constant(gemm.m());
  Value isOwn = b.compare(arith::CmpIPredicate::eq, rowOfThread, b.constant(0));
  Value isLast =
      b.compare(arith::CmpIPredicate::sge, b.add(row, b.constant(gemm.partRows())), limit);
  Value stores = arith::OrIOp::create(b, isOwn, isLast);
  return arith::SelectOp::create(b, stores, row, b.constant(behindAll));
}

void FragmentEpilogue::quantizeElements(Place place, OfGroup group) {
  SmallVector<Value> all = std::exchange(converted, {});
  if (all.empty())
    return;
  if (!results)
    results.emplace(b, gemm, args.derived);
  bool ofWarps = fragments.kind == FragmentKind::MmaSync;
  size_t parts = ofWarps ? size_t(fragments.size[0] / FragmentSums::kWarpRows) : 1,
         perPart = all.size() / parts;
  SmallVector<Value> values;
  for (size_t part = 0; part < parts; ++part)
    values.push_back(concatenateTiles(b, ArrayRef(all).slice(part * perPart, perPart)));
  if (gemm.sharesRowsOfThreads())
    place.row = rowOfStores(place.row, group);
  int64_t columns = gemm.gatheredColumns(fragments.threads);
  auto type = DistributionAttr::tensorOf(FragmentKind::Lanes, columns,
                                         getElementTypeOrSelf(all.front().getType()));
  // A segment of fragments with columns in their rows may be a part of a warpgroup's.
  Value rowOfWarp = ofWarps ? ofWarp.row : b.constant(0),
        columnOfWarp = ofWarps ? ofWarp.column : b.constant(0);
  int64_t width = gemm.transposes() ? fragments.size[0] : columns;
  Segments segments;
  for (int64_t first = 0; first < width; first += columns) {
    Value begin = first ? b.constant(first) : columnOfWarp;
    auto gathered = GatherRowsOp::create(b, type, b.getI32Type(), values, rowOfWarp, begin,
                                         isTransposed(), IntegerAttr());
    if (!segments.first)
      segments.first = gathered.getFirst();
    segments.parts.push_back(gathered.getSegment());
    if (gemm.results.quantizer->hasF32Scales() && first + columns < width)
      continue; // a thread has half of a block at once
    emitSegments(std::exchange(segments, {}), place, group);
  }
}

void FragmentEpilogue::emitSegments(const Segments &segments, Place place, OfGroup group) {
  results->emitSegment({place.row, b.add(place.column, segments.first),
                        group.rowLimit ? group.rowLimit : args.rows, group.scaleShift},
                       concatenateTiles(b, segments.parts));
}

/// Folds the amax of all elements of a tile.
void FragmentEpilogue::foldAmax() {
  if (amax)
    FoldAmaxOp::create(b, std::exchange(amax, {}), args.derived.amax);
  if (gemm.problem.dual)
    results.reset();
}
