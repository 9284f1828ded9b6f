//===- WgmmaPtx.cpp - The PTX of MMAs of warpgroups ------------------------===//
#include "EmitPtx.h"
#include "InlinePtx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fp4::ptx;

/// "{$0, $1, ..}": `count` operands from `first` on.
static std::string operandList(size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += llvm::formatv("{0}${1}", i ? ", " : "", first + i).str();
  return text + "}";
}

/// d is the descriptor of `product` plus `offset`.
static std::string moveDescriptor(const fp4::WarpgroupMma &product, size_t descriptor,
                                  int64_t offset) {
  if (product.isUniform)
    return llvm::formatv("add.s32 low, base, {0};\nmov.b64 d, {{low, high};\n", offset).str();
  return llvm::formatv("add.s64 d, ${0}, {1};\n", descriptor, offset).str();
}

/// Takes the descriptor apart once, before the first instruction.
static std::string takeDescriptor(const fp4::WarpgroupMma &product, size_t descriptor) {
  if (!product.isUniform)
    return "";
  return llvm::formatv(".reg .b32 base, low, high;\nmov.b64 {{base, high}, ${0};\n", descriptor)
      .str();
}

/// Operands: the accumulator as results, the accumulator tied to them, A, the descriptor, the
/// predicate. An instruction has the registers of its columns.
SmallVector<Value> fp4::multiplyWarpgroup(ImplicitLocOpBuilder &b, ValueRange accumulator,
                                          const WarpgroupMma &product) {
  size_t count = accumulator.size(), firstA = 2 * count, descriptor = firstA + product.a.size();
  size_t registers = product.columns / 2;
  bool isBytes = isa<Float8E4M3FNType>(product.element);
  StringRef type = isBytes ? "e4m3" : product.element.isF16() ? "f16" : "bf16";
  std::string text = llvm::formatv(
      "{{\n.reg .pred p, q;\n.reg .b64 d;\n{1}"
      "setp.ne.b32 p, ${0}, 0;\nsetp.eq.b32 q, ${0}, ${0};\nwgmma.fence.sync.aligned;\n",
      descriptor + 1, takeDescriptor(product, descriptor));
  for (auto [i, offset] : llvm::enumerate(product.bOffsets))
    for (size_t first = 0; first < count; first += registers)
      text +=
          moveDescriptor(product, descriptor, offset + int64_t(2 * first * 8)) +
          llvm::formatv("wgmma.mma_async.sync.aligned.m64n{0}k{5}.f32.{1}.{1} {2}, {3}, d, {4}, "
                        "1, 1{6};\n",
                        product.columns, type, operandList(first, registers),
                        operandList(firstA + 4 * i, 4), i ? "q" : "p", isBytes ? 32 : 16,
                        isBytes ? "" : ", 0") // 16-bit floats may be transposed
              .str();
  text += llvm::formatv("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned {0};\n}",
                        product.pending);
  std::string constraints;
  for (size_t i = 0; i < count; ++i)
    constraints += i ? ",=f" : "=f";
  for (size_t i = 0; i < count; ++i)
    constraints += "," + std::to_string(i);
  for (size_t i = 0; i < product.a.size(); ++i)
    constraints += ",r";
  SmallVector<Value> operands(accumulator);
  llvm::append_range(operands, product.a);
  operands.push_back(product.b);
  operands.push_back(LLVM::ZExtOp::create(b, b.getI32Type(), product.accumulate));
  SmallVector<Type> types(accumulator.getTypes());
  auto multiply = emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), types),
                       operands, text, constraints + ",l,r");
  return fieldsOf(b, b.getLoc(), multiply.getRes(), count);
}

/// The instructions of one k tile: sums from operand `sums` on, descriptors from operand
/// `descriptors` on. Predicate p is false, and q is true.
static std::string instructionsOf(const fp4::SharedMma &product, size_t sums, size_t descriptors) {
  std::string text;
  for (auto [i, offset] : llvm::enumerate(product.offsets))
    text +=
        llvm::formatv("add.s64 x, ${0}, {2};\nadd.s64 y, ${1}, {2};\n"
                      "wgmma.mma_async.sync.aligned.m64n{3}k32.f32.e4m3.e4m3 {4}, x, y, {5}, 1, "
                      "1;\n",
                      descriptors, descriptors + 1, offset, product.columns,
                      operandList(sums, size_t(product.columns) / 2), i ? "q" : "p")
            .str();
  return text + "wgmma.commit_group.sync.aligned;\n";
}

