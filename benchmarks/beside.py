#!/usr/bin/env python3
"""Row kernels beside the bytes that they would read: what arithmetic and device memory take
together where no thread waits for device memory.

  benchmarks/beside.py pack BUILD FOLDER [--kinds=... --columns=...]
  benchmarks/beside.py run FOLDER [--json=FILE] [--kinds=... --cells=ROWSxCOLUMNS,... | --of=FILE]

FOLDER is what norms.py or neighbours.py packed, whose programs are compiled again: the first thread
of each CTA also begins a copy of a range to the L2 cache (cp.async.bulk.prefetch.L2). `run` gives
such a program rows that the L2 cache has (resident.py), and ranges that have as many bytes as its
rows together. So its instructions, accesses to the L2 cache, stores, and bytes of device memory are
those of the kernel, and only waiting for rows is not. A second program (`waits`) waits for them,
too: addresses of rows need one more access to the L2 cache, or a row that a bulk copy brought is
used behind one, unless the copy began LATENCY clocks before. A line of JSON for each cell, and for
a wave of its program, has microseconds with a cold L2, by turns: ours, the twin without arithmetic,
the program beside its bytes, the one that waits, and a copy. FILE has lines of norms.py or
neighbours.py (resident.py).
"""
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

import kit
import neighbour_chains
import norms
import resident

#: What a library has where `run` writes the ranges: an address, units of 16 bytes, and how far the
#: ranges lie behind the rows.
MARK = b"bytes beside it."
ROUNDS = 15
CONSTANT = ".const .align 16 .b64 beside[6] = {%d, %d, 0, 0, 0, 0};\n" % struct.unpack("<2Q", MARK)
#: CTA i asks for range i of equal ones.
RANGES = """\
{
  .reg .pred %besides;
  .reg .b32 %beside<6>;
  .reg .b64 %beside_at<3>;
  .reg .f32 %beside_f<2>;
  mov.u32 %beside0, %tid.x;
  setp.ne.u32 %besides, %beside0, 0;
  @%besides bra $BESIDE;
  mov.u32 %beside1, %ctaid.x;
  mov.u32 %beside2, %nctaid.x;
  ld.const.u64 %beside_at0, [beside+16];
  ld.const.u32 %beside3, [beside+24];
  cvt.rn.f32.u32 %beside_f0, %beside3;
  cvt.rn.f32.u32 %beside_f1, %beside2;
  div.approx.f32 %beside_f0, %beside_f0, %beside_f1;
  cvt.rpi.u32.f32 %beside4, %beside_f0;
  mul.wide.u32 %beside_at1, %beside1, %beside4;
  shl.b64 %beside_at1, %beside_at1, 4;
  add.s64 %beside_at0, %beside_at0, %beside_at1;
  shl.b32 %beside5, %beside4, 4;
  createpolicy.fractional.L2::evict_first.b64 %beside_at2, 1.0;
  cp.async.bulk.prefetch.L2.global.L2::cache_hint [%beside_at0], %beside5, %beside_at2;
$BESIDE:
}
"""
#: A CTA that takes a row asks for what lies behind it as far as the ranges.
ROW = """\
{
  .reg .pred %besides;
  .reg .b32 %beside<2>;
  .reg .b64 %beside_at<2>;
  mov.u32 %beside0, %tid.x;
  mov.u32 %beside1, BYTES;
  setp.eq.u32 %besides, %beside0, 0;
  ld.const.u64 %beside_at0, [beside+32];
  add.s64 %beside_at0, %beside_at0, FROM;
  createpolicy.fractional.L2::evict_first.b64 %beside_at1, 1.0;
  @%besides cp.async.bulk.prefetch.L2.global.L2::cache_hint [%beside_at0], %beside1, %beside_at1;
}
"""
#: A dependent access to the L2 cache, with an own sector for each warp: %late is 0 after it.
LATE = """\
{
  .reg .b32 %late<4>;
  .reg .b64 %late_at<2>;
  mov.u32 %late0, %ctaid.x;
  mov.u32 %late1, %tid.x;
  and.b32 %late0, %late0, 4095;
  and.b32 %late1, %late1, 992;
  shl.b32 %late0, %late0, 10;
  add.s32 %late0, %late0, %late1;
  ld.const.u64 %late_at0, [beside+40];
  cvt.u64.u32 %late_at1, %late0;
  add.s64 %late_at0, %late_at0, %late_at1;
BEHIND  ld.relaxed.gpu.global.b32 %late2, [%late_at0];
  cvt.u64.u32 %late, %late2;
}
"""
#: Part of LATE for rows that a gather loads: its address depends on the number of the row.
BEHIND = """\
  shr.u64 %late_at1, NUMBER, 40;
  add.s64 %late_at0, %late_at0, %late_at1;
"""
#: LATE behind a copy whose row has come, unless the copy began as long ago as device memory takes.
LATE_COPY = """\
{
  .reg .pred %early;
  .reg .b32 %now<2>;
  mov.u32 %now0, %clock;
  sub.s32 %now0, %now0, %begun;
  setp.gt.u32 %early, %now0, LATENCY;
  @%early bra $LATE_NUMBER;
LATE  cvt.u32.u64 %now1, %late;
  setp.ne.u32 %early, %now1, 0;
  @%early trap;
$LATE_NUMBER:
}
"""
#: Clocks of a copy from device memory.
LATENCY = 750
#: Set if rows of the program that is assembled come late.
WAITS = "BESIDE_WAITS"
#: The other programs of a kernel.
ENDS = ("beside", "waits")
JOIN = re.compile(r"^\$L\w+:\n", re.MULTILINE)
WAIT = re.compile(r"^(\$L\w+):\n\tmbarrier\.try_wait(?:.*\n)*?\t@%p\d+ bra\s+\1;\n", re.MULTILINE)
ROWS = re.compile(r"^\tld\.global\.nc\.(?:L2::cache_hint\.)?v4\.b32 .*, \[(%rd\d+)(?:\+\d+)?\].*;\n", re.MULTILINE)
#: The number of a row that is gathered: loads of gathered rows have hints, those of angles do not.
NUMBER = re.compile(r"^\tld\.global\.nc\.b64 \t?(%rd\d+), ", re.MULTILINE)
#: Bytes of a row of the program that is assembled, if some of its kernels have strips.
ROW_BYTES = "BESIDE_ROW_BYTES"
COPY = re.compile(r"^\tcp\.async\.bulk\.shared::cta\.global.*?, \[(%rd\d+)\], (%r\d+), .*\n", re.MULTILINE)
LOAD = re.compile(r"^\tld\.global\.v4\.b32 .*, \[(%rd\d+)\];\n", re.MULTILINE)


