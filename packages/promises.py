#!/usr/bin/env python3
"""Checks the promises of CHANGELOG.md ("Versions") against the record of the last release.

  promises.py check  [--build build] [--against TAG] [PROMISE...]   finds what no longer holds
  promises.py record [--build build]                               writes packages/promises anew

  abi        layouts and signatures of include/fp4-c, by abidiff; exports of libfp4.so and libfp4rt.so
  libraries  an emitted library of then runs in the simulator of now, and its manifest is read
  programs   bytecode of both dialects, and text of the fp4 dialect, are read
  python     names and parameters of the public modules
  options    options of the tools

The record is that of TAG, else of the last tag, else the one of the tree. A release writes a new one.
A finding is mended by the code, or by an error that gives the new name; the record changes only
with a release, or before the first one. Needs the package abigail-tools for `abi`.
"""
import argparse
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import public_names

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "packages" / "promises"
HEADERS = ("Error.h", "Program.h", "Compiler.h", "Runtime.h")
#: Structures that a caller announces with their size, and that only grow at their end.
GROWING = ("fp4rt_api", "fp4_compiler_options", "fp4_device_options", "fp4_call_options")
LIBRARIES = ("libfp4.so", "libfp4rt.so")
TOOLS = {"fp4-opt": "--help", "fp4-reduce": "--help", "fp4-runner": "--help-all",
         "fp4-run": "--help-all", "fp4-sim": "--help-all"}
#: Programs of the record, and whether their text is promised as their bytecode is.
PROGRAMS = {"fp4": ("test/Dialect/Fp4/ops.mlir", True), "pipe": ("test/Dialect/Pipe/ops.mlir", False)}
LIBRARY = "examples/nvfp4_linear.mlir"
SHAPE = "128,512,1024"


class Broken(Exception):
    """A program that the check needs fails."""


def run(*command, codes=(0,), cwd=None):
    done = subprocess.run([os.fspath(part) for part in command], capture_output=True, text=True,
                          timeout=600, cwd=cwd)
    if done.returncode not in codes:
        raise Broken(f"'{' '.join(map(str, command))}' ends with {done.returncode}: "
                     f"{(done.stderr or done.stdout).strip()[-2000:]}")
    return done


def write_surface(headers, folder):
    """A library that defines every function of the headers, and the layouts of what grows."""
    source = folder / "surface.c"
    lines = []
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (headers / "fp4-c" / header).read_text(), flags=re.S)
        lines.append(f'#include "fp4-c/{header}"\n')
        lines += [f"{' '.join(prototype.split())} {{ __builtin_trap(); }}\n" for prototype in
                  re.findall(r"^FP4(?:RT)?_EXPORT\s+([^;{}]+\));", text, re.M)]
    source.write_text("".join(lines))
    library = folder / "libsurface.so"
    run("clang-22", "-g", "-gdwarf-4", "-shared", "-fPIC", "-w", f"-ffile-prefix-map={folder}=.",
        "-I", headers, "-o", library, source)
    return library, read_layouts(headers, source)


def read_layouts(headers, source):
    """{structure of GROWING: [its size, [offset, member] ...]}."""
    text = run("clang-22", "-fsyntax-only", "-w", "-I", headers, "-Xclang",
               "-fdump-record-layouts-complete", source).stdout
    found = {}
    for name in GROWING:
        body = re.search(rf"^ +0 \| struct {name}\n(.*?)\[sizeof=(\d+)", text, re.M | re.S)
        members = re.findall(r"^ +(\d+) \|   (\S.*)$", body[1], re.M)
        found[name] = [int(body[2]), *([int(offset), member] for offset, member in members)]
    return found


def grown_wrong(before, now):
    """Yields what a caller that knows the former structures would get wrong."""
    for name, (size, *members) in before.items():
        later = now[name][1:]
        for place, (offset, member) in enumerate(members):
            if later[place:place + 1] != [[offset, member]]:
                yield f"{name} must keep '{member}' at byte {offset}, but does not"
        for offset, member in later[len(members):]:
            if offset < size:
                yield (f"{name} must have '{member}' behind its former {size} bytes, where callers "
                       f"have padding, but has it at {offset}")


def record_abi(options, folder):
    with tempfile.TemporaryDirectory() as scratch:
        library, layouts = write_surface(ROOT / "include", pathlib.Path(scratch))
        run("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file",
            folder / "abi.xml", library)
    exports = {name: exported(options.build / "lib" / name) for name in LIBRARIES}
    write_json(folder / "exports.json", exports)
    write_json(folder / "layouts.json", layouts)


def exported(library):
    text = run("nm", "-D", "--defined-only", library).stdout
    return sorted(set(re.findall(r" [TDBRVW] (fp4\w+)$", text, re.M)))


def check_abi(options, folder):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        library, layouts = write_surface(options.headers, scratch)
        (scratch / "suppressions").write_text("".join(
            f"[suppress_type]\n  name = {name}\n  has_data_member_inserted_at = end\n"
            for name in GROWING))
        done = run("abidiff", "--no-added-syms", "--suppressions", scratch / "suppressions",
                   folder / "abi.xml", library, codes=range(16))
    if done.returncode & 4:
        yield "include/fp4-c must keep its ABI, but abidiff says:\n" + done.stdout.strip()
    elif done.returncode:
        raise Broken(f"abidiff ends with {done.returncode}: {done.stderr.strip()}")
    yield from grown_wrong(json.loads((folder / "layouts.json").read_text()), layouts)
    for name, symbols in json.loads((folder / "exports.json").read_text()).items():
        for gone in sorted(set(symbols) - set(exported(options.build / "lib" / name))):
            yield f"{name} must export {gone}, but does not"


