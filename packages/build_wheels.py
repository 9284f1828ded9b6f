#!/usr/bin/env python3
"""Builds the wheels of packages/ from a build tree, and prints their sizes and platforms.

  build_wheels.py [--build build] [--out dist] [fp4-runtime fp4-sim fp4-compiler fp4]

Nothing is compiled twice: what is missing in the build tree is built there, by the ninja that the
tree was configured with, because another version does not read its log and starts the build over.
auditwheel, where this Python has it, names the oldest platform that a wheel runs on; without it the
wheels say linux_x86_64 or, of a tree that is cross-compiled, linux_aarch64. Wheels of one commit are
equal, byte for byte: files have the time of the commit, or that of $SOURCE_DATE_EPOCH. `fp4` has no
files: it needs the wheels that fit a machine.
"""
import argparse
import importlib.util
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = {"fp4-runtime": ["FP4CRuntime", "FP4Python"], "fp4-sim": ["fp4-sim", "fp4-cuda"],
           "fp4-compiler": ["FP4CPortable"], "fp4": []}
#: Platforms that PyPI takes: older ones are tried first.
PLATFORMS = ("manylinux_2_28", "manylinux_2_34", "manylinux_2_36")


def run(*command, **options):
    subprocess.run([os.fspath(part) for part in command], check=True, **options)


def cached(tree, name):
    """A value of the tree's CMakeCache.txt."""
    return re.search(rf"^{name}:\w+=(.*)$", (tree / "CMakeCache.txt").read_text(), re.M)[1]


def compile_targets(tree, *targets):
    """Builds targets by the ninja of the tree."""
    run(cached(tree, "CMAKE_MAKE_PROGRAM"), "-C", tree, "--quiet", *targets)


def machine(tree):
    """The machine that the tree's programs run on."""
    system = next(tree.glob("CMakeFiles/*/CMakeSystem.cmake")).read_text()
    return re.search(r'^set\(CMAKE_SYSTEM_PROCESSOR "(\w+)"\)', system, re.M)[1]


def compile_missing(name, tree):
    """Builds what the wheel has. Without archives of LLVM its compiler needs LLVM's libraries."""
    ninja = cached(tree, "CMAKE_MAKE_PROGRAM")
    known = subprocess.run([ninja, "-C", tree, "-t", "targets", "all"], check=True,
                           capture_output=True, text=True).stdout
    targets = TARGETS[name]
    if targets == ["FP4CPortable"] and "\nFP4CPortable: " not in known:
        print("warning: libLLVM*.a, libMLIR*.a, libz.a or libzstd.a is missing; the wheel needs "
              "libLLVM.so and libMLIR.so", file=sys.stderr)
        targets = ["FP4C"]
    if targets:
        compile_targets(tree, *targets)


def commit_time():
    """The time of the last commit, as SOURCE_DATE_EPOCH has it."""
    done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True,
                          text=True)
    return done.stdout.strip() or "315532800"  # 1980, the first year of a zip file


def build(name, tree, folder):
    """The wheel of the package, for Linux on the tree's machine."""
    isolated = importlib.util.find_spec("scikit_build_core") is None
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder,
        *([] if isolated else ["--no-build-isolation"]),
        "-C", f"cmake.define.FP4_PREBUILT={tree}", ROOT / "packages" / name,
        env={**os.environ, "_PYTHON_HOST_PLATFORM": f"linux-{machine(tree)}"})
    return next(folder.glob("*.whl"))


def fits(name, accepted):
    """True for a wheel that names an accepted platform: `auto` finds newer ones, too."""
    return bool(accepted & set(name.removesuffix(".whl").split("-")[-1].split(".")))


def audit(wheel, out, machine):
    """The wheel for the oldest platform that auditwheel accepts, or as it is."""
    if importlib.util.find_spec("auditwheel") is None or wheel.name.endswith("-any.whl"):
        return pathlib.Path(shutil.copy(wheel, out))
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    platforms = [f"{name}_{machine}" for name in PLATFORMS]
    if machine != platform.machine():  # of another machine auditwheel knows no names of platforms
        platforms = ["auto"]
    accepted = {f"{name}_{machine}" for name in PLATFORMS}
    for name in platforms:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "auditwheel", "repair", "--plat", name, "--only-plat",
                 "-w", folder, os.fspath(wheel)],
                capture_output=True, text=True, env={**os.environ, "PATH": path})
            repaired = next(pathlib.Path(folder).glob("*.whl"), None)
            if done.returncode == 0 and fits(repaired.name, accepted):
                return pathlib.Path(shutil.copy(repaired, out))
    print(done.stderr, file=sys.stderr)
    raise SystemExit(f"error: auditwheel accepts {wheel.name} for none of "
                     f"{', '.join(sorted(accepted))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--no-build", action="store_true", help="package what the tree has now")
    parser.add_argument("packages", nargs="*", metavar="package",
                        help=f"{', '.join(TARGETS)} (default all)")
    options = parser.parse_args()
    for name in options.packages:
        if name not in TARGETS:
            parser.error(f"there is no package '{name}', but {', '.join(TARGETS)}")
    if not (options.build / "CMakeCache.txt").is_file():
        parser.error(f"--build must be a build tree, but got '{options.build}'")
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time())
    os.umask(0o022)  # a wheel has the modes of its files
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.packages or TARGETS:
        if not options.no_build:
            compile_missing(name, options.build)
        with tempfile.TemporaryDirectory() as folder:
            built = build(name, options.build.resolve(), pathlib.Path(folder))
            wheel = audit(built, options.out, machine(options.build))
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.3g} MB")


if __name__ == "__main__":
    main()
