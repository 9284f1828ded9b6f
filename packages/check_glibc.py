#!/usr/bin/env python3
"""Checks that an older glibc has every function that the files of wheels ask libc for.

  check_glibc.py [--version 2.28] dist/fp4_runtime-*.whl dist/fp4_sim-*.whl

auditwheel compares the newest version of a symbol with a policy. The tool compares each symbol with
the interface of that glibc, which the package ziglang carries: Zig writes the libraries of any
version and machine for its linker (pip install ziglang; readelf is from binutils). Exit code 1
where one is missing. An older version than the wheels promise shows that the check can fail: 2.17
has no getrandom.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

DEFINED = re.compile(r" DEFAULT +(?!UND)\S+ (\w+)@@?(GLIBC_[\d.]+)", re.M)
NEEDED = re.compile(r" DEFAULT +UND (\w+)@(GLIBC_[\d.]+)", re.M)
#: Symbols of libgcc_s.so.1, whose version has a name of glibc's on Arm.
UNWINDER = {"aarch64": {("GLIBC_2.0", "__register_frame"), ("GLIBC_2.0", "__deregister_frame")}}
MACHINE = re.compile(r"_(x86_64|aarch64)\.whl$")


def symbols(file, pattern):
    """{(version, name)} of the dynamic symbols of a file."""
    text = subprocess.run(["readelf", "--wide", "--dyn-syms", file], check=True,
                          capture_output=True, text=True).stdout
    return {(version, name) for name, version in pattern.findall(text)}


def interface(version, machine, folder):
    """Returns what the libraries of this glibc define. Zig keeps those of every version in one
    cache, which here is of one machine."""
    zig = [sys.executable, "-m", "ziglang"]
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    cache = folder / f"zig-{machine}"
    subprocess.run([*zig, "cc", "-target", f"{machine}-linux-gnu.{version}", folder / "main.c", "-o",
                    folder / "main"], check=True,
                   env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": os.fspath(cache)})
    for libc in cache.glob("o/*/libc.so.6"):
        found = set().union(*(symbols(stub, DEFINED) for stub in libc.parent.glob("lib*.so*")))
        if max((number(one) for one, _ in found), default=()) == number(version):
            return found
    raise SystemExit(f"error: zig wrote no libraries of glibc {version} into '{cache}'")


def number(version):
    return tuple(int(part) for part in version.removeprefix("GLIBC_").split("."))


def elf_files(folder):
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.open("rb").read(4) == b"\x7fELF":
            yield file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", default="2.28", help="version of glibc (default 2.28)")
    parser.add_argument("wheels", nargs="+", metavar="wheel")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="fp4-glibc-") as name:
        has = {}
        for wheel in options.wheels:
            machine = MACHINE.search(wheel)
            if not machine:
                parser.error(f"wheel must be for x86_64 or aarch64, but got '{wheel}'")
            if machine[1] not in has:
                has[machine[1]] = interface(options.version, machine[1], pathlib.Path(name))
            content = pathlib.Path(name, "content", pathlib.Path(wheel).name)
            zipfile.ZipFile(wheel).extractall(content)
            for file in elf_files(content):
                needed = symbols(file, NEEDED) - UNWINDER.get(machine[1], set())
                missing = sorted(f"{name}@{version}" for version, name in needed - has[machine[1]])
                bad += len(missing)
                print(f"{file.relative_to(content)}: {len(needed)} symbols, "
                      f"{len(missing)} missing in {options.version} {' '.join(missing)}".rstrip())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
