//===- Planned.cpp - Functions of torch whose calls are programs alone ----===//

#include "Planned.h"

#include "Call.h"

#include <algorithm>
#include <new>

namespace fp4::python {
namespace {

/// A function and the sequences of its calls, which change under the lock of Python alone.
struct Planned {
  Object function; ///< of torch
  /// record(planned, arguments) calls the function, and keeps the sequence of the call.
  Object record;
  std::unordered_multimap<uint64_t, std::shared_ptr<const Sequence>> sequences = {};

  std::shared_ptr<const Sequence> find(const Inputs &inputs) const;
  void keep(const Inputs &inputs, Sequence sequence);
};

struct PlannedObject {
  PyObject_HEAD;
  Planned value;
};

bool areEqual(const Object &one, PyObject *other) {
  if (one.get() == other)
    return true;
  if (!PyUnicode_CheckExact(one.get()) || !PyUnicode_CheckExact(other))
    return false;
  const bool equal = PyUnicode_Compare(one.get(), other) == 0;
  if (PyErr_Occurred())
    PyErr_Clear();
  return equal;
}

std::shared_ptr<const Sequence> Planned::find(const Inputs &inputs) const {
  auto [begin, end] = sequences.equal_range(hashOf(inputs.key()));
  for (auto it = begin; it != end; ++it)
    if (std::ranges::equal(it->second->key, inputs.key()) &&
        std::ranges::equal(it->second->constants, inputs.constants(), areEqual))
      return it->second;
  return nullptr;
}

void Planned::keep(const Inputs &inputs, Sequence sequence) {
  constexpr size_t kMost = 4096; // a sequence has few KiB
  if (find(inputs))
    return;
  if (sequences.size() >= kMost)
    sequences.clear();
  sequence.key.assign(inputs.key().begin(), inputs.key().end());
  for (PyObject *constant : inputs.constants())
    sequence.constants.push_back(Object::borrowed(constant));
  sequences.emplace(hashOf(inputs.key()), std::make_shared<const Sequence>(std::move(sequence)));
}

/// A tuple of the arguments of a call.
Object tupleOf(PyObject *const *arguments, Py_ssize_t count) {
  Object tuple = Object::owned(PyTuple_New(count));
  for (Py_ssize_t i = 0; tuple && i < count; ++i)
    PyTuple_SetItem(tuple.get(), i, Py_NewRef(arguments[i]));
  return tuple;
}

Object callFunction(const Planned &planned, PyObject *const *arguments, Py_ssize_t count,
                    PyObject *names) {
  Object tuple = tupleOf(arguments, count), keywords;
  const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  if (named)
    keywords = Object::owned(PyDict_New());
  for (Py_ssize_t i = 0; keywords && i < named; ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GetItem(names, i), arguments[count + i]) != 0)
      return {};
  if (!tuple || (named && !keywords))
    return {};
  return Object::owned(PyObject_Call(planned.function.get(), tuple.get(), keywords.get()));
}

bool recordsGradients() {
  Object answer = Object::owned(PyObject_CallNoArgs(exchange.recordsGradients.get()));
  if (!answer)
    PyErr_Clear();
  return answer.get() != Py_False;
}

Object callPlanned(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  const Planned &planned = reinterpret_cast<PlannedObject *>(self)->value;
  Inputs inputs;
  const bool isPlannable = !(names && PyTuple_Size(names)) && exchange.api && !exchange.numHolds &&
                           inputs.read(arguments, size_t(count), recordsGradients()) &&
                           !exchange.isWatched();
  if (!isPlannable)
    return callFunction(planned, arguments, count, names);
  const std::shared_ptr<const Sequence> found = planned.find(inputs);
  if (!found) {
    Object tuple = tupleOf(arguments, count);
    return tuple ? Object::owned(PyObject_CallFunctionObjArgs(planned.record.get(), self,
                                                              tuple.get(), nullptr))
                 : Object();
  }
  bool ran = false;
  if (!found->steps.empty()) {
    Object result = runSequence(*found, inputs, ran);
    if (ran)
      return result;
  }
  return callFunction(planned, arguments, count, names);
}

PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  try {
    return callPlanned(self, arguments, count, names).release();
  } catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
  }
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

bool sourcesIn(PyObject *list, std::vector<Source> &sources) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(list); ++i) {
    int step = 0;
    unsigned int index = 0;
    unsigned long long offset = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "iIK", &step, &index, &offset))
      return false;
    sources.push_back({step, index, offset});
  }
  return true;
}

