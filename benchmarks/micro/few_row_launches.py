#!/usr/bin/env python3
"""Kernels of few rows of 7168 bf16 that let the next launch begin at other places, and twins.

  benchmarks/micro/few_row_launches.py BUILD FOLDER
  nvcc -O2 -std=c++17 -arch=sm_90a few_row_launches.cu -lcuda -o FOLDER/few_row_launches
  FOLDER/few_row_launches FOLDER

The first command writes cubins of norms and gates, whose PTX is the compiler's (now) but for the
place of griddepcontrol.launch_dependents: in front of prefetches (first), between these and the
wait (begin), behind it (turn), behind the loads, behind the last barrier, in front of the first
store, or nowhere (end). `alone` has no PDL, and `unasked` no prefetches. With `lines64` and
`lines128` only the thread at the beginning of so many bytes asks for them. `without_padding` has no
CTAs for rows that only pad scales. Twins lack a part: the threads of a norm do not meet, or there
is no arithmetic, but all loads, stores and barriers.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "python")]
import neighbour_chains  # noqa: E402
import norms  # noqa: E402

COLUMNS, ROWS, PADDED = 7168, 64, 128
NORMS = ("rms-bf16", "rms-nvfp4", "layer-bf16", "layer-nvfp4", "add_rms-bf16", "add_rms-nvfp4")
GATES = ("silu-bf16", "gpt_oss-bf16", "silu-nvfp4", "gpt_oss-nvfp4", "silu-mxfp4", "silu-mxfp8")
MORE = (16, 128)
WAIT, BEGIN = "\tgriddepcontrol.wait;\n", "\tgriddepcontrol.launch_dependents;\n"
#: A prefetch with its predicate: the text of KernelBuilder::prefetch.
PREFETCH = re.compile(r"(setp\.ne\.b32 p, %r\d+, 0;\n)@p prefetch\.global\.L2 \[(%rd\d+)\];\n")
PLACES = ("now", "first", "begin", "turn", "loads", "barrier", "stores", "end", "alone", "unasked", "lines64", "lines128")


def kernel_of(build, kind, *options):
    """The PTX of the kernel for few rows, and its threads."""
    text = neighbour_chains.KINDS[kind].text(COLUMNS) if kind in neighbour_chains.KINDS else norms.program(kind, COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "kind.mlir")
        source.write_text(text)
        subprocess.run([build / "bin" / "fp4-runner", source, "--target=sm_90a", "--emit=ptx", "-o", folder, *options], check=True)
        found = [path.read_text() for path in pathlib.Path(folder).glob("*.ptx")]
    leading = [ptx for ptx in found if BEGIN in ptx]
    if len(leading) != 1:
        sys.exit(f"error: {kind} has {len(leading)} kernels that let the next one begin, and one is for few rows")
    return leading[0], int(re.search(r"\.reqntid (\d+)", leading[0])[1])


def placed(ptx, place):
    """The kernel with its instruction at a place, or None where it has no such place."""
    if place == "now":
        return ptx
    if place == "unasked":
        return PREFETCH.sub(r"\1", ptx)
    if place.startswith("lines"):  # one thread asks for all of its line
        last = int(place.removeprefix("lines")) - 1
        return PREFETCH.sub(rf"\1.reg .b64 t;\nand.b64 t, \2, {last};\nsetp.eq.and.b64 p, t, 0, p;\n@p prefetch.global.L2 [\2];\n", ptx)
    ptx = ptx.replace(BEGIN, "")
    if place == "end":
        return ptx
    if place == "first":
        return ptx.replace("\tld.param", BEGIN + "\tld.param", 1)
    if place == "alone":
        return ptx.replace(WAIT, "")
    if place in ("begin", "turn"):
        return ptx.replace(WAIT, BEGIN + WAIT if place == "begin" else WAIT + BEGIN)
    pattern = {"loads": r"\tld\.global[^\n]*\n", "barrier": r"\tbar\.sync[^\n]*\n", "stores": r"\tst\.global"}[place]
    found = list(re.finditer(pattern, ptx))
    if not found:
        return None
    at = found[0].start() if place == "stores" else found[-1].end()
    if place == "loads":  # those of PTX in line end behind it
        at = ptx.index("\n", ptx.find("// end inline asm", at)) + 1 if ptx[at:].startswith("\t// end inline asm") else at
    return ptx[:at] + BEGIN + ptx[at:]


def without_meeting(ptx):
    """A kernel whose threads neither wait for each other nor exchange numbers."""
    ptx = re.sub(r"\tbar\.sync[^\n]*\n", "", ptx)
    return re.sub(r"shfl\.sync\.\w+\.b32 *\t*(%r\d+)(?:\|%p\d+)?, (%r\d+),[^;]*;", r"mov.b32 \1, \2;", ptx)


def meet(ptx, number):
    """A twin whose threads exchange a word that all their loads take part in, as threads of a norm
    do: a warp leaves it in shared memory, and behind a barrier all words of the CTA are read."""
    last = list(re.finditer(r"\tld\.global[^\n]*\n", ptx))[-1].end()
    words = re.findall(r"%r\d+", "".join(re.findall(r"\tld\.global[^{]*\{([^}]*)\}", ptx[:last])))
    at = ptx.find(BEGIN, last) + len(BEGIN) if BEGIN in ptx[last:] else last
    mixed = "".join(f"\txor.b32 t0, t0, {word};\n" for word in words[1:])
    read = "".join(f"\tld.shared.v2.b32 {{t3, t4}}, [t2+{8 * pair}];\n\txor.b32 t0, t0, t3;\n\txor.b32 t0, t0, t4;\n" for pair in range(7))
    text = f"""{{
\t.shared .align 16 .b8 met_{number}[64];
\t.reg .b32 t<5>;
\t.reg .pred q;
\tmov.b32 t0, {words[0]};
{mixed}\tmov.u32 t1, %tid.x;
\tand.b32 t2, t1, 31;
\tsetp.eq.u32 q, t2, 0;
\tmov.u32 t2, met_{number};
\tshr.u32 t1, t1, 5;
\tshl.b32 t1, t1, 2;
\tadd.u32 t1, t1, t2;
\t@q st.shared.b32 [t1], t0;
\tbar.sync 0;
{read}\txor.b32 {words[0]}, {words[0]}, t0;
}}
"""
    return ptx[:at] + text + ptx[at:]


def twins_of(build, kind):
    """The twins of a kind by their names: PTX and threads."""
    ptx, threads = kernel_of(build, kind)
    if kind in NORMS:
        yield "without_meeting", without_meeting(ptx), threads
    twin, threads = kernel_of(build, kind, "--no-arithmetic")
    for number in range(len(re.findall(r"\tbar\.sync", ptx))):
        twin = meet(twin, number)
    yield "without_arithmetic", twin, threads


def ctas_of(kind, ptx, threads, rows):
    """The CTAs of a launch."""
    if kind in NORMS:
        return rows
    words = len(re.findall(r"%r\d+", "".join(re.findall(r"\tld\.global[^{]*\{([^}]*)\}", ptx)))) // 2
    return -(-rows * COLUMNS // (2 * words * threads))


def write(folder, kind, name, ptx, threads, rows):
    """Assembles a kernel, and returns a line of the list for each number of rows. Scales of FP4 and
    MXFP8 have tiles of 128 rows."""
    stem = folder / f"{kind}.{name}"
    stem.with_name(stem.name + ".ptx").write_text(ptx)
    subprocess.run(["ptxas", "-arch=sm_90a", "-O3", f"{stem}.ptx", "-o", f"{stem}.cubin"], check=True)
    is_padded = kind.endswith(("fp4", "fp8")) and name != "without_padding"
    padded = lambda some: -(-some // PADDED) * PADDED if is_padded else some
    return [f"{kind} {name} {threads} {some} {ctas_of(kind, ptx, threads, padded(some))}" for some in rows]


def main():
    build, folder = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for kind in NORMS + GATES:
        ptx, threads = kernel_of(build, kind)
        for place in PLACES:
            text = placed(ptx, place)
            if text is not None:
                lines += write(folder, kind, place, text, threads, (ROWS, *(MORE if place in ("now", "unasked") else ())))
        if kind.endswith(("fp4", "fp8")):
            lines += write(folder, kind, "without_padding", ptx, threads, (ROWS, *MORE))
        for name, text, threads in twins_of(build, kind):
            lines += write(folder, kind, name, text, threads, (ROWS, *MORE))
    (folder / "list.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
