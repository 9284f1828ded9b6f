#!/usr/bin/env python3
"""Counts what the machine code of a GEMM on tcgen05 does per k tile, and what comes before its
loop.

  fp4-runner f.mlir --target=sm_100a --emit=cubin -o f.cubin
  validation/gemm_structure.py f.cubin                       a line per number
  validation/gemm_structure.py --bounds=FILE:PREFIX f.cubin  fails where a line "PREFIX: name
                                                           number" of FILE, a test, is exceeded (or
                                                           "name = number" is not met)

The loop over k tiles of a role is the innermost loop with its instructions: UTMALDG of the role
that loads, UTCOMMA or UTCQMMA of the warp that multiplies, UTCCP of the one that copies scales,
where that is another one. Instructions of a loop are those of its shortest path, on which every
wait succeeds at once. The count from the kernel's entry to its first load, by tensor map or of
bytes (UBLKCP), follows the same rule. A call of a subroutine counts as 100 instructions.

Needs nvdisasm: on PATH, in $NVDISASM, or build/toolchain (utils/setup.sh fetches it).
"""
import argparse
import heapq
import pathlib
import re
import subprocess
import sys

import sass_count

MMA = re.compile(r"UTC[A-Z]*MMA")
COPY = re.compile("UTCCP")


def weight(block, until=None):
    """Instructions of a block, up to the first that matches."""
    total = 0
    for instruction in block.code:
        total += sass_count.CALL if instruction.opcode == "CALL" else 1
        if until and until.match(instruction.mnemonic):
            break
    return total


def edges(blocks):
    """{block: blocks that may follow}, the ways back included."""
    back = sass_count.connect(blocks)
    after = {i: list(block.next) for i, block in enumerate(blocks)}
    for source, to in back:
        after[source].append(to)
    return after, back


def shortest(blocks, after, first, last, until=None):
    """Blocks of the path from `first` to `last` with the fewest instructions, both included."""
    seen, queue = {}, [(weight(blocks[first]), first, [first])]
    while queue:
        length, place, path = heapq.heappop(queue)
        if place == last:
            return path
        if place in seen:
            continue
        seen[place] = length
        for to in after[place]:
            heapq.heappush(queue, (length + weight(blocks[to]), to, path + [to]))
    return None


def has(block, pattern):
    return any(pattern.match(x.mnemonic) for x in block.code)


def loop_of(blocks, after, back, pattern):
    """Instructions of the shortest loop through a block with `pattern`: an iteration may come
    before the loop."""
    paths = []
    for wanted in (i for i, block in enumerate(blocks) if has(block, pattern)):
        for source, to in back:
            there, rest = shortest(blocks, after, to, wanted), shortest(blocks, after, wanted, source)
            if there and rest:
                paths.append([x for i in there + rest[1:] for x in blocks[i].code])
    return min(paths, key=len) if paths else []


def structure(listing):
    blocks = sass_count.read_blocks(listing)
    after, back = edges(blocks)
    load, copy = re.compile("UTMALDG"), re.compile(r"UTMALDG|UBLKCP\.S")
    numbers = {}
    first = next((i for i, block in enumerate(blocks) if has(block, copy)), None)
    if first is not None:
        path = shortest(blocks, after, 0, first)
        numbers["before_first_load"] = (sum(weight(blocks[i]) for i in path[:-1])
                                        + weight(blocks[path[-1]], copy))
    loads, products = loop_of(blocks, after, back, load), loop_of(blocks, after, back, MMA)
    copies = loop_of(blocks, after, back, COPY)
    copies = [] if any(MMA.match(x.mnemonic) for x in copies) else copies
    count = lambda path, text: sum(bool(re.match(text, x.mnemonic)) for x in path)
    everything = [x for block in blocks for x in block.code]
    return numbers | {
        "load_instructions": len(loads),
        "loads": count(loads, "UTMALDG"),
        "multicasts": count(loads, r"UTMALDG.*MULTICAST"),
        "gemm_instructions": len(products),
        "products": count(products, MMA.pattern),
        "commits": count(products, "UTCBAR"),
        "scale_instructions": len(copies),
        "scale_copies": count(copies or products, COPY.pattern),
        # Operands that every thread has in a register of its own.
        "moves_to_warp": count(products + copies, "R2UR"),
        "tile_stores": count(everything, "UTMASTG"),
        "local_accesses": count(everything, "STL|LDL"),
        # Costs of synchronization of scope cluster without restricted fences.
        "flushes_in_loops": count(loads + products + copies, r"CCTL\.IVALL|MEMBAR.*\.GPU"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubin")
    parser.add_argument("--bounds", metavar="FILE:PREFIX")
    options = parser.parse_args()
    done = subprocess.run([sass_count.find_nvdisasm(), "-c", "-ndf", options.cubin], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: nvdisasm could not read '{options.cubin}'\n{done.stderr}")
    numbers = structure(done.stdout) | {"registers": sass_count.registers(options.cubin)}
    for name, number in numbers.items():
        print(f"{name} {number}")
    if not options.bounds:
        return 0
    file, prefix = options.bounds.rsplit(":", 1)
    lines = re.findall(rf"\b{prefix}:\s+(\w+)\s+(=?)\s*([0-9]+)", pathlib.Path(file).read_text())
    wrong = [f"'{name}' must be {'' if equal else 'at most '}{bound}, but is {numbers.get(name)}"
             for name, equal, bound in lines
             if name not in numbers or (numbers[name] != int(bound) if equal else numbers[name] > int(bound))]
    if not lines:
        wrong = [f"'{file}' must have lines that begin with {prefix}:"]
    for complaint in wrong:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