def beside(ptx):
    """The PTX of a kernel whose CTAs also ask for as many bytes as they read: those of strips by
    rows, which a bulk copy or loads without a policy bring, and others at once."""
    row = os.environ.get(ROW_BYTES)
    ptx = ptx.replace(".address_size 64\n", ".address_size 64\n" + CONSTANT, 1)
    asked = lambda found, bytes: ROW.replace("FROM", found[1]).replace("BYTES", bytes)
    if COPY.search(ptx):
        return COPY.sub(lambda found: found[0] + asked(found, found[2]), ptx)
    if row and "L2::cache_hint" not in ptx and LOAD.search(ptx):
        return LOAD.sub(lambda found: asked(found, row) + found[0], ptx)
    first = next(re.finditer(r"^\t(?!\.|//)(?=\S)", ptx[ptx.index(".entry"):], re.MULTILINE)).start() + ptx.index(".entry")
    return ptx[:first] + RANGES + ptx[first:]


def late_copies(ptx):
    """Rows that a bulk copy brings, used behind an access to the L2 cache."""
    at = 0
    while found := COPY.search(ptx, at):
        join = JOIN.search(ptx, found.end())
        ptx = ptx[:join.end()] + "\tmov.u32 %begun, %clock;\n" + ptx[join.end():]
        at = join.end()
    number = iter(range(1000))
    text = lambda: LATE_COPY.replace("LATE ", LATE.replace("BEHIND", "") + " ").replace("LATENCY", str(LATENCY)).replace("NUMBER", str(next(number)))
    return WAIT.sub(lambda found: found[0] + text(), ptx)


