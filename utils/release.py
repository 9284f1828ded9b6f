#!/usr/bin/env python3
"""Makes the files of a release in one folder. Two runs at one commit write the same bytes.

  release.py [--build build] [--out dist] [promises wheels sdist site notes sbom]

  promises  what CHANGELOG.md promises since the last tag (packages/promises.py), and a new record
  wheels    packages/build_wheels.py, for manylinux_2_28, of the machine of the build tree
  sdist     what git has, with the metadata that pip expects
  site      the documentation (docgen/build_site.py), as an archive
  notes     the part of CHANGELOG.md about this version, or about what is unreleased
  sbom      fp4.cdx.json: the libraries inside the wheels as a CycloneDX list

packages/requirements.txt has the Python packages that it needs, and their versions. SHA256SUMS has
the hash of every file. Times are those of the commit, or of $SOURCE_DATE_EPOCH. The
tree must be committed, and every pyproject.toml and CMakeLists.txt must say the same version.
"""
import argparse
import datetime
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, os.fspath(ROOT / "packages"))
from build_wheels import compile_targets  # noqa: E402

#: Libraries that are linked into the wheels: their licence, and the package that has them.
LINKED = {"LLVM": ("Apache-2.0 WITH LLVM-exception", "llvm-22-dev"),
          "MLIR": ("Apache-2.0 WITH LLVM-exception", "libmlir-22-dev"),
          "CLI11": ("BSD-3-Clause", "libcli11-dev"),
          "fmt": ("MIT", "libfmt-dev"),
          "nlohmann-json": ("MIT", "nlohmann-json3-dev"),
          "tl-expected": ("CC0-1.0", "libexpected-dev"),
          "libstdc++": ("GPL-3.0-or-later WITH GCC-exception-3.1", "libstdc++-12-dev"),
          "zlib": ("Zlib", "zlib1g-dev"),
          "zstd": ("BSD-3-Clause", "libzstd-dev")}


class ReleaseError(Exception):
    """A reason why there can be no release, with its remedy."""


def said(*command):
    done = subprocess.run([os.fspath(part) for part in command], cwd=ROOT, capture_output=True,
                          text=True)
    if done.returncode:
        raise ReleaseError(f"'{' '.join(map(str, command))}' fails: {done.stderr.strip()}")
    return done.stdout.strip()


def find_version():
    """The version that all packages agree on."""
    found = {}
    for file in [ROOT / "pyproject.toml", *sorted(ROOT.glob("packages/*/pyproject.toml"))]:
        text = file.read_text()
        found[file] = re.search(r'^version = "(.+)"$', text, re.M)[1]
        for needed in re.findall(r'"fp4-\w+==([^";]+)', text):
            if needed != found[file]:
                raise ReleaseError(f"{file.relative_to(ROOT)} must need packages of its version "
                                   f"{found[file]}, but needs {needed}")
    cmake = ROOT / "CMakeLists.txt"
    found[cmake] = re.search(r"project\(fp4 VERSION (\S+)", cmake.read_text())[1]
    version = found[ROOT / "pyproject.toml"]
    for file, other in found.items():
        if other != version:
            raise ReleaseError(f"{file.relative_to(ROOT)} must have version {version} of "
                               f"pyproject.toml, but has {other}")
    return version


def pinned():
    """{package: version} of packages/requirements.txt."""
    text = (ROOT / "packages" / "requirements.txt").read_text()
    return dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.M))


def check_tools():
    """Other versions of what makes the files write other bytes."""
    for name, version in pinned().items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "none"
        if found != version:
            raise ReleaseError(f"{name} must have version {version}, but this Python has {found}\n"
                               "note: pip install -r packages/requirements.txt")


def compare_records(kept, fresh):
    names = {file.name for folder in (kept, fresh) for file in folder.iterdir()}
    for name in sorted(names):
        pair = [folder / name for folder in (kept, fresh)]
        if len({file.read_bytes() if file.is_file() else None for file in pair}) > 1:
            raise ReleaseError(f"packages/promises/{name} must be that of this release, but it "
                               "differs\nnote: packages/promises.py record writes it; commit it")


def write_promises(options, version, out):
    """Stops at a broken promise, and where packages/promises, which a tag keeps, is not the record
    of this release."""
    compile_targets(options.build, "fp4-opt", "fp4-reduce", "fp4-runner", "fp4-run", "fp4-sim",
                    "FP4C", "FP4CRuntime")
    command = [sys.executable, "-B", ROOT / "packages" / "promises.py"]
    subprocess.run([*command, "check", "--build", options.build], check=True)
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder, "promises")
        subprocess.run([*command, "record", "--build", options.build, "--record", record],
                       check=True)
        compare_records(ROOT / "packages" / "promises", record)
        name = f"fp4-{version}-promises"
        (out / f"{name}.tar.gz").write_bytes(archive(record, name))


