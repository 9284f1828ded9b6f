"""scripts/new recipe: a row of Recipes.def, its model, its row in the documents, and goldens made anew.

The row has the decisions of its like but for one, because equal recipes are one attribute and the tests
refuse a second name for it. The model is that of the like, with the codes that the decision changes.
"""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from .tree import Refused, check_name, with_room

TABLE, FORMATS = "include/fp4/Numerics/Recipes.def", "include/fp4/Numerics/Formats.def"
ROW = re.compile(r'^FP4_RECIPE\((\w+), (\w+),\s*"([^"]*)"(.*?)\)\n', re.M | re.S)
FORMAT = r"^FP4_FORMAT\({}, (\w+), (\w+), (\d+), (\w+)\)"
# The lambda of a model whose codes c, beside scales s, become those of the changed decision.
MODEL = "lambda {arguments}: (lambda s, c: (s, {codes}))(*{call})"
DROPPED = "np.where(np.isnan(x), F(0), x)"  # elements of which no NaN reaches the amax


class Change:
    """A decision that differs from that of the like, and the codes that follow."""

    def __init__(self, member, value, codes=""):
        self.member, self.value, self.codes = member, value, codes


def decisions_of(text):
    """{member: value} of the end of a row."""
    return dict(re.findall(r"\.(\w+) = ([^,]+?)(?=,|\Z)", " ".join(text.split())))


def change_of(decisions, element, scale):
    """The decision to change, such that codes follow from those of the like."""
    if scale == "32":
        return Change("amaxFloor", f"{float(decisions.get('amaxFloor', '1f')[:-1]) / 2:g}f")
    if not element.startswith("4"):
        nan = "0x7F" if element.startswith("8") else "0x1F"
        return Change("amaxNaN", "NanPolicy::Drop", f"np.where(np.isnan(x), {nan}, c)")
    if decisions.get("negativeZero") != "NegativeZero::Never":
        return Change("negativeZero", "NegativeZero::Never", "np.where(c == 8, 0, c)")
    # With this guard the elements under a scale of 0 are zeros, NaN too.
    isGuarded = decisions.get("guard") == "FactorGuard::ZeroIfScaleZero"
    value, code = ("Six", 7) if decisions.get("nanElement") == "NanElement::Zero" else ("Zero", 0)
    return Change("nanElement", f"NanElement::{value}",
                  f"np.where(np.isnan(x){' & (s != 0)[:, None]' * isGuarded}, {code}, c)")


def different(tree, like, name):
    """(kind of format, element, scale, decisions, change) of a row that equals no other."""
    rows = {row: (kind, decisions_of(rest)) for row, kind, _, rest in ROW.findall(tree.read(TABLE))}
    kind, decisions = rows[like]
    _, element, _, scale = re.search(FORMAT.format(kind), tree.read(FORMATS), re.M).groups()
    change = change_of(decisions, element, scale)
    decisions = {**decisions, change.member: change.value}
    for other, row in rows.items():
        if row == (kind, decisions):
            raise Refused(f"'{name}' must differ from every recipe, but would equal '{other}'",
                          f"edit the decisions of '{other}' first, or take it for --like")
    return kind, element, scale, decisions, change


def wrapped(head, items):
    """A row of the table in lines of at most 100 columns."""
    lines = [head]
    for item in items:
        if len(lines[-1]) + len(item) + 3 > 100:
            lines[-1] += ","
            lines.append(" " * 11 + item)
        else:
            lines[-1] += f", {item}"
    return "\n".join(lines) + ")\n"


def add_row(tree, name, like, kind, decisions):
    """Puts the row behind the last one of its format: the first is the default of the format."""
    place = [row for row in ROW.finditer(tree.read(TABLE)) if row[2] == kind][-1].end()
    order = re.findall(r"^FP4_DECISION\(\w+, (\w+)|^FP4_NUMBER\((\w+)", tree.read(TABLE), re.M)
    order = [decision or number for decision, number in order]  # C++ wants members as they are declared
    items = [f".{member} = {decisions[member]}" for member in sorted(decisions, key=order.index)]
    tree.insert(TABLE, place, wrapped(f'FP4_RECIPE({name}, {kind}, "as {like}, to be edited"', items))


#===--- The model ---------------------------------------------------------===#


def model_of(tree, recipe):
    """The name of the model of a recipe, which tests map where the names differ."""
    _, table = tree.need("the names of models", r"std::map<std::string, std::string> \w+ = \{\n(.*?)^\};",
                         "unittests/Numerics/*.h")
    match = re.search(rf'\{{"(\w+)", "{recipe}"\}}', table[1])
    return match[1] if match else recipe


