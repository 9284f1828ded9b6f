#!/usr/bin/env python3
"""Checks that documents and comments still describe this tree.

  excerpts  a fence after `<!-- from FILE -->` must be found in FILE: its lines, in order, with
            white space folded; a line of dots stands for anything that is left out
  links     a relative link must lead to a file or folder, and its anchor to a heading
  width     lines of documents have at most 100 columns, except tables and code
  paths     a file or folder of this project that a document or a comment names must exist
  revisions the `revision` of a document or a result must be a commit before this one; a clone
            without its whole history, or a copy without it, has nothing to compare

Pages of notebook/ are dated and stay as they were: only their links, their width and their
revisions are checked. An excerpt or a path there may be of a revision that is gone.

Prints a line per finding and exits with 1 if there is one. --root checks another checkout.
"""
import bisect
import fnmatch
import io
import pathlib
import re
import subprocess
import sys
import tokenize

from report import finish, parser_of

EXCERPT = re.compile(r"<!-- from (\S+) -->\n```\w*\n(.*?)```", re.S)
FENCE = re.compile(r"^ *```.*?^ *```", re.S | re.M)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
WIDTH = 100


class Tree:
    """The files that git tracks, and what can be said of a path."""

    def __init__(self, root):
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
        self.files = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
        folders = {str(parent) for name in self.files for parent in pathlib.PurePath(name).parents}
        # "Sim/Program.h" names include/fp4/Sim/Program.h: a path may leave out leading folders.
        self.tails = {"/".join(parts[first:]) for parts in (name.split("/") for name in {*self.files, *folders})
                      for first in range(len(parts))}

        self.commits = commits(root)

    def text(self, name):
        return (self.root / name).read_text(errors="replace")

    def has_commit(self, revision):
        place = bisect.bisect_left(self.commits, revision)
        return "".join(self.commits[place:place + 1]).startswith(revision)

    def has(self, path):
        """Returns True if a path exists. Braces list alternatives, `*` and words in capitals stand
        for anything."""
        for plain in braces(path):
            pattern = "/".join(re.sub(r"^[A-Z]+(?=\.|$)", "*", part) if part not in ("README.md", "CONTRIBUTING.md",
                               "ARCHITECTURE.md") else part for part in plain.strip("/").split("/"))
            if pattern not in self.tails and not ("*" in pattern and fnmatch.filter(self.tails, pattern)):
                return False
        return True


def commits(root):
    """The commits that led to this one, sorted; none where the clone lacks some of them."""
    git = ["git", "rev-parse", "--is-shallow-repository"]
    if subprocess.run(git, cwd=root, capture_output=True, text=True).stdout.strip() != "false":
        return []
    listed = subprocess.run(["git", "log", "--format=%H"], cwd=root, capture_output=True, text=True)
    return sorted(listed.stdout.split())


def braces(path):
    """The paths that one with {A,B} in it stands for."""
    if not (match := re.search(r"\{([^{}]*)\}", path)):
        return [path]
    return [whole for part in match.group(1).split(",")
            for whole in braces(path[:match.start()] + part + path[match.end():])]


#===--- Excerpts ----------------------------------------------------------===#


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


def excerpts(tree, name, text):
    for file, excerpt in EXCERPT.findall(text):
        if file not in tree.files:
            yield f"{name}: excerpt from {file}, which does not exist"
            continue
        source = [fold(line) for line in tree.text(file).splitlines() if fold(line)]
        if (line := missing_line(excerpt, source)) is not None:
            yield f"{name}: {file} no longer has: {line}"


#===--- Links and width ---------------------------------------------------===#


