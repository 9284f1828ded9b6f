//===- InlinePtx.cpp - The PTX that no operation of MLIR can express ------===//
#include "InlinePtx.h"
#include "EmitPtx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fp4::ptx;

LLVM::InlineAsmOp fp4::ptx::emit(OpBuilder &b, Location loc, Type result, ValueRange operands,
                                 StringRef text, StringRef constraints, bool hasSideEffects) {
  return LLVM::InlineAsmOp::create(b, loc, result, operands, text, constraints, hasSideEffects,
                                   /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr(),
                                   /*operand_attrs=*/ArrayAttr());
}

SmallVector<Value> fp4::ptx::fieldsOf(OpBuilder &b, Location loc, Value results, int64_t count) {
  SmallVector<Value> fields;
  for (int64_t i = 0; i < count; ++i)
    fields.push_back(LLVM::ExtractValueOp::create(b, loc, results, i));
  return fields;
}

SmallVector<Value> fp4::ptx::emitThrough(OpBuilder &b, Location loc, ValueRange registers,
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

static Value integerOf(ImplicitLocOpBuilder &b, Value pointer) {
  return LLVM::PtrToIntOp::create(b, b.getI64Type(), pointer);
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

Value fp4::evictionPolicy(ImplicitLocOpBuilder &b, Eviction eviction, Value isLarge) {
  Value flag = LLVM::ZExtOp::create(b, b.getI32Type(), isLarge);
  std::string text =
      llvm::formatv("{{\n.reg .pred p;\n.reg .b64 {0}, normal;\nsetp.ne.b32 p, $1, 0;\n"
                    "createpolicy.fractional.L2::evict_{0}.b64 {0}, 1.0;\n"
                    "createpolicy.fractional.L2::evict_normal.b64 normal, 1.0;\n"
                    "selp.b64 $0, {0}, normal, p;\n}",
                    eviction == Eviction::First ? "first" : "last");
  return emit(b, b.getLoc(), b.getI64Type(), flag, text, "=l,r", /*hasSideEffects=*/false).getRes();
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

Value fp4::addressHere(OpBuilder &b, Location loc, Type type, StringRef symbol) {
  return emit(b, loc, type, ValueRange(), ("mov.u64 $0, " + symbol + ";").str(), "=l",
              /*hasSideEffects=*/false)
      .getRes();
}