def end_of_assignment(tree, variable):
    """(file, offset behind it) of the statement that defines a list of models."""
    path, _ = tree.need(f"the models {variable}", rf"^{variable} = ", "oracles/**/*.py")
    text = tree.read(path)
    last = next(node.end_lineno for node in ast.parse(text).body if isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", None) == variable)
    return path, sum(map(len, text.splitlines(keepends=True)[:last]))


def call_of(tree, model, element, arguments):
    """The expression that calls a model, and (file, offset) where the entry of another goes."""
    path, entry = tree.find(rf'^    "{model}": ([^\n]*),\n(?:    [^\n]*\n)*(?=\}})', "oracles/**/*.py")
    if path:
        body = re.fullmatch(rf"lambda {arguments}: (.*)", entry[1])
        return body[1] if body else f"{entry[1]}({arguments})", path, entry.end()
    if element.startswith("4"):  # a mode of mx_quant, whose code of NaN is that of torchao
        tree.need(f"the model '{model}' of MXFP4", rf'^MXFP4_MODELS = \[[^\]]*"{model}"', "oracles/**/*.py")
        path, function = tree.need("mx_quant", r"^def mx_quant\(.*?(?=^\S)", "oracles/**/*.py")
        body = function[0].replace("(x, mode):", "(x, mode, nan=3):").replace("nan=3)\n", "nan=nan)\n")
        tree.write(path, tree.read(path).replace(function[0], body))
        path, end = end_of_assignment(tree, "MXFP4_VARIANTS")
        return f'mx_quant(x, "{model}", NAN_CODE)', path, tree.read(path).rindex("}", 0, end)
    return f'WIDE_MODELS["{model}"]({DROPPED})', *end_of_assignment(tree, "WIDE_MODELS")


def add_model(tree, name, like, element, scale, change):
    """Registers a model: that of the like, with the codes that the change gives."""
    model, arguments = model_of(tree, like), "x, a" if scale == "8E4M3FN" else "x"
    call, path, place = call_of(tree, model, element, arguments)
    text = MODEL.format(arguments=arguments, codes=change.codes, call=call)
    isWide = not element.startswith("4")
    with_room(tree, [path], 1)
    tree.insert(path, place, f'WIDE_MODELS["{name}"] = {text}\n' if isWide else f'    "{name}": {text},\n')
    path, entry = tree.need("the models that round to nearest alone", r"^NEAREST_ONLY = \[", "oracles/**/*.py")
    if not isWide:
        tree.insert(path, entry.end(), f'"{name}", ')


def remake_goldens(tree):
    """Runs the programs of goldens.sh on a copy of what they read, and takes over the files."""
    script = tree.read("test/scripts/goldens.sh")
    programs = re.findall(r'"\$root/([\w/]+\.py)" "\$folder"', script)
    python = os.environ.get("FP4_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        copy, made = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "made"
        made.mkdir()
        for part in ("oracles", "validation", "lib/Numerics", "include/fp4/Numerics", "unittests/Numerics"):
            shutil.copytree(tree.root / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        for path, text in tree.texts.items():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_text(text)
        for program in programs:
            done = subprocess.run([python, copy / program, made], capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
                raise Refused(f"{program} must remake the goldens, but failed: {last}",
                              "the goldens need numpy: name a Python that has it in FP4_PYTHON")
        for file in sorted(made.iterdir()):
            path = tree.files(f"unittests/Numerics/**/{file.name}")[0]
            tree.write(path, file.read_text())


def add_document(tree, name, like):
    """A row below that of the like in the table of sources, where the documents have one by hand."""
    path, row = tree.find(rf"^\| {like} \| (\w+) \|[^\n]*\n", "docs/**/*.md")
    if path:
        tree.insert(path, row.end(), f"| {name} | {row[1]} | as {like}, to be edited | – | – |\n")
    return path


def add(tree, chosen):
    name, like = chosen.name, chosen.like
    check_name(name, r"[a-z][a-z0-9]*(_[a-z0-9]+)*", "lower-case words with underscores", "mxfp4_vllm")
    rows = {row[1]: row[2] for row in ROW.finditer(tree.read(TABLE))}
    if like not in rows:
        raise Refused(f"--like must be a recipe, but got '{like}'", f"known recipes: {', '.join(rows)}")
    if name in rows:
        raise Refused(f"recipe '{name}' must be new, but is in {TABLE}", "choose another name, or edit that row")
    path, _ = tree.find(rf'^    "{name}": |_MODELS = \[[^\]]*"{name}"', "oracles/**/*.py")
    if path:
        raise Refused(f"recipe '{name}' must have a name that no model has, but {path} has it", "choose another name")
    kind, element, scale, decisions, change = different(tree, like, name)
    add_row(tree, name, like, kind, decisions)
    if scale != "32":  # formats under an f32 have hand-written numbers in place of models
        add_model(tree, name, like, element, scale, change)
        remake_goldens(tree)
    document = add_document(tree, name, like)
    return [f"edit the row of {name} in {TABLE}: it differs from {like} in '{change.member}' alone, since equal recipes are one",
            "write its model from the source of the library, and remake the goldens (CONTRIBUTING.md, 'Add something')"
            + (f"; give {document} the source" if document else "") + "; then docgen/reference_recipes.py, for its tables",
            "ninja -C build FP4NumericsTests && build/unittests/FP4NumericsTests && test/scripts/goldens.sh"]
