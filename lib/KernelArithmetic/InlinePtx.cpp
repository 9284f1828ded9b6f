//===- InlinePtx.cpp - The PTX that no operation of MLIR can express ------===//
#include "InlinePtx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

static LLVM::InlineAsmOp emit(OpBuilder &b, Location loc, Type result, ValueRange operands,
                              StringRef text, StringRef constraints, bool hasSideEffects = true) {
  return LLVM::InlineAsmOp::create(b, loc, result, operands, text, constraints, hasSideEffects,
                                   /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr(),
                                   /*operand_attrs=*/ArrayAttr());
}

/// The fields of a struct that an instruction with several results gives.
static SmallVector<Value> fieldsOf(OpBuilder &b, Location loc, Value results, int64_t count) {
  SmallVector<Value> fields;
  for (int64_t i = 0; i < count; ++i)
    fields.push_back(LLVM::ExtractValueOp::create(b, loc, results, i));
  return fields;
}

static Value integerOf(ImplicitLocOpBuilder &b, Value pointer) {
  return LLVM::PtrToIntOp::create(b, b.getI64Type(), pointer);
}

/// `text` through which `registers`, all i32 or all f32, flow: read-write operands, which are its
/// results.
static SmallVector<Value> emitThrough(OpBuilder &b, Location loc, ValueRange registers,
                                      StringRef text, bool hasSideEffects) {
  // "=r,=r,..,0,1,..": output i is tied to input i.
  Type type = registers.front().getType();
  std::string outputs, inputs, output = type.isF32() ? "=f" : type.isInteger(64) ? "=l" : "=r";
  for (size_t i = 0; i < registers.size(); ++i) {
    outputs += i ? "," + output : output;
    inputs += "," + std::to_string(i);
  }
  SmallVector<Type> types(registers.getTypes());
  Type result =
      types.size() == 1 ? types.front() : LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  auto access = emit(b, loc, result, registers, text, outputs + inputs, hasSideEffects);
  if (types.size() == 1)
    return {access.getRes()};
  return fieldsOf(b, loc, access.getRes(), types.size());
}

/// tcgen05.ld is asynchronous: its registers are defined only after tcgen05.wait::ld. LLVM knows
/// the load as an ordinary call with a result and the wait as another call, with no dependence
/// between the result and the wait; its code generator is free to read the registers in between,
/// and does (LLVM 22). Passing every register through the wait as a read-write operand makes the
/// dependence visible.
SmallVector<Value> fp4::waitForLoaded(OpBuilder &b, Location loc, ValueRange registers) {
  return emitThrough(b, loc, registers, "tcgen05.wait::ld.sync.aligned;", /*hasSideEffects=*/true);
}

SmallVector<Value> fp4::computeHere(OpBuilder &b, Location loc, ValueRange registers) {
  return emitThrough(b, loc, registers, "", /*hasSideEffects=*/false);
}

SmallVector<Value> fp4::finishHere(OpBuilder &b, Location loc, ValueRange numbers) {
  return emitThrough(b, loc, numbers, "", /*hasSideEffects=*/true);
}

Value fp4::lop3Select(ImplicitLocOpBuilder &b, Value mask, Value ones, Value zeros) {
  constexpr int64_t select = (0xF0 & 0xAA) | (0xCC & ~0xAA);
  std::string text = llvm::formatv("lop3.b32 $0, $1, $2, $3, {0};", select);
  return emit(b, b.getLoc(), b.getI32Type(), ValueRange{ones, zeros, mask}, text, "=r,r,r,n",
              /*hasSideEffects=*/false)
      .getRes();
}

/// An instruction for each lane of vectors.
static Value emitLanes(ImplicitLocOpBuilder &b, Type element, ValueRange operands, StringRef text,
                       StringRef constraints) {
  auto type = cast<VectorType>(operands.front().getType());
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    SmallVector<Value> of = llvm::map_to_vector(
        operands, [&](Value v) -> Value { return vector::ExtractOp::create(b, v, i); });
    lanes.push_back(emit(b, b.getLoc(), element, of, text, constraints, /*hasSideEffects=*/false)
                        .getRes());
  }
  return vector::FromElementsOp::create(b, type.clone(element), lanes);
}

Value fp4::toIntegers(ImplicitLocOpBuilder &b, Value numbers, bool isSigned) {
  return emitLanes(b, b.getI32Type(), numbers,
                   isSigned ? "cvt.rzi.s32.f32 $0, $1;" : "cvt.rzi.u32.f32 $0, $1;", "=r,f");
}

