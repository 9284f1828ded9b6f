"""Files of packages on PyPI, for tests that hold ours equal to theirs. pip fetches a package; it
is neither installed nor built nor imported, and only the files that are asked for are kept.

The files lie in $FP4_PYPI_CACHE, else in ~/.cache/fp4/pypi, one folder for each version. A second
run needs no network. FP4_PYPI_CACHE=off asks PyPI for nothing.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence


class Unavailable(Exception):
    """The package cannot be had, and why: pip's last words."""


def files(package: str, version: str, names: Sequence[str], from_source: bool) -> dict[str, str]:
    """The text of the files `names` of a package.

    Args:
        from_source: from the source distribution, where the wheel is too large.
    """
    setting = os.environ.get("FP4_PYPI_CACHE", "")
    if setting == "off":
        raise Unavailable("FP4_PYPI_CACHE is off")
    folder = pathlib.Path(setting or pathlib.Path.home() / ".cache/fp4/pypi")
    folder /= f"{package}-{version}"
    if not all((folder / name).exists() for name in names):
        try:
            _fetch(package, version, names, folder, from_source)
        except OSError as error:
            raise Unavailable(f"no files in '{folder}': {error}") from error
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def _fetch(package: str, version: str, names: Sequence[str], folder: pathlib.Path,
           from_source: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="fp4-pypi-") as scratch:
        wanted = f"{package}=={version}"
        read = _source(wanted, scratch) if from_source else _wheel(wanted, scratch)
        found = {name: read(name) for name in names}
    for name, content in found.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(path)


def _wheel(wanted: str, scratch: str) -> Callable[[str], bytes]:
    said = _pip(scratch, "--only-binary", ":all:", "--dest", scratch, wanted)
    wheels = list(pathlib.Path(scratch).glob("*.whl"))
    if not wheels:
        raise Unavailable(said)
    archive = zipfile.ZipFile(wheels[0])
    return archive.read


def _source(wanted: str, scratch: str) -> Callable[[str], bytes]:
    """pip asks a source distribution for its metadata, which needs the build requirements of the
    package. The request fails here, and --no-clean leaves the unpacked files."""
    said = _pip(scratch, "--no-binary", ":all:", "--no-build-isolation", "--no-clean", "--dest",
                scratch, wanted)
    folders = [path for path in pathlib.Path(scratch).glob("pip-*/*") if path.is_dir()]
    if len(folders) != 1:
        raise Unavailable(said)
    return lambda name: (folders[0] / name).read_bytes()


def _pip(scratch: str, *arguments: str) -> str:
    """Runs pip download, and returns the last line that it printed."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input",
               "--disable-pip-version-check", "--retries", "1", "--timeout", "10", *arguments]
    environment = {**os.environ, "TMPDIR": scratch}
    try:
        done = subprocess.run(command, env=environment, cwd=scratch, timeout=300, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return "pip did not end within 300 s"
    return ([line for line in done.stdout.splitlines() if line.strip()] or ["pip said nothing"])[-1]
