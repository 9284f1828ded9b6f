#!/usr/bin/env python3
"""Draws the diagrams of the documents as SVG files in docs/images.

  floors.svg  the folders of lib and tools, floor by floor, from what they include
  levels.svg  one tile of a GEMM at every level, from the IR and the PTX of an example
  roles.svg   the roles and channels of its kernel, from the IR of the phases `roles` and `pipelined`

  docgen/draw_diagrams.py --build build           writes the files
  docgen/draw_diagrams.py --build build --check   exits with 1 where a file is not what would be written

A build without the compiler (no fp4-opt) draws and checks floors.svg alone, and says so. A folder that
includes a header of a higher floor is an error.
"""
import argparse
import collections
import html
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "nvfp4_linear.mlir"
TARGET = "sm_100a"

#===--- SVG ---------------------------------------------------------------===#

INK, PALE, LINE = "#1f2430", "#5b6472", "#8a93a3"
FILLS = ["#e8f0fb", "#eaf6ec", "#fdf3e2", "#f4ecf9"]
GLYPH = {12: 7.25, 13: 7.6, 15: 8.6}  # columns of a monospaced font and a little air


class Svg:
    def __init__(self, title):
        self.title, self.parts, self.width, self.height = title, [], 0, 0

    def reach(self, x, y):
        self.width, self.height = max(self.width, x), max(self.height, y)

    def box(self, x, y, width, height, fill):
        self.reach(x + width, y + height)
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" '
                          f'stroke="{LINE}"/>')

    def text(self, x, y, words, size=12, ink=INK, bold=False, mono=True):
        family = "ui-monospace, Menlo, Consolas, monospace" if mono else "system-ui, Helvetica, Arial, sans-serif"
        weight = ' font-weight="600"' if bold else ""
        self.reach(x + GLYPH[size] * len(words), y)
        self.parts.append(f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}" fill="{ink}"{weight} '
                          f'xml:space="preserve">{html.escape(words)}</text>')

    def arrow(self, points):
        path = " ".join(f"{x},{y}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{PALE}" stroke-width="1.6" '
                          'marker-end="url(#head)"/>')

    def __str__(self):
        width, height = round(self.width + 16), round(self.height + 16)
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">',
            f"<title>{html.escape(self.title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{PALE}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *self.parts, "</svg>", ""])


#===--- Floors ------------------------------------------------------------===#

FLOORS = ["facts", "devices", "compiler", "tools"]
FLOOR_TEXT = ["facts: targets, layouts, formats, recipes and references; they need no device",
              "devices: the simulator, the CUDA driver, and the code that runs programs on them",
              "compiler: the dialects and passes, with LLVM and MLIR",
              "tools: the white ones need no LLVM"]


def includes():
    """{folder: the folders whose headers it includes}, and the folders that include LLVM or MLIR."""
    listed = subprocess.run(["git", "ls-files", "lib", "include", "tools"], cwd=ROOT, capture_output=True,
                            text=True, check=True).stdout.split()
    used, llvm = collections.defaultdict(set), set()
    for name in listed:
        parts = name.split("/")
        if len(parts) < 3 or (parts[0] == "include" and (parts[1] != "fp4" or len(parts) < 4)):
            continue
        folder = "tools/" + parts[1] if parts[0] == "tools" else "lib/" + parts[1 if parts[0] == "lib" else 2]
        for header in re.findall(r'^#include ["<]([^">]+)', (ROOT / name).read_text(errors="replace"), re.M):
            if header.startswith(("llvm/", "mlir/")):
                llvm.add(folder)
            elif match := re.match(r"fp4/(\w+)/", header):
                used[folder].add("lib/" + match.group(1))
        used[folder].discard(folder)
    return {folder: {other for other in others if other in used} for folder, others in sorted(used.items())}, llvm


def floors_of(used, llvm):
    """{folder: index of its floor}. Devices are the simulator and whatever uses it or another device."""
    devices = {"lib/Sim"}
    while more := {folder for folder, others in used.items() if others & devices} - devices:
        devices |= more
    return {folder: 3 if folder.startswith("tools/") else 2 if folder in llvm else 1 if folder in devices else 0
            for folder in used}