def anchors(text):
    """The anchors that a viewer gives the headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(tree, name, text):
    for target, anchor in LINK.findall(FENCE.sub("", text)):
        if "://" in target:
            continue
        path = tree.root / name if not target else (tree.root / name).parent / target
        if not path.exists():
            yield f"{name}: link to {target}, which does not exist"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
            yield f"{name}: link to {target}#{anchor}, but there is no such heading"


def width(name, text):
    fence = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fence = not fence
        elif not fence and len(line) > WIDTH and not line.startswith(("|", "<!--")) and " " in line.strip():
            yield f"{name}:{number}: the line has {len(line)} columns, and must have at most {WIDTH}"


#===--- Paths -------------------------------------------------------------===#

# A file of this project by its suffix, with or without folders.
FILE = re.compile(r"(?<![\w./$*<{}~%@+-])(?:\.\./)*((?:[\w.*{},-]+/)*[\w*{][\w.*{},-]*"
                  r"\.(?:cpp|h|td|def|py|sh|md|cu|mlir|test))(?![\w(]|\.\w)")
# A file or folder below one of the folders at the top.
FOLDER = re.compile(r"(?<![\w./$<~%@+-])((?:lib|include|test|utils|validation|lint|docgen|oracles|unittests|tools|docs|integration_test|examples"
                    r"|benchmarks)/[\w./*{},-]*[\w*}])")
# Names in comments and documents that are no file of this tree: files of other projects and of the
# system, files that a build or an installation makes, and names that stand for a file of the
# reader.
FOREIGN = ["batch_norm.py", "nllloss.py", "cuda.h", "cudaTypedefs.h", "zstd.h", "barrier.h", "llama.cpp", "*_sm[0-9]*.cu", "*_blockwise_fp4.cu"]
MADE = ["lit.site.cfg.py", "fp4-cuda"]
EXAMPLES = ["program.mlir", "program.py", "f.mlir", "a.cpp"]
C_LIKE = (".cpp", ".h", ".def", ".cu", ".c", ".mlir", ".ptx")
HASH = (".sh", ".cmake", ".test", "CMakeLists.txt", ".cfg.py")


def python_prose(text):
    """(line number, text) of comments and docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and '"""' in token.string[:4]):
            yield from enumerate(token.string.splitlines(), token.start[0])


def prose(name, text):
    """(line number, text, whether it is code) of what a reader reads."""
    lines = enumerate(text.splitlines(), 1)
    if name.endswith(".md"):
        fence = False
        for number, line in lines:
            fence ^= line.lstrip().startswith("```")
            yield number, line, fence
    elif name.endswith(".py"):
        yield from ((number, line, False) for number, line in python_prose(text))
    elif name.endswith(".td"):
        yield from ((number, line, False) for number, line in lines if not line.startswith(("include", "#")))
    elif name.endswith(C_LIKE + HASH):
        mark = re.compile(r"//(.*)" if name.endswith(C_LIKE) else r"(?:^|\s)#\s(.*)")
        for number, line in lines:
            comment = match.group(1) if (match := mark.search(line)) else ""
            if comment and not re.match(r"---|\s*(RUN|[A-Z0-9-]+(-NEXT|-SAME|-DAG|-NOT)?):", comment):
                yield number, comment, False


def paths(tree, name, text):
    for number, line, code in prose(name, text):
        named = set(FOLDER.findall(line)) | (set() if code else set(FILE.findall(line)))
        for path in sorted(named):
            file = path.rsplit("/", 1)[-1]
            if not tree.has(path) and not any(
                    fnmatch.fnmatch(file, other) for other in FOREIGN + MADE + EXAMPLES):
                yield f"{name}:{number}: names {path}, which does not exist"


#===--- Revisions ---------------------------------------------------------===#

RESULTS = "benchmarks/results/"
REVISIONS = re.compile(r'\brevisions?"?:?\s+"?([0-9a-f]{7,40}\b(?:(?:,|,? and)\s+[0-9a-f]{7,40}\b)*)')


def revisions(tree):
    """Findings of all files; none where the tree has no commit that is named: a copy of its files
    has a history of its own."""
    named = [(name, revision) for name in tree.files if name.endswith(".md") or name.startswith(RESULTS)
             for text in REVISIONS.findall(tree.text(name)) for revision in re.findall(r"[0-9a-f]{7,}", text)]
    missing = [(name, revision) for name, revision in named if not tree.has_commit(revision)]
    for name, revision in missing if len(missing) < len(named) else []:
        yield f"{name}: names revision {revision}, which no commit before this one has"


#===--- Command line ------------------------------------------------------===#

DATED = "notebook/"


def findings(tree):
    for name in tree.files:
        text, dated = tree.text(name), name.startswith(DATED)
        if name.endswith(".md"):
            if not dated:
                yield from excerpts(tree, name, text)
            yield from links(tree, name, text)
            yield from width(name, text)
        if not dated:
            yield from paths(tree, name, text)
    yield from revisions(tree)


def main():
    return finish(findings(Tree(parser_of(__doc__).parse_args().root.resolve())))


if __name__ == "__main__":
    sys.exit(main())
