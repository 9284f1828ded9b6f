//===- GroupCheck.cpp - Checks of groups on the device --------------------===//

#include "GroupCheck.h"

#include "SmallBuilders.h"

#include "fp4/Support/GroupRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;

static_assert(sizeof(GroupReport) == kGroupReportWords * sizeof(int64_t));

/// Judges a group as findWrongGroup of fp4/Support/GroupRows.h does.
Value fp4::isWrongGroup(ImplicitLocOpBuilder &b, const GroupOffsets &offsets, Value number,
                        const GroupNumbers &group, Value before) {
  using enum arith::CmpIPredicate;
  auto compare = [&](arith::CmpIPredicate holds, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, holds, x, y);
  };
  Value any = compare(slt, group.begin, constI64(b, 0));
  auto orElse = [&](Value other) { any = arith::OrIOp::create(b, any, other); };
  orElse(compare(slt, group.end, group.begin));
  orElse(compare(sgt, group.end, offsets.limit));
  if (offsets.step == 2)
    orElse(arith::AndIOp::create(b, compare(slt, group.begin, before),
                                 compare(ne, group.begin, group.end)));
  if (offsets.arePacked)
    orElse(arith::AndIOp::create(b, compare(eq, number, constI32(b, 0)),
                                 compare(ne, group.begin, constI64(b, 0))));
  return any;
}

/// Kernels on two streams may find something at the same time, and the host reads while they do: it
/// sees the numbers when it sees the state.
void fp4::claimReport(ImplicitLocOpBuilder &b, const GroupOffsets &offsets, Value report,
                      Value number, const GroupNumbers &group, Value before) {
  auto seen = LLVM::AtomicCmpXchgOp::create(
      b, report, constI64(b, GroupReport::kNone), constI64(b, GroupReport::kClaimed),
      LLVM::AtomicOrdering::monotonic, LLVM::AtomicOrdering::monotonic);
  emitWhen(b, LLVM::ExtractValueOp::create(b, seen, 1), [&] {
    Value words[] = {arith::ExtUIOp::create(b, b.getI64Type(), number), group.begin, group.end,
                     before, offsets.limit};
    for (auto [i, word] : llvm::enumerate(words))
      LLVM::StoreOp::create(b, word, advance(b, report, 8 * int64_t(i + 1)), /*alignment=*/8);
    LLVM::StoreOp::create(b, constI64(b, GroupReport::kWritten), report, /*alignment=*/8,
                          /*isVolatile=*/false, /*isNonTemporal=*/false,
                          /*isInvariantGroup=*/false, LLVM::AtomicOrdering::release);
  });
}

Value fp4::readOffset(ImplicitLocOpBuilder &b, const GroupOffsets &offsets, Value place) {
  Type type = b.getIntegerType(unsigned(8 * offsets.bytes));
  Value number = LLVM::LoadOp::create(b, type, place, /*alignment=*/unsigned(offsets.bytes));
  return offsets.bytes == 8 ? number : Value(arith::ExtSIOp::create(b, b.getI64Type(), number));
}

void fp4::emitGroupCheck(ImplicitLocOpBuilder &b, const GroupOffsets &offsets, Value report) {
  Value none = constI64(b, 0), ok = arith::ConstantIntOp::create(b, 0, 1);
  auto groups = scf::ForOp::create(b, constI32(b, 0), constI32(b, offsets.groups), constI32(b, 1),
                                   ValueRange{none, ok});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(groups.getBody());
  Value before = groups.getRegionIterArgs()[0], found = groups.getRegionIterArgs()[1];
  Value number = groups.getInductionVar();
  Value place = address(b, offsets.pointer, number, offsets.bytes * offsets.step);
  GroupNumbers group = {readOffset(b, offsets, place),
                        readOffset(b, offsets, advance(b, place, offsets.bytes))};
  Value isWrong = isWrongGroup(b, offsets, number, group, before);
  Value isFirst = arith::AndIOp::create(
      b, isWrong, arith::XOrIOp::create(b, found, arith::ConstantIntOp::create(b, 1, 1)));
  emitWhen(b, isFirst, [&] { claimReport(b, offsets, report, number, group, before); });
  scf::YieldOp::create(b, ValueRange{arith::MaxSIOp::create(b, before, group.end),
                                     arith::OrIOp::create(b, found, isWrong)});
}
