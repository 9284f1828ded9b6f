"""Tables that programs write into documents, between two comments:

  <!-- FOLDER/PROGRAM writes this -->
  <!-- end of what it writes -->
"""
import re

END = "<!-- end of what it writes -->\n"


def row(*cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def head(*columns):
    return [row(*columns), "|---" * len(columns) + "|"]


def begin_of(text, program):
    """Returns the comment in front of what the program writes."""
    return re.search(rf"<!-- \S*/{re.escape(program)} writes this -->\n", text).group()


def with_lines(text, program, lines):
    """The text of a document in which `lines` stand where the program writes."""
    begin = begin_of(text, program)
    before, rest = text.split(begin)
    behind = rest.split(END, 1)[1]
    return before + begin + "".join(f"{line}\n" for line in lines) + END + behind


def lines_of(page, program):
    """Returns what the program wrote into a document before."""
    text = page.read_text()
    behind = text.split(begin_of(text, program))[1]
    return behind.split(END, 1)[0].splitlines()


def write(page, program, lines):
    page.write_text(with_lines(page.read_text(), program, lines))
