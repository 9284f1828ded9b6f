"""Compiled programs on disk, which processes share.

    $FP4_CACHE/COMPILER/KEY.fp4

COMPILER is the digest of libfp4.so, and KEY that of what else decides the code: the text of the
program, the target, the product that plans are for, whether there are cubins, and which launches
overlap. The driver
decides nothing of it: cubins run on every driver of their CUDA or a later one, and PTX on all.
An entry is a library (Compiled.save), then its facts as JSON, both sizes, and a digest of all that.
A writer renames a file that is whole, so that readers never see half an entry. An entry that
is damaged, or not what its name says, is compiled again with a CacheWarning.

$FP4_CACHE is ~/.cache/fp4 unless it is set; 0 turns the cache off. Without a compiler (libfp4rt.so)
the entries of every compiler of this version are found.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import struct
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

from . import _library as c
from .errors import CacheWarning, Error, UsageError
from .program import Program, load

_MAGIC = b"fp4cache"
_SIZES = struct.Struct("<QQ32s8s")  # of the library, of the facts; digest; _MAGIC
_SUFFIX = ".fp4"


@dataclasses.dataclass(frozen=True)
class Key:
    """The facts that decide the code of a program.

    Attributes:
        device: the product that plans are for, or "".
        code: "cubin" or "ptx".
        pdl: of fp4.compile.
    """

    text: str
    target: str
    device: str
    code: str
    pdl: str = "chosen"

    @property
    def name(self) -> str:
        return _digest(json.dumps(dataclasses.astuple(self)).encode()).hex()[:32]


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry whose digest is right.

    Attributes:
        library: its bytes.
        facts: those of the key; the version of fp4, the digest of the compiler.
        bytes: of the file.
    """

    path: pathlib.Path
    library: bytes = dataclasses.field(repr=False)
    facts: dict[str, Any]
    bytes: int
    modified: float

    @property
    def key(self) -> Key:
        return Key(*(str(self.facts[field.name]) for field in dataclasses.fields(Key)))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def folder() -> pathlib.Path | None:
    """The folder of the cache; None where it is off."""
    given = os.environ.get("FP4_CACHE")
    if given == "0":
        return None
    if given:
        return pathlib.Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(home) / "fp4" if os.path.isabs(home) else None


@functools.cache
def compiler() -> str | None:
    """The digest of the library if it has a compiler, which tells builds of one version apart."""
    if not hasattr(c.library(), "fp4_compiler_create"):
        return None
    return _digest(c.PATH.read_bytes()).hex()[:16]


def version() -> str:
    return c.text(c.library().fp4_version())


def find(key: Key) -> Program | None:
    """The program of a key; None where no entry is whole."""
    for path in _places(key):
        entry = _checked(path, key)
        if entry is not None:
            with contextlib.suppress(OSError):
                os.utime(path)  # prune knows what is used
            try:
                return _load(entry)
            except (Error, OSError) as error:
                _warn(path, error.message if isinstance(error, Error) else str(error))
    return None


def _load(entry: Entry) -> Program:
    """Loads a copy, whose bytes are those that were checked and that nobody changes meanwhile. The
    loader knows libraries by their names, so each has one of its own."""
    with tempfile.NamedTemporaryFile(prefix="fp4-", suffix=".so") as copy:
        copy.write(entry.library)
        copy.flush()
        return load(copy.name)


def _places(key: Key) -> list[pathlib.Path]:
    root, mine = folder(), compiler()
    if root is None:
        return []
    if mine is not None:
        found = [root / mine / (key.name + _SUFFIX)]
    else:
        found = sorted(root.glob(f"*/{key.name}{_SUFFIX}"))
    return [path for path in found if path.is_file()]


def _checked(path: pathlib.Path, key: Key) -> Entry | None:
    try:
        entry = read(path)
    except (OSError, UsageError) as error:
        _warn(path, error.message if isinstance(error, Error) else str(error))
        return None
    if entry.key != key:
        _warn(path, "it is of another program or target than its name says")
        return None
    # Without a compiler nothing but the version tells which code the runtime understands.
    if compiler() is None and entry.facts["version"] != version():
        return None
    return entry


