"""scripts/new pass: an entry of Passes.td, a source file, its CMake entry and a test."""
import re

from .tree import Refused, banner, camel, check_name, check_summary, header, list_source, sentence, template


def refuse_existing(tree, flag):
    path, _ = tree.find(rf'^def \w+ : Pass<"{flag}"', "include/**/Passes.td")
    if path:
        raise Refused(f"pass '{flag}' must be new, but is in {path}", "choose another name, or edit that record")


def add(tree, chosen):
    low, name = chosen.dialect, chosen.name
    check_name(name, r"[a-z][a-z0-9]*(-[a-z0-9]+)*", "lower-case words with hyphens", "specialize-warps")
    if name.startswith(f"{low}-"):
        raise Refused(f"name must not repeat the dialect, but got '{name}'",
                      f"write '{name.removeprefix(low + '-')}': the pass is then called {name}")
    summary, dialect, cpp, flag = check_summary(chosen.summary), low.capitalize(), camel(name), f"{low}-{name}"
    refuse_existing(tree, flag)
    room, file = f"Dialect/{dialect}/Transforms", f"{cpp}.cpp"
    passes = f"include/fp4/{room}/Passes.td"
    namespace = re.search(r"^namespace ([\w:]+) \{", tree.read(f"include/fp4/{room}/Passes.h"), re.M)[1]
    example = template(f"{low}_pass_example.mlir").replace("@flag@", flag)
    values = {"flag": flag, "Class": cpp, "dialect": low, "namespace": namespace, "Dialect": dialect,
              "summary": summary[0].upper() + summary[1:], "Summary": sentence(summary), "room": room,
              "header": header(file, banner(summary[0].upper() + summary[1:], 60 - len(file))), "DEF": cpp.upper(),
              "example": indented(example), "twin": example.partition("\n")[2].rstrip("\n")}
    entry = template("pass.td", **values)
    tree.insert(passes, tree.read(passes).rindex("\n#endif"), "\n" + entry)
    tree.create(f"lib/{room}/{file}", template("pass.cpp", **values))
    list_source(tree, f"lib/{room}/CMakeLists.txt", file)
    tests = f"test/{room}" if (tree.root / f"test/{room}").is_dir() else f"test/Dialect/{dialect}"
    tree.create(f"{tests}/{name}.mlir", template("pass.mlir", **values))
    return [f"edit lib/{room}/{file} and the record {cpp} of {passes}: why, precondition, what holds afterwards",
            f"ninja -C build fp4-opt && lit-22 -sv build/{tests} --filter={name}",
            "add the pass to a pipeline of lib/Pipelines, unless only tools run it"]


def indented(text):
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True)).rstrip("\n")
