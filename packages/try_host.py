#!/usr/bin/env python3
"""Installs the wheels into a Linux userland that has nothing of fp4, and uses them there.

  try_host.py --root ROOTFS --dist dist [--torch VERSION] [--json FILE]

ROOTFS is a folder with Python 3.10 or later and its venv module, such as
`mmdebstrap --variant=minbase --include=python3-venv bookworm ROOTFS` makes. As root, on a machine
whose pip finds packages: they are downloaded first, and nothing in ROOTFS has a network. There
`pip install fp4[sim,ptxas]`, the quickstart, a CUDA program in `fp4-sim run`, a program for sm_100a
with its cubin, and with --torch VERSION the layers of torch must work. With an older Python the
libraries of the wheels compile and simulate without the package. Sizes are in MB, times in seconds.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FACTS = """
import json, os, platform, sys
name = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
print(json.dumps({"system": name["PRETTY_NAME"].strip('"'), "libc": " ".join(platform.libc_ver()),
                  "python": platform.python_version(), "machine": platform.machine()}))
"""
SM_100A = """
import pathlib, fp4
compiled = fp4.compile(pathlib.Path("/try/nvfp4_linear.mlir"), target="sm_100a", assemble=True)
sizes = [len(kernel.cubin) for kernel in compiled.kernels]
assert sizes and all(sizes), sizes
print(len(sizes), "cubins of sm_100a,", sum(sizes), "bytes")
"""
#: The C API without the package, for a Python that is too old for it.
LIBRARY = """
import ctypes, glob
lib = ctypes.CDLL("/unpacked/fp4/lib/libfp4.so")
for name in ("fp4_version", "fp4_compiler_get_ir"):
    getattr(lib, name).restype = ctypes.c_char_p
for name in ("create", "load_text", "compile_to"):
    getattr(lib, "fp4_compiler_" + name).restype = ctypes.c_void_p
compiler = ctypes.c_void_p()
text = open("/try/nvfp4_linear.mlir", "rb").read()
assert not lib.fp4_compiler_create(None, ctypes.byref(compiler))
assert not lib.fp4_compiler_load_text(compiler, text, b"linear.mlir")
assert not lib.fp4_compiler_compile_to(compiler, b"ptx")
print("libfp4", lib.fp4_version().decode(), "compiles for sm_100a")
"""

#: A folder of the cache on a file system that cannot be written: a warning, and the program runs.
READ_ONLY = """
mount -t tmpfs -o ro none /mnt && FP4_CACHE=/mnt python /try/python/linear.py >/try/log 2>&1
grep "nothing is kept in the cache '/mnt': .*Read-only file system" /try/log &&
grep -q "note: name a folder that can be written with .FP4_CACHE" /try/log && tail -n 1 /try/log
"""


class Failed(Exception):
    """A step that does not work in the userland."""


class Host:
    """A userland, in which commands run without a network."""

    def __init__(self, root):
        self.root, self.steps = root, []

    def run(self, label, *command):
        start = time.time()
        done = subprocess.run(
            ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c",
             'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', os.fspath(self.root),
             "/usr/bin/env", "-i", "PATH=/env/bin:/usr/bin:/bin", "HOME=/root", *command],
            capture_output=True, text=True)
        said = (done.stdout.strip().splitlines() or [""])[-1]
        if done.returncode:
            raise Failed(f"{label} ends with {done.returncode}: {done.stdout}{done.stderr}")
        self.steps.append({"step": label, "seconds": round(time.time() - start, 1), "said": said})
        print(f"{label}: {self.steps[-1]['seconds']} s, {said}", flush=True)
        return said


def megabytes(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return round(sum(path.stat().st_size for path in files) / 1e6, 1)


def download(names, dist, house, python):
    """Wheels of PyPI for the Python of the userland, beside ours."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:",
                    "--python-version", python, "--dest", house, "--find-links", dist, *names],
                   check=True)