def late_loads(ptx):
    """Loads of rows whose addresses need an access to the L2 cache, one for each basic block."""
    hinted = "nc.L2::cache_hint.v4" in ptx
    number = NUMBER.search(ptx) if hinted else None
    behind = BEHIND.replace("NUMBER", number[1]) if number else ""
    lines, late, blocked = [], set(), True
    for line in ptx.splitlines(keepends=True):
        if line.startswith("$L") or " bra" in line or "\tbra" in line:
            blocked = True
        found = ROWS.match(line)
        if found and (not hinted or "cache_hint" in line):
            if blocked:
                lines.append(LATE.replace("BEHIND", behind))
                late, blocked = set(), False
            if found[1] not in late:
                lines.append(f"\tadd.s64 {found[1]}, {found[1]}, %late;\n")
                late.add(found[1])
        else:
            late -= set(re.findall(r"^\t[a-z][\w.:]*\s+(%rd\d+),", line))
        lines.append(line)
    return "".join(lines)


def waiting(ptx):
    """The PTX of a kernel whose rows come from the L2 cache, but later by an access to it."""
    changed = late_copies(ptx) if COPY.search(ptx) else late_loads(ptx)
    entry = changed.index(".reg", changed.index(".entry"))
    return changed[:entry] + ".reg .b32 %begun;\n\t.reg .b64 %late;\n\t" + changed[entry:]


