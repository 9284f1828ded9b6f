#!/usr/bin/env python3
"""Finds checks in shell scripts that cannot fail, and folders of a machine in binary files.

Under `set -e` bash goes on after `! COMMAND`, and after `A && B` where A fails. A script whose test
is written like this passes with a wrong result. `if COMMAND; then exit 1; fi` and one line for each
command stop. The last command of a function is its status, and may be written so.

Binary files have the paths of the machine that wrote them where their program was given such paths.

Prints a line per finding and exits with 1. --root checks another checkout.
"""
import re
import subprocess
import sys

from report import finish, parser_of

HEREDOC = re.compile(r"(?<!<)<<-?(?!<) *(['\"]?)(\w+)\1[^\n]*\n(.*?\n)\s*\2$", re.S | re.M)
LITERAL = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|(?<!\S)#[^\n]*", re.S)
CONTINUED = re.compile(r"(?:&&|\|\|?|\x01)[ \t]*$")
TEST = re.compile(r"&& *(?:!|\[\[?|test|grep|cmp|diff)\s(?:(?!&&).)*$", re.S)
CONDITION = re.compile(r"\[\[.*?\]\]")
#: Lists behind these words are conditions, or have a status that counts.
COMPOUND = re.compile(r"^(?:if|elif|while|until|return|\(|\{|[\w-]+\(\))")
FOLDER = re.compile(rb"/(?:work|home|root|tmp|build|Users)/[\w.-]+/[\w./-]+")


def blank(match):
    return re.sub(r"[^\n]", "_", match[0]) if match[0][0] in "'\"" else re.sub(r"[^\n]", " ", match[0])


def statements(text):
    """Yields (line, statement) of a script without literals, comments and documents."""
    text = HEREDOC.sub(lambda match: "\n" * match[0].count("\n"), text)
    pending, first = "", 0
    for number, line in enumerate(LITERAL.sub(blank, text.replace("\\\n", "\x01\n")).split("\n"), 1):
        first = first if pending else number
        pending += line.strip() + " "
        if not CONTINUED.search(pending):
            pending = CONDITION.sub("[[ ]]", pending)
            if pending.strip():
                yield first, pending.replace("\x01", " ").strip()
            pending = ""


def unstopped(text):
    """Yields (line, reason) of the tests after which the script goes on."""
    if not re.search(r"^set -\w*e", text, re.M):
        return
    listed = list(statements(text))
    for place, (line, code) in enumerate(listed):
        is_status = listed[place + 1:place + 2] and listed[place + 1][1].startswith("}")
        if is_status or "||" in code or COMPOUND.match(code):
            continue
        if code.startswith("! "):
            yield line, "'! COMMAND' must be 'if COMMAND; then exit 1; fi', since set -e ignores it"
        elif TEST.search(code):
            yield line, "'A && B' must be a line for each command, since set -e ignores a failing A"


def findings(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True,
                            check=True).stdout
    for name in filter(None, listed.split("\0")):
        if not (root / name).is_file():
            continue
        content = (root / name).read_bytes()
        if name.endswith(".sh"):
            for line, reason in unstopped(content.decode()):
                yield f"error: {name}:{line}: {reason}"
        if b"\0" in content:
            for path in sorted(set(FOLDER.findall(content))):
                yield f"error: {name}: a binary file must have no path of a machine, but has '{path.decode()}'"


def main():
    options = parser_of(__doc__).parse_args()
    return finish(findings(options.root))


if __name__ == "__main__":
    sys.exit(main())
