"""The cases of fp4.dist with NCCL on two GPUs, and what gathers and layers cost.

    two_gpus.py record FOLDER    on a machine with the compiler: keeps every program
    main.py run FOLDER       on a machine with two GPUs
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import packed

RANKS = 2
#: Rows and columns of the activations that are gathered; the rows are those of both ranks.
GATHERS = ((512, 4096), (4096, 4096), (16384, 8192))
#: Tokens, and the sizes of a layer pair: K to N column-parallel and back row-parallel.
LAYERS = ((64, 8192, 8192), (1024, 8192, 8192), (8192, 8192, 8192))


def start(folder: pathlib.Path, mode: str) -> int:
    """Both ranks of `mode`, as processes; 1 if one fails."""
    with tempfile.TemporaryDirectory() as place:
        ranks = [subprocess.Popen([sys.executable, __file__, mode, os.fspath(folder), str(rank),
                                   f"{place}/store"]) for rank in range(RANKS)]
        return int(any([rank.wait() for rank in ranks]))


def join(backend: str, rank: int, store: str, **options: Any) -> None:
    import torch.distributed as dist

    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=RANKS,
                            **options)


def record(folder: pathlib.Path, rank: int, store: str) -> int:
    packed.record(folder / f"programs{rank}")
    import dist_cases

    join("gloo", rank, store)
    lines = dist_cases.run(rank)
    failures = [line for line in lines if ": " in line]
    print("\n".join(failures).replace("\\n", "\n"), end="")
    packed.without_running()
    for rows, columns in GATHERS:
        gather(rows, columns, "cpu", rank)
    for tokens, inner, outer in LAYERS[:1]:
        layers(tokens, inner, outer, "cpu", rank)
    return int(bool(failures))


def gather(rows: int, columns: int, device: str,
           rank: int) -> "dict[str, Callable[[], Any]]":
    """Ways to have all rows on every rank, each once called."""
    import fp4.dist as fd
    import torch
    from fp4.dist import groups

    shard = torch.randn(rows // RANKS, columns, device=device).to(torch.bfloat16)
    whole = torch.empty(rows, columns, dtype=torch.bfloat16, device=device)
    sizes = [rows // RANKS] * RANKS
    q = fd.quantize(shard)
    ways = {"bf16": lambda: groups._gather(whole, shard),
            "nvfp4, gather alone": lambda: fd.all_gather(q, sizes=sizes),
            "nvfp4, amax, quantize, gather":
                lambda: fd.all_gather(fd.quantize(shard), sizes=sizes)}
    for way in ways.values():
        way()
    return ways


def layers(tokens: int, inner: int, outer: int, device: str,
           rank: int) -> "dict[str, Callable[[], Any]]":
    """A pair of layers with sequence parallelism, in bfloat16 and in 4 bits."""
    import fp4.dist as fd
    import torch
    from fp4.dist import groups

    torch.manual_seed(1)
    pair = [torch.nn.Linear(*sizes, bias=False, dtype=torch.bfloat16, device=device)
            for sizes in ((inner, outer), (outer, inner))]
    up, down = (kind.from_linear(layer, sequence_parallel=True) for kind, layer in
                zip((fd.ColumnParallelLinear, fd.RowParallelLinear), pair))
    up_part = pair[0].weight.detach().chunk(RANKS)[rank]
    down_part = pair[1].weight.detach().chunk(RANKS, 1)[rank].contiguous()
    x = torch.randn(tokens // RANKS, inner, device=device).to(torch.bfloat16)
    whole = torch.empty(tokens, inner, dtype=torch.bfloat16, device=device)
    own = torch.empty_like(x)

    def bf16() -> Any:
        groups._gather(whole, x)
        groups._scatter(own, (whole @ up_part.T) @ down_part.T)
        return own

    def fp4() -> Any:
        with torch.no_grad():
            return down(up(x))

    if device == "cpu":
        fp4()
        return {}
    error = (fp4().float() - bf16().float()).norm() / bf16().float().norm()
    if rank == 0:
        print(f"         relative distance of nvfp4 to bf16: {error:.3f}")
    def without_exchange() -> Any:
        with torch.no_grad():
            return down(up(x, [len(x)] * RANKS))

    return {"bf16": bf16, "nvfp4": fp4, "nvfp4, sizes given": without_exchange}


def median_time(work: "Callable[[], Any]") -> float:
    """Microseconds of a call on the device."""
    import torch

    times = []
    for index in range(30):
        torch.distributed.barrier()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(5):
            work()
        end.record()
        end.synchronize()
        if index >= 10:
            times.append(begin.elapsed_time(end) * 200)
    return sorted(times)[len(times) // 2]


def measure(rank: int, device: str) -> None:
    import fp4.dist as fd

    for shape in GATHERS:
        traffic = fd.gather_traffic(shape, RANKS)
        if rank == 0:
            print(f"gather {shape[0]} x {shape[1]}: each rank receives {traffic.bytes} bytes, in "
                  f"bf16 {traffic.bfloat16} ({traffic.ratio:.2f} times as many)")
        report(gather(*shape, device, rank), rank)
    for sizes in LAYERS:
        if rank == 0:
            print(f"layers of {sizes[1]} x {sizes[2]}, {sizes[0]} tokens, sequence parallel")
        report(layers(*sizes, device, rank), rank)


def report(ways: "dict[str, Callable[[], Any]]", rank: int) -> None:
    for name, way in ways.items():
        time = median_time(way)
        if rank == 0:
            print(f"{time:9.1f} us  {name}")


def run(folder: pathlib.Path, rank: int, store: str) -> int:
    import torch

    device = f"cuda:{rank}"
    torch.cuda.set_device(device)
    packed.replay(folder / "programs")
    import dist_cases

    dist_cases.DEVICE = device
    join("nccl", rank, store, device_id=torch.device(device))
    if rank == 0:
        print(f"torch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, "
              f"{torch.cuda.device_count()} of {torch.cuda.get_device_name()}")
    lines = dist_cases.run(rank)
    failures = [line for line in lines if ": " in line]
    for line in lines:
        print(f"{'FAILED' if ': ' in line else 'passed':8} rank {rank}  "
              + line.replace("\\n", "\n"))
    print(f"rank {rank}: {len(lines) - len(failures)} passed, {len(failures)} failed")
    measure(rank, device)
    torch.distributed.destroy_process_group()
    return int(bool(failures))


def main() -> int:
    arguments = sys.argv[1:]
    if len(arguments) not in (2, 4) or arguments[0] not in ("record", "run"):
        sys.exit(__doc__)
    mode, folder = arguments[0], pathlib.Path(arguments[1]).resolve()
    if len(arguments) == 4:
        return {"record": record, "run": run}[mode](folder, int(arguments[2]), arguments[3])
    code = start(folder, mode)
    if mode == "record":  # each rank kept its own
        (folder / "programs").mkdir(exist_ok=True)
        for rank in range(RANKS):
            for file in (folder / f"programs{rank}").iterdir():
                shutil.move(file, folder / "programs" / file.name)
            (folder / f"programs{rank}").rmdir()
    return code


if __name__ == "__main__":
    sys.exit(main())
