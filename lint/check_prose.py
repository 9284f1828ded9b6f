#!/usr/bin/env python3
"""Finds comments, descriptions and documents whose sentences open without a noun.

A sentence begins with the noun that it tells of or, for a function, with a verb. The openers that
are found, with a capital unless they open a summary of TableGen or a help text:

  questions  What, Whether, Where, How, Which and Who. A document may ask a question, have one as a
             title or in the head of a table, and say "Where X, Y"
  stand-ins  It, Its, They, Those and "The same", and This, That, These and Such unless a noun
             follows: "This op" and "These four loops" name their noun, "This is" and "That of" do
             not, and "The same op" leaves open whose
  of         "Of few rows, ...": the sentence begins with what is left of its noun

Read are comments of C, C++, CUDA, PTX, MLIR, TableGen, CMake, Python, shell and YAML, docstrings,
help texts of argparse, strings of TableGen, the text of .test files between their commands, and
Markdown outside notebooks and fences. Lines that follow each other are one comment: its first word
counts and that of each sentence in it, a word that a line break happens to put first does not.

Prints a line per finding and exits with 1 if there is one. --count prints a table by folder
instead, --root checks another checkout, and PATH limits the check to files and folders of the
checkout.
"""
import ast
import collections
import io
import re
import sys
import tokenize
import typing

from report import finish, parser_of

from check_docs import Tree

#===--- Openers -----------------------------------------------------------===#

QUESTIONS = ("What", "Whether", "Where", "How", "Which", "Who")
PRONOUNS = ("It", "Its", "They", "Those", "The same")
ANY_CASE = re.compile(rf"({'|'.join(word.lower() for word in QUESTIONS + PRONOUNS)})\b")
OPENER = re.compile(rf"({'|'.join(QUESTIONS + PRONOUNS)}|This|That|These|Such|Of)\b(?![-_/.]\w|\()")

# A word after which "This" or "These" can no longer be followed by its noun.
NO_NOUN = frozenset("""
    is are was were be been being has have had does do did can cannot could may might must shall should will would
    need of in on at by for from with without to into onto over under between among through across after before
    since until as than like per via within beyond against around above below and or but nor so because if when
    while though although where which who whom whose that why how what whether the a an its their our we you they it
    he there his no not any all each every both either neither also only then thus hence therefore now still already
    just even alone never always often too here instead again once came took made gave let kept meant holds applies
    happens goes hold keep make take wait come go give tell say follow mean begin stand depend differ belong become
    beside none nobody nothing everything everybody
""".split())
# Nouns of one thing that end in "s", and nouns of several that do not.
SINGULAR = re.compile(r".*ss$|.*(?:axis|basis|alysis|thesis|ias|tatus|bus|ocus|orpus|ensus|adius|ulus|lens|series)$")
PLURAL = re.compile(r".*[^s]s$|.*(?:data|media|criteria|people|children)$")


def words(text):
    """The plain words that `text` begins with, up to punctuation; code counts as a noun's name."""
    for token in text.split():
        if not (match := re.match(r"[(*_\"]*([A-Za-z][\w-]*)('\w+)?(\W*)$", token)):
            yield "" if re.match(r"[`\w(\[\"*@<$%#]", token) else None
            return
        yield match[1] if not match[2] or match[2] == "'s" else "is"
        if re.search(r"[.,;:?!)]", match[3]):
            return


def stands_alone(opener, rest):
    """Returns true when no noun follows "This", "That", "These" or "Such"."""
    several = opener == "These"
    for position, word in enumerate(words(rest)):
        if opener == "Such" and position == 0 and word in ("a", "an"):
            return False
        if word is None or word in NO_NOUN:
            return True
        if several and word and not PLURAL.match(word) and word.islower():
            continue
        third_person = position == 0 and not several and opener != "Such"
        return third_person and word.islower() and PLURAL.match(word) and not SINGULAR.match(word)
    return True


def banned(sentence, document, title):
    """The opener of `sentence` that no sentence may have, or None."""
    match = OPENER.match(sentence)
    if not match:
        return None
    opener, rest = match[1], sentence[match.end():]
    if opener in QUESTIONS:
        asks = title or sentence.rstrip(" \n*_)\"").endswith("?")
        return None if document and (asks or opener == "Where" and "," in rest) else opener
    if opener in PRONOUNS or opener == "Of":
        return opener
    return opener if stands_alone(opener, rest) else None


#===--- Sentences ---------------------------------------------------------===#


class Paragraph(typing.NamedTuple):
    """Sentences that follow each other, as (line number, text)."""
    lines: list
    document: bool = False  # Questions are allowed.
    title: bool = False
    any_case: bool = False  # The first word may begin with a small letter.


SENTENCE_END = re.compile(r"[.!?][)\"'`*_]*\s+")
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
LEADING = re.compile(r"\s*(?:\(\w+\)\s+|\[\w+\]\s+)?[\s(\[*_]*")


