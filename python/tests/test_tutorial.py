"""The tutorial runs, as a file and as a notebook, and its claims hold: each is an assert."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import tempfile
import unittest
from typing import Any

from programs import ROOT, optional, torch

TUTORIAL = ROOT / "examples" / "python" / "tutorial.py"
MISSING = torch is None or optional("safetensors") is None


def load_notebook() -> Any:
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "docgen" / "notebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tutorial(unittest.TestCase):
    @unittest.skipIf(MISSING, "torch or safetensors is not installed")
    def test_it_runs(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(TUTORIAL.read_text(), str(TUTORIAL), "exec"), {"__name__": "__main__"})
        for words in ("Scaled(96x256 nvfp4, linear", "[tmem-", "note: missing:",
                      "must have tiled_128x4 scales", "layout modelopt, and 1 other"):
            self.assertIn(words, said.getvalue())

    @unittest.skipIf(MISSING or optional("nbclient") is None or optional("ipykernel") is None,
                     "torch, safetensors, nbclient or ipykernel is not installed")
    def test_the_notebook_runs(self) -> None:
        import nbclient
        import nbformat

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tutorial.ipynb")
            path.write_text(json.dumps(load_notebook().notebook(TUTORIAL.read_text())))
            book = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
            nbformat.validate(book)
            client = nbclient.NotebookClient(
                book, timeout=300, kernel_name="python3",
                resources={"metadata": {"path": os.fspath(TUTORIAL.parent)}})
            client.execute()
        outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
        self.assertGreater(len(outputs), 6)  # what a cell prints may come in parts
        self.assertNotIn("error", {output.output_type for output in outputs})

    def test_cells(self) -> None:
        split = load_notebook().split
        self.assertEqual(split("# %% [markdown]\n# # A\n#\n# b\n\n# %%\nx = 1\n\n\ny = 2\n"),
                         [(True, "# A\n\nb"), (False, "x = 1\n\n\ny = 2")])
        for text, message in (("x = 1\n# %%\n", "must begin with a cell"),
                              ("# %% [markdown]\nprose\n", "must begin with '# '")):
            with self.assertRaisesRegex(SystemExit, message):
                split(text)
        cells = split(TUTORIAL.read_text())
        self.assertEqual("".join(source for is_prose, source in cells if is_prose).count("## "), 5)
        self.assertGreater(sum(source.count("assert ") for _, source in cells), 12)


if __name__ == "__main__":
    unittest.main()