def assemble(arguments):
    """Runs ptxas, which the compiler takes this program for."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        for at, argument in enumerate(arguments):
            if os.path.isfile(argument) and ".entry" in (text := pathlib.Path(argument).read_text(errors="ignore")):
                file.write(beside(waiting(text) if os.environ.get(WAITS) else text))
                file.flush()
                arguments[at] = file.name
        return subprocess.run([shutil.which("ptxas"), *arguments]).returncode


def has_strips(build, program):
    planned = subprocess.run([os.path.join(build, "bin", "fp4-runner"), program, "--target=sm_90a", "--emit=mlir",
                              "--compile-to=planned", "-o", "-"], check=True, capture_output=True, text=True).stdout
    return "strip = " in planned


def pack(build, folder, kinds, columns_of):
    for name in (__file__, resident.__file__):
        shutil.copy(name, folder)
    os.environ["FP4_PTXAS"] = os.path.abspath(__file__)
    for kind in kinds:
        for columns in columns_of:
            name = f"{kind}_{columns}"
            os.environ.pop(ROW_BYTES, None)
            if has_strips(build, os.path.join(folder, f"{name}.mlir")):
                os.environ[ROW_BYTES] = str(2 * columns)
            text = pathlib.Path(folder, f"{name}.mlir").read_text()
            for end in ENDS:
                os.environ[WAITS] = "1" if end == "waits" else ""
                kit.compile_programs(build, folder, [(f"{name}_{end}", text)])


def load(folder, name, ranges, bytes, rows, late):
    """The program that asks for these `bytes` of `ranges` beside those of its `rows`."""
    import fp4
    library = pathlib.Path(folder, f"{name}.so").read_bytes()
    if MARK not in library:
        raise ValueError(f"{name}.so has no ranges")
    numbers = struct.pack("<QIIqQ", ranges, bytes // 16, 0, ranges - rows, late)
    library = re.sub(re.escape(MARK) + b".{32}", lambda _: MARK + numbers, library, flags=re.DOTALL)
    path = pathlib.Path(tempfile.mkdtemp(), f"{name}.so")
    path.write_bytes(library)
    return fp4.load(str(path))


def median_by_turns(calls, prepare, torch):
    """Median microseconds of each of `calls` with a cold L2, each behind a kernel that waits while
    the host queues it."""
    times = {name: [] for name in calls}
    for _ in range(ROUNDS + 2):
        for name, call in calls.items():
            prepare(name)
            torch.cuda._sleep(100000)
            times[name].append(kit.microseconds_of(call))
    return {name: statistics.median(mine[2:]) for name, mine in times.items()}


def bytes_of(value):
    return value.numel() * value.element_size()


def ranges_of(arguments, rows, torch):
    """Memory with as many bytes as the rows of arguments, and some behind it."""
    bytes = sum(bytes_of(value) for value in arguments if has_rows(value, rows))
    return bytes, torch.empty(bytes + (4 << 20), dtype=torch.uint8, device="cuda")


def has_rows(value, rows):
    """Returns whether an argument has rows, which a program beside its bytes has in L2."""
    is_short = rows <= max(resident.SHORT) and value.dim() > 1 and value.shape[0] % rows == 0
    return is_short or bytes_of(value) > 2 * resident.PERIOD


def is_cold(value, rows):
    """Returns whether an argument comes from device memory as it does for the kernel: numbers of
    rows, and tables of which they are rows."""
    return not has_rows(value, rows) and (value.dim() > 1 or not value.is_floating_point())


def copy_of(kind, rows, columns, torch):
    """Copies as many bytes as a program reads and writes."""
    is_norm = kind in norms.KINDS
    bytes = norms.bytes_of(kind, rows, columns) if is_norm else int(neighbour_chains.KINDS[kind].bytes(columns) * rows)
    half = torch.empty(bytes // 2, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(half)
    return lambda: other.copy_(half)


def expect_equal(one, other, arguments, torch):
    for mine, whole in zip(norms.listed(one(*arguments)), norms.listed(other(*arguments))):
        if not torch.equal(mine.contiguous().view(torch.uint8), whole.contiguous().view(torch.uint8)):
            raise ValueError("results beside other bytes differ")


def time_beside(folder, cell, memories, flush, torch):
    import fp4
    kind, rows, columns = cell
    name = os.path.join(folder, f"{kind}_{columns}")
    arguments = resident.arguments_of(kind, rows, columns, torch)
    mine = [resident.repeated(value, memories, torch) for value in arguments]
    bytes, ranges = ranges_of(arguments, rows, torch)
    late = torch.zeros(4 << 20, dtype=torch.uint8, device="cuda")
    programs = {"ours": fp4.load(f"{name}.so"), "twin": fp4.load(f"{name}_twin.so"),
                **{end: load(folder, f"{kind}_{columns}_{end}", ranges.data_ptr(), bytes, mine[0].data_ptr(),
                             late.data_ptr()) for end in ENDS}}
    results = programs["ours"](*arguments)
    for end in ENDS:
        expect_equal(programs[end], programs["ours"], mine, torch)

    def prepare(name):
        flush.zero_()
        late.max()
        for value in (value for value in (mine if name in ENDS else ()) if not is_cold(value, rows)):
            first = resident.PERIOD if bytes_of(value) > 2 * resident.PERIOD else bytes_of(value)
            value.view(-1)[:first // value.element_size()].view(torch.uint8).max()
    call = lambda name: lambda: programs[name](*(mine if name in ENDS else arguments), out=results)
    return median_by_turns({**{name: call(name) for name in programs}, "copy": copy_of(kind, rows, columns, torch)}, prepare, torch)


def measure(folder, cells):
    """Lines of cells, and of one wave of each of their programs."""
    torch = kit.open_package(folder)
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    waves = dict.fromkeys((kind, resident.wave_of(folder, kind, columns), columns) for kind, _, columns in cells)
    for cell in [*cells, *waves]:
        kind, rows, columns = cell
        memories = []
        try:
            found = time_beside(folder, cell, memories, flush, torch)
        except Exception as error:
            found = {"error": str(error)[:500]}
        torch.cuda.synchronize()
        for memory in memories:
            memory.free()
        torch.cuda.empty_cache()
        yield {"kind": kind, "rows": rows, "columns": columns, "wave": resident.wave_of(folder, kind, columns), **found}


def main():
    options = kit.options_of(__doc__, kinds=(kit.names, resident.KINDS), columns=(kit.numbers, neighbour_chains.COLUMNS),
                             cells=(kit.shapes, resident.CELLS), of=(resident.below, None))
    if options.command == "pack":
        return pack(*options.folders, options.kinds, options.columns)
    cells = options.of or [(kind, *cell) for cell in options.cells for kind in options.kinds]
    return norms.report(measure(os.path.abspath(options.folders[0]), cells), options.json)


if __name__ == "__main__":
    is_ptxas = sys.argv[1:] and sys.argv[1] not in ("pack", "run", "-h", "--help")
    sys.exit(assemble(sys.argv[1:]) if is_ptxas else main())
