"""Records of the corpus: which kernels there are, where they come from, and what must be found.

A set is a file of sets/. One in Python has functions with the decorator `case` (cases.py), whose
arguments are read without importing the file, because its packages may be absent, or a dictionary
CALLS (cases.calls), or SCRIPTS (cases.script), which check themselves. One of programs has a dictionary PROGRAMS. Either names its source, a key of sources.SOURCES, in SOURCE.
"""
import ast
import dataclasses
import importlib
import pathlib

from sources import SOURCES

SETS = pathlib.Path(__file__).resolve().parent / "sets"


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that nvcc builds: {NAME} in a path or flag is the folder of source NAME."""

    file: str
    architecture: str
    flags: tuple = ()
    arguments: str = ""
    passes: str = ""  # regular expression that its output must have; without one the exit code decides
    fails: str = ""  # regular expression that its output must not have


@dataclasses.dataclass(frozen=True)
class Record:
    """A kernel of a published project with its host code, or what the project has as one."""

    name: str
    group: str  # the set
    source: str
    devices: tuple = ("h200",)
    against: str = "torch"  # what the results are compared with
    tolerance: float = 0.0  # of the largest expected magnitude; 0: bit for bit
    policies: tuple = ("eager", "lazy")
    verdict: str | dict = "pass"  # or the words of its true hazards, of a policy where policies differ; "wrong": results, too
    reason: str = ""  # why a hazard is a true one, or where documents say so
    false_alarms: str = ""  # words of reports that are wrong by the PTX ISA, until the simulator is mended
    limit: int = 300  # seconds for a run
    compares: bool = True  # False: it ran only, since neither the case nor its project looks at results
    fails: str = ""  # regular expression that the output of a case must not have, though it returns
    program: Program | None = None
    extension: dict | None = None  # of the set: see preparing.build_extension

    @property
    def title(self):
        return f"{self.group}/{self.name}"

    def words(self, policy):
        """The words of the hazards of a run, and "wrong" where they spoil its results."""
        verdict = self.verdict[policy] if isinstance(self.verdict, dict) else self.verdict
        return set(verdict.split()) - {"pass"}

    def all_words(self):
        return set().union(*(self.words(policy) for policy in self.policies))

    def runs(self):
        return [(device, policy) for device in self.devices for policy in self.policies]


def _cases(path, constants):
    """Records of the functions of a file that have the decorator `case`, and of its CALLS."""
    for node in ast.parse(path.read_text()).body:
        calls = [call for call in getattr(node, "decorator_list", ())
                 if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "case"]
        for call in calls:
            named = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
            devices = tuple(ast.literal_eval(word) for word in call.args)
            if devices:
                named["devices"] = devices
            yield _record(node.name, path, constants, named)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CALLS":
            yield from (_record(key.value, path, constants, {}) for key in node.value.keys)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SCRIPTS":
            for name, (_, _, *named) in ast.literal_eval(node.value).items():
                yield _record(name, path, constants, {"against": "itself", **(named[0] if named else {})})


def _record(name, path, constants, named):
    fields = {**constants.get("DEFAULTS", {}), **named}
    return Record(name, path.stem, fields.pop("source", constants["SOURCE"]), **fields,
                  extension=constants.get("EXTENSION"))


def _constants(path):
    """SOURCE, DEFAULTS and EXTENSION of a set."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("SOURCE", "DEFAULTS", "EXTENSION"):
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found


def _programs(path):
    module = importlib.import_module(f"sets.{path.stem}")
    for name, fields in module.PROGRAMS.items():
        yield Record(name, path.stem, fields.pop("source", module.SOURCE),
                     **{**fields, "program": Program(**fields["program"])})


def records_of(path):
    constants = _constants(path)
    found = list(_cases(path, constants)) or list(_programs(path))
    for record in found:
        if record.source not in SOURCES:
            raise ValueError(f"{record.title}: source {record.source} is not in sources.py")
        if record.verdict != "pass" and not record.reason:
            raise ValueError(f"{record.title}: verdict {record.verdict} needs a reason")
    return found


def all_records():
    """The records of all sets, in the order of the files and in the order within each."""
    return [record for path in sorted(SETS.glob("*.py")) if path.stem != "__init__"
            for record in records_of(path)]
