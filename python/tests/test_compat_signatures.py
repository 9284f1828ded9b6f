"""The signatures of fp4.compat are those of the packages: of the versions in data/signatures.json,
of the same versions on PyPI, and of what is installed here."""

import ast
import inspect
import pathlib
import re
import unittest

import pypi
import signatures
from programs import ROOT, torch


def ours(module: str) -> str:
    """The text of a module, with the public functions that it has from its neighbours."""
    path = pathlib.Path(ROOT, "python", *module.split(".")).with_suffix(".py")
    text = path.read_text()
    public = re.search(r"^__all__ = \[([^]]*)\]", text, re.M)
    imports = re.findall(r"^from \.(_\w+) import (?:\(([^)]*)\)|([\w, ]+))$", text, re.M)
    for file, several, few in imports:
        for name in re.findall(r"\w+", several or few):
            found = signatures.definition(path.with_name(f"{file}.py").read_text(), name)
            if found is not None and public and f'"{name}"' in public[1]:
                text += f"\n\n{ast.unparse(found)}\n"
    return text


class Signatures(unittest.TestCase):
    def test_ours_are_those_of_the_recorded_versions(self) -> None:
        for package, content in signatures.recorded().items():
            text = ours(content["module"])
            for name, expected in content["names"].items():
                with self.subTest(package=package, name=name):
                    self.assertEqual(signatures.describe(text, name), expected["parameters"],
                                     f"{package} {content['version']}, {expected['file']}")

    def test_every_public_function_is_recorded(self) -> None:
        known = signatures.recorded()
        self.assertEqual(set(known), set(signatures.PACKAGES))
        for package, (module, files) in signatures.PACKAGES.items():
            names = {name for items in files.values() for name in items}
            self.assertEqual(set(known[package]["names"]), names)
            functions = {line.split("(")[0].removeprefix("def ")
                         for line in ours(module).splitlines() if line.startswith("def ")}
            with self.subTest(module=module):
                self.assertEqual({name for name in functions if not name.startswith("_")},
                                 {name for name in names if name[0].islower() and "." not in name})

    def test_ours_are_those_of_the_packages_on_pypi(self) -> None:
        """Checks that the record was not made up: the packages of these versions have the
        signatures."""
        for package, content in signatures.recorded().items():
            with self.subTest(package=package):
                try:
                    files = pypi.files(package, content["version"], signatures.wanted(package),
                                       from_source=package in ("vllm", "flash-attn"))
                except pypi.Unavailable as reason:
                    self.skipTest(f"{package} {content['version']}: {reason}")
                source = signatures.Source(package, content["version"], files)
                self.assertEqual(signatures.record(source), content)
                for name, expected in content["names"].items():
                    self.assertEqual(signatures.describe(ours(content["module"]), name),
                                     signatures.describe(files[expected["file"]], name), name)

    def test_ours_are_those_of_the_installed_packages(self) -> None:
        for package, (module, files) in signatures.PACKAGES.items():
            source = signatures.from_installed(package)
            for path, names in files.items() if source else ():
                assert source is not None
                for name in names if path in source.files else ():
                    with self.subTest(package=f"{package} {source.version}", name=name):
                        self.assertEqual(signatures.describe(ours(module), name),
                                         signatures.describe(source.files[path], name))

    def test_a_signature_that_changed_is_noticed(self) -> None:
        text = "def f(a, b=1, *, c=None): pass\ndef f(a, b: int = 1, *, c=None): pass\n"
        expected = ["any a", "any b = 1", "only name c = None"]
        self.assertEqual(signatures.describe(text, "f"), expected)
        for changed in ("a, b=2, *, c=None", "a, *, b=1, c=None", "a, b=1, c=None",
                        "b=1, *, c=None", "a, /, b=1, *, c=None", "a, b=1, *d, c=None",
                        "a, b=1, *, c=None, **d"):
            with self.subTest(changed):
                self.assertNotEqual(signatures.describe(f"def f({changed}): pass", "f"), expected)
        self.assertIsNone(signatures.describe(text, "g"))
        self.assertEqual(signatures.describe("class E:\n  def m(self, x=3): pass", "E.m"),
                         ["any self", "any x = 3"])
        self.assertEqual(signatures.describe("class E:\n  'text'\n  A = 0\n", "E"), ["A = 0"])
        text = 'ops.def(\n  "f(Tensor! a, "\n  "float b) -> "\n  "()");\nops.def("g() -> ()");'
        self.assertEqual(signatures.describe(text, "f"), ["any a", "any b"])
        self.assertIsNone(signatures.describe(text, "h"))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_functions_have_the_parameters_of_their_text(self) -> None:
        for _, (module, files) in signatures.PACKAGES.items():
            loaded = __import__(module, fromlist=["x"])
            for name in (name for items in files.values() for name in items):
                found = loaded
                for part in name.split("."):
                    found = getattr(found, part)
                described = signatures.describe(ours(module), name) or []
                with self.subTest(module=module, name=name):
                    if inspect.isclass(found):
                        members = [f"{item.name} = {item.value!r}" for item in found]
                        self.assertEqual(members, described)
                    else:
                        self.assertEqual(list(inspect.signature(found).parameters),
                                         [line.partition(" = ")[0].split()[-1]
                                          for line in described])


if __name__ == "__main__":
    unittest.main()