def record_libraries(options, folder):
    run(options.build / "bin" / "fp4-runner", LIBRARY, "--ptxas=none", "--emit=so", "-o",
        folder / "library.so", cwd=ROOT)
    manifest = run(options.build / "bin" / "fp4-run", folder / "library.so", "--list", "--json")
    (folder / "manifest.json").write_text(manifest.stdout)


def check_libraries(options, folder):
    library = folder / "library.so"
    with tempfile.NamedTemporaryFile(suffix=".so") as copy:  # git keeps no permissions
        copy.write(library.read_bytes())
        copy.flush()
        tool = options.build / "bin" / "fp4-run"
        ran = run(tool, copy.name, "--shape", SHAPE, "--device=sim", codes=range(256))
        listed = run(tool, copy.name, "--list", "--json", codes=range(256))
    if ran.returncode or "passed" not in ran.stdout:
        yield f"fp4-run must run the library of the record, but says: {ran.stderr or ran.stdout}"
    if listed.stdout != (folder / "manifest.json").read_text():
        yield ("fp4-run --list must read the manifest of the record, but says: "
               f"{listed.stderr or listed.stdout}")


def record_programs(options, folder):
    """Bytecode has the locations of its source, so that a path from ROOT is given."""
    for name, (source, is_text) in PROGRAMS.items():
        opt = options.build / "bin" / "fp4-opt"
        run(opt, source, "--emit-bytecode", "-o", folder / f"{name}.mlirbc", cwd=ROOT)
        if is_text:
            run(opt, source, "-o", folder / f"{name}.mlir", cwd=ROOT)


def check_programs(options, folder):
    for name, (_, is_text) in PROGRAMS.items():
        said = {}
        for kind in ("mlirbc", "mlir")[:1 + is_text]:
            file = folder / f"{name}.{kind}"
            done = run(options.build / "bin" / "fp4-opt", file, codes=range(256))
            said[kind] = done.stdout
            if done.returncode:
                yield f"fp4-opt must read {file.name} of the record, but says: {done.stderr.strip()}"
        if len(set(said.values())) > 1:
            yield f"{name}.mlirbc and {name}.mlir must be one program, but differ"


def record_python(options, folder):
    write_json(folder / "python.json", public_names.read(ROOT / "python"))


def check_python(options, folder):
    before = json.loads((folder / "python.json").read_text())
    yield from public_names.compare(before, options.python)


def tool_options(tool, flag):
    text = run(tool, flag).stdout
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][\w-]+", text)))


def record_options(options, folder):
    write_json(folder / "options.json", {
        name: tool_options(options.build / "bin" / name, flag) for name, flag in TOOLS.items()})


def check_options(options, folder):
    for name, before in json.loads((folder / "options.json").read_text()).items():
        tool = options.build / "bin" / name
        now = tool_options(tool, TOOLS[name])
        for gone in sorted(set(before) - set(now)):
            said = run(tool, gone, "x", codes=range(256))
            named = set(re.findall(r"--[a-z][\w-]+", said.stderr)) & set(now) - {"--help"}
            if not said.returncode or not named:
                yield (f"{name} {gone} must work, or be an error that names another option, but "
                       f"says: {said.stderr.strip()}")


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def find_record(against, scratch):
    """The folder of the record, and its name."""
    tag = against or run("git", "-C", ROOT, "describe", "--tags", "--abbrev=0",
                         codes=(0, 128)).stdout.strip()
    if not tag:
        return RECORD, "the record of the tree"
    done = subprocess.run(["git", "-C", ROOT, "archive", tag, "packages/promises"],
                          capture_output=True)
    if done.returncode:
        raise Broken(f"tag {tag} must have packages/promises: {done.stderr.decode().strip()}\n"
                     "note: --against names another tag")
    tarfile.open(fileobj=io.BytesIO(done.stdout)).extractall(scratch)
    return pathlib.Path(scratch, "packages", "promises"), tag


PROMISES = {"abi": (record_abi, check_abi), "libraries": (record_libraries, check_libraries),
            "programs": (record_programs, check_programs), "python": (record_python, check_python),
            "options": (record_options, check_options)}


def check(options):
    with tempfile.TemporaryDirectory() as scratch:
        folder, name = ((options.record, os.fspath(options.record)) if options.record else
                        find_record(options.against, scratch))
        version = json.loads((folder / "version.json").read_text())["version"]
        found = 0
        for promise in options.promises or PROMISES:
            for finding in PROMISES[promise][1](options, folder):
                found += 1
                print(f"error: {promise}: {finding}")
        if found:
            print("note: CHANGELOG.md, 'Versions', has the promises; mend the code, or give the new "
                  "name in an error")
        print(f"{len(options.promises or PROMISES)} promises since {version} ({name}): "
              f"{found} broken")
        return 1 if found else 0


def record(options):
    folder = (options.record or RECORD).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "pyproject.toml").read_text()
    write_json(folder / "version.json",
               {"version": re.search(r'^version = "(.+)"$', text, re.M)[1]})
    for write, _ in PROMISES.values():
        write(options, folder)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("check", "record"))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--against", metavar="TAG", help="the release to compare with")
    parser.add_argument("--record", type=pathlib.Path, metavar="DIR", help="another record")
    parser.add_argument("--headers", type=pathlib.Path, default=ROOT / "include")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "python")
    parser.add_argument("promises", nargs="*", metavar="promise", help=", ".join(PROMISES))
    options = parser.parse_intermixed_args()
    for name in options.promises:
        if name not in PROMISES:
            parser.error(f"there is no promise '{name}', but {', '.join(PROMISES)}")
    options.build = options.build.resolve()
    try:
        return check(options) if options.command == "check" else record(options)
    except (Broken, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
