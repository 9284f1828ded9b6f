"""Pieces of Markdown that the generators of docs/reference share."""
import re
import textwrap


def page(title, source, intro, *sections):
    """A page with the mark that names its source, so that nobody edits it by hand."""
    mark = f"<!-- Made by docgen/write_reference.py from {source}. Do not edit. -->"
    parts = [f"# {title}", mark, wrap(intro), *(s.strip() for s in sections if s.strip())]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts)) + "\n"


def wrap(text, first="", below=""):
    """A paragraph of at most 100 columns. Links and short code stay on one line."""
    short = lambda m: m[0].replace(" ", "\0") if m[0][0] == "[" or len(m[0]) < 45 else m[0]
    whole = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", short, " ".join(text.split()))
    return textwrap.fill(whole, 100, initial_indent=first, subsequent_indent=below, break_long_words=False,
                         break_on_hyphens=False).replace("\0", " ")


def table(head, rows):
    """A table, without the columns that no row fills; empty where there is no row."""
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] for row in rows)]
    cell = lambda text: " ".join(str(text).split()).replace("|", "\\|")
    lines = ["| " + " | ".join(head[i] for i in kept) + " |", "|" + "---|" * len(kept)]
    lines += ["| " + " | ".join(cell(row[i]) for i in kept) + " |" for row in rows]
    return "\n".join(lines) if rows else ""


def rewrap(text):
    """The text with paragraphs and list items of at most 100 columns; code and tables stay."""
    out, pending, fence = [], [], False

    def flush():
        if pending:
            lead, item = re.match(r"(\s*)([-*] |\d+\. )?", pending[0]).groups()
            out.append(wrap(" ".join(pending), lead, lead + " " * len(item or "")))
            pending.clear()

    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fence = not fence
            flush()
            out.append(line)
        elif fence or not line.strip() or line.startswith(("|", "#", "<")):
            flush()
            out.append(line)
        else:
            if re.match(r"\s*([-*]|\d+\.) ", line):
                flush()
            pending.append(line)
    flush()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip() + "\n"


def anchor(heading):
    """The anchor that a viewer gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
