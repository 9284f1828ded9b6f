//===- Module.cpp - fp4._native: calls without Python code ----------------===//
//
// `Calls` is the base of fp4.Program. Calling one takes the way of Run.cpp where a plan is known,
// and the method `_call` of the package in every other case, which checks, says what is wrong, and
// makes plans. Routes and plans are changed under the lock of Python alone.
//
//===----------------------------------------------------------------------===//

#include "Library.h"
#include "Planned.h"

#include <cstring>
#include <new>
#include <string>

namespace fp4::python {
namespace {

//===----------------------------------------------------------------------===//
// Gate
//===----------------------------------------------------------------------===//

struct GateObject {
  PyObject_HEAD;
  Gate value;
};

PyObject *closeGate(PyObject *self, PyObject *) {
  Gate &gate = reinterpret_cast<GateObject *>(self)->value;
  PyThreadState *thread = PyEval_SaveThread(); // calls that run need the lock to end
  gate.close();
  PyEval_RestoreThread(thread);
  return Py_NewRef(Py_None);
}

PyObject *enterGate(PyObject *self, PyObject *) {
  return PyBool_FromLong(reinterpret_cast<GateObject *>(self)->value.enter());
}

PyObject *leaveGate(PyObject *self, PyObject *) {
  reinterpret_cast<GateObject *>(self)->value.leave();
  return Py_NewRef(Py_None);
}

PyMethodDef gateMethods[] = {
    {"enter", enterGate, METH_NOARGS, "Whether it is open; then the same thread leaves."},
    {"leave", leaveGate, METH_NOARGS, "After a call that entered."},
    {"close", closeGate, METH_NOARGS, "Waits for the calls that run, and holds later ones off."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot gateSlots[] = {
    {Py_tp_new, reinterpret_cast<void *>(construct<GateObject>)},
    {Py_tp_dealloc, reinterpret_cast<void *>(destroy<GateObject>)},
    {Py_tp_methods, gateMethods},
    {Py_tp_doc, const_cast<char *>("Holds calls off an executable that is destroyed.")},
    {0, nullptr}};
PyType_Spec gateSpec = {"fp4._native.Gate", sizeof(GateObject), 0, Py_TPFLAGS_DEFAULT, gateSlots};
PyTypeObject *gateType = nullptr;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

struct CallsObject {
  PyObject_HEAD;
  std::vector<std::shared_ptr<Route>> value; ///< in the order of their first calls
};

bool areEqual(PyObject *name, PyObject *other) {
  if (name == other)
    return true;
  if (!PyUnicode_Check(name) || !PyUnicode_Check(other))
    return false;
  const bool equal = PyUnicode_Compare(name, other) == 0;
  if (PyErr_Occurred())
    PyErr_Clear();
  return equal;
}

std::shared_ptr<Route> *findRoute(CallsObject &calls, PyObject *name, const Arguments &arguments) {
  for (std::shared_ptr<Route> &route : calls.value)
    if (route->deviceType == arguments.deviceType() && route->deviceId == arguments.deviceId() &&
        areEqual(route->name.get(), name))
      return &route;
  return nullptr;
}

/// The values of the keywords of a call, which are the defaults where the caller gives none.
struct Keywords {
  PyObject *function = Py_None, *out = Py_None, *verify = Py_False, *stream = Py_None;

  /// False for keywords that a planned call has not.
  bool read(PyObject *given) {
    static PyObject *const words[] = {
        PyUnicode_InternFromString("function"), PyUnicode_InternFromString("out"),
        PyUnicode_InternFromString("verify"), PyUnicode_InternFromString("stream")};
    PyObject **const values[] = {&function, &out, &verify, &stream};
    Py_ssize_t left = given ? PyDict_Size(given) : 0;
    for (size_t i = 0; i < std::size(words) && left; ++i)
      if (PyObject *value = PyDict_GetItemWithError(given, words[i]))
        *values[i] = value, --left;
    return left == 0 && verify == Py_False && stream == Py_None;
  }
};

/// Null and no exception where no plan is known.
Object callPlanned(CallsObject &calls, PyObject *tensors, PyObject *keywords, bool &ran) {
  Keywords options;
  Arguments arguments;
  if (calls.value.empty() || !options.read(keywords) || !arguments.read(tensors))
    return {};
  Given given;
  given.object = options.out == Py_None ? nullptr : options.out;
  const std::shared_ptr<Route> *found = findRoute(calls, options.function, arguments);
  if (!found)
    return {};
  const std::shared_ptr<Route> route = *found; // another thread may change the list
  const std::shared_ptr<const Plan> plan = route->find(arguments);
  if (!plan || (given.object && !given.read(*plan, arguments)))
    return {};
  return runPlan(*route, *plan, arguments, given, ran);
}

PyObject *call(PyObject *self, PyObject *tensors, PyObject *keywords) {
  static PyObject *const checked = PyUnicode_InternFromString("_call");
  bool ran = false;
  try {
    Object result = callPlanned(*reinterpret_cast<CallsObject *>(self), tensors, keywords, ran);
    if (ran)
      return result.release();
  } catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
  }
  if (PyErr_Occurred())
    return nullptr;
  Object method = Object::owned(PyObject_GetAttr(self, checked));
  return method ? PyObject_Call(method.get(), tensors, keywords) : nullptr;
}

/// The fp4_tensors in `bytes`, without addresses.
bool tensorsIn(PyObject *bytes, std::vector<fp4_tensor> &tensors) {
  char *data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0)
    return false;
  tensors.resize(size_t(size) / sizeof(fp4_tensor));
  std::memcpy(tensors.data(), data, tensors.size() * sizeof(fp4_tensor));
  for (fp4_tensor &tensor : tensors)
    tensor.address = 0;
  return true;
}

/// Puts `route` into the list, in the place of one that leads to another executable.
Route &routeOf(CallsObject &calls, const Arguments &arguments, Route route) {
  std::shared_ptr<Route> *found = findRoute(calls, route.name.get(), arguments);
  if (found && (*found)->executable.get() == route.executable.get())
    return **found;
  auto made = std::make_shared<Route>(std::move(route));
  if (found)
    return *(*found = std::move(made));
  return *calls.value.emplace_back(std::move(made));
}

PyObject *remember(PyObject *self, PyObject *given) {
  PyObject *name, *tensors, *executable, *gate, *argumentBytes, *resultBytes, *outputs, *makers;
  unsigned long long function, device;
  if (!PyArg_ParseTuple(given, "OO!OO!KKO!O!O!O!", &name, &PyTuple_Type, &tensors, &executable,
                        gateType, &gate, &function, &device, &PyBytes_Type, &argumentBytes,
                        &PyBytes_Type, &resultBytes, &PyTuple_Type, &outputs, &PyTuple_Type,
                        &makers))
    return nullptr;
  Plan plan;
  Arguments arguments, results;
  if (!tensorsIn(argumentBytes, plan.arguments) || !tensorsIn(resultBytes, plan.results) ||
      !makersIn(makers, plan.makers))
    return nullptr;
  if (!arguments.read(tensors) || arguments.size() != plan.arguments.size() ||
      plan.results.size() != plan.makers.size() ||
      PyTuple_Size(outputs) != Py_ssize_t(plan.results.size()) ||
      (!plan.results.empty() && !results.read(outputs)))
    return Py_NewRef(Py_False);
  if (!plan.results.empty())
    plan.resultKey.assign(results.key().begin(), results.key().end());
  Route route{Object::borrowed(name),
              arguments.deviceType(),
              arguments.deviceId(),
              Object::borrowed(executable),
              Object::borrowed(gate),
              &reinterpret_cast<GateObject *>(gate)->value,
              reinterpret_cast<fp4_function *>(function),
              reinterpret_cast<fp4_device *>(device)};
  routeOf(*reinterpret_cast<CallsObject *>(self), arguments, std::move(route))
      .keep(arguments, std::move(plan));
  return Py_NewRef(Py_True);
}

PyMethodDef callsMethods[] = {
    {"_remember", remember, METH_VARARGS,
     "Keeps the plan of a call that was checked; False for tensors that have none."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot callsSlots[] = {
    {Py_tp_new, reinterpret_cast<void *>(construct<CallsObject>)},
    {Py_tp_dealloc, reinterpret_cast<void *>(destroy<CallsObject>)},
    {Py_tp_call, reinterpret_cast<void *>(call)},
    {Py_tp_methods, callsMethods},
    {Py_tp_doc, const_cast<char *>("Calls whose checks are known to pass; the base of Program.")},
    {0, nullptr}};
PyType_Spec callsSpec = {"fp4._native.Calls", sizeof(CallsObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, callsSlots};
PyTypeObject *callsType = nullptr;

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

PyObject *load(PyObject *, PyObject *given) {
  const char *path = nullptr;
  PyObject *raise = nullptr;
  if (!PyArg_ParseTuple(given, "sO", &path, &raise))
    return nullptr;
  const std::string failure = library.load(path);
  if (!failure.empty()) {
    PyErr_SetString(PyExc_ImportError, failure.c_str());
    return nullptr;
  }
  raiseError = Object::borrowed(raise);
  return Py_NewRef(Py_None);
}

PyObject *accept(PyObject *, PyObject *given) {
  PyObject *types, *capsule, *negative, *device;
  if (!PyArg_ParseTuple(given, "O!OOO", &PyTuple_Type, &types, &capsule, &negative, &device) ||
      !exchange.accept(types, capsule, negative))
    return nullptr;
  exchange.currentDevice = device == Py_None ? Object() : Object::borrowed(device);
  return Py_NewRef(Py_None);
}

std::vector<Object> objectsIn(PyObject *tuple) {
  std::vector<Object> objects;
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i)
    objects.push_back(Object::borrowed(PyTuple_GetItem(tuple, i)));
  return objects;
}

PyObject *watch(PyObject *, PyObject *given) {
  PyObject *gradients, *watchers, *quiet, *constants;
  if (!PyArg_ParseTuple(given, "OO!OO!", &gradients, &PyTuple_Type, &watchers, &quiet,
                        &PyTuple_Type, &constants))
    return nullptr;
  exchange.isQuiet = Object::borrowed(quiet);
  exchange.recordsGradients = Object::borrowed(gradients);
  exchange.watchers = objectsIn(watchers);
  exchange.constants = objectsIn(constants);
  return Py_NewRef(Py_None);
}

PyObject *hold(PyObject *, PyObject *given) {
  int change = 0;
  if (!PyArg_ParseTuple(given, "i", &change))
    return nullptr;
  exchange.numHolds += change;
  return Py_NewRef(Py_None);
}

PyMethodDef functions[] = {
    {"load", load, METH_VARARGS, "Takes the functions of libfp4 at a path."},
    {"accept", accept, METH_VARARGS, "Takes the types of torch and how their tensors are read."},
    {"watch", watch, METH_VARARGS, "Takes what tells that a planned call must not run."},
    {"hold", hold, METH_VARARGS, "Adds 1 or -1 to the number of holds that stop planned calls."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "fp4._native",
                          "Calls of programs without Python code (docs/rationale/python.md).",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

bool makersIn(PyObject *list, std::vector<Maker> &makers) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(list); ++i) {
    PyObject *make, *arguments, *options, *here, *hereArguments;
    if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "OO!O!OO!", &make, &PyTuple_Type, &arguments,
                          &PyDict_Type, &options, &here, &PyTuple_Type, &hereArguments))
      return false;
    makers.push_back(
        {Object::borrowed(make), Object::borrowed(arguments), Object::borrowed(options),
         here == Py_None ? Object() : Object::borrowed(here), Object::borrowed(hereArguments)});
  }
  return true;
}

bool findPlan(PyObject *program, PyObject *tensors, std::shared_ptr<const Route> &route,
              std::shared_ptr<const Plan> &plan) {
  Arguments arguments;
  if (!PyObject_TypeCheck(program, callsType) || !PyTuple_Check(tensors) ||
      !arguments.read(tensors))
    return false;
  const std::shared_ptr<Route> *found =
      findRoute(*reinterpret_cast<CallsObject *>(program), Py_None, arguments);
  if (!found)
    return false;
  route = *found;
  plan = route->find(arguments);
  return plan != nullptr;
}

} // namespace fp4::python

PyMODINIT_FUNC PyInit__native() {
  using namespace fp4::python;
  Object module = Object::owned(PyModule_Create(&definition));
  Object gate = Object::owned(PyType_FromSpec(&gateSpec));
  Object calls = Object::owned(PyType_FromSpec(&callsSpec));
  Object planned = makePlannedType();
  if (!module || !gate || !calls || !planned ||
      PyModule_AddObjectRef(module.get(), "Gate", gate.get()) != 0 ||
      PyModule_AddObjectRef(module.get(), "Calls", calls.get()) != 0 ||
      PyModule_AddObjectRef(module.get(), "Planned", planned.get()) != 0)
    return nullptr;
  gateType = reinterpret_cast<PyTypeObject *>(gate.release());
  callsType = reinterpret_cast<PyTypeObject *>(calls.release());
  return module.release();
}
