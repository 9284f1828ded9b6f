#!/usr/bin/env python3
"""Builds the documentation as a site in build/site. A link that leads nowhere is an error.

  pip install mkdocs && docgen/build_site.py

The documents lie beside the code that they are about and link to it. The script stages them in
build/site-source, in the same folders, with the files that they link to; a link to a folder becomes its
name. Plots of all measurements in the documents are added (plot_benchmarks.py).
"""
import argparse
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def tracked(pattern):
    listed = subprocess.run(["git", "ls-files", "-z", pattern], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name]


def stage(name, source, staged):
    """Copies a document and what it links to."""
    def follow(match):
        mark, text, target, _ = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match.group(0)
        path = (ROOT / name).parent / target
        if path.is_dir():
            return f"`{text.strip('`')}`"
        if path.is_file() and path.suffix != ".md":
            place = staged / path.resolve().relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
        return match.group(0)

    place = staged / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(LINK.sub(follow, source.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    if importlib.util.find_spec("mkdocs") is None:
        sys.exit("error: this Python has no mkdocs\nnote: pip install mkdocs")
    staged = ROOT / "build" / "site-source"
    shutil.rmtree(staged, ignore_errors=True)
    for name in tracked("*.md"):
        stage(name, ROOT / name, staged)
    plots = ROOT / "docgen" / "plot_benchmarks.py"
    subprocess.run([sys.executable, plots, staged / "generated"], check=True)
    sys.exit(subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=ROOT).returncode)


main()
