#!/usr/bin/env python3
"""Checks that every constraint of the fp4 and pipe dialects is documented, verified and violated by
a test.

fp4: Fp4Constraints.td lists "(C1)" for its operation or attribute, the verifiers carry the comment
"// op (C1)" where they check it, and test/Dialect/Fp4/invalid-*.mlir name "// op (C1)" above a case
that violates it. pipe: labels are unique, (C101) and up; PipeConstraints.td lists them, comments in
lib/Dialect/Pipe and test/Dialect/Pipe carry them, and descriptions of operations name no others.

A label alone proves nothing. The error that a test expects below its label must have words of the
check that carries the label: of the string literals of the labelled statement, function or section,
or of the functions it calls. -verify-diagnostics then sees to it that the verifier emits them for
this case.

Prints what is missing and exits with 1, or prints a summary and exits with 0. The argument, if
there is one, is another source tree.
"""
import collections
import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "docgen"))
from reference import constraints
from report import finish

ROOT = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parent.parent).resolve()
# Files with checks, and the functions that they call.
CALLED = ["lib/Dialect/**/*.cpp", "lib/Numerics/Recipe*.cpp", "lib/Numerics/Epilogue.cpp", "lib/ISA/InstrDescriptor.cpp"]
LABELS = r"\((C\d+)\)"
SECTION = "//===---"
# Words of any message, and the functions that have them.
SUBJECTS, NAMERS = {"operand '", "result '", "attribute '"}, {"operand", "result"}

Test = collections.namedtuple("Test", "place error")


#===--- C++ ---------------------------------------------------------------===#


def code_of(line):
    """The line without its comment and the text of its strings, for the balance of brackets."""
    return re.sub(r'"(?:[^"\\]|\\.)*"|//.*', lambda match: '""' * (match[0][0] == '"'), line)


def end_of_statement(lines, first):
    """The line behind the statement, or definition, that begins at `first`."""
    depth = 0
    for number in range(first, len(lines)):
        code = code_of(lines[number]).rstrip()
        depth += sum(map(code.count, "({[")) - sum(map(code.count, ")}]"))
        if code and depth <= 0 and code[-1] in ";}":
            return number + 1
    return len(lines)


def start_of_statement(lines, last):
    first = last
    while first > 0:
        before = code_of(lines[first - 1]).rstrip()
        if not before or before[-1] in ";{}":
            break
        first -= 1
    return first


def region_of(lines, number):
    """The lines of the check that the label in line `number` belongs to."""
    if code_of(lines[number]).strip():
        first = start_of_statement(lines, number)
        region = lines[first:max(end_of_statement(lines, first), number + 1)]
        if "(" in code_of(" ".join(region)).replace("emitError()", ""):
            return region
        end = next(i for i in range(number, len(lines)) if lines[i].startswith("}"))
        return lines[first:end]  # a diagnostic that the lines below fill
    behind = number
    while behind < len(lines) and lines[behind].lstrip().startswith("//"):
        if lines[behind].startswith(SECTION):
            rest = lines[behind + 1:]
            end = next((i for i, line in enumerate(rest) if line.startswith(SECTION)), len(rest))
            return rest[:end]
        behind += 1
    return lines[behind:end_of_statement(lines, behind)]


def definitions():
    """The lines of every function of the sources that checks call, by name."""
    found = collections.defaultdict(list)
    for pattern in CALLED:
        for path in sorted(ROOT.glob(pattern)):
            lines = path.read_text().splitlines()
            for number, line in enumerate(lines):
                head = re.match(r"[A-Za-z][^=;]*?((?:\w+::)*)(\w+)\(", line)
                if head and not line.startswith(("return", "using", "namespace")):
                    # Verifiers are all called verify: theirs is the name with its class.
                    name = head.group(1) * (head.group(2) == "verify") + head.group(2)
                    found[name] += lines[number:end_of_statement(lines, number)]
    return found


def own_words(region):
    """Pieces of the messages in `region`, and the names of the functions that it calls."""
    text = "\n".join(re.sub(r"//.*", "", line) for line in region)
    joined = re.sub(r'"\s*\n\s*"', "", text)  # neighbouring literals are one
    words = set()
    for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', joined):
        words |= {piece.strip(" ,.") for piece in re.split(r"\{\}|, but got", literal)}
    names = set(re.findall(r"((?:\w+::verify|\b\w+))(?:<\w+>)?\(", joined)) - NAMERS
    return {piece for piece in words - SUBJECTS
            if len(piece) >= 8 and re.search("[a-z]{3}", piece) or piece == "be '"}, names


