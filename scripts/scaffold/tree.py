"""The tree that a scaffold changes: edits are held in memory and written together."""
import os
import pathlib
import re
import tempfile

TEMPLATES = pathlib.Path(__file__).resolve().parent.parent / "templates"
MOST_LINES = 600  # of a file, as check_sizes.py has it


class Refused(Exception):
    """An error of the user, with the remedy."""

    def __init__(self, message, note):
        super().__init__(message)
        self.note = note


class Tree:
    def __init__(self, root):
        self.root, self.texts, self.made = root, {}, set()

    def exists(self, path):
        return path in self.texts or (self.root / path).exists()

    def read(self, path):
        if path not in self.texts:
            return (self.root / path).read_text()
        return self.texts[path]

    def create(self, path, text):
        if self.exists(path):
            raise Refused(f"{path} must be a new file, but exists", "choose another name, or edit that file")
        self.made.add(path)
        self.texts[path] = text

    def write(self, path, text):
        if text != self.read(path):
            self.texts[path] = text

    def insert(self, path, place, text):
        """Puts `text` at the offset `place` of the file."""
        old = self.read(path)
        self.write(path, old[:place] + text + old[place:])

    def files(self, *patterns):
        """Paths below the root that match, in order, without those of builds."""
        found = {path.relative_to(self.root).as_posix() for pattern in patterns
                 for path in self.root.glob(pattern) if path.is_file()}
        return sorted(found)

    def find(self, pattern, *globs):
        """(path, match) of the first file whose text has the pattern, or (None, None)."""
        for path in self.files(*globs):
            if match := re.search(pattern, self.read(path), re.M | re.S):
                return path, match
        return None, None

    def need(self, what, pattern, *globs):
        """As find, but a text without the pattern is an error."""
        path, match = self.find(pattern, *globs)
        if not path:
            raise Refused(f"expects {what} in {', '.join(globs)}, but found none",
                          "the tree has changed: teach scripts/scaffold where it is now")
        return path, match

    def written(self):
        """(path, whether it is new) of the files that change."""
        return [(path, path in self.made) for path in sorted(self.texts)]

    def apply(self):
        """Writes every file, or none: first beside its place, then with renames that are undone together."""
        staged, done, path = {}, {}, ""
        try:
            for path, text in self.texts.items():
                staged[path] = stage(self.root / path, text)
            for path in list(staged):
                before = None if path in self.made else (self.root / path).read_bytes()
                os.replace(staged.pop(path), self.root / path)
                done[path] = before
        except OSError as error:
            for name, before in done.items():
                (self.root / name).unlink() if before is None else (self.root / name).write_bytes(before)
            for file in staged.values():
                os.unlink(file)
            raise Refused(f"{path} must be writable, but is not: {error.strerror.lower()}",
                          "make its folder writable; no file was changed") from error


def stage(path, text):
    """A file with the text and the mode of `path`, in the folder of `path`."""
    mode = path.stat().st_mode if path.exists() else 0o644
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".new-", delete=False) as file:
        file.write(text)
    os.chmod(file.name, mode & 0o777)
    return file.name


def template(file, /, **values):
    """The template with each @key@ replaced by its value."""
    text = (TEMPLATES / file).read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def check_name(name, pattern, form, example):
    if not re.fullmatch(pattern, name):
        raise Refused(f"name must be {form}, but got '{name}'", f"write it like {example}")


def check_summary(summary):
    text = summary.strip()
    if not text or not re.fullmatch(r'[^"\\@\n{}\[\]]{1,72}', text) or text.endswith("."):
        raise Refused(f"summary must be one line of 1 to 72 characters without quotes, brackets, braces, '@' and "
                      f"a full stop, but got '{summary}'", "say what it is or does, as in \"largest magnitude of a matrix\"")
    return text


def camel(name):
    return "".join(word[:1].upper() + word[1:] for word in re.split("[-_]", name))


def sentence(summary):
    return summary[0].upper() + summary[1:] + "."


def header(file, summary):
    """The first line of a source file, 80 columns wide where the summary leaves room."""
    head = f"//===- {file} - {summary} "
    return head + "-" * max(3, 74 - len(head)) + "===//"


def banner(summary, room):
    """The summary, cut at a word where the first line of a file has no more room."""
    return summary if len(summary) <= room else summary[:room].rsplit(" ", 1)[0]


def list_source(tree, cmake, file):
    """Adds `file` to the SOURCES of a library, in alphabetical order."""
    text = tree.read(cmake)
    block = re.search(r"SOURCES\n((?: +[\w/.]+\.cpp\n)+)", text)
    if not block:
        raise Refused(f"{cmake} must list SOURCES one a line, but does not",
                      "the tree has changed: teach scripts/scaffold how sources are listed now")
    lines = block[1].splitlines(keepends=True)
    indent = re.match(" +", lines[0])[0]
    later = [i for i, line in enumerate(lines) if line.strip() > file and "/" not in line]
    place = min(later) if later else len(lines)
    tree.insert(cmake, block.start(1) + sum(map(len, lines[:place])), f"{indent}{file}\n")


def with_room(tree, paths, lines):
    """The first of the files that `lines` more lines leave short enough, or a refusal."""
    for path in paths:
        if tree.read(path).count("\n") + lines <= MOST_LINES:
            return path
    raise Refused(f"expects room for {lines} more lines in {' or '.join(paths)}, but there is none",
                  f"files have at most {MOST_LINES} lines: split one first")
