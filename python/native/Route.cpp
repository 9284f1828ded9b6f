//===- Route.cpp - Common parts of the calls of one function --------------===//

#include "Route.h"

#include <algorithm>

namespace fp4::python {

Object Maker::operator()(bool here) const {
  if (here && makeHere)
    return Object::owned(PyObject_Call(makeHere.get(), argumentsHere.get(), nullptr));
  return Object::owned(PyObject_Call(make.get(), arguments.get(), options.get()));
}

namespace {

bool overlap(const dlpack::Tensor &one, uint64_t bytes, const dlpack::Tensor &other,
             uint64_t otherBytes) {
  return addressOf(one) < addressOf(other) + otherBytes &&
         addressOf(other) < addressOf(one) + bytes;
}

} // namespace

bool Given::read(const Plan &plan, const Arguments &arguments) {
  Object tuple =
      PyTuple_Check(object) ? Object::borrowed(object) : Object::owned(PyTuple_Pack(1, object));
  if (!tuple || !tensors.read(tuple.get()) || !std::ranges::equal(tensors.key(), plan.resultKey) ||
      tensors.deviceType() != arguments.deviceType() || tensors.deviceId() != arguments.deviceId())
    return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = i + 1; j < tensors.size(); ++j)
      if (overlap(tensors[i], plan.results[i].bytes, tensors[j], plan.results[j].bytes))
        return false;
    for (size_t j = 0; j < arguments.size(); ++j)
      if (overlap(tensors[i], plan.results[i].bytes, arguments[j], plan.arguments[j].bytes))
        return false;
  }
  return true;
}

std::shared_ptr<const Plan> Route::find(const Arguments &arguments) const {
  auto [begin, end] = plans.equal_range(arguments.hash());
  for (auto it = begin; it != end; ++it)
    if (std::ranges::equal(it->second->key, arguments.key()))
      return it->second;
  return nullptr;
}

void Route::keep(const Arguments &arguments, Plan plan) {
  constexpr size_t kMost = 4096; // a plan has less than 1 KiB
  if (find(arguments))
    return;
  if (plans.size() >= kMost)
    plans.clear();
  plan.key.assign(arguments.key().begin(), arguments.key().end());
  plans.emplace(arguments.hash(), std::make_shared<const Plan>(std::move(plan)));
}

} // namespace fp4::python
