#!/usr/bin/env python3
"""A decoder of fp4.torch beside transformers in bf16: tokens per second, launches, and each kernel.

  benchmarks/models/run.py pack BUILD FOLDER [--model=NAME]     compiles the programs for GPUs
  benchmarks/models/run.py run FOLDER [--model=NAME] [--layers=8] [--json=FILE] [--kernels=FILE]
  benchmarks/models/run.py pack BUILD FOLDER --model=llama_70b --ranks=2
  benchmarks/models/run.py run FOLDER --model=llama_70b --ranks=2 [--layers=8] [--json=FILE]

`run` needs a Hopper GPU, PyTorch and transformers, and no compiler: the programs come from the
exported cache. The model has the shapes of Llama-3-8B or, with `--model=gpt_oss`, of gpt-oss-20b,
whose experts transformers runs by grouped matmuls, or with `--model=gemma3` those of Gemma 3 270M
(accuracy.py has its weights), random weights, and a head in bf16. A step
has one token for each sequence behind 128 others, and ends with the best token. Three decoders take
turns as CUDA graphs: transformers in bf16 with a static cache, transformers with WeightOnlyLinear
layers, and fp4.torch.Decoder, which has a head in NVFP4 in rows of its own. Before anything is
timed, the logits of prompts and steps are compared with those of the model in float32 with the
numbers of the quantized weights: their error must be at most 1.5 times that of transformers in bf16
with these numbers. With the folder FOLDER/stacks (stacks.py), the linears of Humming or the experts
of triton_kernels in transformers take turns, too. Routers choose other experts where logits nearly
tie, so that a mixture is judged by the mean of several prompts. With `--ranks`, GPUs share a
decoder (ranks.py), and those of gpt-oss its experts or columns of all of them.

The rows of --kernels are where the time of a step goes: from the end of a kernel to that of the
next, in replays of the graph, medians over the layers, and a step of a graph of eight. A matmul has
the rate at which it reads its weights, and this rate beside that of a copy, which reads and writes.
"Alone" is a graph of one matmul of all layers.
"""
import copy
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))  # in a packed folder the modules lie beside this file
sys.path.append(str(HERE.parent))
import host  # noqa: E402
import kit  # noqa: E402
import ranks  # noqa: E402
from logits import LONG, MOST_ERROR, Wide, equalize, has_experts, in_4_bits, prompt_of, verify  # noqa: E402

PROMPT, ROOM, BATCHES = 128, 256, (1, 8, 64)
STEPS = 8  # of one graph
ATTENTION = ("norm", "qkv", "heads", "attention", "out", "norm behind")
PARTS = {"llama": (*ATTENTION, "unit", "down"),
         "gpt_oss": (*ATTENTION, "router", "sums of the router", "top k", "order of experts", "rows of tokens",
                     "tiles of the unit", "unit", "tiles of down", "down", "sums"),
         "gemma3_text": (*ATTENTION, "unit", "down")}
BEFORE = {"gemma3_text": 6}  # launches; else 4: lengths, slots, rows of heads, embeddings. Gemma's have a factor
LAYERS = {"gemma3": 6}  # that have all programs; else 2, since gpt-oss has a window in every second one


# ===--- Programs ---------------------------------------------------------=== #