Value fp4::toNumbers(ImplicitLocOpBuilder &b, Value integers, bool isSigned) {
  return emitLanes(b, b.getF32Type(), integers,
                   isSigned ? "cvt.rn.f32.s32 $0, $1;" : "cvt.rn.f32.u32 $0, $1;", "=f,r");
}

Value fp4::shiftLanes(ImplicitLocOpBuilder &b, Shift kind, Value values, Value amounts) {
  StringRef text = kind == Shift::Left          ? "shl.b32 $0, $1, $2;"
                   : kind == Shift::RightSigned ? "shr.s32 $0, $1, $2;"
                                                : "shr.u32 $0, $1, $2;";
  return emitLanes(b, b.getI32Type(), {values, amounts}, text, "=r,r,r");
}

Value fp4::packE4M3(ImplicitLocOpBuilder &b, Value low, Value high) {
  return emit(b, b.getLoc(), b.getI16Type(), ValueRange{high, low},
              "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", "=h,f,f", /*hasSideEffects=*/false)
      .getRes();
}

Value fp4::packE4M3(ImplicitLocOpBuilder &b, ValueRange four) {
  return emit(b, b.getLoc(), b.getI32Type(), four,
              "{\n.reg .b16 l, h;\ncvt.rn.satfinite.e4m3x2.f32 l, $2, $1;\n"
              "cvt.rn.satfinite.e4m3x2.f32 h, $4, $3;\nmov.b32 $0, {l, h};\n}",
              "=r,f,f,f,f", /*hasSideEffects=*/false)
      .getRes();
}

/// `instruction` of a number (f32).
static Value emitOfNumber(ImplicitLocOpBuilder &b, Value number, const Twine &instruction) {
  return emit(b, b.getLoc(), b.getF32Type(), number, (instruction + " $0, $1;").str(), "=f,f",
              /*hasSideEffects=*/false)
      .getRes();
}

Value fp4::approximateExp2(ImplicitLocOpBuilder &b, Value number) {
  return emitOfNumber(b, number, "ex2.approx.ftz.f32");
}

Value fp4::approximateLog2(ImplicitLocOpBuilder &b, Value number) {
  return emitOfNumber(b, number, "lg2.approx.ftz.f32");
}

SmallVector<Value> fp4::widenE2M1(ImplicitLocOpBuilder &b, Value codes) {
  SmallVector<Type> words(4, b.getI32Type());
  Value all = emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), words), codes,
                   "{ .reg .b8 %e<4>; mov.b32 {%e0, %e1, %e2, %e3}, $4; "
                   "cvt.rn.f16x2.e2m1x2 $0, %e0; cvt.rn.f16x2.e2m1x2 $1, %e1; "
                   "cvt.rn.f16x2.e2m1x2 $2, %e2; cvt.rn.f16x2.e2m1x2 $3, %e3; }",
                   "=r,=r,=r,=r,r", /*hasSideEffects=*/false)
                  .getRes();
  SmallVector<Value> pairs;
  for (int64_t i = 0; i < 4; ++i)
    pairs.push_back(LLVM::BitcastOp::create(b, VectorType::get(2, b.getF16Type()),
                                            LLVM::ExtractValueOp::create(b, all, i)));
  return pairs;
}

/// A code is f16, times its factor f32, and two of these bf16. The sum with -0 keeps the sign of 0.
SmallVector<Value> fp4::scaleE2M1(ImplicitLocOpBuilder &b, Value codes, Value low, Value high) {
  SmallVector<Type> words(4, b.getI32Type());
  std::string text = "{ .reg .b8 %e<4>; .reg .b16 %h<2>; .reg .f32 %s<2>; .reg .b32 %p; "
                     "mov.b32 {%e0, %e1, %e2, %e3}, $4; ";
  for (int i = 0; i < 4; ++i)
    text += llvm::formatv("cvt.rn.f16x2.e2m1x2 %p, %e{0}; mov.b32 {{%h0, %h1}, %p; "
                          "fma.rn.f32.f16 %s0, %h0, ${1}, 0f80000000; "
                          "fma.rn.f32.f16 %s1, %h1, ${1}, 0f80000000; "
                          "cvt.rn.bf16x2.f32 ${0}, %s1, %s0; ",
                          i, i < 2 ? 5 : 6);
  auto bitsOf = [&](Value half) -> Value {
    return LLVM::BitcastOp::create(b, b.getI16Type(), half);
  };
  Value all = emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), words),
                   ValueRange{codes, bitsOf(low), bitsOf(high)}, text + "}", "=r,=r,=r,=r,r,h,h",
                   /*hasSideEffects=*/false)
                  .getRes();
  SmallVector<Value> pairs;
  for (int64_t i = 0; i < 4; ++i)
    pairs.push_back(LLVM::BitcastOp::create(b, VectorType::get(2, b.getBF16Type()),
                                            LLVM::ExtractValueOp::create(b, all, i)));
  return pairs;
}