/// `count` results that are f32.
static std::string sumConstraints(size_t count) {
  std::string constraints = "=f";
  for (size_t i = 1; i < count; ++i)
    constraints += ",=f";
  return constraints;
}

/// Numbers of the operands of an MMA in the text of several.
struct FloatOperands {
  size_t sums, a, b, accumulate;
};

/// The instructions of `product`. Predicate p is that of the first one, and q is true.
static std::string floatInstructions(const fp4::FloatMma &product, const FloatOperands &at) {
  bool isShared = product.a.size() == 1;
  bool isByte = isa<Float8E4M3FNType>(product.element);
  StringRef type = isByte ? "e4m3" : product.element.isF16() ? "f16" : "bf16";
  // Operands of 8 bits are K-major, which no number says.
  std::string majors =
      isByte ? "" : (isShared ? ", 0, " : ", ") + std::to_string(product.transposed);
  std::string text = product.accumulate
                         ? llvm::formatv("setp.ne.b32 p, ${0}, 0;\n", at.accumulate).str()
                         : llvm::formatv("setp.ne.b64 p, ${0}, ${0};\n", at.b).str();
  for (auto [i, offset] : llvm::enumerate(product.bOffsets)) {
    std::string a = isShared ? "x" : operandList(at.a + 4 * i, 4);
    if (isShared)
      text += llvm::formatv("add.s64 x, ${0}, {1};\n", at.a, product.aOffsets[i]).str();
    text += llvm::formatv("add.s64 y, ${0}, {1};\n"
                          "wgmma.mma_async.sync.aligned.m64n{2}k{8}.f32.{3}.{3} {4}, {5}, y, {6}, "
                          "1, 1{7};\n",
                          at.b, offset, product.columns, type,
                          operandList(at.sums, size_t(product.columns) / 2), a, i ? "q" : "p",
                          majors, isByte ? 32 : 16)
                .str();
  }
  return text + "wgmma.commit_group.sync.aligned;\n";
}

namespace {
/// The operands of a text of MMAs, with their constraints.
struct FloatText {
  std::string constraints;
  SmallVector<Value> operands;
  size_t results = 0;

  size_t add(Value value, const std::string &constraint) {
    constraints += "," + constraint;
    operands.push_back(value);
    return results + operands.size() - 1;
  }
  size_t add(Value value) {
    Type type = value.getType();
    return add(value, type.isInteger(64) ? "l" : type.isF32() ? "f" : "r");
  }
};
} // namespace

/// Adds the operands of `product`, whose sums are the results from `sums` on.
static FloatOperands addOperands(ImplicitLocOpBuilder &b, FloatText &text,
                                 const fp4::FloatMma &product, size_t sums) {
  FloatOperands at{sums, 0, 0, 0};
  for (auto [i, before] : llvm::enumerate(product.sums))
    text.add(before, std::to_string(sums + i)); // tied to its result
  for (auto [i, a] : llvm::enumerate(product.a))
    if (size_t number = text.add(a); i == 0)
      at.a = number;
  at.b = text.add(product.b);
  if (product.accumulate)
    at.accumulate = text.add(LLVM::ZExtOp::create(b, b.getI32Type(), product.accumulate));
  return at;
}

/// Copies what `product` reads once the MMA before runs: a sum that is written until then may be in
/// the register of a number that it begins with, such as a parity of zero.
static std::string copyLate(FloatText &text, const fp4::FloatMma &product) {
  std::string copies;
  for (auto [name, factor] : llvm::zip(std::array{"upper", "lower"}, product.factors))
    copies += llvm::formatv(".reg .f32 {0};\nmov.f32 {0}, ${1};\n", name, text.add(factor)).str();
  if (!product.barrier)
    return copies;
  size_t barrier = text.add(product.barrier), parity = text.add(product.parity);
  return copies + llvm::formatv(".reg .b64 loaded;\n.reg .b32 parity;\nmov.b64 loaded, ${0};\n"
                                "mov.b32 parity, ${1};\n",
                                barrier, parity)
                      .str();
}