def pack(build, folder, gpus, name, count):
    kit.begin(folder, HERE, *(HERE.with_name(f"{name}.py") for name in ("host", "logits", "ranks", "stacks")))
    kit.copy_package(build, folder)
    kit.write_revision(folder)
    os.environ.update(FP4_LIBRARY=str(build / "lib" / "libfp4.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import fp4.torch
    import torch
    from fp4.torch import execution
    torch.set_default_dtype(torch.bfloat16)
    with torch.no_grad(), execution.collecting() as found:
        model = MODELS[name](LAYERS.get(name, 2), vocab_size=128).eval()
        if has_experts(model):
            in_4_bits(copy.deepcopy(model.model.layers[0].mlp.experts))
        elif count == 1:
            import stacks
            for shape in shapes_of(model):
                stacks.quantized(torch.zeros(shape))
        fp4.torch.quantize_(model, weight_only=True)
        if count > 1:
            ranks.pack(model, count, BATCHES)
            with_scales(model)
            ranks.pack(model, count, BATCHES)
        else:
            pack_linears(model)
            pack_head(model, name)
        for layer in linears(model):
            layer.weight + 0
        long = [] if count > 1 else [(1, LONG, LONG)]
        for batch, prompt, room in [*((batch, PROMPT, ROOM) for batch in BATCHES), *long]:
            decoder = fp4.torch.Decoder(model, batch, room)
            decoder.prefill(torch.zeros(batch, prompt, dtype=torch.int64))
            if room > prompt:
                decoder.step()
    kit.assemble(found, gpus)


def shapes_of(model):
    """Shapes of the weights of a layer, also merged as stacks.merged_linears does."""
    import stacks
    attention, mlp = model.model.layers[0].self_attn, model.model.layers[0].mlp
    rows, columns = (sum(layer.weight.shape[0] for layer in (attention.q_proj, attention.k_proj, attention.v_proj)),
                     attention.q_proj.weight.shape[1])
    found = {tuple(model.get_submodule(name).weight.shape) for name in stacks.linears_of(model)}
    return sorted(found | {(rows, columns), (2 * mlp.up_proj.weight.shape[0], columns)})


def pack_linears(model):
    """Programs of layers with one scale, and of those that differ."""
    import torch
    for alpha in (False, True):
        if alpha:
            with_scales(model)
        model(torch.zeros(1, 1, dtype=torch.int64))
        if not has_experts(model):
            linears_of(model, 1)


def with_scales(model):
    """Gives layers scales that differ."""
    import torch
    for number, layer in enumerate(linears(model)):
        layer.alpha = torch.tensor(1.0 + number, dtype=torch.float32)


def pack_head(model, name):
    """Programs of a head in NVFP4."""
    import fp4.torch
    import torch
    size = model.config.hidden_size
    model.head = fp4.torch.WeightOnlyLinear.from_linear(torch.nn.Linear(size, vocabulary(name), bias=False))
    model.head(torch.zeros(1, size))


def linears(model):
    import fp4.torch
    return [layer for layer in model.modules() if isinstance(layer, fp4.torch.WeightOnlyLinear)]


# ===--- Models -----------------------------------------------------------=== #


def gpt_oss_of(layers, **sizes):
    from transformers import GptOssConfig, GptOssForCausalLM
    return GptOssForCausalLM._from_config(GptOssConfig(**{
        "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "vocab_size": 201088,
        "num_hidden_layers": layers, **sizes}), experts_implementation="grouped_mm")


def gemma3_of(layers, **sizes):
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig
    return Gemma3ForCausalLM(Gemma3TextConfig(**{
        "hidden_size": 640, "intermediate_size": 2048, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "sliding_window": 512, "vocab_size": 262144, "num_hidden_layers": layers,
        "layer_types": [("sliding_attention", "full_attention")[number % 6 == 5] for number in range(layers)], **sizes}))


def llama_70b_of(layers, **sizes):
    return host.model_of(layers, **{"hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, **sizes})


MODELS = {"llama": host.model_of, "llama_70b": llama_70b_of, "gpt_oss": gpt_oss_of, "gemma3": gemma3_of}


def vocabulary(name):
    return MODELS[name](0).config.vocab_size


def models(name, layers):
    """The model in bf16, with WeightOnlyLinear layers, and with the numbers that they have."""
    import fp4.torch
    import torch
    torch.manual_seed(1)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        plain = MODELS[name](layers).eval()
        torch.set_default_dtype(torch.float32)
    ours = copy.deepcopy(plain)
    fp4.torch.quantize_(ours, weight_only=True)
    fp4.torch.prepare(ours)
    exact = copy.deepcopy(plain)
    equalize(exact, ours)
    return plain, ours, exact


# ===--- Steps ------------------------------------------------------------=== #


class Steps:
    """Steps of transformers with a static cache, ended by the best token."""

    def __init__(self, model, batch):
        self.inner = host.Decoder(model, batch)
        self.inner.token = self.inner.token[:, 0].clone()[:, None]
        self.best = self.inner.token[:, 0].clone()
        self.replay = kit.captured(self.step).replay

    def step(self):
        import torch
        torch.argmax(self.inner.step()[:, -1], -1, out=self.best)

    def forget(self):
        self.inner.forget()


class Ours:
    def __init__(self, model, batch):
        import fp4.torch
        self.inner = fp4.torch.Decoder(model, batch, ROOM)

    def ready(self, batch):
        self.inner.truncate()
        self.inner.prefill(prompt_of(batch, PROMPT))
        self.inner.capture(STEPS)
        self.replay = self.inner.step

    def forget(self):
        self.inner.truncate(PROMPT)


def milliseconds_of(decoders, steps=16, rounds=12):
    """Median milliseconds of a step of each decoder; rounds take turns."""
    import torch
    times = {name: [] for name in decoders}
    for number in range(rounds + 2):
        for name, decoder in decoders.items():
            decoder.forget()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(steps):
                decoder.replay()
            torch.cuda.synchronize()
            if number >= 2:
                times[name].append((time.perf_counter() - begin) * 1e3 / steps)
    return {name: statistics.median(values) for name, values in times.items()}


def of_several(decoder, rounds=12):
    """Median microseconds of a step where a graph has STEPS, whose tokens must be those of single
    steps."""
    import torch
    decoder.forget()
    first, chosen = decoder.inner.token.clone(), []
    for _ in range(2 * STEPS):
        decoder.replay()
        chosen.append(decoder.inner.token.clone())
    times = []
    for _ in range(rounds + 2):
        decoder.forget()
        decoder.inner.token.copy_(first)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        found = decoder.inner.advance(2 * STEPS)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6 / (2 * STEPS))
        if not torch.equal(found, torch.stack(chosen, 1)):
            raise RuntimeError("tokens of a graph of several steps must be those of single steps")
    return statistics.median(times[2:])


def kernels_of(decoder):
    """Name, and microseconds from the end of the kernel before, of each kernel of a step; the mean
    of several replays."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    decoder.forget()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(8):
            decoder.replay()
        torch.cuda.synchronize()
    events = sorted(((event.time_range.start, event.time_range.end, event.name) for event in trace.events()
                     if event.device_type == torch.autograd.DeviceType.CUDA), key=lambda event: event[1])
    count, rest = divmod(len(events), 8)
    if rest:
        raise RuntimeError(f"{len(events)} kernels are no 8 steps")
    found = []
    for place in range(count):
        gaps = [events[step * count + place][1] - events[step * count + place - 1][1] for step in range(1, 8)]
        durations = [events[step * count + place][1] - events[step * count + place][0] for step in range(1, 8)]
        found.append((events[place][2], statistics.median(gaps), statistics.median(durations)))
    return found


def copy_rate():
    """Bytes per microsecond that a copy of 1 GiB reads and writes."""
    import torch
    source, to = torch.zeros(2, 1 << 28, dtype=torch.float32, device="cuda").unbind(0)
    return 2 * source.nbytes / graph_time([lambda: torch.neg(source, out=to)] * 32)


def graph_time(functions, rounds=10):
    """Median microseconds of each of `functions`, whose calls are one graph."""
    import torch
    for function in functions:
        function()
    torch.cuda.synchronize()
    graph, times, kept = torch.cuda.CUDAGraph(), [], []
    with torch.cuda.graph(graph):
        for function in functions:
            kept.append(function())
            del kept[:-1]
    for number in range(rounds + 2):
        microseconds = kit.microseconds_of(graph.replay) / len(functions)
        if number >= 2:
            times.append(microseconds)
    return statistics.median(times)


def linears_of(model, rows):
    """Calls of the matmuls of all layers by name, and the bytes of weights that one reads."""
    import fp4.torch
    import torch
    parts = {}
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        made = {"qkv": fp4.torch.merge_linears(attention.q_proj, attention.k_proj, attention.v_proj),
                "out": attention.o_proj,
                "unit": fp4.torch.WeightOnlyGate(mlp.gate_proj, mlp.up_proj,
                                                 "gelu_tanh" if model.config.model_type == "gemma3_text" else "silu"),
                "gate and up, merged": fp4.torch.merge_linears(mlp.gate_proj, mlp.up_proj), "down": mlp.down_proj}
        for name, one in made.items():
            parts.setdefault(name, []).append(one)
    calls, sizes = {}, {}
    for name, layers in parts.items():
        x = torch.randn(rows, layers[0].in_features, device=layers[0].packed.device if hasattr(layers[0], "packed")
                        else layers[0].gate.packed.device).bfloat16()
        calls[name] = [lambda layer=layer, x=x: layer(x) for layer in layers]
        for call in calls[name][:1]:
            call()
        sizes[name] = sum(x.nbytes for key, x in layers[0].named_buffers() if key.endswith("packed"))
    return calls, sizes


# ===--- The run ----------------------------------------------------------=== #


def steps(plain, ours, exact, wide, other_stacks, kernels, layers):
    import torch
    rate = copy_rate()
    if kernels:
        kernels({"layers": layers, "step": "torch.neg of 1 GiB", "kernel": "copy", "terabytes": rate / 1e6, "of_copy": 1.0})
    decoders = {batch: Ours(ours, batch) for batch in BATCHES}
    ratios = {batch: verify(decoders[batch].inner, batch, PROMPT, exact, wide) for batch in BATCHES}
    for batch, mine in decoders.items():
        mine.ready(batch)
        others = {name: Steps(model, batch) for name, model in {"bf16": plain, "w4a16": ours, **other_stacks}.items()}
        times = milliseconds_of({**others, "decoder": mine})
        count = len(kernels_of(others["bf16"]))
        found = kernels_of(mine)
        yield row_of(layers, f"decode, batch {batch}", batch, times, len(found), count, ratios[batch])
        several = of_several(mine)
        if kernels:
            kernels({"layers": layers, "step": f"batch {batch}", "kernel": f"all, {STEPS} steps in a graph", "microseconds": several})
            breakdown(f"batch {batch}", found, ours, batch, rate, lambda row: kernels({"layers": layers, **row}))
            if "humming" in other_stacks:
                alone(plain, batch, rate, lambda row: kernels({"layers": layers, **row}))
        del others
        torch.cuda.empty_cache()


def row_of(layers, step, tokens, times, launches, of_bf16, error):
    row = {"layers": layers, "step": step, **{f"{name}_ms": value for name, value in times.items()},
           "ratio": times["bf16"] / times["decoder"], "tokens_per_second": round(tokens * 1e3 / times["decoder"]),
           "error": error}
    return row | ({"launches": launches, "bf16_launches": of_bf16} if launches else {})


def steps_with_head(plain, ours, exact, wide, layers):
    """Steps of decoders whose head has weights in NVFP4."""
    import fp4.torch
    ours.lm_head = fp4.torch.WeightOnlyLinear.from_linear(ours.lm_head)
    exact.lm_head.weight.copy_(ours.lm_head.weight + 0)
    for batch in BATCHES:
        mine, other = Ours(ours, batch), Steps(plain, batch)
        error = verify(mine.inner, batch, PROMPT, exact, wide)
        mine.ready(batch)
        times = milliseconds_of({"bf16": other, "decoder": mine})
        yield row_of(layers, f"decode, batch {batch}, head in NVFP4", batch, times, len(kernels_of(mine)),
                     len(kernels_of(other)), error)


def breakdown(step, found, ours, rows, rate, kernels):
    """Rows for the kernels of a step, and for the matmuls of all layers alone."""
    calls, sizes = ({}, {}) if has_experts(ours) else linears_of(ours, rows)
    parts, before = PARTS[ours.config.model_type], BEFORE.get(ours.config.model_type, 4)
    end = before + len(ours.model.layers) * len(parts)
    for number, part in enumerate(parts):
        some = found[before + number:end:len(parts)]
        if len({name for name, _, _ in some}) > 2:  # the first norm has no residual
            raise RuntimeError(f"kernels of {part} are {[name for name, _, _ in some]}")
        row = {"step": step, "kernel": part, "microseconds": statistics.median(gap for _, gap, _ in some),
               "launch": some[0][0][:60]}
        if part in sizes:
            row.update(bytes=sizes[part], terabytes=sizes[part] / row["microseconds"] / 1e6)
            row["of_copy"] = sizes[part] / row["microseconds"] / rate
        kernels(row)
    rest = found[:before] + found[end:]
    kernels({"step": step, "kernel": "before and behind the layers", "microseconds": sum(gap for _, gap, _ in rest),
             "launches": len(rest)})
    for name, gap, _ in rest:
        print(f"  {gap:8.2f} us {name[:100]}", file=sys.stderr)
    for name, of_layers in calls.items():
        microseconds = graph_time(of_layers)
        kernels({"step": step, "kernel": f"{name}, alone", "microseconds": microseconds, "bytes": sizes[name],
                 "terabytes": sizes[name] / microseconds / 1e6, "of_copy": sizes[name] / microseconds / rate})


def alone(plain, rows, rate, kernels):
    """Rows for Humming's matmuls of all layers, as for ours: weights have 4.5 bits."""
    import stacks
    import torch
    for name, layers in stacks.merged_linears(plain).items():
        shape = layers[0].rows, layers[0].inner.shape_k
        x, size = torch.randn(rows, shape[1], device="cuda").bfloat16(), shape[0] * shape[1] * 9 // 16
        microseconds = graph_time([lambda layer=layer, x=x: layer(x) for layer in layers])
        kernels({"step": f"batch {rows}", "kernel": f"{name}, alone, Humming", "microseconds": microseconds, "bytes": size,
                 "terabytes": size / microseconds / 1e6, "of_copy": size / microseconds / rate})


def prefills(plain, ours, exact, wide, other_stacks, layers):
    import fp4.torch
    import torch
    decoder = fp4.torch.Decoder(ours, 1, LONG)
    ratio = verify(decoder, 1, LONG, exact, wide)
    ids = prompt_of(1, LONG)

    def mine():
        decoder.truncate()
        decoder.prefill(ids)
    functions = {name: lambda model=model: model(input_ids=ids, use_cache=True, logits_to_keep=1)
                 for name, model in {"bf16": plain, "w4a16": ours, **other_stacks}.items()}
    functions["decoder"] = mine
    times = {name: [] for name in functions}
    for number in range(8):
        for name, function in functions.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            function()
            torch.cuda.synchronize()
            if number >= 2:
                times[name].append((time.perf_counter() - begin) * 1e3)
    found = {name: statistics.median(values) for name, values in times.items()}
    yield row_of(layers, f"prefill, {LONG} tokens", LONG, found, 0, 0, ratio)


def clock():
    names = "clocks.sm,clocks.mem,power.draw,clocks_event_reasons.active"
    found = subprocess.run(["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader"], capture_output=True, text=True)
    return found.stdout.strip()


def measure(folder, name, layers, kernels):
    os.environ.update(FP4_LIBRARY=str(folder / "libfp4rt.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import stacks
    import torch
    print(torch.cuda.get_device_name(), torch.__version__, clock(), file=sys.stderr)
    with torch.no_grad():
        plain, ours, exact = models(name, layers)
        wide = Wide(exact)
        other_stacks = stacks.models(folder, plain, ours, (*BATCHES, LONG))
        yield from steps(plain, ours, exact, wide, other_stacks, kernels, layers)
        try:
            yield from prefills(plain, ours, exact, wide, other_stacks, layers)
        except torch.OutOfMemoryError as error:  # eager attention of gpt-oss has all scores
            print(f"note: no prefill: {error}", file=sys.stderr)
        if not has_experts(plain):
            yield from steps_with_head(plain, ours, exact, wide, layers)


TITLES = {"llama": "Llama-3-8B", "llama_70b": "Llama-3-70B", "gpt_oss": "gpt-oss-20b", "gemma3": "Gemma 3 270M"}
COLUMNS = {
    "decoder": [("layers", "layers", None), ("step", "step", None), ("bf16_ms", "bf16", "ms"), ("w4a16_ms", "NVFP4 layers in transformers", "ms"),
                ("humming_ms", "Humming in transformers", "ms"), ("triton_ms", "triton_kernels in transformers", "ms"),
                ("decoder_ms", "Decoder", "ms"), ("ratio", "bf16 / Decoder", None),
                ("tokens_per_second", "tokens in a second", None), ("launches", "launches", None),
                ("bf16_launches", "of bf16", None)],
    "decoder-kernels": [("layers", "layers", None), ("step", "step", None), ("kernel", "kernel", None), ("microseconds", "time", "us"),
                        ("terabytes", "reads, TB/s", None), ("of_copy", "of a copy", None)],
    "decoder-ranks": ranks.COLUMNS}
KEYS = {"decoder": ["layers", "step"], "decoder-kernels": ["layers", "step", "kernel"],
        "decoder-ranks": ["layers", "step", "parallel", "exchange"]}


def document(area, rows, options, revision, clocks):
    """A result as docgen/result_tables.py reads it."""
    import transformers
    columns = [column for column in COLUMNS[area] if any(column[0] in row for row in rows)]
    names = [name for name, _, _ in columns]
    tidy = [{name: round(value, 3) if isinstance(value := row[name], float) else value
             for name in names if row.get(name, "") != ""} for row in rows]
    suffix = "" if options.model == "llama" else f"-{options.model}"
    return kit.document(
        area + suffix, columns, tidy, key=[key for key in KEYS[area] if key in names], revision=revision,
        clock=f"decoders in turns; {clocks} by the driver at the end",
        command=f"benchmarks/models/run.py run FOLDER --model={options.model} --layers={options.layers}"
                + (f" --ranks={options.ranks}" if options.ranks > 1 else ""),
        program=f"{options.layers} layers of {TITLES[options.model]}, random weights, head in bf16, {PROMPT} tokens "
                f"before a step, transformers {transformers.__version__}")


def run(options):
    folder, parts, found = options.folder.resolve(), [], []

    def kernels(row):
        parts.append(row)
        print(json.dumps(row), flush=True)
    for row in measure(folder, options.model, options.layers, kernels):
        found.append(row)
        print(json.dumps(row), flush=True)
    revision, clocks = (folder / "revision").read_text().strip(), clock().split(",")[0]
    for area, rows, file in (("decoder", found, options.json), ("decoder-kernels", parts, options.kernels)):
        if file:
            pathlib.Path(file).write_text(json.dumps(document(area, rows, options, revision, clocks), indent=1) + "\n")


def run_ranks(options):
    """Measures GPUs that share a decoder; rows that were measured before a failure are kept."""
    folder = options.folder.resolve()
    found, is_well = ranks.launch(HERE, folder, options)
    if options.json and options.device == "cuda":
        revision, clocks = (folder / "revision").read_text().strip(), clock().split(",")[0]
        made = document("decoder-ranks", found, options, revision, clocks)
        pathlib.Path(options.json).write_text(json.dumps(made, indent=1) + "\n")
    wrong = [row for row in found if row["equal_bits"] != "yes" or not row["error"] <= MOST_ERROR]
    for row in wrong:
        print(f"error: {row['step']}, {row['exchange']}: errors must be at most {MOST_ERROR} times those of transformers, and bits "
              f"those of one process, but got {row['error']} and '{row['equal_bits']}'", file=sys.stderr)
    sys.exit(0 if is_well and found and not wrong else 1)


def main():
    parser, commands, packing, running = kit.commands_of(__doc__, host.GPUS)
    one = commands.add_parser("rank", help="one of the processes of `run --ranks`")
    for command in (running, one):
        command.add_argument("folder", type=pathlib.Path)
        command.add_argument("--layers", type=int, default=8)
        command.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: ranks of a small model, simulated")
        command.add_argument("--exchanges", help="ways of the parts between ranks: " + ",".join(ranks.EXCHANGES)
                             + ", or on a cpu the first; those that there are not fail")
    running.add_argument("--json")
    running.add_argument("--kernels")
    running.add_argument("--limit", type=float, default=560, help="seconds that the ranks may take")
    one.add_argument("--rank", type=int)
    one.add_argument("--place")
    for command in (packing, running, one):
        command.add_argument("--model", choices=list(MODELS), default="llama")
        command.add_argument("--ranks", type=int, default=1, help="GPUs that share a decoder")
    options = parser.parse_args()
    if options.command == "pack":
        return pack(options.build.resolve(), options.folder.resolve(), options.gpus, options.model, options.ranks)
    options.exchanges = options.exchanges or ",".join(ranks.EXCHANGES[:1 if options.device == "cpu" else None])
    if options.command == "rank":
        make = ranks.small_or_whole(MODELS[options.model], options.layers, options.model)
        return ranks.enter(options.folder.resolve(), options, make)
    (run_ranks if options.ranks > 1 else run)(options)


if __name__ == "__main__":
    main()
