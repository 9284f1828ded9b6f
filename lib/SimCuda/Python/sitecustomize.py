"""Under fp4-sim run: changes packages that have a CUDA runtime inside, behind their import, and lets
our runtime come before the one that PyTorch's package loads."""
import ctypes
import importlib.abc
import importlib.util
import os
import platform
import sys

#: Our module for each package, which names the MODULES that it takes over.
PACKAGES = {"cuda": "fp4_cuda_bindings", "cutlass": "fp4_cute_dsl"}


class Loader(importlib.abc.Loader):
    def __init__(self, loader, ours):
        self.loader, self.ours = loader, ours

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.ours.take_over(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "torch":
            load_our_runtimes()
        ours = OURS.get(name.partition(".")[0])
        if ours is None or name not in ours.MODULES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        if spec and spec.loader:
            spec.loader = Loader(spec.loader, ours)
        return spec


def load_our_runtimes():
    """Loads our runtimes for all libraries: the first of a name is called, whichever comes later."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in sorted(os.listdir(folder)):
        if name.startswith("libcudart.so."):
            ctypes.CDLL(os.path.join(folder, name), mode=ctypes.RTLD_GLOBAL)


def run_the_next():
    """Python runs one sitecustomize: the one that this hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = own


if platform.machine() == "x86_64":
    OURS = {package: importlib.import_module(name) for package, name in PACKAGES.items()}
    sys.meta_path.insert(0, Finder())
run_the_next()