/// Reads (program, tensors, sources, makers, targets) of a step. `isKnown` is false where the
/// program has no plan for such tensors.
bool stepIn(PyObject *tuple, Step &step, bool &isKnown) {
  PyObject *program, *tensors, *sources, *makers, *targets;
  if (!PyArg_ParseTuple(tuple, "OO!O!O!O!", &program, &PyTuple_Type, &tensors, &PyTuple_Type,
                        &sources, &PyTuple_Type, &makers, &PyTuple_Type, &targets) ||
      !sourcesIn(sources, step.sources) || !makersIn(makers, step.makers) ||
      !sourcesIn(targets, step.targets))
    return false;
  const size_t others = step.targets.empty() ? step.makers.size() : step.targets.size();
  isKnown = findPlan(program, tensors, step.route, step.plan) &&
            step.plan->arguments.size() == step.sources.size() &&
            step.plan->results.size() == others;
  return true;
}

/// Returns true if every source is a tensor of the call or a result of an earlier step, and every
/// target a tensor of the call.
bool areSound(const Sequence &sequence, const Inputs &inputs) {
  auto isSound = [&](const Source &source, size_t steps) {
    if (source.step < 0)
      return source.step == Source::kArgument && source.index < inputs.size();
    return size_t(source.step) < steps &&
           source.index < sequence.steps[size_t(source.step)].makers.size();
  };
  size_t results = 0;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    results += sequence.steps[i].makers.size();
    if (!std::ranges::all_of(sequence.steps[i].sources,
                             [&](const Source &source) { return isSound(source, i); }) ||
        !std::ranges::all_of(sequence.steps[i].targets,
                             [&](const Source &target) { return isSound(target, 0); }))
      return false;
  }
  return results <= kMostOperands &&
         std::ranges::all_of(sequence.results, [&](const Source &source) {
           return source.step == Source::kEmpty
                      ? source.index < sequence.empties.size()
                      : source.step >= 0 && isSound(source, sequence.steps.size());
         });
}

PyObject *keep(PyObject *self, PyObject *given) {
  PyObject *arguments, *steps, *results, *empties;
  if (!PyArg_ParseTuple(given, "O!O!O!O!", &PyTuple_Type, &arguments, &PyTuple_Type, &steps,
                        &PyTuple_Type, &results, &PyTuple_Type, &empties))
    return nullptr;
  std::vector<PyObject *> objects;
  for (Py_ssize_t i = 0; i < PyTuple_Size(arguments); ++i)
    objects.push_back(PyTuple_GetItem(arguments, i));
  Inputs inputs;
  if (!inputs.read(objects.data(), objects.size(), false))
    return Py_NewRef(Py_False);
  Sequence sequence;
  bool areKnown = true;
  for (Py_ssize_t i = 0; i < PyTuple_Size(steps); ++i) {
    bool isKnown = false;
    if (!stepIn(PyTuple_GetItem(steps, i), sequence.steps.emplace_back(), isKnown))
      return nullptr;
    areKnown &= isKnown;
  }
  if (!sourcesIn(results, sequence.results) || !makersIn(empties, sequence.empties))
    return nullptr;
  areKnown = areKnown && areSound(sequence, inputs);
  if (!areKnown)
    sequence.steps.clear();
  reinterpret_cast<PlannedObject *>(self)->value.keep(inputs, std::move(sequence));
  return Py_NewRef(areKnown ? Py_True : Py_False);
}

PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *) {
  PyObject *function, *record;
  if (!PyArg_ParseTuple(arguments, "OO", &function, &record))
    return nullptr;
  PyObject *self = construct<PlannedObject>(type, nullptr, nullptr);
  if (self)
    reinterpret_cast<PlannedObject *>(self)->value = {Object::borrowed(function),
                                                      Object::borrowed(record)};
  return self;
}

PyMethodDef methods[] = {
    {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
     METH_FASTCALL | METH_KEYWORDS, "Calls the function, or runs the sequence of such a call."},
    {"keep", keep, METH_VARARGS,
     "Keeps the sequence of a call, or that there is none; False for the latter."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(make)},
    {Py_tp_dealloc, reinterpret_cast<void *>(destroy<PlannedObject>)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char *>("A function of torch whose calls are programs alone.")},
    {0, nullptr}};
PyType_Spec spec = {"fp4._native.Planned", sizeof(PlannedObject), 0, Py_TPFLAGS_DEFAULT, slots};

/// Tensors of torch for the results of all steps, one step behind the other.
struct Results {
  std::array<Object, kMostOperands> objects;
  std::array<dlpack::Tensor, kMostOperands> tensors;
  std::array<size_t, kMostOperands> begins; ///< of each step

