#!/usr/bin/env python3
"""Finds sentences of the documents with more than two numbers, which belong into a table.

A number is a word that is one, with its sign, unit or percent: "128 threads", "1.36", "5 %". No
numbers are parts of code, links and pictures, cells of tables, headings, dates ("28 November
2026"), names and versions ("sm_90a", "H100", "ptxas 13.0.88", "MLIR 22"), formats and widths
("4-bit", "16 bits"), shapes ("128x4", "256 x 64"), a list of alternatives ("32, 64 or 128"), which
is one number, formulas on lines of their own, and the numbers of steps, phases and figures.

Read are README.md and docs without what docgen writes. Prints a line per finding and exits with 1
if there is one; PATH limits the check to these files.
"""
import re
import sys

from report import finish, parser_of

from check_docs import Tree
from check_prose import markdown, sentences
from check_words import PART, WHOLE

MOST = 2
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
# Words before a number that it names, as a version or a place.
NAMES = r"LLVM|MLIR|CUDA|PTX|ptxas|nvdisasm|CUTLASS|cuBLAS|cuDNN|torch|PyTorch|Python|Debian|GCC|gcc|glibc|CMake|version|Version|fp4|ISA|Triton|RTX|GeForce|step|phase|row|table|figure|section|exit code|code|rule|class|example"
NUMBER = r"[-+±~]?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+|\^(?:\([^)]*\)|-?\d+))?"
BLANKS = (
    re.compile(r"`[^`]*`|!?\[[^\]]*\]\([^)]*\)|https?://\S+|\$[^$]*\$"),
    re.compile(rf"\b(?:\d{{1,2}} )?(?:{MONTHS}) \d{{4}}\b|\b\d{{4}}-\d\d-\d\d\b"),
    re.compile(rf"\b(?:{NAMES})s? \d[\w.]*(?:(?:,| and| or| to) \d[\w.]*)*"),
    re.compile(r"\b\d+(?:(?:,| and| or| to| by) \d+)*[ -]bits?\b|\b\d+-byte\b"),
    re.compile(r"\b\d+(?:\s?[x×]\s?(?:\d+|[A-Z]))+\b"),
)
LIST = re.compile(rf"{NUMBER}(?:(?:,|,? (?:and|or|to)) {NUMBER}(?!\w))+")
FORMULA = re.compile(r"(?<=\n\n) {4}\S.*")
ALONE = re.compile(rf"(?<![\w.@/#-]){NUMBER}(?![\w/-]|\.\w)")


def numbers(sentence):
    """The numbers of a sentence, lists as one."""
    sentence = " ".join(sentence.split())
    for blank in BLANKS:
        sentence = blank.sub(" ", sentence)
    return ALONE.findall(LIST.sub(lambda found: found[0].split()[0].strip(","), sentence))


def findings(tree, paths):
    """Yields (file, line number, the numbers of a sentence)."""
    for name in tree.files:
        if name != "README.md" and not re.match(r"docs/.*\.md$", name) or paths and name not in paths:
            continue
        text = tree.text(name)
        if WHOLE.search(text):
            continue
        made = FORMULA.sub("", text)
        made = PART.sub(lambda part: re.sub(r"[^\n]", "", part[0]), made)
        rows = {number for number, line in enumerate(made.splitlines(), 1) if line.lstrip().startswith("|")}
        for paragraph in markdown(made):
            if paragraph.title or paragraph.lines[0][0] in rows:
                continue
            for number, sentence, _ in sentences(paragraph):
                if len(found := numbers(sentence)) > MOST:
                    yield name, number, found


def main():
    parser = parser_of(__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    options = parser.parse_args()
    found = findings(Tree(options.root.resolve()), options.paths)
    return finish(f"{name}:{number}: a sentence has {len(words)} numbers ({', '.join(words)}), and must have at most "
                  f"{MOST}\n  note: make a table of them, or two sentences" for name, number, words in found)


if __name__ == "__main__":
    sys.exit(main())
