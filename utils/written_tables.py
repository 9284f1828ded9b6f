"""Tables that programs of this folder write into documents, between two comments:

  <!-- utils/PROGRAM writes this -->
  <!-- end of what it writes -->
"""
END = "<!-- end of what it writes -->\n"


def row(*cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def head(*columns):
    return [row(*columns), "|---" * len(columns) + "|"]


def with_lines(text, program, lines):
    """The text of a document in which `lines` stand where the program writes."""
    begin = f"<!-- utils/{program} writes this -->\n"
    before, rest = text.split(begin)
    behind = rest.split(END, 1)[1]
    return before + begin + "".join(f"{line}\n" for line in lines) + END + behind


def lines_of(page, program):
    """Returns what the program wrote into a document before."""
    behind = page.read_text().split(f"<!-- utils/{program} writes this -->\n")[1]
    return behind.split(END, 1)[0].splitlines()


def write(page, program, lines):
    page.write_text(with_lines(page.read_text(), program, lines))