/// Multiplies the sums from operand `sums` on by the factors of `product`, if it has some.
static std::string scaledSums(const fp4::FloatMma &product, size_t sums) {
  std::string scaling;
  for (size_t i = 0; !product.factors.empty() && i < product.sums.size(); ++i)
    scaling +=
        llvm::formatv("mul.rn.f32 ${0}, ${0}, {1};\n", sums + i, i / 2 % 2 ? "lower" : "upper")
            .str();
  return scaling;
}

/// Waits for operand B of `product`, if it has a barrier.
static std::string waitForB(const fp4::FloatMma &product) {
  if (!product.barrier)
    return "";
  return "{\n.reg .pred w;\nLOADING:\nmbarrier.try_wait.parity.shared.b64 w, [loaded], parity;\n"
         "@!w bra LOADING;\n}\n";
}

/// `instructions` in the turn of the warpgroup, if there are turns.
static std::string inTurn(FloatText &text, const fp4::MmaTurn &turn,
                          const std::string &instructions) {
  if (!turn.own)
    return instructions;
  size_t own = text.add(turn.own), next = text.add(turn.next);
  return llvm::formatv("bar.sync ${0}, {2};\n{3}bar.arrive ${1}, {2};\n", own, next,
                       int64_t(fp4::MmaTurn::threads), instructions);
}

SmallVector<SmallVector<Value>>
fp4::multiplyFloats(ImplicitLocOpBuilder &b, ArrayRef<FloatMma> products, const MmaTurn &turn) {
  FloatText text;
  for (const FloatMma &product : products)
    text.results += size_t(product.columns) / 2;
  text.constraints = sumConstraints(text.results);
  std::string instructions, copies;
  size_t sums = 0;
  for (const FloatMma &product : products) {
    FloatOperands at = addOperands(b, text, product, sums);
    // Sums are scaled while the MMA before runs. A fence is in front of MMAs whose registers were
    // written.
    copies += copyLate(text, product);
    std::string scaling = scaledSums(product, sums);
    bool isFenced = instructions.empty() || !scaling.empty();
    instructions += scaling + waitForB(product) + (isFenced ? "wgmma.fence.sync.aligned;\n" : "") +
                    floatInstructions(product, at);
    sums += size_t(product.columns) / 2;
  }
  std::string whole =
      llvm::formatv("{{\n.reg .pred p, q;\n.reg .b64 x, y;\nsetp.eq.b64 q, ${0}, ${0};\n"
                    "{1}wgmma.wait_group.sync.aligned {2};\n}",
                    text.results + products.front().sums.size() + products.front().a.size(),
                    copies + inTurn(text, turn, instructions), products.size() - 1);
  SmallVector<Type> types(text.results, b.getF32Type());
  auto multiply = emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), types),
                       text.operands, whole, text.constraints);
  SmallVector<Value> all = fieldsOf(b, b.getLoc(), multiply.getRes(), int64_t(text.results));
  SmallVector<SmallVector<Value>> found;
  for (ArrayRef<Value> rest = all; const FloatMma &product : products) {
    found.emplace_back(rest.take_front(size_t(product.columns) / 2));
    rest = rest.drop_front(size_t(product.columns) / 2);
  }
  return found;
}

/// Operands: the sums as results, the two descriptors, and the sums whose registers they take.
/// ptxas must not know that p is false, because it gives new registers to an accumulator that is
/// not read: no grid is empty.
SmallVector<Value> fp4::multiplyShared(ImplicitLocOpBuilder &b, const SharedMma &product) {
  size_t count = size_t(product.columns) / 2;
  std::string text = llvm::formatv("{{\n.reg .pred p, q;\n.reg .b32 n;\n.reg .b64 x, y;\n{1}"
                                   "setp.eq.b64 q, ${0}, ${0};\nwgmma.fence.sync.aligned;\n",
                                   count,
                                   product.before.empty()
                                       ? llvm::formatv("setp.ne.b64 p, ${0}, ${0};\n", count).str()
                                       : "mov.u32 n, %nctaid.x;\nsetp.eq.u32 p, n, 0;\n")
                         .str() +
                     instructionsOf(product, 0, count) +
                     (product.fencesReads ? "fence.proxy.async.shared::cta;\n" : "") +
                     "wgmma.wait_group.sync.aligned 0;\n}";
  std::string constraints = sumConstraints(count) + ",l,l";
  SmallVector<Value> operands = {product.a, product.b};
  for (size_t i = 0; i < product.before.size(); ++i)
    constraints += "," + std::to_string(i);
  llvm::append_range(operands, product.before);
  if (product.fencesReads)
    constraints += ",~{memory}";
  SmallVector<Type> types(count, b.getF32Type());
  auto multiply = emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), types),
                       operands, text, constraints);
  return fieldsOf(b, b.getLoc(), multiply.getRes(), int64_t(count));
}