def sentences(paragraph):
    """Yields (line number, text, whether it is the first) of each sentence."""
    text = "\n".join(line for _, line in paragraph.lines)
    starts = [0] + [match.end() for match in SENTENCE_END.finditer(text)]
    for start, end in zip(starts, starts[1:] + [len(text)]):
        start = LEADING.match(text, start).end()
        if start < end:
            yield paragraph.lines[text.count("\n", 0, start)][0], text[start:end], start == LEADING.match(text).end()


def split(lines, document=False):
    """Yields the paragraphs of a comment: empty lines separate them, and list items are some
    too."""
    current = []
    for number, line in lines:
        item = ITEM.match(line)
        if current and (item or not line.strip()):
            yield Paragraph(current, document)
            current = []
        if line.strip():
            current.append((number, line[item.end():] if item else line.strip()))
    if current:
        yield Paragraph(current, document)


#===--- Comments ----------------------------------------------------------===#

C_LIKE = (".cpp", ".h", ".def", ".cu", ".c", ".mlir", ".ptx", ".td")
HASH = (".sh", ".cmake", "CMakeLists.txt", ".yml", ".toml", ".recipe", ".in", ".bash")
LITERAL = r"(?:u8|[uUL])?R\"(?P<d>[^(\s]*)\((?s:.*?)\)(?P=d)\"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'"
C_TOKEN = re.compile(rf"//[^\n]*|/\*(?s:.*?)\*/|{LITERAL}")
TD_TOKEN = re.compile(r"//[^\n]*|/\*(?s:.*?)\*/|\[\{(?s:.*?)\}\]|\"(?:\\.|[^\"\\\n])*\"")
# Commands and expectations of tests, which are no prose.
DIRECTIVE = re.compile(r"\s*(?:[A-Z][A-Z0-9_-]*:|expected-|-----)")
RULER = re.compile(r"^===?-+\s?|\s*-*===?(?://)?$|^=+$|^-+$")


class Comment(typing.NamedTuple):
    line: int
    column: int
    alone: bool  # No code is before it on its line.
    mark: str
    text: str


def joined(comments):
    """Yields the lines of each comment: one that is alone below another of its column continues
    it."""
    lines, last = [], None
    for comment in comments:
        follows = last and comment.alone and (last.line + 1, last.column, last.mark) == (
            comment.line, comment.column, comment.mark)
        if lines and not follows:
            yield lines
            lines = []
        lines.append((comment.line, comment.text))
        last = comment
    if lines:
        yield lines


def place(text, start):
    """(line number, column, whether only blanks are before it) of a position of `text`."""
    begin = text.rfind("\n", 0, start) + 1
    return text.count("\n", 0, start) + 1, start - begin, not text[begin:start].strip()


def title_of(text):
    """The text of a comment's line without rulers and, in the first line of a file, its name."""
    plain = RULER.sub("", RULER.sub("", text.strip()))
    return re.sub(r"^[\w.-]+\.\w+ +- +", "", plain) if plain != text.strip() else text


def line_comments(text, tokens):
    """Yields the comments of C++ and its kin."""
    for match in tokens:
        if match[0].startswith("//"):
            mark = re.match(r"//[/!]?", match[0])[0]
            body = match[0][len(mark):].removeprefix("<")
            ruled = title_of(body)
            yield Comment(*place(text, match.start()), mark, "" if DIRECTIVE.match(body) else ruled)
            if ruled != body:  # A ruler ends what it stands above.
                yield Comment(-1, 0, False, "", "")


def c_prose(text, token):
    tokens = [match for match in token.finditer(text) if match[0].startswith(("//", "/*"))]
    for lines in joined(line_comments(text, tokens)):
        yield from split(lines)
    for match in tokens:
        if match[0].startswith("/*"):
            inner = match[0][2:-2].splitlines()
            first = place(text, match.start())[0]
            yield from split((first + index, re.sub(r"^\s*\*(?= |$)", "", line)) for index, line in enumerate(inner))


def td_prose(text):
    """The paragraphs of TableGen: comments, strings, of which neighbours are one, and
    descriptions."""
    yield from c_prose(text, TD_TOKEN)
    lines, end = [], None
    for match in TD_TOKEN.finditer(text):
        first = place(text, match.start())[0]
        if match[0].startswith("[{"):
            yield from markdown(match[0][2:-2], first, document=False)
        elif match[0].startswith('"'):
            if lines and text[end:match.start()].strip():
                yield Paragraph(lines, any_case=True)
                lines = []
            lines.append((first, match[0][1:-1]))
            end = match.end()
    if lines:
        yield Paragraph(lines, any_case=True)


def segment(lines, node):
    """The source of `node` in `lines` of bytes. ast.get_source_segment cuts the file into lines
    for each node anew."""
    found = lines[node.lineno - 1:node.end_lineno]
    found[-1] = found[-1][:node.end_col_offset]
    found[0] = found[0][node.col_offset:]
    return b"\n".join(found).decode()


def python_strings(text):
    """Yields the paragraphs of every docstring and help text."""
    source_lines = text.encode().split(b"\n")
    for node in ast.walk(ast.parse(text)):
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            continue
        if isinstance(node, ast.Expr):
            source = segment(source_lines, value).lstrip("rRuU").strip("\"'")
            yield from split(enumerate(source.splitlines(), node.lineno))
        elif isinstance(node, ast.keyword) and node.arg == "help":
            yield Paragraph([(value.lineno, value.value)], any_case=True)


