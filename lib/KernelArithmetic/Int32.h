//===- Int32.h - Index arithmetic inside a kernel -------------------------===//
//
// An unsigned i32 of a kernel that is written as a formula: row / 32 * pitch + column. Every
// operator emits one arith operation, folded where both sides are known.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

class Int32 {
public:
  Int32(mlir::ImplicitLocOpBuilder &b, mlir::Value value) : b(&b), value(value) {}
  Int32(mlir::ImplicitLocOpBuilder &b, int64_t constant)
      : b(&b), value(mlir::arith::ConstantOp::create(
                   b, b.getI32IntegerAttr(static_cast<int32_t>(constant)))) {}

  operator mlir::Value() const { return value; }
  mlir::ImplicitLocOpBuilder &builder() const { return *b; }

  Int32 operator+(Int32 y) const { return apply<mlir::arith::AddIOp>(y); }
  Int32 operator-(Int32 y) const { return apply<mlir::arith::SubIOp>(y); }
  Int32 operator*(Int32 y) const { return apply<mlir::arith::MulIOp>(y); }
  Int32 operator/(Int32 y) const { return apply<mlir::arith::DivUIOp>(y); }
  Int32 operator%(Int32 y) const { return apply<mlir::arith::RemUIOp>(y); }
  Int32 operator^(Int32 y) const { return apply<mlir::arith::XOrIOp>(y); }
  Int32 operator|(Int32 y) const { return apply<mlir::arith::OrIOp>(y); }
  Int32 operator&(Int32 y) const { return apply<mlir::arith::AndIOp>(y); }
  Int32 operator+(int64_t y) const { return y == 0 ? *this : *this + Int32(*b, y); }
  Int32 operator-(int64_t y) const { return y == 0 ? *this : *this - Int32(*b, y); }
  Int32 operator*(int64_t y) const { return y == 1 ? *this : *this * Int32(*b, y); }
  Int32 operator/(int64_t y) const { return y == 1 ? *this : *this / Int32(*b, y); }
  Int32 operator%(int64_t y) const { return *this % Int32(*b, y); }
  Int32 operator&(int64_t y) const { return *this & Int32(*b, y); }
  Int32 operator>>(int64_t y) const { return apply<mlir::arith::ShRUIOp>(Int32(*b, y)); }
  Int32 shiftRight(Int32 y) const { return apply<mlir::arith::ShRUIOp>(y); }
  friend Int32 operator<<(uint32_t x, Int32 y) {
    return Int32(*y.b, x).apply<mlir::arith::ShLIOp>(y);
  }

  mlir::Value operator<(Int32 y) const {
    return mlir::arith::CmpIOp::create(*b, mlir::arith::CmpIPredicate::ult, value, y.value);
  }
  mlir::Value operator<(int64_t y) const { return *this < Int32(*b, y); }

private:
  template <typename OpT> Int32 apply(Int32 y) const {
    return {*b, b->createOrFold<OpT>(value, y.value)};
  }

  mlir::ImplicitLocOpBuilder *b;
  mlir::Value value;
};

inline Int32 minimum(Int32 x, Int32 y) {
  return {x.builder(), mlir::arith::MinUIOp::create(x.builder(), x, y)};
}

inline Int32 select(mlir::Value condition, Int32 x, Int32 y) {
  return {x.builder(), mlir::arith::SelectOp::create(x.builder(), condition, x, y)};
}

} // namespace fp4
