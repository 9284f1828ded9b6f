"""python.md from docstrings, and c.md from the headers of include/fp4-c."""
import ast
import copy
import inspect
import re

from . import markdown

MODULES = ["", "torch", "checkpoints", "dist", "torchao", "transformers", "jax", "tvm_ffi", "compat.flash_attn",
           "compat.flash_mla", "compat.flashinfer", "compat.torchao", "compat.vllm", "sim"]


#===--- Python ------------------------------------------------------------===#

# The error that the introduction of the page has for every function.
REFUSED = re.compile(r"\n*Raises:\n\n- `UsageError`: an? (?:argument|operand|`x`) (?:that does not fit|of another [\w, ]*)"
                     r"(?:, as in `\w+`|, or an option that has no kernel here)?\.(?: Nothing is converted\.)?\n?\Z")

class Package:
    """The modules of python/fp4, parsed and not imported: some need torch."""

    def __init__(self, root):
        self.root, self.trees = root / "python" / "fp4", {}

    def tree(self, module):
        if module not in self.trees:
            path = self.root.joinpath(*module.split(".")) if module else self.root
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            self.trees[module] = ast.parse(file.read_text()) if file.is_file() else ast.Module([], [])
        return self.trees[module]

    def is_package(self, module):
        return not module or self.root.joinpath(*module.split(".")).is_dir()

    def public(self, module):
        """The names of `__all__`, else of all that is defined without an underscore."""
        for node in self.tree(module).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                return sorted(ast.literal_eval(node.value), key=str.lower)
        return [node.name for node in self.tree(module).body
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]

    def find(self, module, name):
        """The definition of a name, followed through imports; None where it is foreign. Overloads
        have no documentation: the function behind them has."""
        for node in ast.walk(self.tree(module)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                if "overload" not in map(ast.unparse, node.decorator_list):
                    return node
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if getattr(target, "id", "") == name:
                    return node
            if isinstance(node, ast.ImportFrom) and node.level:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        base = module.split(".") if module else []
                        up = node.level - (1 if self.is_package(module) else 0)
                        base = base[:len(base) - up] if up else base
                        return self.find(".".join([*base, *(node.module.split(".") if node.module else [])]),
                                         alias.name)
        return None


def arguments_of(node, name):
    """The arguments as in Python. Functions of other packages have the types that docstrings tell."""
    arguments = copy.deepcopy(node.args)
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg) and name.startswith("fp4.compat."):
            argument.annotation = None
    return re.sub(r"^(self|cls)(, )?", "", ast.unparse(arguments))


def signature(node, name):
    """The fence with the signature; an argument a line where it is long."""
    arguments = arguments_of(node, name)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({arguments}){result}"
    if len(line) > 100:
        line = f"{name}(\n    " + ",\n    ".join(split(arguments)) + f",\n){result}"
    return f"```python\n{line}\n```"


def split(arguments):
    """The arguments of a signature, cut at the commas outside of brackets."""
    depth, parts, last = 0, [""], ""
    for letter in arguments:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def docstring(node):
    """The docstring as Markdown: sections become lists, indented blocks and columns become code."""
    out, inside, columns = [], "", False
    for line in (ast.get_docstring(node) or "").splitlines():
        columns = bool(inside) and line.startswith("      ") and (
            columns or not out[-1] and re.search(r"\S {2,}\S", line) is not None)
        if re.match(r"(Args|Returns|Raises|Attributes|Yields):", line):
            inside, _, rest = line.partition(":")
            out += ["", f"{inside}:{rest}", ""]
        elif columns:
            out.append(line[2:] if line.startswith("      ") else line)
        elif inside in ("Args", "Raises", "Attributes") and re.match(r"    (\*{0,2}\w[\w, *]*): ", line):
            name, _, rest = line.strip().partition(": ")
            out.append(f"- `{name}`: {rest}")
        elif inside and line.startswith("    "):
            out.append("  " + line.strip() if out and out[-1].startswith(("- ", "  ")) else line.strip())
        else:
            inside = "" if line else inside
            out.append(line)
    return REFUSED.sub("\n", markdown.rewrap(code("\n".join(out))))


def code(text):
    """Indented lines outside of lists, as fences."""
    out, fence = [], False
    for line in text.splitlines():
        indented = line.startswith("    ") and not line.lstrip().startswith("- ")
        if indented and not fence:
            out.append("```")
            fence = True
        elif fence and line and not indented:
            while out and not out[-1]:
                out.pop()
            out += ["```", ""]
            fence = False
        out.append(line[4:] if fence else line)
    return "\n".join(out + ["```"] * fence)


