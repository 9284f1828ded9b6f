//===- PipeWork.cpp - Work of a CTA ---------------------------------------===//

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Arguments of the loop body before the carried values: m and n.
static constexpr unsigned kCoordinates = 2;

//===----------------------------------------------------------------------===//
// Building, parsing, printing
//===----------------------------------------------------------------------===//

void ForEachWorkOp::build(OpBuilder &builder, OperationState &state, Value numM, Value numN,
                          WorkScheduleAttrInterface schedule, ValueRange inits) {
  state.addOperands({numM, numN});
  state.addOperands(inits);
  state.getOrAddProperties<Properties>().schedule = schedule;
  Type i32 = builder.getI32Type();
  state.addTypes(SmallVector<Type>(inits.size(), i32));
  OpBuilder::InsertionGuard guard(builder);
  Region *region = state.addRegion();
  SmallVector<Type> types(kCoordinates + inits.size(), i32);
  builder.createBlock(region, region->end(), types,
                      SmallVector<Location>(types.size(), state.location));
  if (inits.empty())
    YieldOp::create(builder, state.location);
}

/// `iter_args(%i = %init, ...) -> (i32, ...)`
static ParseResult parseIterArgs(OpAsmParser &parser, OperationState &result,
                                 SmallVectorImpl<OpAsmParser::Argument> &arguments) {
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  SmallVector<Type> types;
  if (failed(parser.parseOptionalKeyword("iter_args")))
    return success();
  if (parser.parseAssignmentList(arguments, inits) || parser.parseArrowTypeList(types) ||
      parser.resolveOperands(inits, types, parser.getNameLoc(), result.operands))
    return failure();
  result.addTypes(types);
  return success();
}

ParseResult ForEachWorkOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument m, n;
  SmallVector<OpAsmParser::Argument> carried;
  OpAsmParser::UnresolvedOperand numM, numN;
  Attribute schedule;
  SMLoc scheduleLoc;
  Type i32 = parser.getBuilder().getI32Type();
  if (parser.parseArgument(m) || parser.parseComma() || parser.parseArgument(n) ||
      parser.parseKeyword("in") || parser.parseLParen() || parser.parseOperand(numM) ||
      parser.parseComma() || parser.parseOperand(numN) || parser.parseRParen() ||
      parser.parseKeyword("schedule") || parser.getCurrentLocation(&scheduleLoc) ||
      parser.parseAttribute(schedule) ||
      parser.resolveOperands({numM, numN}, i32, result.operands) ||
      parseIterArgs(parser, result, carried))
    return failure();
  auto interface = dyn_cast<WorkScheduleAttrInterface>(schedule);
  if (!interface)
    return withNote(parser.emitError(scheduleLoc)
                        << "schedule must be a work schedule, but got " << schedule,
                    "write #pipe.static_persistent<along_m> or #pipe.cluster_launch<along_m>");
  result.getOrAddProperties<Properties>().schedule = interface;
  SmallVector<OpAsmParser::Argument> arguments = {m, n};
  llvm::append_range(arguments, carried);
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = i32;
  Region *body = result.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void ForEachWorkOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getM() << ", " << getN() << " in (" << getNumM() << ", " << getNumN()
          << ") schedule " << getSchedule();
  if (!getInitArgs().empty()) {
    printer << " iter_args(";
    llvm::interleaveComma(llvm::zip_equal(getRegionIterArgs(), getInitArgs()), printer,
                          [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
    printer << ") -> (" << getInitArgs().getTypes() << ')';
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getScheduleAttrName()});
  printer << ' ';
  printer.printRegion(getRegion(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/!getInitArgs().empty());
}

void ForEachWorkOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn name) {
  if (region.empty() || region.getNumArguments() < kCoordinates)
    return;
  name(region.getArgument(0), "m");
  name(region.getArgument(1), "n");
}

