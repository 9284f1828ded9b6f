//===- StageBytes.cpp - Bytes that the loads of a stage complete ----------===//

#include "StageBytes.h"

#include "fp4/Dialect/Pipe/IR/Cluster.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4::pipe;

void LinearForm::add(Value value, int64_t factor) {
  int64_t &sum = factors[value];
  sum += factor;
  if (sum == 0)
    factors.erase(value);
}

void LinearForm::scale(int64_t by) {
  constant *= by;
  for (auto &[value, factor] : factors)
    factor *= by;
}

bool LinearForm::operator==(const LinearForm &other) const {
  if (constant != other.constant || factors.size() != other.factors.size())
    return false;
  return llvm::all_of(factors, [&](const std::pair<Value, int64_t> &entry) {
    auto it = other.factors.find(entry.first);
    return it != other.factors.end() && it->second == entry.second;
  });
}

std::string LinearForm::str() const {
  std::string text = std::to_string(constant);
  for (auto [value, factor] : factors) {
    std::string name;
    llvm::raw_string_ostream os(name);
    value.printAsOperand(os, OpPrintingFlags());
    text += " + " + std::to_string(factor) + " * " + name;
  }
  return text;
}

void fp4::pipe::addFilledBytes(LinearForm &bytes, StageFillerOpInterface filler) {
  if (!filler.getUnits()) {
    bytes.constant += filler.getUnitBytes();
    return;
  }
  LinearForm units = linearForm(filler.getUnits());
  bytes.constant += filler.getUnitBytes() * units.constant;
  for (auto [value, factor] : units.factors)
    bytes.add(value, filler.getUnitBytes() * factor);
}

LinearForm fp4::pipe::arrivingBytes(LinearForm bytes, ChannelOp channel) {
  auto kernel = channel->getParentOfType<gpu::GPUFuncOp>();
  bool pairs = channel.isCluster() && usesPairs(kernel);
  if (sharingOf(channel, pairs).pairUses) // both CTAs signal the leader
    bytes.scale(2);
  return bytes;
}

static void accumulate(LinearForm &form, Value value, int64_t factor) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    form.constant += factor * constant.getSExtValue();
    return;
  }
  if (auto sum = value.getDefiningOp<arith::AddIOp>()) {
    accumulate(form, sum.getLhs(), factor);
    accumulate(form, sum.getRhs(), factor);
    return;
  }
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    if (matchPattern(product.getRhs(), m_ConstantInt(&constant))) {
      accumulate(form, product.getLhs(), factor * constant.getSExtValue());
      return;
    }
  form.add(value, factor);
}

LinearForm fp4::pipe::linearForm(Value value) {
  LinearForm form;
  accumulate(form, value, 1);
  return form;
}
