#!/usr/bin/env python3
"""Kernels of 64 x 7168 bf16 that let the next launch begin at other places.

  benchmarks/micro/few_row_launches.py BUILD FOLDER
  nvcc -O2 -std=c++17 -arch=sm_90a few_row_launches.cu -lcuda -o FOLDER/few_row_launches
  FOLDER/few_row_launches FOLDER

The first command writes cubins of norms and gates, whose PTX is the compiler's but for the place of
griddepcontrol.launch_dependents: in front of the wait (begin), behind it (turn), behind the loads,
behind the last barrier, in front of the first store, or nowhere (end). `alone` has no PDL.
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
KINDS = ("rms-bf16", "rms-nvfp4", "layer-bf16", "layer-nvfp4", "add_rms-bf16", "add_rms-nvfp4", "silu-bf16", "gpt_oss-bf16", "silu-nvfp4")
WAIT, BEGIN = "\tgriddepcontrol.wait;\n", "\tgriddepcontrol.launch_dependents;\n"
PLACES = ("begin", "turn", "loads", "barrier", "stores", "end", "alone")


def kernel_of(build, kind):
    """The PTX of the kernel for few rows, and its threads."""
    text = neighbour_chains.KINDS[kind].text(COLUMNS) if kind in neighbour_chains.KINDS else norms.program(kind, COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "kind.mlir")
        source.write_text(text)
        subprocess.run([build / "bin" / "fp4-runner", source, "--target=sm_90a", "--emit=ptx", "-o", folder], check=True)
        found = [path.read_text() for path in pathlib.Path(folder).glob("*.ptx")]
    waiting = [ptx for ptx in found if WAIT in ptx]
    if len(waiting) != 1:
        sys.exit(f"error: {kind} has {len(waiting)} kernels that wait, and one is for few rows")
    return waiting[0], int(re.search(r"\.reqntid (\d+)", waiting[0])[1])


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


def main():
    build, folder = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for kind in KINDS:
        ptx, threads = kernel_of(build, kind)
        rows = PADDED if kind.endswith("nvfp4") else ROWS
        is_norm = "rms" in kind or "layer" in kind
        for place in PLACES:
            text = placed(ptx, place)
            if text is None:
                continue
            stem = folder / f"{kind}.{place}"
            stem.with_name(stem.name + ".ptx").write_text(text)
            subprocess.run(["ptxas", "-arch=sm_90a", "-O3", f"{stem}.ptx", "-o", f"{stem}.cubin"], check=True)
            lines.append(f"{kind} {place} {threads} {rows if is_norm else rows * CHUNKS // threads}")
    (folder / "list.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