def draw_floors():
    used, llvm = includes()
    floor = floors_of(used, llvm)
    for folder, others in used.items():
        for other in sorted(others):
            if floor[other] > floor[folder]:
                raise SystemExit(f"error: {folder} ({FLOORS[floor[folder]]}) includes a header of {other} "
                                 f"({FLOORS[floor[other]]}), a floor above")
    svg = Svg("The floors of the house: a floor uses only what is below it")
    y = 16
    for index in reversed(range(4)):
        folders = [folder for folder in used if floor[folder] == index]
        svg.box(16, y, 860, 74, FILLS[index])
        svg.text(30, y + 24, FLOOR_TEXT[index], 13, PALE, mono=False, bold=True)
        x = 30
        for folder in folders:
            width = GLYPH[12] * len(folder) + 10
            svg.box(x, y + 38, round(width), 24, FILLS[2] if index == 3 and folder in llvm else "#ffffff")
            svg.text(x + 6, y + 54, folder)
            x = round(x + width + 6)
        y += 86
        if index == 2:
            svg.box(16, y, 860, 4, PALE)
            svg.text(30, y + 22, "no LLVM or MLIR below this line: plain C++20", 12, PALE, mono=False)
            y += 36
    return svg


#===--- The kernel's IR ---------------------------------------------------===#


class Compiler:
    def __init__(self, build):
        self.build, self.texts = build, {}

    def run(self, *command):
        if command not in self.texts:
            done = subprocess.run([self.build / "bin" / command[0], *command[1:]], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"error: {' '.join(map(str, command))}: {done.stderr}")
            self.texts[command] = done.stdout
        return self.texts[command]

    def phase(self, phase):
        return self.run("fp4-opt", EXAMPLE, f"--compile-to={phase}", f"--target={TARGET}")

    def module(self):
        """The name of the module whose kernel has roles; of several, of that for most rows, the last."""
        for part in reversed(self.phase("roles").split("gpu.module @")[1:]):
            if re.search(r"pipe\.role\b", part):
                return re.match(r"\w+", part).group()
        raise SystemExit(f"error: no kernel of {EXAMPLE.name} has a pipe.role after phase roles")

    def kernel(self, phase):
        """The lines of that kernel, types written in full."""
        text = self.phase(phase)
        aliases = dict(re.findall(r"^(!\w+) = (.*)$", text, re.M))
        body = text.split(f"gpu.module @{self.module()} ", 1)[-1].split("\n  gpu.module @")[0]
        return [re.sub(r"!\w+\b(?!\.)", lambda match: aliases.get(match.group(), match.group()), line)
                for line in body.splitlines()]

    def ptx(self):
        return self.run("fp4-runner", EXAMPLE, f"--target={TARGET}", "--emit=ptx", f"--kernel={self.module()}")


#===--- Levels ------------------------------------------------------------===#

# The operations that make the tile of A, its scales, and the result, by their beginnings.
TILES = ["operand A", "its scale factors", "the result"]
PIPE_OPS = [("load",), ("copy_scales",), ("accumulator", "mma", "read", "store")]
NVVM_OPS = [("cp.async.bulk.tensor",), ("cp.async.bulk.shared", "tcgen05.cp"),
            ("tcgen05.mma", "tcgen05.ld", "llvm.store")]
PTX_OPS = [("cp.async.bulk.tensor",), ("cp.async.bulk.shared", "tcgen05.cp."),
           ("tcgen05.mma", "tcgen05.ld", "st.global")]


def first(found):
    return list(dict.fromkeys(found))


def fused_level(compiler):
    lines = compiler.phase("fused").splitlines()
    product = next(line for line in lines if "fp4.matmul " in line)
    lhs = re.search(r" : \((![\w.]+)", product)[1]
    bundle = next(line for line in lines if line.startswith(f"{lhs} = "))
    data, scales = re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", bundle)
    return [["fp4.matmul", data], [scales], [product.rsplit(" -> ", 1)[1]]]


def pipe_level(compiler, phase):
    """Takes the first of several operations of one name, for A and B or their scales."""
    cells, seen = [[], [], []], set()
    lines = compiler.kernel(phase)
    stages = dict(re.findall(r"%(\w+) = pipe\.channel .*? depth (\d+)", "\n".join(lines)))
    for line in lines:
        if not (match := re.search(r"pipe\.(\w+)", line)) or match.group(1) in seen:
            continue
        for cell, names in zip(cells, PIPE_OPS):
            if match.group(1) in names:
                seen.add(match.group(1))
                cell += pipe_lines(match.group(1), line, stages)
    return cells


