"""Runs cases of a set one after the other and says on stderr how each ended; running.py starts it.

Usage, under fp4-sim: worker.py SET CASE:TOLERANCE...
"""
import functools
import importlib
import os
import sys
import time
import traceback

import torch

import cases


def _say(*words):
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(2, ("\n::" + " ".join(map(str, words)) + "\n").encode())


def _function(module, name):
    for table, run in (("CALLS", cases.calls), ("SCRIPTS", cases.script)):
        if name in getattr(module, table, {}):
            return functools.partial(run, getattr(module, table), name)
    return getattr(module, name)


def _run(function, tolerance):
    """Returns what is wrong with the results of a case, or None."""
    found = function()
    if found is None:  # it has compared by itself
        return None
    compared = 0
    for what, mine, expected, *own in found:
        compared += 1
        if wrong := cases.difference(mine, expected, own[0] if own else tolerance):
            return f"{what}: {wrong}"
    return None if compared else "nothing was compared"


def main():
    group, names = sys.argv[1], [word.split(":") for word in sys.argv[2:]]
    module = importlib.import_module(f"sets.{group}")
    _say("start", time.process_time())
    for name, tolerance in names:
        _say("begin", name)
        began = time.process_time()
        torch.manual_seed(0)
        try:
            wrong = _run(_function(module, name), float(tolerance))
        except Exception as error:  # a kernel that failed leaves its own report on stderr
            wrong = f"{type(error).__name__}: {error}"
            traceback.print_exc(limit=-4)
        if wrong:
            sys.stderr.write(f"\nwrong: {wrong}\n")
        _say("end", name, "wrong" if wrong else "passed", f"{time.process_time() - began:.2f}")


main()
