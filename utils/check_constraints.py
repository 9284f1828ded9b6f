#!/usr/bin/env python3
"""Checks that every constraint label of the fp4 and pipe dialects exists in three places.

fp4: docs/Spec.md lists "(C1)" under the heading of its operation or attribute, the verifiers carry the
comment "// op (C1)" where they check it, and test/Dialect/Fp4/invalid-*.mlir name "// op (C1)" above
a case that violates it. pipe: labels are unique, (C101) and up; docs/Pipe.md lists them, comments in
lib/Dialect/Pipe and test/Dialect/Pipe carry them.

Prints what is missing and exits with 1, or prints a summary and exits with 0.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEC = "docs/Spec.md"
VERIFIERS = "lib/Dialect/Fp4/IR/*.cpp"
TESTS = "test/Dialect/Fp4/invalid-*.mlir"


def documented():
    labels, subject = set(), None
    for line in (ROOT / SPEC).read_text().splitlines():
        heading = re.match(r"#+ .*`#?fp4\.(\w+)`", line)
        if line.startswith("#"):
            subject = heading.group(1) if heading else None
        item = re.match(r"- \((C\d+)\)", line)
        if item and subject:
            labels.add((subject, item.group(1)))
    return labels


def mentioned(files, subjects):
    text = "\n".join(path.read_text() for path in sorted(ROOT.glob(files)))
    comments = "\n".join(re.findall(r"//.*", text))
    found = re.findall(r"\b(\w+) \((C\d+)\)", comments)
    return {label for label in found if label[0] in subjects}


def fp4_places():
    spec = documented()
    subjects = {subject for subject, _ in spec}
    return {
        SPEC: spec,
        "the verifiers": mentioned(VERIFIERS, subjects),
        TESTS: mentioned(TESTS, subjects),
    }


def pipe_places():
    def labels(folder, suffix):
        comments = "\n".join(re.findall(r"//.*", "\n".join(
            path.read_text() for path in sorted((ROOT / folder).rglob("*" + suffix)))))
        return {("pipe", label) for label in re.findall(r"\((C1\d\d)\)", comments)}

    listed = re.findall(r"^- \((C1\d\d)\)", (ROOT / "docs/Pipe.md").read_text(), re.M)
    return {
        "docs/Pipe.md": {("pipe", label) for label in listed},
        "lib/Dialect/Pipe": labels("lib/Dialect/Pipe", ".cpp"),
        "test/Dialect/Pipe": labels("test/Dialect/Pipe", ".mlir"),
    }


def main():
    count, missing = 0, []
    for places in (fp4_places(), pipe_places()):
        every = set().union(*places.values())
        count += len(every)
        missing += [
            f"{subject} ({number}) is missing from {place}"
            for place, labels in places.items()
            for subject, number in sorted(every - labels)
        ]
    for line in missing:
        print(f"error: {line}")
    if not missing:
        print(f"{count} constraints agree in 3 places")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
