#!/usr/bin/env python3
"""Norms of 64 x 7168 bf16 beside twins that have a part of their work.

  nvcc -O3 -std=c++17 -arch=sm_90a -shared -Xcompiler -fPIC -cudart shared few_row_twins.cu \\
      -o FOLDER/twins.so
  benchmarks/micro/few_row_twins.py FOLDER

FOLDER is what `norms.py pack --columns=7168` made, with neighbour_peers.py and neighbour_chains.py.
All are nodes of graphs whose launches overlap. A line of JSON has microseconds.
"""
import ctypes
import functools
import json
import os
import sys

FOLDER = os.path.abspath(sys.argv[1])
sys.path.insert(0, FOLDER)
import kit  # noqa: E402
import neighbour_peers  # noqa: E402

ROWS, COLUMNS = 64, 7168
KINDS = ("rms-bf16", "rms-nvfp4", "layer-bf16", "layer-nvfp4", "add_rms-bf16", "add_rms-nvfp4")
SUMS = {"empty": -2, "no_sum": 0, "one_sum": 1, "two_sums": 2}


def twin(library, kind, sums, torch):
    tensors = [torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.bfloat16) for _ in range(5)]
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]

    def call():
        error = library.run_twin(sums, kind.startswith("add"), kind.endswith("nvfp4"), ROWS, *pointers,
                                 ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if error:
            raise ValueError(f"the twin of {kind} failed with {error}")
    call.kept = tensors
    return call


def calls(library, kind, torch):
    import fp4
    ours = neighbour_peers.ours(FOLDER, kind, ROWS, COLUMNS, torch)
    program = fp4.load(os.path.join(FOLDER, f"{kind}_{COLUMNS}_twin.so"))
    plain = functools.partial(program, *ours["ours"].args, **ours["ours"].keywords)
    return {**ours, "no_arithmetic": plain, **{name: twin(library, kind, sums, torch) for name, sums in SUMS.items()}}


def main():
    torch = kit.open_package(FOLDER)
    torch.cuda.init()
    library = ctypes.CDLL(os.path.join(FOLDER, "twins.so"))
    for kind in KINDS:
        times = neighbour_peers.time_graphs(functools.partial(calls, library, kind, torch), torch)
        print(json.dumps({"kind": kind, "rows": ROWS, "columns": COLUMNS, **times}), flush=True)


if __name__ == "__main__":
    main()
