//===- Float32.h - fp32 formulas inside a kernel --------------------------===//
//
// An fp32 number of a kernel, or a vector of them, that is written as a formula. Every operator
// emits one operation that rounds once. With the functions below, the templates of
// fp4/Numerics/Transcendentals.h emit what the reference computes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

/// A signed i32 with the bits of a Float32; sums wrap.
class Bits32 {
public:
  Bits32(mlir::ImplicitLocOpBuilder &b, mlir::Value value) : b(&b), value(value) {}

  operator mlir::Value() const { return value; }
  mlir::ImplicitLocOpBuilder &builder() const { return *b; }

  Bits32 operator+(int y) const { return apply<mlir::arith::AddIOp>(constant(y)); }
  Bits32 operator-(int y) const { return apply<mlir::arith::SubIOp>(constant(y)); }
  Bits32 operator-(Bits32 y) const { return apply<mlir::arith::SubIOp>(y); }
  Bits32 operator&(int y) const { return apply<mlir::arith::AndIOp>(constant(y)); }
  Bits32 operator|(Bits32 y) const { return apply<mlir::arith::OrIOp>(y); }
  Bits32 operator>>(int y) const { return apply<mlir::arith::ShRSIOp>(constant(y)); }
  Bits32 operator<<(int y) const { return apply<mlir::arith::ShLIOp>(constant(y)); }

private:
  template <typename OpT> Bits32 apply(mlir::Value y) const {
    return {*b, OpT::create(*b, value, y)};
  }
  mlir::Value constant(int number) const {
    mlir::Attribute attr = b->getI32IntegerAttr(number);
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(value.getType()))
      attr = mlir::DenseElementsAttr::get(vector, attr);
    return mlir::arith::ConstantOp::create(*b, mlir::cast<mlir::TypedAttr>(attr));
  }

  mlir::ImplicitLocOpBuilder *b;
  mlir::Value value;
};

class Float32 {
public:
  Float32(mlir::ImplicitLocOpBuilder &b, mlir::Value value) : b(&b), value(value) {}

  operator mlir::Value() const { return value; }
  mlir::ImplicitLocOpBuilder &builder() const { return *b; }
  mlir::Type type() const { return value.getType(); }

  Float32 operator+(Float32 y) const { return apply<mlir::arith::AddFOp>(y); }
  Float32 operator-(Float32 y) const { return apply<mlir::arith::SubFOp>(y); }
  Float32 operator*(Float32 y) const { return apply<mlir::arith::MulFOp>(y); }
  Float32 operator/(Float32 y) const { return apply<mlir::arith::DivFOp>(y); }
  template <typename OpT> Float32 apply(mlir::Value y) const {
    return {*b, OpT::create(*b, value, y)};
  }

private:
  mlir::ImplicitLocOpBuilder *b;
  mlir::Value value;
};

/// A constant of the type of `x`.
inline Float32 like(Float32 x, float number) {
  mlir::Attribute attr = x.builder().getF32FloatAttr(number);
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(x.type()))
    attr = mlir::DenseElementsAttr::get(vector, attr);
  return {x.builder(),
          mlir::arith::ConstantOp::create(x.builder(), mlir::cast<mlir::TypedAttr>(attr))};
}

inline Float32 fma(Float32 x, Float32 y, Float32 z) {
  return {x.builder(), mlir::LLVM::FMAOp::create(x.builder(), x.type(), x, y, z)};
}
inline Float32 minimum(Float32 x, Float32 y) { return x.apply<mlir::arith::MinimumFOp>(y); }
inline Float32 maximum(Float32 x, Float32 y) { return x.apply<mlir::arith::MaximumFOp>(y); }

inline Bits32 bitsOf(Float32 x) {
  mlir::Type type = x.builder().getI32Type();
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(x.type()))
    type = vector.clone(type);
  return {x.builder(), mlir::arith::BitcastOp::create(x.builder(), type, x)};
}
inline Float32 floatOf(Bits32 x) {
  mlir::Type type = x.builder().getF32Type();
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(mlir::Value(x).getType()))
    type = vector.clone(type);
  return {x.builder(), mlir::arith::BitcastOp::create(x.builder(), type, x)};
}
inline Float32 selectLess(Float32 x, Float32 y, Float32 then, Float32 otherwise) {
  mlir::Value less =
      mlir::arith::CmpFOp::create(x.builder(), mlir::arith::CmpFPredicate::OLT, x, y);
  return {x.builder(), mlir::arith::SelectOp::create(x.builder(), less, then, otherwise)};
}

} // namespace fp4