def members(name, node):
    """The table of the members of a class, and an entry for each whose docstring has more than a paragraph.

    A constructor that takes what is private is not for the reader.
    """
    rows, entries = [], []
    described = re.search(r"^ *Attributes:", ast.get_docstring(node) or "", re.M)
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and not described and not member.target.id.startswith("_"):
            rows.append((f"`{ast.unparse(member)}`", ""))
        if not isinstance(member, ast.FunctionDef) or member.name.startswith("_") and member.name != "__init__":
            continue
        first, _, rest = inspect.cleandoc(ast.get_docstring(member) or "").partition("\n\n")
        arguments = arguments_of(member, name)
        is_property = "property" in {ast.unparse(decorator) for decorator in member.decorator_list}
        if rest:
            full = f"{name}.{member.name}"
            entries.append("\n\n".join([f"#### `{full}`", signature(member, full), docstring(member)]))
        elif first or member.name == "__init__" and arguments and not re.search(r": _[A-Z]", ast.unparse(member.args)):
            rows.append((f"`{member.name}`" if is_property else f"`{member.name}({arguments})`", first))
    return [markdown.table(["member", "does"], rows), *entries]


def entry(name, node):
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(base for base in map(ast.unparse, node.bases) if not base.startswith("_"))
        parts = [f"### `{name}`", f"Base: `{bases}`." if bases else "", docstring(node), *members(name, node)]
        return "\n\n".join(part for part in parts if part.strip()).strip()
    if isinstance(node, ast.FunctionDef):
        return "\n\n".join([f"### `{name}`", signature(node, name), docstring(node)]).strip()
    return f"### `{name}`\n\n```python\n{ast.unparse(node)}\n```"


def python(root):
    package, body = Package(root), []
    for module in MODULES:
        title = "fp4" + (f".{module}" if module else "")
        body.append(f"## {title}\n\n{docstring(package.tree(module))}".strip())
        for name in package.public(module):
            if (node := package.find(module, name)) is not None and not name.startswith("__"):
                body.append(entry(f"{title}.{name}", node))
    return markdown.page("Python", "the docstrings of python/fp4",
                         "Every public name of the package, with its signature and docstring. A function refuses an "
                         "argument that does not fit, or what has no kernel, with an `fp4.UsageError`; Raises has "
                         "further errors. "
                         "[The guide](../guides/python.md) shows how they fit together.", *body)


#===--- C -----------------------------------------------------------------===#

EXPORTS = "FP4_EXPORT|FP4RT_EXPORT|MLIR_CAPI_EXPORTED|extern(?! \")"
DECLARATION = re.compile(
    r"(?P<comment>/\*\*(?:(?!\*/).)*\*/)?\s*\n"
    r"(?P<code>(?:typedef [^;{]*(?:\{.*?\n\})?[^;{]*;|(?:" + EXPORTS + r") [^;]*;)"
    r"(?:\n(?:" + EXPORTS + r") [^;]*;)*|"
    r"(?:(?:FP4|MLIR)_DECLARE_CAPI_\w+\([^)]*\);[^\n]*\n?)+)", re.S)


def comment(text):
    """The words of a comment without its stars."""
    text = re.sub(r"^/\*[*=]?<?|\*+/$", "", text.strip())
    return inspect.cleandoc("\n".join(re.sub(r"^ ?\*+ ?", "", line) for line in text.strip().splitlines()))


def pointers(declared):
    """A declaration in which the names of the members stand for a table of pointers to functions."""
    names = re.findall(r"\(\*(\w+)\)\(", declared)
    if len(names) < 8:
        return declared
    begin, end = re.search(r"^  [^\n]*\(\*", declared, re.M).start(), declared.rindex("}")
    return declared[:begin] + markdown.wrap(f"/* pointers to {', '.join(names)} */", "  ", "     ") + "\n" + declared[end:]


def header(path):
    text = path.read_text()
    top = comment(re.match(r"/\*.*?\*/", text, re.S)[0])
    top = re.sub(r"^.*-\*- C -\*-.*\n|\n\*?=*-+=*\**\s*$", "", top).strip()
    top = code(re.sub(r"^  (?=\S)", "    ", top, flags=re.M))
    parts, exports = [f"## {path.name}", markdown.rewrap(top)], f"^(?:{EXPORTS}) "
    declarations = list(DECLARATION.finditer(text, text.index("*/")))
    if sum(len(re.findall(exports, one["code"], re.M)) for one in declarations) != len(re.findall(exports, text, re.M)):
        raise SystemExit(f"error: {path.name} exports a function that cannot be read")
    for found in declarations:
        declared = pointers(re.sub(exports, "", found["code"], flags=re.M))
        # An alignment that the macro made is one column block to the left now.
        declared = re.sub(r"\n {12,}", "\n    ", declared)
        words = comment(found["comment"]) if found["comment"] else ""
        parts.append(f"```c\n{declared.strip()}\n```\n\n{markdown.rewrap(words) if words else ''}".strip())
    return "\n\n".join(parts)


def c(root):
    inner = ("LoaderImplementation.h", "LoaderLibrary.h", "LoaderState.h")  # headers that Loader.h includes
    files = sorted(path for path in (root / "include/fp4-c").glob("*.h") if path.name not in inner)
    return markdown.page("C", "the headers of include/fp4-c",
                         "Every declaration of the C API, each with the comment of its header below. "
                         "[The guide](../guides/c.md) shows a whole program.", *(header(file) for file in files))