Value fp4::countAndSynchronize(OpBuilder &b, Location loc, Value pointer, Value most) {
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
  return emit(b, loc, b.getI32Type(), ValueRange{address, most},
              "atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}")
      .getRes();
}

std::pair<Value, Value> fp4::decodeResponse(OpBuilder &b, Location loc, Value low, Value high) {
  Type word = b.getI32Type();
  Type both = LLVM::LLVMStructType::getLiteral(b.getContext(), {word, word});
  StringRef text = "{.reg .pred p;.reg .b128 q;mov.b128 q, {$2, $3};"
                   "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;"
                   "selp.b32 $0, 1, 0, p;mov.b32 $1, 0;"
                   "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 $1, q;}";
  auto access = emit(b, loc, both, ValueRange{low, high}, text, "=r,=&r,l,l",
                     /*hasSideEffects=*/false);
  SmallVector<Value> fields = fieldsOf(b, loc, access.getRes(), 2);
  return {fields[0], fields[1]};
}

SmallVector<Value> fp4::loadOnce(ImplicitLocOpBuilder &b, Value pointer) {
  SmallVector<Type> types(4, b.getI32Type());
  auto access = emit(
      b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), types), integerOf(b, pointer),
      "ld.global.nc.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l");
  return fieldsOf(b, b.getLoc(), access.getRes(), types.size());
}

Value fp4::lastingPolicy(ImplicitLocOpBuilder &b, Value isLarge) {
  Value flag = LLVM::ZExtOp::create(b, b.getI32Type(), isLarge);
  return emit(b, b.getLoc(), b.getI64Type(), flag,
              "{\n.reg .pred p;\n.reg .b64 last, normal;\nsetp.ne.b32 p, $1, 0;\n"
              "createpolicy.fractional.L2::evict_last.b64 last, 1.0;\n"
              "createpolicy.fractional.L2::evict_normal.b64 normal, 1.0;\n"
              "selp.b64 $0, last, normal, p;\n}",
              "=l,r", /*hasSideEffects=*/false)
      .getRes();
}

SmallVector<Value> fp4::loadUnder(ImplicitLocOpBuilder &b, Value policy, Value pointer) {
  SmallVector<Type> types(4, b.getI32Type());
  auto access =
      emit(b, b.getLoc(), LLVM::LLVMStructType::getLiteral(b.getContext(), types),
           ValueRange{integerOf(b, pointer), policy},
           "ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;", "=r,=r,=r,=r,l,l");
  return fieldsOf(b, b.getLoc(), access.getRes(), types.size());
}

void fp4::prefetchWhen(ImplicitLocOpBuilder &b, Value condition, Value pointer) {
  Value flag = LLVM::ZExtOp::create(b, b.getI32Type(), condition);
  emit(b, b.getLoc(), LLVM::LLVMVoidType::get(b.getContext()),
       ValueRange{integerOf(b, pointer), flag},
       "{\n.reg .pred p;\nsetp.ne.b32 p, $1, 0;\n@p prefetch.global.L2 [$0];\n}", "l,r");
}

void fp4::storeOnce(ImplicitLocOpBuilder &b, ValueRange words, Value pointer) {
  SmallVector<Value> operands(words);
  operands.push_back(integerOf(b, pointer));
  bool isFour = words.size() == 4;
  emit(b, b.getLoc(), LLVM::LLVMVoidType::get(b.getContext()), operands,
       isFour ? "st.global.cs.v4.b32 [$4], {$0, $1, $2, $3};"
              : "st.global.cs.v2.b32 [$2], {$0, $1};",
       isFour ? "r,r,r,r,l" : "r,r,l");
}

void fp4::storeAsync(ImplicitLocOpBuilder &b, ValueRange words, Value pointer, Value barrier) {
  SmallVector<Value> operands(words);
  operands.append({integerOf(b, pointer), integerOf(b, barrier)});
  emit(b, b.getLoc(), LLVM::LLVMVoidType::get(b.getContext()), operands,
       "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [$4], {$0, $1, $2, $3}, "
       "[$5];",
       "f,f,f,f,l,l,~{memory}");
}

void fp4::arriveWhen(OpBuilder &b, Location loc, Value condition, Value pointer, Value count) {
  Value flag = LLVM::ZExtOp::create(b, loc, b.getI32Type(), condition);
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), pointer);
  emit(b, loc, LLVM::LLVMVoidType::get(b.getContext()), ValueRange{address, count, flag},
       "{\n.reg .pred p;\n.reg .b64 state;\nsetp.ne.b32 p, $2, 0;\n"
       "@p mbarrier.arrive.shared.b64 state, [$0], $1;\n}",
       "r,r,r,~{memory}");
}