def prepare(root, dist):
    """Puts programs and wheels into the userland."""
    folder = root / "try"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "python").mkdir(parents=True)
    for file in ("python/quickstart.py", "python/linear.py", "nvfp4_linear.mlir"):
        shutil.copy(ROOT / "examples" / file, folder / file)
    sys.path.insert(0, os.fspath(ROOT / "python" / "tests"))
    from test_wheels import PTX, SCRIPT  # a kernel that stores a number, and its program
    for name, text in (("store.ptx", PTX), ("store.py", SCRIPT), ("sm_100a.py", SM_100A),
                       ("library.py", LIBRARY), ("facts.py", FACTS)):
        (folder / name).write_text(text)
    for wheel in dist.glob("*.whl"):
        shutil.copy(wheel, folder)


def use_package(host, options, facts):
    extras = "sim,ptxas,torch" if options.torch else "sim,ptxas"
    torch = [f"torch=={options.torch}"] if options.torch else []
    download([f"fp4[{extras}]", *torch], options.dist, host.root / "try",
             ".".join(facts["python"].split(".")[:2]))
    host.run("venv", "python3", "-m", "venv", "/env")
    site = next((host.root / "env/lib").glob("python*/site-packages"))
    before = megabytes(site)
    host.run("install", "pip", "install", "--quiet", "--no-index", "--find-links=/try",
             f"fp4[{extras}]")
    facts["installed_mb"] = round(megabytes(site) - before, 1)
    facts["fp4_mb"] = megabytes(site / "fp4")
    host.run("quickstart", "python", "/try/python/quickstart.py")
    host.run("compile", "python", "/try/sm_100a.py")
    simulate(host, "fp4-sim")
    if options.torch:
        facts["torch"] = options.torch
        host.run("torch", "python", "/try/python/linear.py")
        host.run("torch, read-only cache", "sh", "-c", READ_ONLY)


def use_libraries(host, facts):
    for wheel in (host.root / "try").glob("fp4_*.whl"):
        host.run(f"unpack {wheel.name.split('-')[0]}", "python3", "-m", "zipfile", "-e",
                 f"/try/{wheel.name}", "/unpacked")
    facts["fp4_mb"] = megabytes(host.root / "unpacked" / "fp4")
    tool = host.root / "unpacked/fp4/bin/fp4-sim"
    tool.chmod(0o755)
    host.run("compile", "python3", "/try/library.py")
    simulate(host, "/unpacked/fp4/bin/fp4-sim")


def simulate(host, tool):
    said = host.run("fp4-sim run", "sh", "-c",
                    f"cd /try && {tool} run --device=h200 -- python3 store.py")
    if said != "stored 7":
        raise Failed(f"fp4-sim run must say 'stored 7', but says '{said}'")


def try_host(options):
    host = Host(options.root)
    prepare(options.root, options.dist)
    facts = json.loads(host.run("facts", "python3", "/try/facts.py"))
    host.steps.clear()
    for left in ("env", "unpacked"):
        shutil.rmtree(options.root / left, ignore_errors=True)
    if tuple(map(int, facts["python"].split(".")[:2])) >= (3, 10):
        use_package(host, options, facts)
    else:
        use_libraries(host, facts)
    wheels = {wheel.name: round(wheel.stat().st_size / 1e6, 2)
              for wheel in sorted(options.dist.glob("*.whl"))}
    return {"date": datetime.date.today().isoformat(), "torch": None, **facts,
            "wheels_mb": wheels, "steps": host.steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--torch", metavar="VERSION", help="install and use this torch, too, with Python 3.10 or later")
    parser.add_argument("--json", type=pathlib.Path, help="file to which the result is added")
    options = parser.parse_args()
    if not (options.root / "usr/bin/python3").exists():
        parser.error(f"--root must be a userland with python3, but got '{options.root}'")
    if not any(options.dist.glob("fp4-*.whl")):
        parser.error(f"--dist must have the wheels of fp4, but got '{options.dist}'\n"
                     "note: packages/build_wheels.py makes them")
    try:
        result = try_host(options)
    except Failed as error:
        sys.exit(f"error: {error}")
    if options.json:
        known = json.loads(options.json.read_text()) if options.json.is_file() else []
        options.json.write_text(json.dumps([*known, result], indent=1) + "\n")


if __name__ == "__main__":
    main()
