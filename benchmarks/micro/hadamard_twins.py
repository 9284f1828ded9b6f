#!/usr/bin/env python3
"""Times the kernel of fp4.hadamard_amax for few rows beside twins of its PTX that leave parts out.

  benchmarks/micro/hadamard_twins.py write FOLDER [--build BUILD]
  benchmarks/micro/hadamard_twins.py run FOLDER

`write` compiles the kernel for 64 rows of 7168 bf16, with CTAs of 512 and of 256 threads, and
assembles the kernel and its twins, which needs no GPU: `no_rare` without the code for sums that
overflow, `rare_last` with that code behind the rest, `no_sums` with the maxima of the elements in
place of those of their transform. `run` prints a line of JSON for each twin and number of rows,
with cold L2, and the bits of both maxima: those of the first three are equal.
"""
from __future__ import annotations

import argparse
import array
import ctypes
import json
import pathlib
import random
import re
import subprocess
import sys
from collections.abc import Iterator

COLUMNS, ROWS, BUFFERS, THREADS = 7168, (64, 128), 160, (512, 256)
TWINS = ("as_is", "no_rare", "rare_last", "no_sums")
PROGRAM = """func.func @h(%x: tensor<64x7168xbf16>) -> (tensor<f32>, tensor<f32>) {
  %b, %a = fp4.hadamard_amax %x : tensor<64x7168xbf16> -> tensor<f32>, tensor<f32>
  return %b, %a : tensor<f32>, tensor<f32>
}
"""


def twin(name: str, ptx: str) -> str:
    """The text of a twin. The branch past the rare code ends the usual code of a block."""
    branch = re.search(r"@%p\d+ bra\s+(\$L__BB0_\d+);\n(?=\s*mul\.rn\.f32[^\n]*0f3D800000)", ptx)
    assert branch, "the kernel has no branch around the code for sums that overflow"
    end = re.compile(rf"bra\.uni\s+\{branch[1]};\n").search(ptx, branch.end())
    assert end, "the rare code has no end"
    rare, usual, rest = ptx[branch.end():end.end()], ptx[:branch.start()], ptx[end.end():]
    if name == "as_is":
        return ptx
    if name == "rare_last":
        test = branch[0].replace("@%", "@!%", 1).replace(branch[1], "$L__RARE")
        body, closing = rest.rsplit("\tret;", 1)
        return f"{usual}{test}\tbra.uni {branch[1]};\n{body}\tret;\n$L__RARE:\n{rare}{closing}"
    if name == "no_sums":
        begin = usual.index("neg.f32")
        registers = re.findall(r"(?:mul\.lo\.s32|and\.b32)\s+(%r\d+), %r\d+, (?:%r5|-65536);", usual[:begin])
        maxima = re.findall(r"abs\.f32\s+(%r\d+), %r\d+;", usual)
        assert len(registers) >= len(maxima) == 16, "a thread has another number of elements"
        moves = "".join(f"\tabs.f32 {to}, {of};\n" for to, of in zip(maxima, registers[-16:]))
        usual = usual[:begin] + moves.lstrip() + "\t" + usual[usual.index("max.f32 \t", usual.rindex("abs.f32")):]
    return f"{usual}bra.uni {branch[1]};\n{rest}"


def write(build: pathlib.Path, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "h.mlir"
    source.write_text(PROGRAM)
    for threads in THREADS:
        plan = f"reduce_grid, threads = {threads}, grid = {1024 // threads}"
        command = [build / "bin/fp4-runner", source, "--target=sm_90a", "--plan-device=h200", "--plan", plan, "--emit=ptx"]
        subprocess.run([*command, "-o", f"{folder}/"], check=True)
        ptx = next(folder.glob("*hadamard_amax*.ptx")).read_text()
        for name in TWINS:
            path = folder / f"{name}_{threads}.ptx"
            path.write_text(twin(name, ptx))
            subprocess.run(["ptxas", "-arch=sm_90a", path, "-o", path.with_suffix(".cubin")], check=True)


def times(folder: pathlib.Path) -> Iterator[dict[str, object]]:
    from cuda import Device

    device, generator = Device(), random.Random(1)
    words = array.array("H", ((0x3F80 + generator.getrandbits(6)) | generator.getrandbits(1) << 15
                              for _ in range(max(ROWS) * COLUMNS)))
    inputs = [device.upload(words.tobytes()) for _ in range(BUFFERS)]
    out, slots = device.allocate(4096), device.allocate(1 << 20)
    for rows in ROWS:
        items = rows * COLUMNS // 16
        for threads in THREADS:
            for name in TWINS:
                kernel = device.load_image((folder / f"{name}_{threads}.cubin").read_bytes(), name="kernel")

                def launch(tensor: int, stream: ctypes.c_void_p | None = None) -> None:
                    kernel(min(items // threads, 132 * 1024 // threads), threads, tensor, out, out + 256,
                           ctypes.c_int(items), slots, stream=stream)

                launch(inputs[0])
                device.synchronize()
                bits = [device.download(out + at, 4)[::-1].hex() for at in (0, 256)]
                replay = device.graph(lambda stream: [launch(tensor, stream) for tensor in inputs])
                replay()
                device.synchronize()
                seconds = sorted(device.seconds(replay) for _ in range(15))[7] / BUFFERS
                yield {"twin": name, "rows": rows, "threads": threads, "us": round(seconds * 1e6, 3), "maxima": bits}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("write", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    options = parser.parse_args()
    if options.command == "write":
        write(options.build, options.folder)
    else:
        for row in times(options.folder):
            print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