def pipe_lines(name, line, stages):
    """An operation, its place, and the type of the tile that it makes or fills."""
    operands, types = line.split(" : ", 1)
    channel = re.search(r"signals %(\w+)", operands)
    made = types.rsplit(" -> ", 1)[1] if " -> " in types else next(iter(
        re.findall(r"!pipe\.(?:shared|tmem)<[^>]*>", types) + re.findall(r"!pipe\.global<[^>]*>", types)))
    into = "" if not channel else f" into 1 of {stages[channel.group(1)]} stages" if stages else " into a stage"
    place = "".join(re.findall(r" at \d+| sets \d+", operands))
    return [f"pipe.{name}{into}{place}", "  " + made]


def instruction_level(text, prefixes, pattern):
    names = first(re.findall(pattern, text, re.M))
    return [[name for prefix in some for name in names if name.startswith(prefix)] for some in prefixes]


def levels(compiler):
    nvvm = "\n".join(compiler.kernel("nvvm"))
    yield "fused", "tensors", fused_level(compiler)
    yield "tiles", "sequential tiles", pipe_level(compiler, "tiles")
    yield "roles", "roles and channels", pipe_level(compiler, "roles")
    yield "pipelined", "depths and places", pipe_level(compiler, "pipelined")
    yield "nvvm", "NVVM operations", instruction_level(nvvm, NVVM_OPS, r"(?:nvvm\.|(?=llvm\.store))([a-z][\w.]+)")
    yield "ptx", "instructions", instruction_level(compiler.ptx(), PTX_OPS,
                                                   r"^\s+(?:@\S+\s+)?((?:cp|tcgen05|st)\.[\w.:]+)")


def draw_levels(compiler):
    svg = Svg("One tile of an NVFP4 GEMM at every level of the compiler")
    rows = list(levels(compiler))
    # Long names continue on a second line.
    cells = [[[piece for line in cell for piece in split(line)] for cell in row[2]] for row in rows]
    widths = [max(GLYPH[12] * len(line) for row in cells for line in row[column]) + 24 for column in range(3)]
    lefts = [150, 150 + widths[0] + 10, 150 + widths[0] + widths[1] + 20]
    for left, title in zip(lefts, TILES):
        svg.text(round(left + 10), 28, title, 13, PALE, mono=False, bold=True)
    y = 40
    for (phase, text, _), row in zip(rows, cells):
        height = 18 * max(len(cell) for cell in row) + 14
        svg.text(16, y + 22, phase, 13, bold=True)
        svg.text(16, y + 38, text, 12, PALE, mono=False)
        for left, width, cell in zip(lefts, widths, row):
            svg.box(round(left), y, round(width), height, FILLS[lefts.index(left)])
            for at, line in enumerate(cell):
                svg.text(round(left + 10), y + 20 + 18 * at, line)
        y += height + 22
        if phase != rows[-1][0]:
            for left, width in zip(lefts, widths):
                svg.arrow([(round(left + width / 2), y - 21), (round(left + width / 2), y - 3)])
    return svg


def split(line, most=46):
    """A long name in lines that break before a dot or after a comma."""
    if len(line) <= most:
        return [line]
    at = max(line.rfind(".", 0, most), line.rfind(" ", 0, most))
    return [line[:at], *split("    " + line[at:].strip(), most)] if at > 4 else [line]


#===--- Roles and channels ------------------------------------------------===#


class Role:
    def __init__(self, name, rest):
        # The warps of the role, and on a second line what it drives.
        self.name, self.rest, self.lines, self.verbs = name, rest.replace(" drives", "\ndrives").split("\n"), [], {}


def roles_of(lines):
    """The roles of a kernel with their loops and pipe operations, and {channel: (ends, type)}."""
    roles, channels, role, depth = [], {}, None, 0
    for line in lines:
        if match := re.search(r"%(\w+) = pipe\.channel (.*?) : (.*)$", line):
            channels[match.group(1)] = match.group(2), match.group(3)
        elif match := re.search(r"pipe\.role\s+(\w+)\s*(.*?)\s*\{$", line):
            role, depth = Role(*match.groups()), 0
            roles.append(role)
            continue
        if role is None:
            continue
        if line.strip() == "}":
            if depth == 0:
                role = None
            else:
                depth -= 1
            continue
        if match := re.search(r"(?:%.* = )?(pipe\.\w+|scf\.\w+)", line):
            add(role, match.group(1), line, depth, channels)
        depth += line.rstrip().endswith("{")
    return roles, channels


