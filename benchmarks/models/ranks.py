"""Decode steps of a decoder that the GPUs of one machine share, beside those of one GPU.

`run.py run FOLDER --model=llama_70b --ranks=2` starts a process for each GPU. Before anything is
timed, rank 0 compares the logits of a prompt and of two steps: those of one GPU, and those of the
parts of all ranks as threads of one GPU, with the model in float32, as run.py does. Then the logits
of each exchange must have the bits of the threads on every rank. A row says what was found, and the
command fails if a row is wrong. Steps are CUDA graphs; one GPU,
a rank's part of the work without an exchange, and all ranks take turns. A row appears as soon as it
is measured, and rows that were measured before a failure are kept.

A mixture has rows of two ways to share it: "expert" parallel, where a rank has some of the experts,
and "tensor" parallel, where it has columns of all. Several prompts judge it, as in run.py, and the
first 8 sequences of each.
"""
import copy
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

from logits import Wide, equalize, has_experts, last_logits

EXCHANGES = ("collectives", "peer memory")
PROMPT, ROOM, STEPS = 128, 256, 2
#: Sequences that judge a mixture: of a prompt at most, and of all prompts at least.
JUDGES = 8
#: Multicast of NVLink needs a fabric manager, and is not used.
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
#: Sizes that the simulator runs, to try the program without a GPU.
SMALL = {"hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512}
SMALL_EXPERTS = {"hidden_size": 256, "intermediate_size": 256, "head_dim": 64, "num_local_experts": 4, "num_experts_per_tok": 2}


# ===--- Processes --------------------------------------------------------=== #


def launch(script, folder, options):
    """The rows that rank 0 measured, and whether all ranks ended well. If a rank fails, all are
    started anew for the exchanges that have not begun, until `options.limit` seconds are over."""
    rows, is_well, left = [], True, options.exchanges.split(",")
    deadline = time.monotonic() + options.limit
    while left:
        seconds = (deadline - time.monotonic()) * (1.0 if len(left) == 1 else 0.7)
        more, is_one_well, begun = launched(script, folder, options, left, seconds)
        rows += more
        is_well &= is_one_well
        if is_one_well or begun not in left:
            break
        left = left[left.index(begun) + 1:]
        say("-", f"'{begun}' failed; left are {left}")
    return rows, is_well


def launched(script, folder, options, exchanges, seconds):
    """The rows of one start of all ranks, whether they ended well, and the exchange that was begun
    last."""
    with tempfile.TemporaryDirectory() as place:
        files = [pathlib.Path(place, name) for name in ("rows", "begun")]
        for file in files:
            file.touch()
        command = [sys.executable, script, "rank", folder, f"--model={options.model}", f"--layers={options.layers}",
                   f"--ranks={options.ranks}", f"--device={options.device}", f"--exchanges={','.join(exchanges)}",
                   f"--place={place}"]
        ranks = [subprocess.Popen([*command, f"--rank={rank}"], env={**os.environ, **ENVIRONMENT})
                 for rank in range(options.ranks)]
        is_well = ended(ranks, seconds)
        return [json.loads(line) for line in files[0].read_text().splitlines()], is_well, files[1].read_text()


def ended(ranks, limit):
    deadline = time.monotonic() + limit
    try:
        while any(process.poll() is None for process in ranks):
            failed = [number for number, process in enumerate(ranks) if process.poll()]
            if failed:
                print(f"rank {failed[0]} failed with {ranks[failed[0]].poll()}; the others end", file=sys.stderr, flush=True)
                time.sleep(5)
                return False
            if time.monotonic() > deadline:
                print(f"the ranks run for more than {limit:.0f} seconds, and end", file=sys.stderr, flush=True)
                return False
            time.sleep(0.2)
        return not any(process.returncode for process in ranks)
    finally:
        for process in ranks:
            if process.poll() is None:
                process.kill()
                process.wait()


def enter(folder, options, model):
    """Does the work of one rank; `model(device)` makes the model in bf16."""
    if options.device == "cuda":  # the simulator compiles programs of a small model
        os.environ.update(FP4_LIBRARY=str(folder / "libfp4rt.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import torch
    import torch.distributed as dist
    place, rank = pathlib.Path(options.place), options.rank
    device = torch.device(options.device, rank) if options.device == "cuda" else torch.device("cpu")
    given = {"device_id": device} if options.device == "cuda" else {}
    if options.device == "cuda":
        if torch.cuda.device_count() < options.ranks:
            raise RuntimeError(f"{options.ranks} ranks need as many GPUs, but there are {torch.cuda.device_count()}")
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if given else "gloo", init_method=f"file://{place}/store", rank=rank,
                            world_size=options.ranks, timeout=datetime.timedelta(minutes=8), **given)
    code = 1
    try:
        with torch.no_grad(), (place / "rows").open("a") as file:
            for row in Rank(rank, options, device).measured(model, lambda name: (place / "begun").write_text(name)):
                if rank == 0:
                    print(json.dumps(row), flush=True)
                    print(json.dumps(row), file=file, flush=True)
        code = 0
        say(rank, "done")
    except Exception:
        say(rank, traceback.format_exc())
    sys.stdout.flush()
    os._exit(code)  # communicators of captured graphs take long to end, or wait for each other


def say(rank, *words):
    print(f"[{time.monotonic():9.1f}] rank {rank}:", *words, file=sys.stderr, flush=True)


# ===--- Exchanges --------------------------------------------------------=== #


def silent(ranks, rank=0):
    """A rank of a group that exchanges nothing: all parts are its own."""
    from fp4.dist.exchange import Exchange

    class Silent(Exchange):
        name = "none"
        can_capture = True

        def parts(self, slot, part):
            return (part,) * self.ranks

        def values(self, value):
            return [value] * self.ranks
    return Silent(rank, ranks)


# ===--- A rank -----------------------------------------------------------=== #


class Replayed:
    """A decoder whose step is a graph, or on a CPU a call."""

    def __init__(self, decoder):
        self.decoder, self.prompt = decoder, 0

    def ready(self, ids):
        self.prompt = ids.shape[1]
        self.decoder.truncate()
        self.decoder.prefill(ids)
        if ids.is_cuda:
            self.decoder.capture()

    def microseconds(self, steps, begin=lambda: None):
        """Returns the time of a step, after `begin`."""
        import torch
        self.decoder.truncate(self.prompt)
        wait = torch.cuda.synchronize if self.decoder.token.is_cuda else (lambda: None)
        wait()
        begin()
        start = time.perf_counter()
        for _ in range(steps):
            self.decoder.step()
        wait()
        return (time.perf_counter() - start) * 1e6 / steps


class Rank:
    def __init__(self, rank, options, device):
        self.rank, self.ranks, self.layers, self.device = rank, options.ranks, options.layers, device
        self.is_small = device.type == "cpu"
        self.exchanges = options.exchanges.split(",")
        self.batches = (1, 2) if self.is_small else (1, 8, 64)
        self.steps, self.rounds = (1, 1) if self.is_small else (16, 12)
        self.prompt = 8 if self.is_small else PROMPT
        self.kept = []

    def measured(self, model, begin):
        """Rows of all exchanges, way by way and batch by batch. Rank 0 calls `begin` with the name
        of each."""
        import torch
        ours, expected, errors, ids = self.prepared(model)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        ids, absent = self.shared(ids), []
        for name in self.exchanges:
            if self.rank == 0:
                begin(name)
            for way in self.ways_of(ours):
                for batch in self.batches:
                    row, reason = self.measured_alone(name, way, ours, batch, ids[batch], expected.get((way, batch)))
                    if reason:
                        absent.append(reason)
                        break
                    yield row | {"error": errors.get((way, batch)), "equal_bits": row["equal_bits"]}
                if absent:
                    break
        if absent:
            raise RuntimeError("; ".join(absent))

    def ways_of(self, model):
        """The ways to share a model; "" of one without experts."""
        return ("expert", "tensor") if has_experts(model) else ("",)

    def decoder(self, ours, batch, way, group):
        import fp4.torch
        return fp4.torch.Decoder(ours, batch, ROOM, group=group, expert_parallel=way != "tensor")

    def measured_alone(self, name, way, ours, batch, ids, expected):
        """A row, or why there is none. Graphs with collectives live as long as the process."""
        shared, is_equal = self.checked(name, way, ours, batch, ids, expected)
        found = shared.decoder.exchange
        if name != EXCHANGES[0] and found.name != name:
            return None, f"there is no {name}: {found.reason or found.name + ' is the fastest'}"
        alone = self.alone(ours, batch, way, ids) if self.rank == 0 else None
        row = self.row(batch, shared, alone) | {"equal_bits": "yes" if is_equal else "no"}
        if name == self.exchanges[-1]:
            self.profiled(batch, way, shared, alone)
        self.kept.append(shared)
        return ({"layers": row.pop("layers"), "step": row.pop("step"), "parallel": way} if way else {}) | row, ""

    def prepared(self, model):
        """The model with weights in 4 bits; on rank 0 logits, errors and tokens, too."""
        import fp4.torch
        plain = model(self.device)
        ours = copy.deepcopy(plain) if self.rank == 0 else plain
        fp4.torch.quantize_(ours, weight_only=True)
        say(self.rank, "the model is quantized")
        return ours, *(self.expected(plain, ours) if self.rank == 0 else ({}, {}, {}))

    # ===--- Verification -------------------------------------------------=== #

    def expected(self, exact, ours):
        """Logits of the parts as threads and their errors, for each way and batch, and tokens, for
        each batch. `exact` gets the numbers of the weights in 4 bits."""
        from fp4.dist.exchange import Threads
        equalize(exact, ours)
        logits, errors, ids = {}, {}, {}
        for batch in self.batches:
            decoder = self.decoder(ours, batch, "", None)
            prompts = [self.prompt_of(exact, batch, number) for number in range(self.prompts_of(exact, batch))]
            single = [self.follow(decoder, prompt, is_free=True) for prompt in prompts]
            full = [torch_cat([prompt, *(found.argmax(-1, keepdim=True) for found in one[:STEPS])]) for prompt, one in
                    zip(prompts, single)]
            ids[batch] = full[0]
            true = [self.references(exact, one) for one in full]
            for way in self.ways_of(ours):
                parts = Threads.run(lambda one, batch=batch, way=way, full=full: self.followed(
                    self.decoder(ours, batch, way, one), full), self.ranks)
                if not all(same(one, other) for one, other in zip(parts[0], parts[-1])):
                    raise RuntimeError("ranks as threads have other bits")
                logits[way, batch] = parts[0][0]
                errors[way, batch] = self.judged(batch, way, single, parts[0], true)
        return logits, errors, ids

    def prompts_of(self, model, batch):
        return max(1, JUDGES // batch) if has_experts(model) and not self.is_small else 1

    def prompt_of(self, model, batch, number):
        import torch
        torch.manual_seed(batch + 1000 * number)
        return torch.randint(1, model.config.vocab_size, (batch, self.prompt), device=self.device)

    def followed(self, decoder, prompts):
        return [self.follow(decoder, ids) for ids in prompts]

    def follow(self, decoder, ids, is_free=False):
        """Logits of the prompt and of steps: those of `ids`, or the best tokens."""
        decoder.truncate()
        found = [decoder.prefill(ids[:, :self.prompt].contiguous()).clone()]
        return found + self.stepped(decoder, ids, is_free)

    def stepped(self, decoder, ids, is_free=False):
        return [decoder.step(None if is_free else ids[:, self.prompt + number].contiguous()).clone()
                for number in range(STEPS)]

    def references(self, exact, ids):
        """Logits of the model in float32 and in bf16 behind the prompt and the steps of `ids`."""
        wide = Wide(exact)
        rows = ids[:JUDGES] if has_experts(exact) else ids
        return [tuple(last_logits(one, rows[:, :self.prompt + number]) for one in (wide, exact)) for number in range(STEPS + 1)]

    def judged(self, batch, way, single, parts, true):
        """The largest error of logits, of one GPU and of ranks, beside that of transformers in
        bf16; of a mixture, that of the means over prompts and steps."""
        found = {name: [[error_of(logits, wide) for logits, (wide, _) in zip(one, pairs)] for one, pairs in zip(some, true)]
                 for name, some in (("one", single), ("ranks", parts), ("bf16", [[least for _, least in pairs] for pairs in true]))}
        if way:
            found = {name: [[statistics.fmean(error**2 for one in some for error in one)**0.5]] for name, some in found.items()}
        ratios = {name: max(error / least for errors, of_bf16 in zip(found[name], found["bf16"])
                            for error, least in zip(errors, of_bf16)) for name in ("one", "ranks")}
        differ = max((one != other).float().mean().item() for some, others in zip(single, parts) for one, other in
                     zip(some, others))
        say(0, f"batch {batch} {way}: errors beside transformers in bf16 {ratios}; {differ:.4f} of the logits of parts "
               "have other bits than those of one GPU")
        return max(ratios.values())

    def shared(self, ids):
        """The tokens of rank 0 on every rank."""
        import torch
        import torch.distributed as dist
        found = [{batch: one.tolist() for batch, one in ids.items()}]
        dist.broadcast_object_list(found, 0, device=self.device)
        return {batch: torch.tensor(one, device=self.device) for batch, one in found[0].items()}

    def checked(self, name, way, ours, batch, ids, expected):
        """A decoder of all ranks, and whether its bits are those of the threads on all of them."""
        import torch
        import torch.distributed as dist
        decoder = self.decoder(ours, batch, way, self.group(name))
        say(self.rank, f"batch {batch} {way}: exchange by {decoder.exchange.name} {decoder.exchange.reason}")
        shared, is_equal = Replayed(decoder), True
        logits = self.follow(decoder, ids)
        shared.ready(ids[:, :self.prompt].contiguous())
        logits += self.stepped(decoder, ids)  # by the graph
        expected = expected and expected + expected[1:]
        for number, found in enumerate(logits):
            first = expected[number] if self.rank == 0 else torch.empty_like(found)
            dist.broadcast(first.view(torch.uint8), 0)
            same = torch.tensor([int(torch.equal(first, found))], device=self.device)
            if not same.item():
                say(self.rank, f"batch {batch}, {name}, logits {number}: {(first != found).float().mean().item()} of them have other "
                               f"bits than ranks as threads, and differ by up to {(first - found).abs().max().item()}")
            dist.all_reduce(same, dist.ReduceOp.MIN)
            is_equal &= bool(same.item())
        return shared, is_equal

    def group(self, name):
        """The exchange of a name, or the fastest."""
        import torch.distributed as dist
        from fp4.dist.exchange import Collectives
        return Collectives(dist.group.WORLD, self.device) if name == EXCHANGES[0] else dist.group.WORLD

    # ===--- Times --------------------------------------------------------=== #

    def alone(self, ours, batch, way, ids):
        """Decoders of one GPU: of the whole, and of a rank's part without an exchange."""
        pair = [Replayed(self.decoder(ours, batch, way, group)) for group in (None, silent(self.ranks))]
        for one in pair:
            one.ready(ids[:, :self.prompt].contiguous())
        return pair

    def row(self, batch, shared, alone):
        """A row; on ranks but the first it has no numbers."""
        import torch
        import torch.distributed as dist
        times = [[], [], []]

        def meet():
            dist.barrier()
            if self.device.type == "cuda":
                torch.cuda.synchronize()
        for number in range(self.rounds + 2):
            found = [one.microseconds(self.steps) for one in alone or ()]
            meet()
            found.append(shared.microseconds(self.steps, meet))
            meet()
            if number >= 2 or self.is_small:
                for one, value in zip(times[-len(found):], found):
                    one.append(value)
        one, half, several = (statistics.median(some) / 1e3 if some else 0.0 for some in times)
        return {"layers": self.layers, "step": f"decode, batch {batch}", "exchange": shared.decoder.exchange.name,
                "one_ms": one, "part_ms": half, "ranks_ms": several, "ratio": one / several,
                "tokens_per_second": round(batch * 1e3 / several)}

    def profiled(self, batch, way, shared, alone):
        """Prints the kernels of a step that take the most time, of all ranks and of one GPU."""
        if self.device.type != "cuda":
            return
        for name, one in ((shared.decoder.exchange.name, shared), *zip(("one GPU", "a rank's part"), alone or ())):
            try:
                lines = kernels_of(one)
            except Exception:
                lines = [traceback.format_exc(limit=1)]
            if self.rank == 0:
                say(0, f"batch {batch} {way}, {name}: " + "\n    ".join(lines))


def same(one, other):
    import torch
    return all(torch.equal(a, b) for a, b in zip(one, other))


def torch_cat(columns):
    import torch
    return torch.cat(columns, 1)


def error_of(logits, wide):
    """The error of the sequences that `wide` has."""
    return ((logits[:len(wide)].float() - wide).norm() / wide.norm()).item()


def kernels_of(one, steps=8):
    """Lines with the time, the number and the name of the kernels of a step."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    one.decoder.truncate(one.prompt)
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(steps):
            one.decoder.step()
        torch.cuda.synchronize()
    found = {}
    for event in trace.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            total = found.setdefault(event.name[:60], [0.0, 0])
            total[0] += event.time_range.elapsed_us() / steps
            total[1] += 1
    count = sum(number for _, number in found.values()) / steps
    order = sorted(found.items(), key=lambda item: -item[1][0])[:14]
    return [f"{count:.0f} kernels of a step", *(f"{total:9.1f} us in {number / steps:5.1f} of {name}" for name, (total, number) in order)]


def small_or_whole(make, layers, name):
    """A function that makes the model on a device: that of the simulator is small."""
    def made(device):
        import torch
        torch.manual_seed(1)
        sizes = SMALL | (SMALL_EXPERTS if name == "gpt_oss" else {}) if device.type == "cpu" else {}
        with torch.device(device):
            torch.set_default_dtype(torch.bfloat16)
            model = make(layers, **sizes).eval()
            torch.set_default_dtype(torch.float32)
        return model
    return made


# ===--- Programs ---------------------------------------------------------=== #


def pack(model, ranks, batches):
    """Collects the programs of one GPU and of the parts of ranks, of which those with other experts
    have others; those of exchanges are torch's."""
    import fp4.torch
    import torch
    parts = [(silent(ranks), True)]
    if has_experts(model):
        parts = [*((silent(ranks, rank), True) for rank in range(ranks)), (silent(ranks), False)]
    for batch in batches:
        for group, is_expert in ((None, True), *parts):
            decoder = fp4.torch.Decoder(model, batch, ROOM, group=group, expert_parallel=is_expert)
            decoder.prefill(torch.zeros(batch, PROMPT, dtype=torch.int64))
            decoder.step()


COLUMNS = [("layers", "layers", None), ("step", "step", None), ("parallel", "parallel", None), ("exchange", "exchange", None), ("one_ms", "one GPU", "ms"),
           ("part_ms", "a rank's part alone", "ms"), ("ranks_ms", "all ranks", "ms"), ("ratio", "one / all", None),
           ("tokens_per_second", "tokens in a second", None), ("equal_bits", "bits of one process", None)]
