#!/usr/bin/env python3
"""Counts the machine instructions that kernels spend per element, by class.

  fp4-runner f.mlir --target=sm_90a --emit=cubin -o DIR
  validation/sass_count.py DIR/*.cubin                       a line per kernel
  validation/sass_count.py --element-bytes=4 DIR/f.cubin     elements of 4 bytes (default: 2)
  validation/sass_count.py --mnemonics DIR/f.cubin           and how often each instruction occurs
  validation/sass_count.py --bounds=FILE:SM90 DIR/*.cubin    fails where a line "SM90: name number"
                                                        of FILE, a test, is exceeded or names no
                                                        cubin

The script counts what a thread executes if nothing is exceptional. The script takes the shortest of
those paths through a kernel that store most bytes to global memory. Detours of divisions and
saturated blocks are not on this path, nor calls of subroutines. In a kernel with a loop that loads,
the path is one iteration, the one that loads most. The elements are the bytes that the path moves
in accesses of 16 bytes and more (codes and scales move in narrower ones), loaded or stored,
whichever are more.

Needs nvdisasm: on PATH, in $NVDISASM, or build/toolchain (utils/setup.sh fetches it).
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

CLASSES = [  # the first pattern that matches the mnemonic
    ("conv", r"F2FP|F2F|F2I|I2F|MUFU|FRND|I2FP"),
    ("shuffle", r"SHFL|VOTE|REDUX|MATCH"),
    ("memory", r"LDG|STG|LDS|STS|LD\b|ST\b|ATOM|RED|LDC|LDCU|ULDC|LDSM|LDGSTS|CCTL"),
    ("barrier", r"BAR|MEMBAR|SYNCS|WARPSYNC|FENCE|ERRBAR"),
    ("control", r"BRA|EXIT|CALL|RET|BSSY|BSYNC|NOP|BRX|JMP|YIELD|BREAK|BMOV|DEPBAR|PREEXIT"),
    ("half", r"H[A-Z]+2"),
    ("double", r"D(ADD|MUL|FMA|SETP|MNMX)"),
    ("fp32", r"F[A-Z]+"),
    ("int", r""),
]
CALL = 100  # what a call of a subroutine counts when paths are compared
NAMES = [name for name, _ in CLASSES]
ROOT = pathlib.Path(__file__).resolve().parent.parent


def find_nvdisasm():
    local = ROOT / "build" / "toolchain" / "nvdisasm"
    found = os.environ.get("NVDISASM") or shutil.which("nvdisasm") or (local if local.exists() else None)
    return found or sys.exit("error: nvdisasm must be on PATH, in $NVDISASM or in build/toolchain")


def classify(mnemonic):
    return next(name for name, pattern in CLASSES if re.match(pattern, mnemonic))


class Instruction:
    def __init__(self, text):
        match = re.match(r"(@!?U?P\w+ )?\s*(\S+)\s*(.*)", text)
        self.guard, self.mnemonic, self.operands = match.groups()
        target = re.search(r"`\((\.L_x_\d+)\)", self.operands)
        self.target = target.group(1) if target else None
        self.opcode = self.mnemonic.split(".")[0]

    def bytes(self, opcode):
        """Bytes per thread of an access of global memory, where it is one of `opcode`."""
        if self.opcode != opcode:
            return 0
        width = re.search(r"\.(8|16|32|64|128|256)\b|\.U8|\.S8|\.U16", self.mnemonic)
        if not width:
            return 4
        return int(width.group(1)) // 8 if width.group(1) else 1 if "8" in width.group(0) else 2


class Block:
    def __init__(self, label):
        self.label, self.code, self.next = label, [], []


def read_blocks(listing):
    """Basic blocks of the function `.text.*` up to the subroutines behind it, in their order."""
    blocks = [Block(None)]
    for line in listing.splitlines():
        line = line.strip()
        if line.startswith("$__internal") and line.endswith(":"):
            break
        if re.fullmatch(r"\.L_x_\d+:", line):
            blocks.append(Block(line[:-1]))
        elif match := re.match(r"/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
            blocks[-1].code.append(Instruction(match.group(1)))
            if blocks[-1].code[-1].opcode in ("BRA", "EXIT"):
                blocks.append(Block(None))
    return [block for block in blocks if block.code or block.label]


def connect(blocks):
    """Fills in successors; returns the edges that lead back, as (from, to)."""
    place = {block.label: i for i, block in enumerate(blocks) if block.label}
    back = []
    for i, block in enumerate(blocks):
        last = block.code[-1] if block.code else None
        leaves = last is not None and last.opcode in ("BRA", "EXIT")
        if leaves and last.opcode == "BRA" and last.target in place:
            to = place[last.target]
            (back if to <= i else block.next).append((i, to) if to <= i else to)
        conditional = leaves and (last.guard or re.search(r"!?U?P\d, ", last.operands))
        if (not leaves or conditional) and i + 1 < len(blocks):
            block.next.append(i + 1)
    return back


def best_path(blocks, first, last, opcode):
    """Instructions of the path from block `first` to `last` (None: to an exit) that moves most
    bytes by `opcode`, and is the shortest of these."""
    best = {}
    for i in range(len(blocks) - 1, first - 1, -1):
        code = blocks[i].code
        moved = sum(instruction.bytes(opcode) for instruction in code)
        length = sum(CALL if instruction.opcode == "CALL" else 1 for instruction in code)
        ways = [best[to] for to in blocks[i].next if to in best]
        ends = i == last if last is not None else any(x.opcode == "EXIT" for x in code)
        if ends:
            ways.append((0, 0, []))
        if ways:
            more, rest_length, rest = max(ways, key=lambda way: way[:2])
            best[i] = (more + moved, rest_length - length, code + rest)
    return best[first][2] if first in best else []


def measured_path(blocks):
    """The path to count, and whether it is one of a loop."""
    loads = lambda path: sum(instruction.bytes("LDG") for instruction in path)
    loops = [best_path(blocks, to, source, "LDG") for source, to in connect(blocks)]
    loops = [path for path in loops if loads(path) >= 16]
    if loops:
        return max(loops, key=loads), True
    return best_path(blocks, 0, None, "STG"), False


def registers(cubin):
    """Reads the attribute EIATTR_REGCOUNT of the one kernel: a format, 0x2f, a size, its symbol and
    the number."""
    found = re.search(rb"\x04\x2f\x08\x00.{4}(.{4})", pathlib.Path(cubin).read_bytes(), re.DOTALL)
    return int.from_bytes(found.group(1), "little") if found else 0


def elements(path, size):
    wide = lambda opcode: sum(n for n in (x.bytes(opcode) for x in path) if n >= 16)
    return max(wide("LDG"), wide("STG")) / size


def count(cubin, options):
    """Prints the line of a kernel; returns its instructions per element."""
    listing = subprocess.run([find_nvdisasm(), "-c", "-ndf", cubin], capture_output=True, text=True)
    if listing.returncode:
        sys.exit(f"error: nvdisasm could not read '{cubin}'\n{listing.stderr}")
    path, is_loop = measured_path(read_blocks(listing.stdout))
    n = elements(path, options.element_bytes)
    if not n:
        sys.exit(f"error: '{cubin}' must have a kernel with accesses of 16 bytes")
    by_class = collections.Counter(classify(x.opcode) for x in path)
    parts = ", ".join(f"{name} {by_class[name] / n:.2f}" for name in NAMES if by_class[name])
    where = "in its loop" if is_loop else "in all"
    print(f"{pathlib.Path(cubin).stem}: {len(path) / n:.2f} instructions per element {where}, {n:.0f} elements, "
          f"{registers(cubin)} registers ({parts})")
    if options.mnemonics:
        for mnemonic, times in collections.Counter(x.mnemonic for x in path).most_common():
            print(f"  {times / n:6.3f} {times:5} {mnemonic}")
    return len(path) / n


def read_bounds(place):
    """{kernel: bound} of FILE:PREFIX."""
    file, prefix = place.rsplit(":", 1)
    lines = re.findall(rf"\b{prefix}:\s+(\w+)\s+([0-9.]+)", pathlib.Path(file).read_text())
    return dict(lines) or sys.exit(f"error: '{file}' must have lines that begin with {prefix}:")


def exceeded(counts, bounds):
    for name, bound in bounds.items():
        if name not in counts:
            yield f"'{name}' must be among the cubins"
        elif round(counts[name], 2) > float(bound):
            yield f"'{name}' must have at most {bound} instructions per element, but has {counts[name]:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", nargs="+")
    parser.add_argument("--element-bytes", type=int, default=2)
    parser.add_argument("--mnemonics", action="store_true")
    parser.add_argument("--bounds", metavar="FILE:PREFIX")
    options = parser.parse_args()
    cubins = {pathlib.Path(cubin).stem: cubin for cubin in options.cubins}
    bounds = read_bounds(options.bounds) if options.bounds else dict.fromkeys(cubins)
    counts = {name: count(cubins[name], options) for name in bounds if name in cubins}
    complaints = list(exceeded(counts, bounds)) if options.bounds else []
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
