"""Parts that the programs of golden files share: the folder, and names and seeds of cases."""
import collections
import json
import pathlib
import sys
import zlib

DATA = pathlib.Path(__file__).resolve().parent.parent / "unittests/Numerics/data"


def output_folder():
    """The folder that the command line names, or that of the tests."""
    return pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DATA


def write_rows(file, rows):
    """Writes a list with a row on each line, so that a new case is a new line."""
    text = ",\n".join(json.dumps(row) for row in rows)
    (output_folder() / file).write_text(f"[\n{text}\n]\n")


def seed_of(name):
    """The seed of a case. The name alone decides it, so that a new case changes no other."""
    return zlib.crc32(name.encode())


def seeded(names):
    """{name: seed} of cases, which must have names of their own."""
    names = list(names)
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise SystemExit(f"error: a case must have a name of its own, but got '{twice[0]}' twice\n"
                         "  note: remove the second case, or let an option tell them apart")
    return {name: seed_of(name) for name in names}