Value fp4::transposeMatrix(ImplicitLocOpBuilder &b, Value word) {
  return emit(b, b.getLoc(), b.getI32Type(), word, "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;",
              "=r,r")
      .getRes();
}

Value fp4::loadWhen(ImplicitLocOpBuilder &b, Value condition, Value pointer, Value otherwise) {
  Value flag = LLVM::ZExtOp::create(b, b.getI32Type(), condition);
  return emit(b, b.getLoc(), b.getF32Type(), ValueRange{otherwise, pointer, flag},
              "{\n.reg .pred p;\nsetp.ne.b32 p, $3, 0;\n@p ld.global.nc.f32 $0, [$2];\n}", "=f,0,l,r",
              /*hasSideEffects=*/false)
      .getRes();
}

Value fp4::loadWordHere(ImplicitLocOpBuilder &b, Value pointer, IntegerType word) {
  std::string text = llvm::formatv("ld.global.nc.b{0} $0, [$1];", word.getWidth());
  return emit(b, b.getLoc(), word, ValueRange{pointer}, text,
              word.getWidth() == 64 ? "=l,l" : "=r,l", /*hasSideEffects=*/false)
      .getRes();
}

Value fp4::loadWordWhen(ImplicitLocOpBuilder &b, Value condition, Value pointer, IntegerType word) {
  Value flag = LLVM::ZExtOp::create(b, b.getI32Type(), condition);
  Value zero = LLVM::ConstantOp::create(b, b.getIntegerAttr(word, 0));
  std::string text =
      llvm::formatv("{{\n.reg .pred p;\nsetp.ne.b32 p, $3, 0;\n@p ld.global.nc.b{0} $0, [$2];\n}",
                    word.getWidth());
  return emit(b, b.getLoc(), word, ValueRange{zero, pointer, flag}, text,
              word.getWidth() == 64 ? "=l,0,l,r" : "=r,0,l,r", /*hasSideEffects=*/false)
      .getRes();
}

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
  return llvm::formatv(".reg .b32 base, low, high;\nmov.b64 {{base, high}, ${0};\n", descriptor).str();
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

SmallVector<Value> fp4::waitForGemms(ImplicitLocOpBuilder &b, ValueRange sums) {
  return emitThrough(b, b.getLoc(), sums, "wgmma.wait_group.sync.aligned 0;", /*hasSideEffects=*/true);
}

/// The instructions of one k tile: sums from operand `sums` on, descriptors from operand
/// `descriptors` on. Predicate p is false, and q is true.
static std::string instructionsOf(const fp4::SharedMma &product, size_t sums, size_t descriptors) {
  std::string text;
  for (auto [i, offset] : llvm::enumerate(product.offsets))
    text += llvm::formatv("add.s64 x, ${0}, {2};\nadd.s64 y, ${1}, {2};\n"
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
    FloatOperands at{sums, 0, 0, 0};
    for (auto [i, before] : llvm::enumerate(product.sums))
      text.add(before, std::to_string(sums + i)); // tied to its result
    for (auto [i, a] : llvm::enumerate(product.a))
      if (size_t number = text.add(a); i == 0)
        at.a = number;
    at.b = text.add(product.b);
    if (product.accumulate)
      at.accumulate = text.add(LLVM::ZExtOp::create(b, b.getI32Type(), product.accumulate));
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
  std::string text = llvm::formatv("{{\n.reg .pred p, q;\n.reg .b64 d;\n.reg .b32 base, low, high;\n"
                                   "mov.b64 {{base, high}, ${0};\nsetp.ne.b32 p, base, base;\n"
                                   "setp.eq.b32 q, base, base;\nwgmma.fence.sync.aligned;\n",
                                   descriptor);
  for (auto [i, offset] : llvm::enumerate(product.offsets))
    text += llvm::formatv("add.s32 low, base, {0};\nmov.b64 d, {{low, high};\n"
                          "wgmma.mma_async.sync.aligned.m64n{1}k32.f32.e4m3.e4m3 {2}, {3}, d, {4}, 1, "
                          "1;\n",
                          offset, product.columns, operandList(0, count),
                          operandList(count + 4 * i, 4), i ? "q" : "p")
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

Value fp4::addressHere(OpBuilder &b, Location loc, Type type, StringRef symbol) {
  return emit(b, loc, type, ValueRange(), ("mov.u64 $0, " + symbol + ";").str(), "=l",
              /*hasSideEffects=*/false)
      .getRes();
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
