"""scripts/new gemm-test: a test that compiles a GEMM, runs it in the simulator and verifies every bit."""
import collections
import pathlib
import re
import subprocess
import tempfile

from .tree import Refused, check_name, template

M, N, K = 70, 136, 512  # rows and columns that no tile divides
PLAIN = {"bf16": "bf16", "f16": "f16", "e4m3": "f8E4M3FN"}  # element types of an lhs without scales


def formats(tree):
    """{name: (element, block, scale)} of the table of formats."""
    rows = re.findall(r"^FP4_FORMAT\(\w+, (\w+), (\w+), (\d+), (\w+)\)",
                      tree.read("include/fp4/Numerics/Formats.def"), re.M)
    return {name: (f"f{element}", int(block), f"f{scale}") for name, element, block, scale in rows}


def operand(name, rows, facts, isRhs):
    """(arguments, lines of the body, how the GEMM names the operand, its type) of data and scales."""
    format, (element, block, scale) = facts
    data, depth = f"tensor<{rows}x{K}x{element}>", (K + block - 1) // block
    lines = -(-rows // block) if isRhs and scale == "f32" else rows  # blocks of weights are square
    scales = f"tensor<{lines}x{depth}x{scale}>"
    arguments = [f"%{name}: {data}", f"%{name}_scales: {scales}"]

    def bundle(of, types):
        kind = f"!fp4.scaled<{format}, {data}, {types}>"
        return [f"  %{name}_scaled = fp4.scaled %{name}, %{of} : {kind}"], f"%{name}_scaled", [kind]

    if scale == "f32":
        return arguments, *bundle(f"{name}_scales", scales)
    tiled = scales[:-1] + ", #tiled>"
    body = [f"  %{name}_tiled = fp4.swizzle_scales %{name}_scales : {scales} -> {tiled}"]
    scaled, used, types = bundle(f"{name}_tiled", tiled)
    return arguments, body + scaled, used, types


def program(known, lhs, rhs):
    if lhs in PLAIN:
        data = f"tensor<{M}x{K}x{PLAIN[lhs]}>"
        first = [f"%lhs: {data}"], [], "%lhs", [data]
    else:
        first = operand("lhs", M, (lhs, known[lhs]), False)
    arguments, body, text, types = map(list.__add__, map(as_list, first), map(as_list, operand("rhs", N, (rhs, known[rhs]), True)))
    result = f"tensor<{M}x{N}xbf16>"
    tiled = "#tiled = #fp4.scale_layout<tiled_128x4>\n" if any("#tiled" in line for line in body) else ""
    return "\n".join([
        f"{tiled}func.func @gemm({', '.join(arguments[:len(arguments) // 2])},",
        f"                {', '.join(arguments[len(arguments) // 2:])})",
        f'    -> ({result} {{fp4.name = "y"}}) {{', *body,
        f"  %y = fp4.matmul {', '.join(text)}",
        f"      : ({', '.join(types)})", f"      -> {result}",
        f"  return %y : {result}", "}"]) + "\n"


def as_list(value):
    return value if isinstance(value, list) else [value]


def folder(tree, target):
    """The folder of most tests of GEMMs of the target."""
    tests = [path for path in tree.files("test/Runner/**/*.mlir", "test/Runner/**/*.test")
             if "fp4.matmul" in tree.read(path)]
    own = [path for path in tests if f"--target={target}" in tree.read(path)]
    places = collections.Counter(path.rpartition("/")[0] for path in own or tests)
    return places.most_common(1)[0][0] if places else "test/Runner"


def targets(tree):
    return [name for path in tree.files("lib/ISA/*.cpp")
            for name in re.findall(r'^        \.name = "(\w+)",', tree.read(path), re.M)]


def try_compiler(tree, text, target):
    """Refuses a GEMM that the compiler of the build has no kernel for; returns whether there is a compiler."""
    tool = tree.root / "build/bin/fp4-runner"
    if not tool.exists():
        return False
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "gemm.mlir"
        file.write_text(text)
        done = subprocess.run([tool, file, f"--target={target}", "--emit=ptx", "-o", f"{scratch}/"],
                              capture_output=True, text=True)
    if done.returncode:
        said = [line.partition(": ")[2] for line in done.stderr.splitlines() if re.search(r"\b(error|note): ", line)]
        said = [re.sub(r"^.*?(error|note): ", "", line) for line in said] or ["no message", "run the compiler"]
        raise Refused(f"{target} must have a kernel for these formats: {said[0]}", said[1] if len(said) > 1 else
                      "docs list the kernels of each target")
    return True


def add(tree, chosen):
    check_name(chosen.name, r"[a-z][a-z0-9]*(-[a-z0-9]+)*", "lower-case words with hyphens", "mixed-sm120")
    known = formats(tree)
    if chosen.target not in targets(tree):
        raise Refused(f"--target must be a target, but got '{chosen.target}'", f"known targets: {', '.join(targets(tree))}")
    if chosen.lhs not in known and chosen.lhs not in PLAIN:
        raise Refused(f"--lhs must be a format or an element type, but got '{chosen.lhs}'",
                      f"formats: {', '.join(known)}; element types: {', '.join(PLAIN)}")
    if chosen.rhs not in known:
        raise Refused(f"--rhs must be a format, but got '{chosen.rhs}'", f"formats: {', '.join(known)}")
    text = template("gemm.mlir", lhs=chosen.lhs, rhs=chosen.rhs, target=chosen.target,
                    program=program(known, chosen.lhs, chosen.rhs))
    path = f"{folder(tree, chosen.target)}/{chosen.name}.mlir"
    tried = try_compiler(tree, text, chosen.target) if not tree.exists(path) else True
    tree.create(path, text)
    place, _, file = path.rpartition("/")
    return [f"edit {path}: sizes, plans, an alpha, an epilogue region, what else the test is about",
            f"lit-22 -sv build/{place} --filter={file}" + ("" if tried else "; without a build nobody knows yet "
                                                           "whether the target has a kernel"),
            "add a RUN line for each plan and policy that the kernel treats in another way"]
