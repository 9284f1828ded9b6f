"""The generators of docs/reference: one module per source of facts (docgen/write_reference.py)."""
import pathlib
import sys

# Tables of the sources are read in validation, for its programs and for these pages.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "validation"))
