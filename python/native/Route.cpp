//===- Route.cpp - What calls of one function have in common --------------===//

#include "Route.h"

#include <algorithm>

namespace fp4::python {

Object Maker::operator()(bool here) const {
  if (here && makeHere)
    return Object::owned(PyObject_Call(makeHere.get(), argumentsHere.get(), nullptr));
  return Object::owned(PyObject_Call(make.get(), arguments.get(), options.get()));
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
