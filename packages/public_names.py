"""The public names of the Python package and their parameters, read without importing anything."""
import ast
import re

MODULES = ("fp4", "fp4.torch", "fp4.checkpoints", "fp4.compat.flash_attn", "fp4.compat.flashinfer",
           "fp4.compat.torchao", "fp4.compat.vllm", "fp4.transformers", "fp4.dist", "fp4.jax", "fp4.tvm_ffi")


class Package:
    """The modules below a folder, parsed when they are asked for."""

    def __init__(self, root):
        self.root, self.trees = root, {}

    def tree(self, module):
        if module not in self.trees:
            base = self.root.joinpath(*module.split("."))
            file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
            self.trees[module] = ast.parse(file.read_text()) if file.is_file() else None
        return self.trees[module]

    def is_package(self, module):
        return self.root.joinpath(*module.split(".")).is_dir()

    def find(self, module, name):
        """(module, node) of a definition, through the imports of the package."""
        tree = self.tree(module)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.ImportFrom) and node.level:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        parts = module.split(".")
                        parts = parts[:len(parts) - node.level + self.is_package(module)]
                        source = ".".join([*parts, *([node.module] if node.module else [])])
                        return self.find(source, alias.name)
        for node in tree.body if tree is not None else ():
            if getattr(node, "name", None) == name:
                return module, node
        return module, None


def exported(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [entry.value for entry in node.value.elts if isinstance(entry, ast.Constant)]
    return []


def parameters(function, is_method):
    """[name, kind, has a default] of each parameter; kinds are those of a call."""
    given = function.args
    plain = [(argument, "positional") for argument in given.posonlyargs]
    plain += [(argument, "either") for argument in given.args]
    first = len(plain) - len(given.defaults)
    found = [[argument.arg, kind, place >= first] for place, (argument, kind) in enumerate(plain)]
    if is_method:
        found = found[1:]
    found += [[argument.arg, "keyword", default is not None]
              for argument, default in zip(given.kwonlyargs, given.kw_defaults)]
    found += [[argument.arg, kind, True] for argument, kind in
              ((given.vararg, "rest"), (given.kwarg, "named")) if argument]
    return found


def fields(node):
    """The parameters of a dataclass."""
    return [[entry.target.id, "either", entry.value is not None] for entry in node.body
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)]


def is_function(node):
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def describe(name, node):
    """{qualified name: parameters, or None of what is no function}."""
    if is_function(node):
        return {name: parameters(node, False)}
    if not isinstance(node, ast.ClassDef):
        return {name: None}
    found = {name: None}
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        found[name] = fields(node)
    for entry in node.body:
        if is_function(entry) and entry.name == "__init__":
            found[name] = parameters(entry, True)
        elif is_function(entry) and (entry.name == "__call__" or not entry.name.startswith("_")):
            words = [ast.unparse(decorator) for decorator in entry.decorator_list]
            if any(word.endswith(("property", "setter")) for word in words):
                found[f"{name}.{entry.name}"] = None
            elif "overload" not in words:
                found[f"{name}.{entry.name}"] = parameters(entry, "staticmethod" not in words)
    return found


def read(root):
    package, found = Package(root), {}
    for module in MODULES:
        tree = package.tree(module)
        names = exported(tree) if tree is not None else []
        found[module] = {}
        for name in names:
            found[module].update(describe(name, package.find(module, name)[1]))
    return found


def is_error(node):
    return isinstance(node, ast.Raise) or (
        isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "FORMER")


def is_named(package, module, word):
    """An error that gives the new name is in a `raise` of the module, or in its table FORMER."""
    trees = [tree for name, tree in package.trees.items() if tree is not None
             and (name == module or name.startswith(module + "."))]
    return any(isinstance(node, ast.Constant) and isinstance(node.value, str)
               and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", node.value)
               for tree in trees for error in ast.walk(tree) if is_error(error)
               for node in ast.walk(error))


def differences(name, before, now):
    """Yields why a call that was right before may be wrong now."""
    if before is None or now is None:
        return
    later = {entry[0]: entry for entry in now}
    takes_names = any(entry[1] == "named" for entry in now)
    for place, (parameter, kind, has_default) in enumerate(before):
        if parameter not in later:
            if not takes_names:
                yield parameter, f"{name} must take '{parameter}', but does not"
        elif has_default and not later[parameter][2]:
            yield parameter, f"'{parameter}' of {name} must have a default, but has none"
        elif kind == "either" and later[parameter][1] == "keyword":
            yield parameter, f"'{parameter}' of {name} must be positional, but is a keyword"
        elif kind in ("either", "positional") and now.index(later[parameter]) != place:
            yield parameter, f"'{parameter}' of {name} must be parameter {place}, but has moved"
    known = {entry[0] for entry in before}
    for parameter, _, has_default in now:
        if parameter not in known and not has_default:
            yield parameter, f"'{parameter}' of {name} is new and must have a default"


def compare(before, root):
    """Yields what the package below `root` no longer has of a record."""
    now, package = read(root), Package(root)
    for module, names in before.items():
        package.tree(module)
        for name, entry in names.items():
            if name in now.get(module, {}):
                for parameter, finding in differences(f"{module}.{name}", entry, now[module][name]):
                    yield finding
            elif not is_named(package, module, name.split(".")[-1]):
                yield (f"{module} must have {name}, or an error that gives its new name, but has "
                       "neither")