def python_prose(text):
    comments = [Comment(*token.start, not token.line[:token.start[1]].strip(), "#", token.string.lstrip("#"))
                for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT]
    for comment in joined(comment._replace(text=title_of(comment.text)) for comment in comments):
        yield from split(comment)
    yield from python_strings(text)


HASH_TOKEN = re.compile(r"'[^'\n]*'|\"(?:\\.|[^\"\\\n])*\"|(?:(?<=\s)|^)#(?: [^\n]*)?$")


def hash_prose(text):
    comments = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in HASH_TOKEN.finditer(line):
            if match[0].startswith("#"):
                alone = not line[:match.start()].strip()
                comments.append(Comment(number, match.start(), alone, "#", match[0][1:].strip()))
    for lines in joined(comments):
        yield from split(lines)


def test_prose(text):
    """The paragraphs between the commands and expectations of a .test file."""
    lines = enumerate(text.splitlines(), 1)
    yield from split((number, "" if DIRECTIVE.match(line) else re.sub(r"^\s*(#|//) ?", "", line))
                     for number, line in lines)


#===--- Documents ---------------------------------------------------------===#

HIDDEN = re.compile(r"^ *```.*?(?:^ *```|\Z)|<!--.*?-->|<[^>\n]*>", re.S | re.M)


def cells(number, line, title):
    """The cells of a row of a table; a bar in code separates none."""
    plain = re.sub(r"`[^`]*`", lambda code: code[0].replace("|", "/"), line.replace("\\|", "/"))
    for cell in plain.strip().strip("|").split("|"):
        yield Paragraph([(number, cell.strip())], True, title)


def whole_title(paragraph):
    """Returns true when a paragraph is one link or wholly bold: a title."""
    text = " ".join(line for _, line in paragraph.lines)
    return re.fullmatch(r"\[[^\]]*\]\([^)]*\)\.?|\*\*[^*]+\*\*[.:]?", text) is not None


def markdown(text, first=1, document=True):
    """The paragraphs of a document, whose first line has the number `first`."""
    lines = HIDDEN.sub(lambda match: re.sub(r"[^\n]", "", match[0]), text).splitlines()
    prose = []
    for index, line in enumerate(lines):
        number, below = first + index, lines[index + 1] if index + 1 < len(lines) else ""
        special = line.lstrip().startswith(("|", "#"))
        prose.append((number, "" if special else re.sub(r"^\s*>\s?", "", line)))
        if line.startswith("#"):
            yield Paragraph([(number, line.strip("# "))], document, True)
        elif special:
            yield from cells(number, line, re.match(r"\s*\|[\s:|-]+$", below) is not None)
    for paragraph in split(prose, document):
        yield paragraph._replace(title=whole_title(paragraph))


#===--- Command line ------------------------------------------------------===#


def paragraphs(name, text):
    """The paragraphs that a reader of the file `name` reads."""
    if name.endswith(".md"):
        return markdown(text)
    if name.endswith((".py", ".pyi")) or re.match(r"#!\S*[ /]python", text):
        return python_prose(text)
    if name.endswith(".td"):
        return td_prose(text)
    if name.endswith(".test"):
        return test_prose(text)
    if name.endswith(HASH) or text.startswith("#!"):
        return hash_prose(text)
    return c_prose(text, C_TOKEN) if name.endswith(C_LIKE) else ()


def findings(tree, paths):
    """Yields (file, line number, what opens, opener)."""
    for name in tree.files:
        if "notebook/" in name or paths and not any((name + "/").startswith(path + "/") for path in paths):
            continue
        found = set()
        for paragraph in paragraphs(name, tree.text(name)):
            for number, sentence, first in sentences(paragraph):
                if first and paragraph.any_case and ANY_CASE.match(sentence):
                    sentence = sentence[0].upper() + sentence[1:]
                if opener := banned(sentence, paragraph.document, paragraph.title):
                    comment = first and not paragraph.document
                    found.add((number, "comment" if comment else "sentence", opener))
        for number, kind, opener in sorted(found):
            yield name, number, kind, opener


def line_of(name, number, kind, opener):
    noun = opener not in QUESTIONS and opener != "Of"
    remedy = "begin with the noun it stands for" if noun else "begin with a noun or a verb"
    return f"{name}:{number}: a {kind} opens with '{opener}': {remedy}"


def table(found):
    """Rows of a table: how many findings each folder has."""
    folders = collections.Counter("/".join(name.split("/")[:-1][:2]) or "." for name, *_ in found)
    return [f"{count:6}  {folder}" for folder, count in sorted(folders.items())] + [f"{len(found):6}  in all"]


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    options = parser.parse_args()
    paths = [path.strip("/").removeprefix("./") for path in options.paths]
    found = list(findings(Tree(options.root.resolve()), paths))
    if options.count:
        return finish(table(found) if found else [], *table([]))
    return finish(line_of(*finding) for finding in found)


if __name__ == "__main__":
    sys.exit(main())
