#!/usr/bin/env python3
"""Makes a notebook of a Python file in the percent format: cells begin with a line `# %%`, those of
prose with `# %% [markdown]`. Nothing is executed; only the standard library is needed.

  notebook.py examples/python/tutorial.py tutorial.ipynb
"""
import argparse
import json
import pathlib
import re
import sys

CELL = re.compile(r"^# %%( \[markdown\])?\n", re.M)


def split(text):
    """[(whether it is prose, its source)] of the cells of a file. Text before the first cell is an
    error: it would be lost."""
    parts = CELL.split(text)
    if parts[0].strip():
        raise SystemExit("the file must begin with a cell '# %%', but begins with text")
    cells = []
    for mark, source in zip(parts[1::2], parts[2::2]):
        lines = source.strip("\n").splitlines()
        if mark:
            wrong = [line for line in lines if line != "#" and not line.startswith("# ")]
            if wrong:
                raise SystemExit(f"a line of prose must begin with '# ', but got '{wrong[0]}'")
            lines = [line[2:] for line in lines]
        cells.append((bool(mark), "\n".join(lines)))
    return cells


def notebook(text):
    """The notebook (nbformat 4.5) as a dictionary."""
    cells = []
    for index, (is_prose, source) in enumerate(split(text)):
        cell = {"id": f"cell-{index}", "metadata": {}, "source": source,
                "cell_type": "markdown" if is_prose else "code"}
        cells.append(cell if is_prose else {**cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()
    try:
        made = json.dumps(notebook(options.source.read_text()), indent=1)
        options.output.write_text(made + "\n")
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"notebook.py: {error}")


if __name__ == "__main__":
    main()
