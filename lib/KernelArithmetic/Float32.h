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
  Bits32 operator+(Bits32 y) const { return apply<mlir::arith::AddIOp>(y); }
  Bits32 operator-(Bits32 y) const { return apply<mlir::arith::SubIOp>(y); }
  Bits32 operator*(Bits32 y) const { return apply<mlir::arith::MulIOp>(y); }
  Bits32 operator&(int y) const { return apply<mlir::arith::AndIOp>(constant(y)); }
  Bits32 operator|(Bits32 y) const { return apply<mlir::arith::OrIOp>(y); }
  Bits32 operator>>(int y) const { return apply<mlir::arith::ShRSIOp>(constant(y)); }
  Bits32 operator<<(int y) const { return apply<mlir::arith::ShLIOp>(constant(y)); }

  /// A constant of the type of this.
  mlir::Value constant(int number) const {
    mlir::Attribute attr = b->getI32IntegerAttr(number);
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(value.getType()))
      attr = mlir::DenseElementsAttr::get(vector, attr);
    return mlir::arith::ConstantOp::create(*b, mlir::cast<mlir::TypedAttr>(attr));
  }

private:
  template <typename OpT> Bits32 apply(mlir::Value y) const {
    return {*b, OpT::create(*b, value, y)};
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
/// `T` is Float32 or Bits32.
template <typename T> T selectLess(Float32 x, Float32 y, T then, T otherwise) {
  mlir::Value less =
      mlir::arith::CmpFOp::create(x.builder(), mlir::arith::CmpFPredicate::OLT, x, y);
  return {x.builder(), mlir::arith::SelectOp::create(x.builder(), less, then, otherwise)};
}

inline Bits32 like(Bits32 x, unsigned number) {
  return {x.builder(), x.constant(static_cast<int>(number))};
}
inline Bits32 highProduct(Bits32 x, Bits32 y) {
  return {x.builder(), mlir::arith::MulUIExtendedOp::create(x.builder(), x, y).getHigh()};
}
inline Bits32 funnel(Bits32 high, Bits32 low, Bits32 n) {
  mlir::Type type = mlir::Value(high).getType();
  return {high.builder(), mlir::LLVM::FshlOp::create(high.builder(), type, high, low, n)};
}
inline Float32 realOf(Bits32 x) {
  Float32 same = floatOf(x);
  return {x.builder(), mlir::arith::SIToFPOp::create(x.builder(), same.type(), x)};
}

} // namespace fp4
