//===- Route.h - Common parts of the calls of one function ----------------===//
//
// The package checks a call in Python, makes a plan of it, and gives the plan to a route. Later
// calls with tensors of the same types and shapes need no other check.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Exchange.h"
#include "fp4-c/Program.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace fp4::python {

/// Holds calls off an executable that is destroyed. Closing waits for the calls that run.
class Gate {
public:
  /// False where the gate is closed; otherwise the same thread leaves.
  bool enter() {
    mutex_.lock_shared();
    if (!isClosed_)
      return true;
    mutex_.unlock_shared();
    return false;
  }
  void leave() { mutex_.unlock_shared(); }
  void close() {
    isClosed_ = true; // first, so that new calls do not keep this one waiting
    std::unique_lock lock(mutex_);
  }

private:
  std::shared_mutex mutex_;
  std::atomic<bool> isClosed_ = false;
};

/// The way to make a result of torch: `make` on any device, or the faster `makeHere`, if not null,
/// on the current one.
struct Maker {
  Object make, arguments, options;
  Object makeHere, argumentsHere;

  Object operator()(bool here) const;
};

struct Plan {
  std::vector<int64_t> key, resultKey; ///< Arguments::key of the arguments and of the results
  std::vector<fp4_tensor> arguments, results; ///< without addresses
  std::vector<Maker> makers;
};

/// A function on a device, for tensors of a device of torch.
struct Route {
  Object name; ///< as the caller gives it: a str or None
  int32_t deviceType = 0, deviceId = 0;
  Object executable; ///< of the package; it keeps what follows alive
  Object gateObject;
  Gate *gate = nullptr; ///< of gateObject
  fp4_function *function = nullptr;
  fp4_device *device = nullptr;
  std::unordered_multimap<uint64_t, std::shared_ptr<const Plan>> plans = {};

  std::shared_ptr<const Plan> find(const Arguments &arguments) const;
  void keep(const Arguments &arguments, Plan plan);
};

/// The caller's tensors for the results.
struct Given {
  Arguments tensors;
  PyObject *object = nullptr; ///< what the call returns; null: the call makes tensors

  /// False where `object` is not as the plan makes results, or shares memory with an argument.
  bool read(const Plan &plan, const Arguments &arguments);
};

/// One call whose plan is known. Returns the results, a Python exception with null, or nothing and
/// no exception where the call did not run.
Object runPlan(const Route &route, const Plan &plan, const Arguments &arguments, const Given &given,
               bool &ran);

/// The makers in a tuple of the package; false with a Python exception.
bool makersIn(PyObject *list, std::vector<Maker> &makers);

/// Finds the plan that `program`, a Calls, has for `tensors`, a tuple. False, and no exception,
/// where there is none.
bool findPlan(PyObject *program, PyObject *tensors, std::shared_ptr<const Route> &route,
              std::shared_ptr<const Plan> &plan);

/// Makes an exception of `error`; `cause` may be empty. The package sets it.
extern Object &raiseError;

} // namespace fp4::python