def words_of(region, functions):
    """Pieces of the messages that a check may emit, in the functions that it reaches, too."""
    words, names = own_words(region)
    words, left, seen = set(words), list(names), set(names)
    while left:
        name = left.pop()
        if name not in functions:
            continue
        if not isinstance(functions[name], tuple):  # each function is read once
            functions[name] = own_words(functions[name])
        words |= functions[name][0]
        left += functions[name][1] - seen
        seen |= functions[name][1]
    return words


def checks(files, label_of):
    """{label: words of the messages of its checks}; the header comments of files do not count."""
    functions, found = definitions(), collections.defaultdict(set)
    for path in sorted(path for pattern in files for path in ROOT.glob(pattern)):
        lines = path.read_text().splitlines()
        body = next((i for i, line in enumerate(lines) if line.startswith("#include")), 0)
        for number in range(body, len(lines)):
            for label in label_of(lines[number].partition("//")[2]):
                if path.suffix == ".h":  # what it declares
                    names = re.findall(r"(\w+)\(", "\n".join(region_of(lines, number)))
                    found[label] |= set().union(*(words_of([f"{n}("], functions) for n in names))
                else:
                    found[label] |= words_of(region_of(lines, number), functions)
    return found


#===--- Tests -------------------------------------------------------------===#


def tests(files, label_of):
    """{label: [Test]}: the first error expected below each label, within its case."""
    found = collections.defaultdict(list)
    for path in sorted(ROOT.glob(files)):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            for label in label_of(line.partition("//")[2]):
                error = None
                for below in lines[number + 1:]:
                    if below.startswith("// -----") or label_of(below.partition("//")[2]):
                        break
                    if match := re.search(r"expected-error.*?\{\{(.*)\}\}", below):
                        error = match.group(1)
                        break
                if error:
                    found[label].append(Test(f"{path.relative_to(ROOT)}:{number + 1}", error))
                else:
                    found[label]  # a label of a case that passes is no test
    return found


#===--- Dialects ----------------------------------------------------------===#


def listed(dialect):
    """[(subject, label)] of the file of rules; all rules of pipe have one subject."""
    return [(subject if dialect == "fp4" else "pipe", label)
            for subject, rules in constraints.read(ROOT, dialect) for label, _ in rules]


def described():
    """(label, file) of the rules that descriptions of the pipe dialect name."""
    for path in sorted((ROOT / "include/fp4/Dialect/Pipe").rglob("*.td")):
        for label in dict.fromkeys(re.findall(r"\((C\d\d\d)\)", path.read_text())):
            yield label, path.name


def fp4_labels(subjects):
    """"quantize (C7), (C12)" are two labels of quantize."""
    def label_of(comment):
        found, subject = [], None
        for word, label in re.findall(rf"\b(\w+) (?=\()|{LABELS}", comment):
            subject = word or subject
            if label and subject in subjects:
                found.append((subject, label))
        return found
    return label_of


def pipe_labels(comment):
    return [("pipe", label) for label in re.findall(r"\((C\d\d\d)\)", comment)]


def findings(documented, checked, tested, document):
    every = set(documented) | set(checked) | set(tested)
    for subject, number in sorted(every):
        name, label = f"{subject} ({number})", (subject, number)
        if label not in documented:
            yield f"{name} is missing from {document}"
        if not checked.get(label):
            yield f"{name} is missing from the verifiers, or its check says nothing"
        if not tested.get(label):
            yield f"{name} is missing from the tests, or no error is expected below it"
        for test in tested.get(label, []):
            if not any(words in test.error for words in checked.get(label, ())):
                yield (f"{test.place}: the error expected for {name} has no words of its check: "
                       f"{test.error}")


def main():
    fp4, pipe = listed("fp4"), listed("pipe")
    files = {dialect: pathlib.Path(file).name for dialect, file in constraints.FILES.items()}
    label_of = fp4_labels({subject for subject, _ in fp4})
    missing = [
        *(f"{subject} ({label}) stands twice in {files[dialect]}" for dialect, rules in (("fp4", fp4), ("pipe", pipe))
          for subject, label in sorted({rule for rule in rules if rules.count(rule) > 1})),
        *(f"{file} names ({label}), which is no rule of {files['pipe']}" for label, file in described()
          if ("pipe", label) not in pipe),
        *findings(fp4, checks(["lib/Dialect/Fp4/IR/*.cpp"], label_of),
                  tests("test/Dialect/Fp4/invalid-*.mlir", label_of), files["fp4"]),
        *findings(pipe, checks(["lib/Dialect/Pipe/**/*.cpp", "lib/Dialect/Pipe/**/*.h"], pipe_labels),
                  tests("test/Dialect/Pipe/**/*.mlir", pipe_labels), files["pipe"])]
    return finish([f"error: {line}" for line in missing],
                  f"{len(set(fp4)) + len(set(pipe))} constraints agree in 3 places")


if __name__ == "__main__":
    sys.exit(main())
