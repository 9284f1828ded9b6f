#!/usr/bin/env python3
"""Twins of the cross entropy of 16384 x 8192 bf16 that lack a part of its kernel.

  benchmarks/micro/loss_twins.py BUILD FOLDER
  nvcc -O2 -std=c++17 -arch=sm_90a loss_twins.cu -lcuda -o FOLDER/loss_twins
  FOLDER/loss_twins FOLDER

The first command writes cubins. `whole` is the compiler's PTX. The others are the same PTX, but
exponentials are moves, threads do not meet, the first thread stores the sum without the logarithm
and the label, or several of these. `loads` keeps the loads alone, and `loads_six` as few CTAs on an
SM as the kernel has.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from few_row_launches import without_meeting, neighbour_chains

COLUMNS = 8192


def kernel_of(build):
    """The PTX of the kernel for many rows."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "loss.mlir")
        source.write_text(neighbour_chains.KINDS["loss"].text(COLUMNS))
        subprocess.run([build / "bin" / "fp4-runner", source, "--target=sm_90a", "--emit=ptx", "-o", folder], check=True)
        found = [path.read_text() for path in pathlib.Path(folder).glob("*.ptx")]
    return next(ptx for ptx in found if "griddepcontrol" not in ptx)


def without_exponentials(ptx):
    return ptx.replace("ex2.approx.ftz.f32", "mov.b32")


def without_end(ptx):
    """The first thread stores a word of what it reads in shared memory, and the maximum."""
    word = re.search(r"ld\.shared\.v4\.b32 *\t*\{(%r\d+), [^\n]*\[segments_1\];\n", ptx)
    stores = re.findall(r"st\.global\.b32 *\t*\[%rd\d+\], (%r\d+);", ptx)
    if not word or len(stores) != 2:
        sys.exit("error: the kernel has another end")
    begin = word.end()
    end = ptx.index("\tadd.s64", ptx.index("selp.f32", begin)) if "selp.f32" in ptx[begin:] else begin
    moves = "".join(f"\tmov.b32 {to}, {word[1]};\n" for to in stores)
    return ptx[:begin] + moves + ptx[end:]


def loads(ptx):
    """The loads of a row, whose words no thread stores unless they cancel out."""
    end = ptx.index("\tshl.b32", ptx.index("ld.global.nc.b32"))
    words = re.findall(r"%r\d+", "".join(re.findall(r"ld\.global\.nc[^{]*\{([^}]*)\}", ptx[:end])))
    mixed = "".join(f"\txor.b32 {words[0]}, {words[0]}, {word};\n" for word in words[1:])
    store = (f"\tsetp.ne.b32 %p1, {words[0]}, 305419896;\n\t@%p1 ret;\n\tld.param.b64 %rd7, [kernel_param_4];\n"
             f"\tst.global.b32 [%rd7], {words[0]};\n\tret;\n}}\n")
    return ptx[:end] + mixed + store


def six(ptx):
    """As few CTAs on an SM as its registers allow the kernel, by shared memory."""
    return ptx.replace("\tld.param", "\t.shared .align 16 .b8 room[33792];\n\tld.param", 1).replace(
        "\tsetp.ne.b32 %p1,", "\tst.volatile.shared.b32 [room], %r60;\n\tsetp.ne.b32 %p1,", 1)


def main():
    build, folder = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    whole = kernel_of(build)
    kernels = {"whole": whole, "exponentials": without_exponentials(whole), "meeting": without_meeting(whole),
               "end": without_end(whole), "exponentials_end": without_end(without_exponentials(whole)),
               "meeting_end": without_meeting(without_end(whole)),
               "all": without_meeting(without_end(without_exponentials(whole))), "loads": loads(whole),
               "loads_six": six(loads(whole))}
    lines = []
    for name, ptx in kernels.items():
        name = name if name in ("whole", "loads", "loads_six") else f"without_{name}"
        (folder / f"{name}.ptx").write_text(ptx)
        subprocess.run(["ptxas", "-arch=sm_90a", "-O3", folder / f"{name}.ptx", "-o", folder / f"{name}.cubin"], check=True)
        lines.append(f"{name} {re.search(r'[.]reqntid ([0-9]+)', ptx)[1]}")
    (folder / "list.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
