#!/usr/bin/env python3
"""Checks that the documents still speak of this tree.

  excerpts  a fence after `<!-- from FILE -->` must be found in FILE: its lines, in order, white space
            folded; a line of dots stands for anything left out
  links     a relative link must lead to a file or folder
Exit code 1 with a line per finding.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCERPT = re.compile(r"<!-- from (\S+) -->\n```\w*\n(.*?)```", re.S)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def fold(line):
    return " ".join(line.split())


def missing_line(excerpt, source):
    """The first excerpt line that does not follow in `source`, or None."""
    position, free = 0, True
    for line in (fold(line) for line in excerpt.splitlines()):
        if not line:
            continue
        if set(line) <= {".", "/", " "}:
            free = True
            continue
        while position < len(source) and source[position] != line:
            if not free:
                return line
            position += 1
        if position == len(source):
            return line
        position, free = position + 1, False
    return None


def check(document):
    text = document.read_text()
    name = document.relative_to(ROOT)
    for file, excerpt in EXCERPT.findall(text):
        path = ROOT / file
        if not path.exists():
            yield f"{name}: excerpt from {file}, which does not exist"
            continue
        source = [fold(line) for line in path.read_text().splitlines() if fold(line)]
        if (line := missing_line(excerpt, source)) is not None:
            yield f"{name}: {file} no longer has: {line}"
    for target in LINK.findall(text):
        if "://" not in target and not (document.parent / target).exists():
            yield f"{name}: link to {target}, which does not exist"


def main():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
    findings = [f for file in listed.stdout.split() for f in check(ROOT / file)]
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