std::array<SmallVector<Value>, 2> fp4::multiplyTwo(ImplicitLocOpBuilder &b, const SharedMma &first,
                                                   const SharedMma &second) {
  size_t count = size_t(first.columns) / 2;
  std::string text = llvm::formatv("{{\n.reg .pred p, q;\n.reg .b64 x, y;\n"
                                   "setp.ne.b64 p, ${0}, ${0};\nsetp.eq.b64 q, ${0}, ${0};\n"
                                   "wgmma.fence.sync.aligned;\n",
                                   2 * count)
                         .str() +
                     instructionsOf(first, 0, 2 * count) +
                     instructionsOf(second, count, 2 * count + 2) +
                     "wgmma.wait_group.sync.aligned 1;\n}";
  SmallVector<Type> types(2 * count, b.getF32Type());
  auto multiply = emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), types),
                       ValueRange{first.a, first.b, second.a, second.b}, text,
                       sumConstraints(2 * count) + ",l,l,l,l");
  SmallVector<Value> sums = fieldsOf(b, b.getLoc(), multiply.getRes(), int64_t(2 * count));
  return {SmallVector<Value>(ArrayRef(sums).take_front(count)),
          SmallVector<Value>(ArrayRef(sums).drop_front(count))};
}

SmallVector<Value> fp4::startBytes(ImplicitLocOpBuilder &b, const ByteMma &product) {
  size_t count = size_t(product.columns) / 2, descriptor = count + product.a.size();
  std::string text =
      llvm::formatv("{{\n.reg .pred p, q;\n.reg .b64 d;\n.reg .b32 base, low, high;\n"
                    "mov.b64 {{base, high}, ${0};\nsetp.ne.b32 p, base, base;\n"
                    "setp.eq.b32 q, base, base;\nwgmma.fence.sync.aligned;\n",
                    descriptor);
  for (auto [i, offset] : llvm::enumerate(product.offsets))
    text +=
        llvm::formatv("add.s32 low, base, {0};\nmov.b64 d, {{low, high};\n"
                      "wgmma.mma_async.sync.aligned.m64n{1}k32.f32.e4m3.e4m3 {2}, {3}, d, {4}, 1, "
                      "1;\n",
                      offset, product.columns, operandList(0, count), operandList(count + 4 * i, 4),
                      i ? "q" : "p")
            .str();
  text += "wgmma.commit_group.sync.aligned;\n}";
  std::string constraints = "=f";
  for (size_t i = 1; i < count; ++i)
    constraints += ",=f";
  for (size_t i = 0; i < product.a.size(); ++i)
    constraints += ",r";
  SmallVector<Value> operands(product.a);
  operands.push_back(product.b);
  SmallVector<Type> types(count, b.getF32Type());
  auto multiply = emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), types),
                       operands, text, constraints + ",l");
  return fieldsOf(b, b.getLoc(), multiply.getRes(), int64_t(count));
}

SmallVector<Value> fp4::awaitSums(ImplicitLocOpBuilder &b, ValueRange sums) {
  return emitThrough(b, b.getLoc(), sums, "wgmma.wait_group.sync.aligned 0;",
                     /*hasSideEffects=*/true);
}

/// The branch is never taken, because no grid is empty.
SmallVector<Value> fp4::awaitSumsHere(ImplicitLocOpBuilder &b, ValueRange sums) {
  return emitThrough(b, b.getLoc(), sums,
                     "{\n.reg .pred p;\n.reg .b32 n;\nBEHIND:\nmov.u32 n, %nctaid.x;\n"
                     "setp.eq.u32 p, n, 0;\n@p bra BEHIND;\nwgmma.wait_group.sync.aligned 0;\n}",
                     /*hasSideEffects=*/true);
}
