"""scripts/new op: a record, a verifier, its rule, a round trip, and an invalid program with a passing twin."""
import re

from .tree import Refused, camel, check_name, check_summary, header, list_source, sentence, template, with_room

# A record of an operation: its class, its mnemonic, and no more.
RECORD = r'^def \w+Op\s*:[^"{]*"(\w+)"'


def records(tree, dialect):
    """The .td files with operations of the dialect, the main one first."""
    folder = f"include/fp4/Dialect/{dialect}/IR"
    found = [path for path in tree.files(f"{folder}/*.td")
             if re.search(RECORD, tree.read(path), re.M)]
    return sorted(found, key=lambda path: not path.endswith(f"/{dialect}Ops.td"))


def free_label(tree, dialect):
    """A label of three digits that no file of the dialect has: labels of pipe are unique."""
    texts = [tree.read(path) for path in tree.files(
        "docs/**/*.md", f"include/fp4/Dialect/{dialect}/**/*.td", f"lib/Dialect/{dialect}/**/*",
        f"test/Dialect/{dialect}/**/*.mlir")]
    used = {int(label) for text in texts for label in re.findall(r"\(C(\d\d\d)\)", text)}
    return f"C{min(set(range(max(used) + 1, 1000)) or set(range(101, 1000)) - used)}"


def add_record(tree, dialect, text):
    """Puts the record behind the last one of a file that has room; returns the file."""
    path = with_room(tree, records(tree, dialect), text.count("\n") + 1)
    place = tree.read(path).rindex("\n}\n") + len("\n}\n")
    tree.insert(path, place, "\n" + text)
    return path


def add_rule(tree, dialect, name, label, rule):
    """Adds the rule to the .td of constraints, or to the document that lists constraints."""
    item = f"- ({label}) {rule}\n"
    record = f'def : {dialect}_Constraints<"{name}", [{{\n  {item}}}]>;\n\n'
    path, _ = tree.find(rf"^def : {dialect}_Constraints<", f"include/**/{dialect}Constraints.td")
    if dialect == "Fp4" and path:
        tree.insert(path, tree.read(path).rindex("#endif"), record)
    elif dialect == "Fp4":
        path, _ = tree.need("the rules of operations", r"^## `fp4\.\w+`\n(?:[^#]*\n)?- \(C1\)", "docs/**/*.md")
        text = tree.read(path).rstrip("\n")
        tree.write(path, f"{text}\n\n## `fp4.{name}`\n{item}")
    else:
        globs = [path] if path else ["docs/**/*.md"]
        head = rf'"{ANY_ROLE}", \[\{{\n' if path else rf"^## {ANY_ROLE}\n"
        path, match = tree.need(f"the rules of '{ANY_ROLE}'", head + r".*?(?=\n\}\]|\n+## )", *globs)
        indent = "  " if path.endswith(".td") else ""
        tree.insert(path, match.end(), f"\n{indent}- ({label}) `pipe.{name}`: {rule}")


ANY_ROLE = "Operations of any role"


def reify(tree, cpp_class):
    """Lets result sizes follow from the first operand, by the macro that other operations use."""
    path, match = tree.need("a macro that reifies shapes", r"^#define (\w+)\((\w+)\)[ \\]*\n +LogicalResult \2::reifyResultShapes",
                            "lib/Dialect/Fp4/IR/*.cpp")
    tree.insert(path, tree.read(path).index(f"\n#undef {match[1]}"), f"{match[1]}({cpp_class})\n")


def refuse_existing(tree, dialect, name):
    known = {}
    for path in records(tree, dialect):
        known |= {word: path for word in re.findall(RECORD, tree.read(path), re.M)}
    if name in known:
        raise Refused(f"operation '{dialect.lower()}.{name}' must be new, but is in {known[name]}",
                      "choose another name, or edit that record")
    path, _ = tree.find(rf"\b(?:class|struct) {camel(name)}Op\b", f"include/fp4/**/*.h", f"lib/Dialect/{dialect}/**/*")
    if path:
        raise Refused(f"class {camel(name)}Op of '{name}' must be new, but is in {path}", "choose another name")


def append_test(tree, path, text):
    tree.write(path, tree.read(path).rstrip("\n") + "\n\n" + text)


def add(tree, chosen):
    check_name(chosen.name, r"[a-z][a-z0-9]*(_[a-z0-9]+)*", "lower-case words with underscores", "swizzle_scales")
    summary, low = check_summary(chosen.summary), chosen.dialect
    dialect, name, cpp = low.capitalize(), chosen.name, camel(chosen.name)
    refuse_existing(tree, dialect, name)
    label = "C1" if low == "fp4" else free_label(tree, dialect)
    file = f"{cpp}Op.cpp"
    values = {"name": name, "Class": f"{cpp}Op", "summary": summary, "Summary": sentence(summary), "label": label,
              "header": header(file, f"The verifier of {low}.{name}"), "test": f"invalid-{name.replace('_', '-')}.mlir"}
    path = add_record(tree, dialect, template(f"{low}_op.td", **values))
    tree.create(f"lib/Dialect/{dialect}/IR/{file}", template(f"{low}_op.cpp", **values))
    list_source(tree, f"lib/Dialect/{dialect}/IR/CMakeLists.txt", file)
    if low == "fp4":
        reify(tree, f"{cpp}Op")
    add_rule(tree, dialect, name, label, "`input` is a matrix." if low == "fp4" else "`count` is at least 1.")
    tests = f"test/Dialect/{dialect}"
    append_test(tree, f"{tests}/ops.mlir", template(f"{low}_op_ops.mlir", **values))
    if low == "pipe":
        append_test(tree, f"{tests}/examples.mlir", template("pipe_op_example.mlir", **values))
    tree.create(f"{tests}/{values['test']}", template(f"{low}_op_invalid.mlir", **values))
    return [f"edit the record of {low}.{name} in {path}, beside its like: description, operands, rules; "
            "its example and the test stay equal",
            f"ninja -C build fp4-opt && lit-22 -sv build/test/Dialect/{dialect}",
            f"give it a kernel or a lowering; the scaffold has none, so pipelines refuse {low}.{name}"]
