"""The decorator of a case, which records.py reads, and comparisons.

A case is a generator of (what, found, expected): the worker compares the two within the tolerance
of the record, or one that follows as a fourth member. A case whose functions compare by themselves yields nothing and is no generator.
"""


def case(*devices, **fields):
    """Marks a function as a record; devices and fields are those of records.Record."""
    del devices, fields
    return lambda function: function


def difference(found, expected, tolerance):
    """Returns what is wrong with a result, or None. Without a tolerance its bits are compared."""
    import torch
    found, expected = found.detach().cpu(), expected.detach().cpu()
    if found.shape != expected.shape:
        return f"has shape {tuple(found.shape)}, not {tuple(expected.shape)}"
    if tolerance == 0:
        if found.dtype != expected.dtype:
            return f"is {found.dtype}, not {expected.dtype}"
        wrong = (found.contiguous().view(torch.uint8) != expected.contiguous().view(torch.uint8))
        return f"{wrong.sum().item()} bytes differ" if wrong.any() else None
    found, expected = found.double(), expected.double()
    finite = expected.isfinite()
    if not torch.equal(found.isfinite(), finite) or not torch.equal(
            found[~finite].nan_to_num(nan=0.0), expected[~finite].nan_to_num(nan=0.0)) or not torch.equal(
            found.isnan(), expected.isnan()):
        return "has other infinities or NaNs than it must have"
    most = max(expected[finite].abs().max().item() if finite.any() else 0.0, 1e-30)
    error = (found - expected)[finite].abs().max().item() / most if finite.any() else 0.0
    return None if error <= tolerance else f"has an error of {error:.3g} of its largest number"


def gradients(function, reference, inputs, dtype=None):
    """(what, found, expected) of the results and of the gradients of inputs, which are rounded to
    a type for the function alone.
    """
    import torch
    inputs = [x.detach() if dtype is None else x.detach().to(dtype) for x in inputs]
    there = [x.to("cuda").clone().requires_grad_() for x in inputs]
    here = [x.clone().float().requires_grad_() for x in inputs]
    expected, found = reference(*here), function(*there)
    found = found[0] if isinstance(found, tuple) else found
    torch.manual_seed(1)
    slope = torch.randn(expected.shape).to(found.dtype)
    expected.backward(slope.float())
    found.backward(slope.to("cuda"))
    yield "result", found, expected
    for place, (mine, its) in enumerate(zip(there, here)):
        if its.grad is not None:
            yield f"gradient of operand {place}", mine.grad, its.grad


def extension(name):
    """Loads the operators that `prepare` built for a set. Functions that it left out are looked for only when
    one is called, which is why torch.ops.load_library, which asks for all at once, cannot do it.
    """
    import ctypes
    import os
    process = ctypes.CDLL(None)
    process.dlopen.restype, process.dlerror.restype = ctypes.c_void_p, ctypes.c_char_p
    if not process.dlopen(os.path.join(os.environ["FP4_EXTENSIONS"], f"{name}.so").encode(), os.RTLD_LAZY):
        raise RuntimeError(process.dlerror().decode())


def tvm_module(name):
    """The operators of a set that TVM FFI calls, by their names; `prepare` built them."""
    import os
    import tvm_ffi
    return tvm_ffi.load_module(os.path.join(os.environ["FP4_EXTENSIONS"], f"{name}.so"))


def script(table, name):
    """Runs table[name] as `python PATH ARGUMENTS`, where PATH begins with the name of its source. A script that
    fails raises, or ends with a code of its own.
    """
    import os
    import runpy
    import sys
    path, arguments, *_ = table[name]
    source, _, path = path.partition("/")
    path = os.path.join(os.environ["FP4_SOURCES_" + source.replace("-", "_")], path)
    before = sys.argv, list(sys.path)
    sys.argv, sys.path[:0] = [path, *arguments.split()], [os.path.dirname(path)]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise RuntimeError(f"the script ended with {end.code}") from None
    finally:
        sys.argv, sys.path[:] = before


def on_gpu(*tensors):
    return [tensor.to("cuda") for tensor in tensors]


def calls(table, name):
    """(what, found, expected) of table[name]: a function, one of torch, and a function that makes
    operands for both; its own tolerance may follow.
    """
    function, reference, operands, *own = table[name]
    mine = operands()
    found = function(*(x.to("cuda") if hasattr(x, "to") else x for x in mine))
    expected = reference(*mine)
    found, expected = (x if isinstance(x, (tuple, list)) else [x] for x in (found, expected))
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        yield f"result {place}", one, other, *own