def _warn(path: pathlib.Path, reason: str) -> None:
    warnings.warn(f"the entry '{path}' of the cache is not used: {reason}\nnote: the program is "
                  "compiled again; 'python -m fp4 cache prune' removes such entries", CacheWarning,
                  stacklevel=3)


def read(path: pathlib.Path) -> Entry:
    """The facts of an entry; a UsageError where it is damaged, or of another user."""
    status = path.stat()
    if hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid()):
        raise UsageError(f"it belongs to the user {status.st_uid}, and its code would run as yours")
    data = path.read_bytes()
    if len(data) < _SIZES.size:
        raise UsageError(f"it has {len(data)} bytes, fewer than any entry")
    library, facts, digest, magic = _SIZES.unpack(data[-_SIZES.size:])
    if magic != _MAGIC or library + facts + _SIZES.size != len(data):
        raise UsageError("its end is missing")
    if _digest(data[:library + facts]) != digest:
        raise UsageError("its digest is not that of its bytes")
    found = json.loads(data[library:library + facts])
    return Entry(path, data[:library], found, len(data), status.st_mtime)


def keep(key: Key, compiled: Any, **more: str) -> None:
    """Writes an entry for a Compiled, with `more` facts, or tells once why it cannot."""
    root, mine = folder(), compiler()
    if root is None or mine is None:
        return
    try:
        place = root / mine
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = json.dumps({**dataclasses.asdict(key), "version": version(),
                            "compiler": mine, **more}).encode()
        with tempfile.TemporaryDirectory(dir=place, prefix="tmp-") as aside:
            path = pathlib.Path(aside, key.name + _SUFFIX)
            compiled.save(path)
            library = path.read_bytes()
            body = library + facts
            with open(path, "ab") as file:
                file.write(facts + _SIZES.pack(len(library), len(facts), _digest(body), _MAGIC))
            os.replace(path, place / path.name)
    except (OSError, Error) as error:  # a library needs a linker
        _tell_once(str(root), error.message if isinstance(error, Error) else str(error))


@functools.cache
def _tell_once(root: str, reason: str) -> None:
    warnings.warn(f"nothing is kept in the cache '{root}': {reason}\nnote: name a folder that can "
                  "be written with $FP4_CACHE, or set it to 0", CacheWarning, stacklevel=4)


def entries() -> Iterator[Entry | tuple[pathlib.Path, str]]:
    """Yields every entry, or its path and what is wrong with it."""
    root = folder()
    for path in sorted(root.glob(f"*/*{_SUFFIX}")) if root is not None else ():
        try:
            entry = read(path)
            if entry.key.name + _SUFFIX != path.name:
                raise UsageError("it is of another program or target than its name says")
            yield entry
        except (OSError, UsageError, ValueError, KeyError) as error:
            yield path, error.message if isinstance(error, Error) else str(error)


def prune(days: float, everything: bool) -> tuple[int, int]:
    """Removes entries that are damaged, of other compilers, or not used for so many days, and what
    writers that were killed left. Returns the number of entries and their bytes."""
    root, mine, now = folder(), compiler(), time.time()
    count = size = 0
    for item in entries():
        path = item.path if isinstance(item, Entry) else item[0]
        if everything or not isinstance(item, Entry) or now - item.modified > days * 86400 or (
                mine is not None and item.facts["compiler"] != mine):
            with contextlib.suppress(FileNotFoundError):  # another process was first
                size += path.stat().st_size
                path.unlink()
                count += 1
    for left in root.glob("*/tmp-*") if root is not None else ():
        if now - left.stat().st_mtime > 3600:  # no compilation takes so long
            for path in left.iterdir():
                path.unlink(missing_ok=True)
            left.rmdir()
    return count, size


def export(destination: pathlib.Path) -> int:
    """Copies the whole entries of this compiler, or of this version without a compiler, into a
    folder that serves as $FP4_CACHE elsewhere. Returns their number."""
    count = 0
    for item in entries():
        if not isinstance(item, Entry) or item.facts["version"] != version() or (
                compiler() not in (None, item.facts["compiler"])):
            continue
        place = destination / item.path.parent.name
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place, delete=False) as file:
            file.write(item.path.read_bytes())
        os.replace(file.name, place / item.path.name)
        count += 1
    return count
