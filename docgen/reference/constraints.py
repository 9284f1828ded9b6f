"""constraints.md: the rules of Fp4Constraints.td and PipeConstraints.td."""
import re

from . import markdown

FILES = {"fp4": "include/fp4/Dialect/Fp4/IR/Fp4Constraints.td",
         "pipe": "include/fp4/Dialect/Pipe/IR/PipeConstraints.td"}
RECORD = re.compile(r'^def : \w+_Constraints<"([^"]*)", \[\{\n(.*?)^\}\]>;', re.S | re.M)
RULE = re.compile(r"^  - \((C\d+)\) (.*?)(?=^  - |\Z)", re.S | re.M)


def read(root, dialect):
    """[(subject, [(label, rule)])] in the order of the file."""
    text = (root / FILES[dialect]).read_text()
    return [(subject, [(label, " ".join(rule.split())) for label, rule in RULE.findall(rules)])
            for subject, rules in RECORD.findall(text)]


def labels(root, dialect):
    """{operation or attribute: [label]}: rules of pipe belong to each operation that they begin with."""
    found = {}
    for subject, rules in read(root, dialect):
        for label, rule in rules:
            head = rule.partition(":")[0] if dialect == "pipe" else ""
            for name in [subject] if dialect == "fp4" else dict.fromkeys(re.findall(r"`[!#]?pipe\.(\w+)`", head)):
                found.setdefault(name, []).append(label)
    return found


def heading(dialect, subject):
    return f"`fp4.{subject}`" if dialect == "fp4" and subject != "operation" else \
        "Every operation of fp4" if dialect == "fp4" else subject


def generate(root):
    sections = []
    for dialect, title in (("fp4", "Programs of fp4"), ("pipe", "Kernels of pipe")):
        sections.append(f"## {title}")
        for subject, rules in read(root, dialect):
            sections.append(f"### {heading(dialect, subject)}")
            sections.append("\n".join(markdown.rewrap(f"- ({label}) {rule}").rstrip() for label, rule in rules))
    return markdown.page(
        "Constraints", " and ".join(FILES.values()),
        "A verifier enforces each rule below. The label stands at the check, at a test that violates the "
        "rule, and here; `lint/check_constraints.py` compares the three places. Labels of fp4 count anew "
        "for each operation. [Semantics](semantics.md) says what the operations mean, and "
        "[The pipe dialect](../concepts/pipe.md) explains kernels.", *sections)