  /// False, with a Python exception, where torch makes none.
  bool make(const Sequence &sequence, bool here) {
    size_t count = 0;
    for (size_t i = 0; i < sequence.steps.size(); ++i) {
      begins[i] = count;
      for (const Maker &maker : sequence.steps[i].makers) {
        objects[count] = maker(here);
        if (!objects[count] ||
            exchange.api->tensorFromObject(objects[count].get(), &tensors[count]) != 0)
          return false;
        ++count;
      }
    }
    return true;
  }
  size_t placeOf(const Source &source) const { return begins[size_t(source.step)] + source.index; }
  Object object(const Source &source) const { return objects[placeOf(source)]; }
};

/// Returns true if no target of a step shares memory with another one, or with an argument of the
/// step: such a call is an error of the function.
bool areApart(const Step &step, const Inputs &inputs) {
  auto range = [&](const Source &source, const fp4_tensor &tensor) {
    const uint64_t begin = addressOf(inputs[source.index]) + source.offset;
    return std::pair(begin, begin + tensor.bytes);
  };
  auto isApart = [](const auto &one, const auto &other) {
    return one.second <= other.first || other.second <= one.first;
  };
  for (size_t i = 0; i < step.targets.size(); ++i) {
    const auto target = range(step.targets[i], step.plan->results[i]);
    for (size_t j = i + 1; j < step.targets.size(); ++j)
      if (!isApart(target, range(step.targets[j], step.plan->results[j])))
        return false;
    for (size_t j = 0; j < step.sources.size(); ++j)
      if (step.sources[j].step == Source::kArgument &&
          !isApart(target, range(step.sources[j], step.plan->arguments[j])))
        return false;
  }
  return true;
}

/// Issues one step. False where its executable is destroyed.
bool issue(const Step &step, size_t number, const Inputs &inputs, const Results &results,
           uint64_t stream, Temporary &memory, fp4_error *&error) {
  if (!step.route->gate->enter())
    return false;
  Call call(*step.route, *step.plan);
  for (size_t i = 0; i < step.sources.size(); ++i) {
    const Source &source = step.sources[i];
    const dlpack::Tensor &tensor =
        source.step < 0 ? inputs[source.index] : results.tensors[results.placeOf(source)];
    call.setArgument(i, addressOf(tensor) + source.offset);
  }
  for (size_t i = 0; i < step.makers.size(); ++i)
    call.setResult(i, addressOf(results.tensors[results.begins[number] + i]));
  for (size_t i = 0; i < step.targets.size(); ++i)
    call.setResult(i, addressOf(inputs[step.targets[i].index]) + step.targets[i].offset);
  error = inputs.deviceType() == dlpack::kCuda
              ? call.onCuda(stream, memory)
              : call.onHost(/*areResultsGiven=*/!step.targets.empty());
  step.route->gate->leave();
  return true;
}

} // namespace

Object runSequence(const Sequence &sequence, const Inputs &inputs, bool &ran) {
  ran = false;
  if (!std::ranges::all_of(sequence.steps,
                           [&](const Step &step) { return areApart(step, inputs); }))
    return {}; // the function says what is wrong
  Results results;
  void *stream = nullptr;
  const bool isHere = exchange.isCurrent(inputs.deviceType(), inputs.deviceId());
  if ((inputs.deviceType() == dlpack::kCuda &&
       exchange.api->currentWorkStream(dlpack::kCuda, inputs.deviceId(), &stream) != 0) ||
      !results.make(sequence, isHere)) {
    PyErr_Clear(); // the function tries again, and says what is wrong
    return {};
  }
  Temporary memory(inputs.deviceId());
  fp4_error *error = nullptr;
  bool isOpen = true;
  PyThreadState *thread = PyEval_SaveThread();
  for (size_t i = 0; i < sequence.steps.size() && isOpen && !error; ++i)
    isOpen = issue(sequence.steps[i], i, inputs, results, reinterpret_cast<uint64_t>(stream),
                   memory, error);
  PyEval_RestoreThread(thread);
  if (!isOpen)
    return {};
  ran = true;
  if (error)
    return raise(error, memory.failure());
  auto result = [&](size_t i) {
    const Source &source = sequence.results[i];
    return source.step == Source::kEmpty ? sequence.empties[source.index](isHere)
                                         : results.object(source);
  };
  if (sequence.results.empty())
    return Object::borrowed(Py_None);
  if (sequence.results.size() == 1)
    return result(0);
  Object tuple = Object::owned(PyTuple_New(Py_ssize_t(sequence.results.size())));
  for (size_t i = 0; tuple && i < sequence.results.size(); ++i) {
    Object object = result(i);
    if (!object)
      return {};
    PyTuple_SetItem(tuple.get(), Py_ssize_t(i), object.release());
  }
  return tuple;
}

Object makePlannedType() { return Object::owned(PyType_FromSpec(&spec)); }

} // namespace fp4::python