def write_wheels(options, version, out):
    check_tools()
    command = [sys.executable, ROOT / "packages" / "build_wheels.py", "--build", options.build,
               "--out", out]
    subprocess.run(command, check=True)


def write_sdist(options, version, out):
    name = f"fp4-{version}"
    metadata = f"Metadata-Version: 2.1\nName: fp4\nVersion: {version}\n"
    done = subprocess.run(["git", "archive", "--format=tar", f"--prefix={name}/",
                           f"--add-virtual-file={name}/PKG-INFO:{metadata}", "HEAD"],
                          cwd=ROOT, capture_output=True)
    if done.returncode:
        raise ReleaseError(f"git archive fails: {done.stderr.decode().strip()}")
    (out / f"{name}.tar.gz").write_bytes(gzip.compress(done.stdout, mtime=0))


def archive(folder, name):
    """The files of a folder as a .tar.gz that depends on their contents alone."""
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"{name}/{file.relative_to(folder)}")
            entry.size, entry.mtime = file.stat().st_size, epoch
            with file.open("rb") as content:
                tar.addfile(entry, content)
    return gzip.compress(packed.getvalue(), mtime=0)


def check_explorer(page):
    """The explorer shows machine code, and leaves it out where nothing disassembles: a site of such
    a machine would have other bytes."""
    reason = re.search(r'"no_sass":"([^"]*)"', page.read_text())[1]
    if reason:
        raise ReleaseError(f"the site must show machine code, but {reason}\n"
                           "note: utils/setup.sh installs ptxas and nvdisasm")


def write_site(options, version, out):
    check_tools()
    subprocess.run([sys.executable, ROOT / "docgen" / "build_site.py", "--build", options.build],
                   check=True)
    check_explorer(ROOT / "build" / "site" / "generated" / "explorer.html")
    name = f"fp4-{version}-site"
    (out / f"{name}.tar.gz").write_bytes(archive(ROOT / "build" / "site", name))


def write_notes(options, version, out):
    text = (ROOT / "CHANGELOG.md").read_text()
    parts = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    notes = parts.get(version, parts.get("Unreleased", "")).strip()
    if not notes:
        raise ReleaseError(f"CHANGELOG.md must have a part '## {version}' or '## Unreleased' with "
                           "the changes")
    (out / "NOTES.md").write_text(f"# fp4 {version}\n\n{notes}\n")


def component(name):
    licence, package = LINKED[name]
    version = said("dpkg-query", "-W", "-f=${Version}", package)
    return {"type": "library", "name": name, "version": version,
            "licenses": [{"expression": licence}],
            "purl": f"pkg:deb/debian/{package}@{version.replace(':', '%3A')}"}


def write_sbom(options, version, out):
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    time = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "component": {"type": "library", "name": "fp4", "version": version,
                                       "bom-ref": "fp4", "licenses": [{"expression":
                                                    "Apache-2.0 WITH LLVM-exception"}]}},
            "components": [component(name) for name in sorted(LINKED)]}
    (out / "fp4.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")


WRITERS = {"promises": write_promises, "wheels": write_wheels, "sdist": write_sdist,
           "site": write_site, "notes": write_notes, "sbom": write_sbom}


def write_checksums(out):
    lines = []
    for file in sorted(out.iterdir()):
        if file.name != "SHA256SUMS":
            lines.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n")
    (out / "SHA256SUMS").write_text("".join(lines))
    return lines


def release(options):
    changed = said("git", "status", "--porcelain", "--untracked-files=no")
    packed = said("git", "ls-files", "--others", "--exclude-standard", "python", "packages")
    if changed or packed:  # wheels take every file of python/
        raise ReleaseError(f"the tree must be committed, but this is changed:\n{changed}{packed}")
    if options.out.is_dir() and any(options.out.iterdir()):
        raise ReleaseError(f"--out must be an empty folder, but '{options.out}' has files")
    os.environ.setdefault("SOURCE_DATE_EPOCH", said("git", "log", "-1", "--format=%ct"))
    version = find_version()
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or WRITERS:
        WRITERS[part](options, version, options.out)
    print(f"fp4 {version} at {said('git', 'rev-parse', 'HEAD')}")
    print("".join(write_checksums(options.out)), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(WRITERS)}")
    options = parser.parse_args()
    for part in options.parts:
        if part not in WRITERS:
            parser.error(f"there is no part '{part}', but {', '.join(WRITERS)}")
    try:
        release(options)
    except (ReleaseError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