def add(role, operation, line, depth, channels):
    name = operation.removeprefix("pipe.").removeprefix("scf.")
    channel = next((other for other in channels if re.search(rf"{name} %{other}\b", line)), None)
    if channel:
        role.verbs.setdefault(channel, []).append(name)
        name += " " + channel
    elif name in ("yield", "tile_coord", "load_entry", "expect_tx"):
        return
    text = "  " * depth + name
    if role.lines and role.lines[-1].split(" x ")[0] == text:
        count = int((role.lines[-1].split(" x ") + ["1"])[1])
        role.lines[-1] = f"{text} x {count + 1}"
    else:
        role.lines.append(text)


def draw_roles(compiler):
    roles, channels = roles_of(compiler.kernel("roles"))
    ends = {name: text for name, (text, _) in roles_of(compiler.kernel("pipelined"))[1].items()}
    flow = [(producer, name, consumer) for name in channels for producer in roles for consumer in roles
            if "producer_commit" in producer.verbs.get(name, ()) and "consumer_wait" in consumer.verbs.get(name, ())]
    if len(flow) != len(channels) or not roles:
        raise SystemExit(f"error: the kernel has {len(roles)} roles, and ends of {len(flow)} of {len(channels)} channels")
    order = sorted(roles, key=lambda role: upstream(role, flow))
    svg = Svg("The roles and channels of an NVFP4 GEMM")
    width, gap, top = 240, 90, 16
    height = 78 + 18 * max(len(role.lines) for role in roles)
    place = {}
    for at, role in enumerate(order):
        x = place[role] = 16 + at * (width + gap)
        svg.box(x, top, width, height, FILLS[at % len(FILLS)])
        svg.text(x + 12, top + 24, role.name, 15, bold=True)
        for row, line in enumerate(role.rest):
            svg.text(x + 12, top + 42 + 17 * row, line, 12, PALE)
        for row, line in enumerate(role.lines):
            svg.text(x + 12, top + 82 + 18 * row, line)
    y = top + height + 40
    for producer, name, consumer in flow:
        # A channel leaves a role at the right and reaches one at the left.
        left, right = place[producer] + width * 2 // 3, place[consumer] + width // 3
        svg.arrow([(left, top + height), (left, y), (right, y), (right, top + height + 2)])
        svg.text(round(min(left, right)) + 12, y + 18, "channel " + name, 13, bold=True)
        kinds = collections.Counter(re.findall(r"!pipe\.(?:shared|tmem)<[^>]*>", channels[name][1]))
        details = [ends.get(name, channels[name][0]), *(kind if count == 1 else f"{kind} x {count}"
                                                        for kind, count in kinds.items())]
        for row, line in enumerate(details):
            svg.text(round(min(left, right)) + 12, y + 36 + 17 * row, line, 12, PALE)
        y += 60 + 17 * len(details)
    return svg


def upstream(role, flow):
    """Counts the channels before a role."""
    before = [producer for producer, _, consumer in flow if consumer is role and producer is not role]
    rest = [edge for edge in flow if edge[2] is not role]
    return max((1 + upstream(producer, rest) for producer in before), default=0)


#===--- Command line ------------------------------------------------------===#


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--images", type=pathlib.Path, default=ROOT / "docs" / "images")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    drawn = {"floors.svg": draw_floors()}
    if (options.build / "bin" / "fp4-opt").exists():
        compiler = Compiler(options.build)
        drawn |= {"levels.svg": draw_levels(compiler), "roles.svg": draw_roles(compiler)}
    else:
        print(f"{options.build} has no fp4-opt: levels.svg and roles.svg are left out")
    stale = 0
    for name, svg in drawn.items():
        path = options.images / name
        if options.check:
            if not path.exists() or path.read_text() != str(svg):
                print(f"error: {path} is stale: run docgen/draw_diagrams.py --build {options.build}")
                stale = 1
        else:
            options.images.mkdir(exist_ok=True)
            path.write_text(str(svg))
    return stale


if __name__ == "__main__":
    sys.exit(main())
