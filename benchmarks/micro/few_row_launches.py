#!/usr/bin/env python3
"""Kernels of few rows of 7168 bf16 that let the next launch begin at other places, and twins.

  benchmarks/micro/few_row_launches.py BUILD FOLDER
  nvcc -O2 -std=c++17 -arch=sm_90a few_row_launches.cu -lcuda -o FOLDER/few_row_launches
  FOLDER/few_row_launches FOLDER

The first command writes cubins of norms and gates, whose PTX is the compiler's but for the place of
griddepcontrol.launch_dependents: in front of the wait (begin), behind it (turn), behind the loads,
behind the last barrier, in front of the first store, or nowhere (end). `alone` has no PDL. Gates
have other numbers of rows, too. Twins of `turn` lack a part: the threads of a norm do not meet, or
there is no arithmetic.
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

COLUMNS, ROWS, CHUNKS, PADDED = 7168, 64, 448, 128
NORMS = ("rms-bf16", "rms-nvfp4", "layer-bf16", "layer-nvfp4", "add_rms-bf16", "add_rms-nvfp4")
GATES = ("silu-bf16", "gpt_oss-bf16", "silu-nvfp4", "gpt_oss-nvfp4", "silu-mxfp8")
MORE = (16, 128, 256, 512, 1024)
WAIT, BEGIN = "\tgriddepcontrol.wait;\n", "\tgriddepcontrol.launch_dependents;\n"
PLACES = ("begin", "turn", "loads", "barrier", "stores", "end", "alone")


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
    ptx = ptx.replace(BEGIN, "")
    if place == "end":
        return ptx
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


def twins_of(build, kind):
    """The twins of a kind by their names: PTX and threads."""
    ptx, threads = kernel_of(build, kind)
    if kind in NORMS:
        yield "without_meeting", without_meeting(ptx), threads
    yield "without_arithmetic", *kernel_of(build, kind, "--no-arithmetic")


def ctas_of(kind, threads, rows):
    """The CTAs of a launch. Scales of FP4 and MXFP8 behind a gate have tiles of 128 rows."""
    if kind in NORMS:
        return -(-rows // PADDED) * PADDED if kind.endswith("fp4") else rows
    rows = rows if kind.endswith("bf16") else -(-rows // PADDED) * PADDED
    return -(-rows * CHUNKS // threads)


def write(folder, kind, name, ptx, threads, rows):
    """Assembles a kernel, and returns a line of the list for each number of rows."""
    stem = folder / f"{kind}.{name}"
    stem.with_name(stem.name + ".ptx").write_text(ptx)
    subprocess.run(["ptxas", "-arch=sm_90a", "-O3", f"{stem}.ptx", "-o", f"{stem}.cubin"], check=True)
    return [f"{kind} {name} {threads} {some} {ctas_of(kind, threads, some)}" for some in rows]


def main():
    build, folder = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for kind in NORMS + GATES:
        ptx, threads = kernel_of(build, kind)
        for place in PLACES:
            text = placed(ptx, place)
            rows = MORE if kind in GATES and place in ("turn", "loads", "end") else ()
            if text is not None:
                lines += write(folder, kind, place, text, threads, (ROWS, *rows))
        for name, text, threads in twins_of(build, kind):
            lines += write(folder, kind, name, placed(text, "turn"), threads, (ROWS,))
    (folder / "list.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
