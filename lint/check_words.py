#!/usr/bin/env python3
"""Checks that README.md and the pages of docs keep to their number of words (`wc -w`).

  hand-written   README.md and docs without the parts below
  generated      pages that docgen makes, and tables that its programs write into other pages
  page           the hand-written words of one page; PAGES excuses some pages, with the reason

Prints a line per finding and exits with 1 if there is one; --count prints the words of each page.
"""
import re
import subprocess
import sys

from report import finish, parser_of

BUDGETS = {"hand-written": 40_500, "generated": 87_000}
PAGE = 3_000
PAGES = {"docs/reference/simulator.md": 5_000}  # the one reference of instructions, policies and checks
WHOLE = re.compile(r"<!-- (?:Made by docgen/|docgen/\S+ writes this page)")
PART = re.compile(r"<!-- (?:table: [^>]*|support matrix|recipes|decisions|\S+ writes this) -->\n.*?<!-- end\b[^>]*-->", re.S)
REMEDY = "say it once, leave out what another page or a docstring says, or move what was tried to notebook/"


def pages(root):
    """{page: (hand-written words, generated words)}."""
    listed = subprocess.run(["git", "ls-files", "-z", "README.md", "docs/*.md"], cwd=root, capture_output=True,
                            text=True, check=True)
    found = {}
    for name in sorted(filter(None, listed.stdout.split("\0"))):
        text = (root / name).read_text()
        made = text if WHOLE.search(text) else "\n".join(PART.findall(text))
        found[name] = len(text.split()) - len(made.split()), len(made.split())
    return found


def findings(found):
    for kind, words in zip(BUDGETS, map(sum, zip(*found.values()))):
        if words > BUDGETS[kind]:
            yield f"error: the documents have {words} {kind} words, and must have at most {BUDGETS[kind]}"
    for name, (hand, _) in found.items():
        if hand > PAGES.get(name, PAGE):
            yield f"error: {name} has {hand} hand-written words, and must have at most {PAGES.get(name, PAGE)}"
        elif name in PAGES and hand <= PAGE:
            yield f"error: {name} is excused, and need not be"


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--count", action="store_true", help="print the words of each page")
    options = parser.parse_args()
    found = pages(options.root)
    if options.count:
        for name, words in sorted(found.items(), key=lambda page: sum(page[1])):
            print(f"{words[0]:6} {words[1]:6}  {name}")
    hand, made = map(sum, zip(*found.values()))
    return finish([f"{line}\n  note: {REMEDY}" for line in findings(found)],
                  f"{hand} hand-written and {made} generated words in {len(found)} documents")


if __name__ == "__main__":
    sys.exit(main())
