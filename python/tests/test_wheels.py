"""The wheels of packages/: built from the build tree, installed into an environment that has
nothing else, and used there."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("FP4_BUILD", ROOT / "build"))
#: Newer symbols of libc than those of manylinux_2_28 would not load there.
FLOOR = (2, 28)
PTX = """
.version 8.7
.target sm_90
.address_size 64
.visible .entry store(.param .u64 p) {
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [p];
  mov.u32 %r1, 7;
  st.global.u32 [%d1], %r1;
  ret;
}
"""
SCRIPT = """
import ctypes
driver, ptx = ctypes.CDLL("libcuda.so.1"), open("store.ptx", "rb").read() + b"\\0"
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
memory, value = ctypes.c_uint64(), ctypes.c_uint32()
def call(name, *arguments):
    assert getattr(driver, name)(*arguments) == 0, name
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4))
call("cuModuleLoadData", ctypes.byref(module), ptx)
call("cuModuleGetFunction", ctypes.byref(function), module, b"store")
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
call("cuMemcpyDtoH_v2", ctypes.byref(value), memory, ctypes.c_size_t(4))
print("stored", value.value)
"""


def missing() -> str:
    """Why no wheel can be built here; empty where one can."""
    for module in ("pip", "scikit_build_core"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            return f"{tool} is not on the PATH"
    for file in ("lib/libfp4rt.so", "lib/_native.abi3.so", "bin/fp4-sim"):
        if not (BUILD / file).exists():
            return f"{file} is not in the build tree"
    return ""


def run(*command: Any, **options: Any) -> str:
    done = subprocess.run([os.fspath(part) for part in command], capture_output=True, text=True,
                          timeout=600, **options)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@unittest.skipIf(missing(), missing())
class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(prefix="fp4-wheels-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        builder = [ROOT / "packages/build_wheels.py", "--build", BUILD, "--no-build"]
        run(sys.executable, *builder, "--out", cls.folder, "fp4-runtime", "fp4-sim", "fp4")
        cls.metapackage = next(cls.folder.glob("fp4-*.whl"))
        cls.wheels = sorted(cls.folder.glob("fp4_*.whl"))
        venv.create(cls.folder / "env", with_pip=False, symlinks=True)
        cls.bin = cls.folder / "env/bin"
        run(sys.executable, "-m", "pip", "--python", cls.bin / "python", "install", "--quiet",
            "--no-index", "--no-deps", *cls.wheels)
        (cls.folder / "store.ptx").write_text(PTX)
        (cls.folder / "store.py").write_text(SCRIPT)
        # The environment of the tests must not lead to the build tree.
        cls.environment = {"PATH": "/usr/bin:/bin", "HOME": os.fspath(cls.folder)}

    def use(self, *command: Any) -> str:
        return run(*command, cwd=self.folder, env=self.environment)

    def test_files(self) -> None:
        names = {wheel.name.split("-")[0]: {name for name in zipfile.ZipFile(wheel).namelist()
                                            if not name.endswith("/")}
                 for wheel in self.wheels}
        self.assertEqual(set(names), {"fp4_runtime", "fp4_sim"})
        self.assertLessEqual({"fp4/__init__.py", "fp4/lib/libfp4rt.so", "fp4/lib/_native.abi3.so"},
                             names["fp4_runtime"])
        self.assertLessEqual({"fp4/sim/__main__.py", "fp4/bin/fp4-sim",
                              "fp4/lib/fp4-cuda/libcuda.so.1"}, names["fp4_sim"])
        self.assertEqual(names["fp4_runtime"] & names["fp4_sim"], set())

    def test_licences(self) -> None:
        for wheel in self.wheels:
            content = zipfile.ZipFile(wheel)
            for name in ("LICENSE", "NOTICE"):
                entry = next(entry for entry in content.namelist()
                             if entry.endswith(f".dist-info/licenses/{name}"))
                self.assertEqual(content.read(entry), (ROOT / name).read_bytes(), wheel.name)

    def test_the_same_bytes_at_each_run(self) -> None:
        """Whatever modes the user gives to new files."""
        again = self.folder / "again"
        builder = [ROOT / "packages/build_wheels.py", "--build", BUILD, "--no-build"]
        run(sys.executable, *builder, "--out", again, "fp4-runtime", "fp4-sim", "fp4", umask=0o077)
        for wheel in [*self.wheels, self.metapackage]:
            self.assertEqual((again / wheel.name).read_bytes(), wheel.read_bytes(), wheel.name)

    def test_the_metapackage(self) -> None:
        content = zipfile.ZipFile(self.metapackage)
        name = next(name for name in content.namelist() if name.endswith("/METADATA"))
        needs = re.findall(r"^Requires-Dist: (.*)$", content.read(name).decode(), re.M)
        version = self.metapackage.name.split("-")[1]
        self.assertIn(f"fp4-runtime=={version}", needs)
        self.assertIn(f'fp4-compiler=={version}; platform_machine == "x86_64" or '
                      'platform_machine == "aarch64"', needs)
        self.assertIn(f'fp4-sim=={version}; extra == "sim"', needs)
        self.assertTrue(self.metapackage.name.endswith("-py3-none-any.whl"))
        # No file of its own could clash with those of fp4-runtime.
        self.assertTrue(all(".dist-info/" in name for name in content.namelist()))

    @unittest.skipIf(shutil.which("objdump") is None, "objdump is not installed")
    def test_symbols_of_libc_are_old(self) -> None:
        checked = 0
        for file in (self.folder / "env").rglob("*"):
            if file.is_symlink() or not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
                continue
            symbols = run("objdump", "-T", file)
            needed = re.findall(r"\*UND\*.*\(?GLIBC_(\d+)\.(\d+)", symbols)
            newest = max((int(major), int(minor)) for major, minor in needed)
            self.assertLessEqual(newest, FLOOR, file.name)
            self.assertNotIn("GLIBCXX_", symbols, file.name)
            checked += 1
        self.assertGreaterEqual(checked, 6)

    def test_the_tool(self) -> None:
        self.assertIn("store", self.use(self.bin / "fp4-sim", "check", "store.ptx"))
        self.assertEqual(self.use(self.bin / "fp4-sim", "run", "--device=h200", "--",
                                  self.bin / "python", "store.py"), "stored 7\n")

    def test_python_m_fp4_sim(self) -> None:
        self.assertEqual(self.use(self.bin / "python", "-m", "fp4.sim", "--device=h200",
                                  "store.py"), "stored 7\n")

    def test_the_runtime(self) -> None:
        code = ("import fp4, fp4._library as l; print(l.PATH.name, l.library().fp4_version())\n"
                "try: fp4.compile('module {}')\n"
                "except ImportError as error: print(error)")
        said = self.use(self.bin / "python", "-c", code)
        self.assertIn("libfp4rt.so b'0.1.0'", said)
        self.assertIn("install the package fp4-compiler", said)


if __name__ == "__main__":
    unittest.main()
