#!/usr/bin/env python3
"""A mixture of experts of the sizes of DeepSeek-V3 that GPUs of a machine share, beside one GPU.

  benchmarks/models/experts.py pack BUILD FOLDER [--ranks=2]      compiles the programs for GPUs
  benchmarks/models/experts.py run FOLDER [--ranks=2] [--json=FILE] [--device=cpu]

Weights and tokens are random, and the same on all ranks. The ways of fp4.dist.ExpertParallelMoE
take turns with fp4.torch.MoE on one GPU: `all-reduce`, where all ranks have all tokens, and two
with as many tokens on each rank: `all-to-all`, where rows travel to the ranks of their experts and
the host waits for their number, and `all-gather`, where all ranks get all rows. All but the
all-to-all are CUDA graphs. Before anything is timed, the results of each way are compared with
those of one GPU: the error must be at most that of one rounding to bf16. A time is the median over
rounds of the slowest rank.
"""
import copy
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))  # in a packed folder the modules lie beside this file
sys.path.append(str(HERE.parent))
import host  # noqa: E402
import kit  # noqa: E402
import ranks as processes  # noqa: E402

#: Sizes of DeepSeek-V3, and those that the simulator runs, to try the program without a GPU.
SIZES = {"hidden": 7168, "intermediate": 2048, "experts": 256, "k": 8, "groups": 8, "top_groups": 4}
SMALL = {"hidden": 128, "intermediate": 64, "experts": 16, "k": 4, "groups": 4, "top_groups": 2}
TOKENS, FEW_TOKENS = (2, 16, 128, 4096), (2, 6)
WAYS = ("all-reduce", "all-gather", "all-to-all")
#: Of the norm of the results: sums in another order are rounded once, by at most 2^-8 of each.
MOST_ERROR = 2.0**-8


def mixture(sizes, device):
    """The layer, with experts in NVFP4 and a shared one in bf16."""
    import fp4.torch
    import torch
    from fp4.torch.router import Rule
    generator = torch.Generator(device).manual_seed(1)

    def stack(*shape):
        return torch.randn(shape, generator=generator, device=device, dtype=torch.bfloat16).mul_(shape[-1]**-0.5)
    hidden, inner, count = sizes["hidden"], sizes["intermediate"], sizes["experts"]
    up = fp4.torch.WeightOnlyExperts.from_stack(stack(count, inner, hidden), gate=stack(count, inner, hidden))
    down = fp4.torch.WeightOnlyExperts.from_stack(stack(count, hidden, inner))
    rule = Rule(sizes["k"], "sigmoid", "sum", sizes["groups"], sizes["top_groups"], 2.5, 1e-20)
    correction = torch.rand(count, generator=generator, device=device) / 8
    router = fp4.torch.Router(torch.nn.Parameter(stack(count, hidden), False), rule, correction=correction, in_float32=True)
    return fp4.torch.MoE(router, fp4.torch.RoutedExperts(up, down), unit_of(
        stack(inner, hidden), stack(inner, hidden), stack(hidden, inner)))


def unit_of(gate, up, down):
    """A gated unit in bf16, which all tokens have."""
    import torch

    class Unit(torch.nn.Module):
        def forward(self, x):
            linear = torch.nn.functional.linear
            return linear(torch.nn.functional.silu(linear(x, gate)) * linear(x, up), down)
    return Unit()


# ===--- Programs ---------------------------------------------------------=== #


