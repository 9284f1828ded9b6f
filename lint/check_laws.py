#!/usr/bin/env python3
"""Looks for second spellings of what only one place may spell.

Each law below has one authority. A line elsewhere in lib, include and tools that matches the law's
pattern spells it again; the finding names the function to ask instead. Comments do not count. A
spelling that is meant to stand gets the reason beside it: `// law: REASON` at the end of the line.

Every law has an example that its pattern must match, and an authority that must match too where the
law says so: a pattern that finds nothing any more is an error, not a success. A folder in which a
law holds must exist. Exit code 1 with a
line per finding.
"""
import collections
import pathlib
import re
import sys

from report import finish

ROOT = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parent.parent).resolve()
FOLDERS = ["lib", "include", "tools"]
BELOW = r"(lib|include/fp4)/(Support|ISA|Numerics|Sim|SimCuda|Runtime|Reference|Harness|Benchmark|Explorer)/"
# Libraries that know nothing of Linux. lib/SimCuda stands in for libraries of Linux programs.
PORTABLE = r"(lib|include/fp4)/(ISA|Numerics|Routes|Sim|Runtime|Reference|Program|Harness|Benchmark)/"

# Rooms of the simulator from the bottom to the top. Sources directly in lib/Sim use all of them.
ROOMS = ["PTX", "Decode", "State", "Async", "Insn", "Run", "Orders", "Check", "Time"]

# Rooms of the conversion, each with the rooms that it uses. Weights that warps multiply without
# wgmma have its fragments.
CORES = {"Common": [], "Tcgen05": ["Common"], "MmaSync": ["Common"], "Wgmma": ["Common", "MmaSync"]}

# `inside`: where the law holds (default: everywhere); `authority`: files that may spell it, and
# must unless `silent`; `ask`: what to do instead; `example`: a line that the pattern must find.
Law = collections.namedtuple("Law", "name pattern authority ask example inside silent",
                             defaults=(r"", False))

