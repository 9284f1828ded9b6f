#!/usr/bin/env python3
"""Builds the documentation as a site in build/site. A link that leads nowhere is an error.

  pip install mkdocs && docgen/build_site.py --build build

The documents lie beside the code that they are about and link to it. The script stages them in
build/site-source, in the same folders, with the files that they link to; a link to a folder becomes its
name. Two things are added: plots of all measurements in the documents (plot_benchmarks.py), and the page
that `fp4-runner --explore` of the build writes for an example. A document gets a link to that page where
it has the comment `<!-- explorer -->`.
"""
import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE, SHAPE = "examples/nvfp4_linear.mlir", "128,128,256"
EXPLORER, MARK = "generated/explorer.html", "<!-- explorer -->"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(\s*([^)#\s]+)(#[^)\s]*)?\)")


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
    text = LINK.sub(follow, source.read_text(encoding="utf-8"))
    page = os.path.relpath(EXPLORER, pathlib.Path(name).parent)
    place.write_text(text.replace(MARK, f"[The page of {EXAMPLE}]({page}) is an example."), encoding="utf-8")


def explore(build, staged):
    """Writes the page of the example, which the compiler must run without an error."""
    runner = (build / "bin" / "fp4-runner").resolve()
    if not runner.is_file():
        sys.exit(f"error: {build} must have fp4-runner, which writes the page of an example\n"
                 f"note: ninja -C {build} fp4-runner")
    page = staged / EXPLORER
    page.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([runner, EXAMPLE, "--shape", SHAPE, "--explore", page], cwd=ROOT, capture_output=True,
                          text=True)
    if done.returncode:
        sys.exit(f"error: the page of {EXAMPLE} cannot be written: {done.stderr.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="tree with fp4-runner")
    options = parser.parse_args()
    if importlib.util.find_spec("mkdocs") is None:
        sys.exit("error: this Python has no mkdocs\nnote: pip install mkdocs")
    staged = ROOT / "build" / "site-source"
    shutil.rmtree(staged, ignore_errors=True)
    for name in tracked("*.md"):
        stage(name, ROOT / name, staged)
    explore(options.build, staged)
    plots = ROOT / "docgen" / "plot_benchmarks.py"
    subprocess.run([sys.executable, plots, staged / "generated"], check=True)
    sys.exit(subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=ROOT).returncode)


main()