def pack(build, folder, gpus, ranks):
    kit.begin(folder, HERE, *(HERE.with_name(f"{name}.py") for name in ("host", "logits", "ranks")))
    kit.copy_package(build, folder)
    kit.write_revision(folder)
    os.environ.update(FP4_LIBRARY=str(build / "lib" / "libfp4.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import torch
    from fp4.torch import execution
    with torch.no_grad(), execution.collecting() as found:
        whole, *parts = hollow(ranks)
        for tokens in TOKENS:  # plans of parts depend on their number
            x = torch.zeros(tokens, SIZES["hidden"], dtype=torch.bfloat16)
            whole(x)
            weights, ids = whole._choose(x)
            for part in parts:
                part._write_into(torch.empty(x.shape), x)
                part.experts._write_into(torch.empty(x.shape), x, ids, weights)
    kit.assemble(found, gpus)


def hollow(ranks):
    """The layer and the part of each rank, whose experts have memory that nobody touches."""
    import fp4.torch
    small = mixture(SIZES | {"experts": 2 * SIZES["groups"]}, "cpu")
    count = SIZES["experts"]
    router = fp4.torch.Router(torch_zeros(count, SIZES["hidden"]), small.router.rule,
                              correction=torch_zeros(count).detach().float(), in_float32=True)
    found = []
    for first, many in ((0, count), *((rank * count // ranks, count // ranks) for rank in range(ranks))):
        layers = [copy.copy(layer) for layer in (small.experts.gate_up, small.experts.down)]
        for layer in layers:
            layer._buffers = {name: value if value is None else value.new_empty(
                value.shape[0] // layer.experts * many, *value.shape[1:]) for name, value in layer._buffers.items()}
            layer.experts = many
        shared = None if found else small.shared  # parts add it behind their sums
        found.append(fp4.torch.MoE(router, fp4.torch.RoutedExperts(*layers, first=first, total=count), shared))
    return found


def torch_zeros(*shape):
    import torch
    return torch.nn.Parameter(torch.zeros(shape, dtype=torch.bfloat16), requires_grad=False)


# ===--- A rank -----------------------------------------------------------=== #


class Rank:
    def __init__(self, rank, ranks, device):
        self.rank, self.ranks, self.device, self.is_small = rank, ranks, device, device.type == "cpu"
        self.rounds, self.calls = (1, 1) if self.is_small else (9, 20)

    def measured(self):
        import fp4.dist
        import torch
        whole = mixture(SMALL if self.is_small else SIZES, self.device)
        processes.say(self.rank, "the mixture is ready")
        layers = [fp4.dist.ExpertParallelMoE(whole, sequence_parallel=is_own) for is_own in (False, True)]
        for tokens in FEW_TOKENS if self.is_small else TOKENS:
            torch.manual_seed(tokens)
            x = torch.randn(tokens, layers[0].moe.experts.hidden_size, device=self.device, dtype=torch.bfloat16)
            calls = self.calls_of(whole, layers, x)
            errors = self.errors(calls, tokens)
            times = self.times({name: self.captured(call) if name != "all-to-all" else call for name, call in calls.items()})
            for way in WAYS:
                yield {"tokens": tokens, "way": way, "one_ms": times["one"], "ranks_ms": times[way],
                       "ratio": times["one"] / times[way], "error": errors[way]}

    def calls_of(self, whole, layers, x):
        """The ways by name; all but the first return the rows of this rank where it has its own."""
        sizes = [len(x) // self.ranks] * self.ranks
        own = x.chunk(self.ranks)[self.rank].contiguous()
        return {"one": lambda: whole(x), "all-reduce": lambda: layers[0](x),
                "all-gather": lambda: layers[1](own, sizes), "all-to-all": lambda: layers[1](own)}

    def errors(self, calls, tokens):
        """The error of each way, of all ranks."""
        import torch.distributed as dist
        expected, found = calls["one"]().float(), {}
        for way in WAYS:
            y = calls[way]().float()
            true = expected if way == "all-reduce" else expected.chunk(self.ranks)[self.rank]
            error = (y - true).norm() / true.norm()
            dist.all_reduce(error, dist.ReduceOp.MAX)
            found[way] = error.item()
        processes.say(self.rank, f"{tokens} tokens: errors {found}")
        return found

    def captured(self, call):
        """The replay of a graph of `call`, on a CPU `call`."""
        if self.is_small:
            return call
        graph = kit.captured(call, 2, capture_error_mode="thread_local")
        self.__dict__.setdefault("graphs", []).append(graph)  # they live as long as the process
        return graph.replay

    def times(self, calls):
        """Milliseconds of a call of each way; ways take turns."""
        import torch
        import torch.distributed as dist
        found = {name: [] for name in calls}
        wait = (lambda: None) if self.is_small else torch.cuda.synchronize
        for number in range(self.rounds + 1):
            for name, call in calls.items():
                dist.barrier()
                wait()
                begin = time.perf_counter()
                for _ in range(self.calls):
                    call()
                wait()
                took = torch.tensor((time.perf_counter() - begin) * 1e3 / self.calls, device=self.device)
                dist.all_reduce(took, dist.ReduceOp.MAX)
                if number or self.is_small:
                    found[name].append(took.item())
        return {name: statistics.median(values) for name, values in found.items()}


def enter(folder, options):
    """Does the work of one rank."""
    if options.device == "cuda":  # the simulator compiles programs of a small layer
        os.environ.update(FP4_LIBRARY=str(folder / "libfp4rt.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import torch
    import torch.distributed as dist
    place, rank, code = pathlib.Path(options.place), options.rank, 1
    device = torch.device(options.device, rank) if options.device == "cuda" else torch.device("cpu")
    if options.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo", init_method=f"file://{place}/store", rank=rank,
                            world_size=options.ranks, **({"device_id": device} if options.device == "cuda" else {}))
    try:
        with torch.no_grad(), (place / "rows").open("a") as file:
            for row in Rank(rank, options.ranks, device).measured():
                if rank == 0:
                    print(json.dumps(row), flush=True)
                    print(json.dumps(row), file=file, flush=True)
        code = 0
    except Exception:
        processes.say(rank, traceback.format_exc())
    sys.stdout.flush()
    os._exit(code)  # communicators of captured graphs take long to end, or wait for each other


def run(options):
    folder = options.folder.resolve()
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place, "rows").touch()
        command = [sys.executable, HERE, "rank", folder, f"--ranks={options.ranks}", f"--device={options.device}", f"--place={place}"]
        found = [subprocess.Popen([*command, f"--rank={rank}"], env={**os.environ, **processes.ENVIRONMENT})
                 for rank in range(options.ranks)]
        is_well = processes.ended(found, options.limit)
        rows = [json.loads(line) for line in pathlib.Path(place, "rows").read_text().splitlines()]
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(document(rows, options, folder), indent=1) + "\n")
    wrong = [row for row in rows if not row["error"] <= MOST_ERROR]
    for row in wrong:
        print(f"error: {row['tokens']} tokens, {row['way']}: the error must be at most {MOST_ERROR}, but is {row['error']}",
              file=sys.stderr)
    sys.exit(0 if is_well and rows and not wrong else 1)


COLUMNS = [("tokens", "tokens", None), ("way", "way of tokens", None), ("one_ms", "one GPU", "ms"), ("ranks_ms", "all ranks", "ms"),
           ("ratio", "one / all", None)]


def document(rows, options, folder):
    """A result as docgen/result_tables.py reads it."""
    names = [name for name, _, _ in COLUMNS]
    tidy = [{name: round(row[name], 4) if isinstance(row[name], float) else row[name] for name in names} for row in rows]
    revision = folder / "revision"
    return kit.document(
        "experts-ranks-deepseek_v3", COLUMNS, tidy, key=["tokens", "way"], clock="ways in turns, as the driver sets it",
        revision=revision.read_text().strip() if revision.exists() else None,
        command=f"benchmarks/models/experts.py run FOLDER --ranks={options.ranks}",
        program=f"experts of DeepSeek-V3's sizes {SIZES}, random weights in NVFP4")


def main():
    parser, commands, packing, running = kit.commands_of(__doc__, host.GPUS)
    one = commands.add_parser("rank", help="one of the processes of `run`")
    for command in (running, one):
        command.add_argument("folder", type=pathlib.Path)
        command.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: a small layer, simulated")
    running.add_argument("--json")
    running.add_argument("--limit", type=float, default=120, help="seconds that the ranks may take")
    one.add_argument("--rank", type=int)
    one.add_argument("--place")
    for command in (packing, running, one):
        command.add_argument("--ranks", type=int, default=2, help="GPUs that share the experts")
    options = parser.parse_args()
    if options.command == "pack":
        return pack(options.build.resolve(), options.folder.resolve(), options.gpus, options.ranks)
    (enter if options.command == "rank" else lambda _, options: run(options))(options.folder.resolve(), options)


if __name__ == "__main__":
    main()