LAWS = [
    Law("inline assembly", r"\bInlineAsmOp::create\b|\bNVVM::InlinePtxOp\b",
        r"lib/KernelArithmetic/InlinePtx\.cpp",
        "add a function to lib/KernelArithmetic/InlinePtx.h",
        "  auto result = LLVM::InlineAsmOp::create("),
    Law("versions of architectures", r"\bsmVersion\b|\bcompute(Major|Minor)\b",
        r"(lib|include/fp4)/ISA/Target.*|include/fp4/ISA/GpuModel\.h",
        "add a fact to hw::TargetModel and ask for it",
        "  bool isNew = model.computeMajor >= 10;"),
    Law("names of targets", r"==\s*\"sm_\d|\"sm_\d+[af]?\"\s*==|starts_with\(\"sm_\d",
        r"lib/ISA/Targets\.cpp", "add a fact to hw::TargetModel and ask for it",
        '  if (target.name == "sm_90a")', silent=True),
    Law("numbers of a target", r"\b(232448|233472|101376|102400)\b|(?:\.|\w )sms\s*=\s*\d{2,}",
        r"lib/ISA/Targets\.cpp", "ask hw::TargetModel", "  uint32_t sms = 148;"),
    Law("decisions about kernels", r"\b(RolePlanAttr|StaticPersistentAttr)::get\(|\bchoose[A-Z]\w*Tile\w*\(|\bchooseTile\w*\(",
        r"lib/Plans/.*|lib/Dialect/Pipe/.*", "let fp4-plan-kernels decide, and read the plan",
        "  auto roles = RolePlanAttr::get(context, {load, mma});"),
    Law("the core of a GEMM", r"\bhas(Tcgen05|Wgmma|MmaBlockScale)\b|\bhasFloatLhs\(",
        r"include/fp4/Routes/Axes\.def|(lib|include/fp4)/ISA/.*|lib/Sim/Decode/Foresee\.cpp",
        "read the route of the plan, or ask include/fp4/Routes/Routes.h",
        "  if (target.hasTcgen05)"),
    Law("the orientation of a GEMM", r"[.>]swap\b(?!\()|\"swap\"", r"lib/Support/FormerNames\.cpp",
        "read the route of the plan, or ask fp4::isTransposed", "  plan.swap = true;"),
    Law("the tiled layout of scales", r"%\s*32\)?\s*\*\s*16\b|%\s*128\)?\s*/\s*32\)?\s*\*\s*4\b|& 31\)?\s*\* 16",
        r"include/fp4/ISA/ScaleLayout\.h",
        "call hw::scaleOffsetInBlock, hw::scaleWordInBlock or hw::scaleBlockIndex, which are templates",
        "  offset = row % 32 * 16 + row % 128 / 32 * 4 + block % 4;"),
    Law("the swizzles of shared memory", r">>\s*3\)\s*&\s*0x[137]0\b|>>\s*2\)\s*&\s*0x60\b|\b0x380\b",
        r"include/fp4/ISA/Swizzle\.h", "call hw::swizzle, which is a template",
        "  return address ^ ((address >> 3) & 0x70);"),
    Law("the pitch of packed rows", r"\+ 31\)\s*/\s*32\s*\*\s*16\b|\(columns \+ 1\)\s*/\s*2\b|\(depth \+ 1\)\s*/\s*2\b",
        r"include/fp4/ISA/BufferShape\.h",
        "call hw::paddedRowBytes, which is a template, or hw::denseRowBytes",
        "  pitch = (columns + 31) / 32 * 16;", silent=True),
    Law("a field of a shared-memory descriptor", r"(?i)\b0x3fff\b", r"(lib|include/fp4)/ISA/SmemDescriptor\.(cpp|h)",
        "let hw::SmemDescriptor encode it, or call hw::descriptorStart, which is a template",
        "  field = (address >> 4) & 0x3FFF;"),
    Law("comparisons of formats", r"[=!]= *(numerics::)?(Block)?Format::\w",
        r"include/fp4/Numerics/GgmlBlocks\.h|lib/Plans/TransformPlans\.cpp",
        "ask for a fact of include/fp4/Numerics/Formats.h: blockSizeOf, elementOf, isMX, isPacked",
        "  int64_t block = format == Format::NVFP4 ? 16 : 32;"),
    Law("include guards", r"^#ifndef FP4_\w+_H\b", r"include/fp4-c/\w+\.h", "write #pragma once",
        "#ifndef FP4_ISA_TARGET_H"),
    *[Law(f"an arrow upward from lib/Sim/{room}", rf'#include "Sim/({"|".join(ROOMS[at + 1:])})/', "",
          f"a room of the simulator uses those before it alone: {', '.join(ROOMS)}",
          f'#include "Sim/{ROOMS[at + 1]}/File.h"', inside=f"lib/Sim/{room}/")
      for at, room in enumerate(ROOMS[:-1])],
    *[Law(f"another core in lib/Conversion/PipeToNVVM/{room}",
          rf'#include "({"|".join(other for other in CORES if other not in (room, *used))})/', "",
          f"put what several cores need into Common; {room} uses {', '.join(used) or 'no other room'}",
          f'#include "{next(other for other in CORES if other not in (room, *used))}/File.h"',
          inside=f"lib/Conversion/PipeToNVVM/{room}/")
      for room, used in CORES.items()],
    Law("LLVM below the compiler", r"#include \"(mlir|llvm)/", r"", "keep it in the compiler: these libraries "
        "build without LLVM (preset runtime-only)", '#include "llvm/ADT/StringRef.h"', inside=BELOW),
    Law("calls of the operating system", r"#include <((sys|netinet|arpa)/\w+|unistd|dlfcn|fcntl|pthread|poll|spawn|"
        r"link|elf|dirent|termios|sched|signal|fnmatch)\.h>", r"", "ask lib/Support: SharedLibrary.h, Process.h, InputFile.h, "
        "Host.h", "#include <unistd.h>", inside=PORTABLE),
]


def code_of(line):
    """The line without its comment; a reason beside the line hides it."""
    return "" if "// law: " in line else line.partition("//")[0]


def sources():
    """(name, code, lines of code) of each file. Most files have no match of a law, which one search
    of the code tells; only the others are searched by lines."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".cpp", ".h", ".inc", ".def"):
                lines = [code_of(line) for line in file.read_text().splitlines()]
                yield file.relative_to(ROOT).as_posix(), "\n".join(lines), lines


def check(law, files):
    if not re.search(law.pattern, law.example):
        yield f"lint/check_laws.py: the pattern of '{law.name}' must match its example, but does not"
    if law.inside and not any(re.match(law.inside, name) for name, *_ in files):
        yield f"lint/check_laws.py: '{law.name}' must hold in some file, but none is in {law.inside}"
    spoken = False
    for name, code, lines in files:
        if not re.match(law.inside, name) or not re.search(law.pattern, code, re.M):
            continue
        own = law.authority and re.fullmatch(law.authority, name)
        for number, line in enumerate(lines, 1):
            if not re.search(law.pattern, line):
                continue
            spoken |= bool(own)
            what = f"spells {law.name} a second time" if law.authority else f"must not have {law.name}"
            if not own:
                yield f"{name}:{number}: error: {what}\n  note: {law.ask}"
    if law.authority and not law.silent and not spoken:
        yield f"lint/check_laws.py: '{law.name}' must be spelled in {law.authority}, but is not"


def main():
    files = list(sources())
    findings = [finding for law in LAWS for finding in check(law, files)]
    return finish(findings, f"{len(LAWS)} laws, each spelled in one place, in {len(files)} files")


if __name__ == "__main__":
    sys.exit(main())