LogicalResult ForEachWorkOp::verifyRegions() { // (C145)
  if (getBody()->getNumArguments() != kCoordinates + getInitArgs().size() ||
      getResults().size() != getInitArgs().size())
    return withNote(emitOpError() << "body must have m, n and one argument per carried value, "
                                  << kCoordinates + getInitArgs().size() << ", but got "
                                  << getBody()->getNumArguments(),
                    "write an argument for each value of 'iter_args'");
  unsigned yielded = getBody()->getTerminator()->getNumOperands();
  if (yielded != getInitArgs().size())
    return withNote(emitOpError() << "must yield the " << getInitArgs().size()
                                  << " values that it carries, but yields " << yielded,
                    "yield a value for each of 'iter_args'");
  return success();
}

//===----------------------------------------------------------------------===//
// LoopLikeOpInterface
//===----------------------------------------------------------------------===//

SmallVector<Region *> ForEachWorkOp::getLoopRegions() { return {&getRegion()}; }

MutableArrayRef<OpOperand> ForEachWorkOp::getInitsMutable() {
  return (*this)->getOpOperands().drop_front(kCoordinates);
}

std::optional<SmallVector<Value>> ForEachWorkOp::getLoopInductionVars() {
  return SmallVector<Value>{getM(), getN()};
}

std::optional<ResultRange> ForEachWorkOp::getLoopResults() { return getResults(); }

Block::BlockArgListType ForEachWorkOp::getRegionIterArgs() {
  return getBody()->getArguments().drop_front(kCoordinates);
}

std::optional<MutableArrayRef<OpOperand>> ForEachWorkOp::getYieldedValuesMutable() {
  return getBody()->getTerminator()->getOpOperands();
}

FailureOr<LoopLikeOpInterface>
ForEachWorkOp::replaceWithAdditionalYields(RewriterBase &rewriter, ValueRange newInits,
                                           bool replaceInitUses, const NewYieldValuesFn &newYields) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(*this);
  SmallVector<Value> inits = llvm::to_vector(getInitArgs());
  llvm::append_range(inits, newInits);
  auto loop = create(rewriter, getLoc(), getNumM(), getNumN(), getSchedule(), inits);
  ArrayRef<BlockArgument> added = loop.getBody()->getArguments().take_back(newInits.size());

  rewriter.setInsertionPoint(getBody()->getTerminator());
  SmallVector<Value> yielded = newYields(rewriter, getLoc(), added);
  auto yield = cast<YieldOp>(getBody()->getTerminator());
  rewriter.modifyOpInPlace(yield, [&] { yield.getValuesMutable().append(yielded); });
  if (!loop.getBody()->empty())
    rewriter.eraseOp(loop.getBody()->getTerminator());
  rewriter.mergeBlocks(getBody(), loop.getBody(),
                       loop.getBody()->getArguments().drop_back(newInits.size()));
  if (replaceInitUses)
    for (auto [init, argument] : llvm::zip_equal(newInits, added))
      rewriter.replaceUsesWithIf(init, argument, [&](OpOperand &use) {
        return loop->isProperAncestor(use.getOwner());
      });
  rewriter.replaceOp(*this, loop.getResults().take_front(getNumResults()));
  return cast<LoopLikeOpInterface>(loop.getOperation());
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

LogicalResult RequestWorkOp::verify() { // (C301)
  if (getIteration()) // the loop is expanded
    return success();
  auto work = dyn_cast<ForEachWorkOp>((*this)->getParentOp());
  if (!work || work.getSchedule().getRingDepth() == 0) {
    InFlightDiagnostic diag = emitOpError()
                              << "must be directly in a pipe.for_each_work whose schedule shares out "
                                 "work while the kernel runs";
    diag.attachNote() << "such as #pipe.cluster_launch<along_m>";
    return diag;
  }
  for (auto other : work.getBody()->getOps<RequestWorkOp>())
    if (other != *this && other->isBeforeInBlock(*this))
      return emitOpError("must be the only one of its loop").attachNote(other.getLoc())
             << "the other is here";
  return success();
}

LogicalResult NextWorkOp::verify() { // (C302)
  if ((*this)->getParentOfType<RoleRegionOp>())
    return success();
  return withNote(emitOpError() << "must be in a pipe.role, which takes every response once",
                  "move it into the role that has the loop over the work");
}
