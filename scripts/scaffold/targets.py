"""scripts/new target: a row of the table of targets, its line in the test, and the lists that name its like."""
import re

from .tree import Refused, check_name

WORD = r"sm_\d+[a-z]?"
# A list of two and more targets: "sm_1", "sm_2"; sm_1, sm_2 and sm_3; sm_1 sm_2.
LIST = re.compile("|".join(rf"{word}(?:(?:, | and | or | ){word})+" for word in (f'"{WORD}"', WORD)))
# Lists that a program or a test compares: literals, expected messages, constants, words of completions.
COMPARED = {".cpp": r'^(?!\s*//).*"', ".mlir": r"(error|note|remark)\b.*sm_", ".test": r"^\S+ .*(error|note):",
            ".py": r"^[A-Z_0-9]+ = \(", ".bash": r"echo ", ".md": r"known targets: |must run on one of "}
PLACES = ["lib/**/*.cpp", "python/**/*.py", "utils/*.bash", "test/**/*.mlir", "test/**/*.test", "docs/**/*.md"]
MOST_COLUMNS = 100


def extended(text, like, name):
    """The list with `name` behind `like`."""
    quoted = f'"?{WORD}"?'
    words, between = re.findall(quoted, text), re.split(quoted, text)[1:-1]
    place = next((i for i, word in enumerate(words) if word.strip('"') == like), None)
    if place is None:
        return text
    words.insert(place + 1, words[place].replace(like, name))
    inner = between[0] if between[0] not in (" and ", " or ") else ", "
    return inner.join(words[:-1]) + between[-1] + words[-1]


def fold(lines, number):
    """Moves the end of a literal that has become too long to the literal below, or to a line of its own."""
    line = lines[number]
    if len(line) <= MOST_COLUMNS:
        return
    quote = max(line.rfind('"', 0, match.start()) for match in LIST.finditer(line))
    cut = line.rfind(" ", quote, MOST_COLUMNS - 1) + 1
    lines[number], rest = f'{line[:cut]}"', line[cut:]
    below = re.fullmatch(r'( *")(.*)', lines[number + 1])
    if below and rest.endswith('"') and len(lines[number + 1]) + len(rest) <= MOST_COLUMNS + 1:
        lines[number + 1] = below[1] + rest[:-1] + below[2]
    else:
        lines.insert(number + 1, f'{" " * quote}"{rest}')


def extend_lists(tree, like, name):
    for path in tree.files(*PLACES):
        suffix = path[path.rindex("."):]
        if like not in (text := tree.read(path)):
            continue
        lines = text.split("\n")
        for number in reversed(range(len(lines))):
            line = lines[number]
            if like in line and re.search(COMPARED[suffix], line):
                lines[number] = LIST.sub(lambda match: extended(match[0], like, name), line)
                if lines[number] != line and suffix == ".cpp":
                    fold(lines, number)
        tree.write(path, "\n".join(lines))


def row_of(text, like, name):
    """The row of `like` under another name; its rates are assumed, for nobody measured the new target."""
    major, minor = re.fullmatch(r"sm_(\d+)(\d)a", name).groups()
    for member, value in (("name", f'"{name}"'), ("architecture", f'"as {like}, to be edited"'),
                          ("computeMajor", major), ("computeMinor", minor)):
        text = re.sub(rf"(\.{member} = )[^\n]+,\n", rf"\g<1>{value},\n", text)
    return text


def add_row(tree, like, name):
    path, row = tree.need(f"the row of {like}", rf'^    \{{\n        \.name = "{like}",.*?^    \}},\n', "lib/ISA/*.cpp")
    text = row_of(row[0], like, name)
    assumed = re.search(r"constexpr (\w+) (asOn\w+) =", tree.read(path))
    if assumed:
        text = re.sub(r"&(?!asOn)\w+,\n    \},", f"&{assumed[2]},\n    }},", text)
    tree.insert(path, row.end(), text)
    test, line = tree.need(f"the line of {like} in a test", rf'( *)(?:const char \*|[^\n{{]*\{{)?\{{"{like}", [^{{}}]*\}}',
                           "unittests/ISA/*.cpp")
    cells = line[0][line[0].index(f'{{"{like}"'):]
    column = line.start() + line[0].index(cells) - tree.read(test).rindex("\n", 0, line.end()) - 1
    tree.insert(test, line.end(), f",\n{' ' * column}{cells.replace(like, name)}")
    return path, test


def add(tree, chosen):
    name, like = chosen.name, chosen.like
    check_name(name, r"sm_\d{2,}a", "sm_, the compute capability in digits and a", "sm_103a")
    known = [row for path in tree.files("lib/ISA/*.cpp") for row in re.findall(r'^        \.name = "(\w+)",', tree.read(path), re.M)]
    if like not in known:
        raise Refused(f"--like must be a target, but got '{like}'", f"known targets: {', '.join(known)}")
    if name in known:
        raise Refused(f"target '{name}' must be new, but is in the table", "choose another name, or edit that row")
    path, test = add_row(tree, like, name)
    extend_lists(tree, like, name)
    return [f"edit the row of {name} in {path} and its line in {test}, and name the sources: all facts are those of {like}",
            "ninja -C build FP4ISATests FP4CompilerTests && build/unittests/FP4ISATests "
            "&& build/unittests/FP4CompilerTests --gtest_filter='*TargetsTest*'",
            f"git grep -n {like} -- docs README.md: say in the documents what {name} has kernels for"]
