#!/usr/bin/env python3
"""Training steps of Llama-like layers in NVFP4 beside bf16: milliseconds, and where they go.

  benchmarks/models/training.py pack BUILD FOLDER     compiles the programs for GPUs
  benchmarks/models/training.py run FOLDER [--hidden 4096 2048] [--layers=2] [--json=FILE]
                                           [--kernels=FILE] [--traces=FOLDER]

`run` needs a Hopper GPU and PyTorch, and no compiler: the programs come from the exported cache. A
step is forward, cross entropy, backward and a fused AdamW of bf16 parameters, for 8192 tokens in 4
sequences. Hidden size 4096 has the shapes of Llama-3-8B, and 2048 those of Llama-3.2-1B; the
embedding and the head, of 128256 tokens, are bf16 everywhere. The ways of a step take turns:

  bf16           norms, rotations, gates and the loss as transformers writes them
  bf16 fused     torch's fused norm, losses of bf16 logits, and one matmul for Q, K and V, and one
                 for gate and up
  NVFP4          `bf16` with fp4.torch.Linear in the layers
  NVFP4 fused    `bf16 fused` with these layers, and rotations, gates and losses of fp4.torch
  ... compiled   the first of the two by torch.compile
  ..., graph     as one CUDA graph
  ..., 4 parts   in 4 micro-batches; those in NVFP4 with fp4.torch.keep_weights

Before anything is timed, gradients of one layer of `NVFP4 fused`, rounded to nearest, are compared
with those of float32 pieces and products of the dequantized operands. The bound of a matmul, and of
a piece between matmuls, is one rounding to bf16 and those of f32 sums. A layer may deviate 1.5
times as far as the same quantizers with torch's pieces: a value that is rounded otherwise may have
another code. The rows of --kernels are kinds of kernels of a step.
"""
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))  # in a packed folder the module lies beside this file
sys.path.append(str(HERE.parent))
import kit  # noqa: E402
from llama import SHAPES, SMALL, VOCABULARY, WAYS, angles_of, compare, model_of, verify  # noqa: E402

GPUS = ("sm_90a/h200", "sm_90a/h100")
TOKENS, SEQUENCES, PARTS = 8192, 4, 4


# ===--- Programs ---------------------------------------------------------=== #


def pack(build, folder, gpus):
    build, folder = pathlib.Path(build).resolve(), pathlib.Path(folder).resolve()
    kit.begin(folder, HERE, HERE.with_name("llama.py"))
    kit.copy_package(build, folder)
    kit.write_revision(folder)
    os.environ.update(FP4_LIBRARY=str(build / "lib" / "libfp4.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import fp4.torch
    import torch
    from fp4.torch import execution
    with execution.collecting() as found:
        for hidden in SHAPES:
            for way in ("NVFP4", "NVFP4 fused"):
                for stochastic in (True, False):
                    training = fp4.torch.NVFP4Training(stochastic_rounding=stochastic)
                    model = model_of(way, hidden, 1, 1024 if hidden == SMALL else 64, training)
                    ids = torch.zeros(1, 128, dtype=torch.int64)
                    model(ids, ids, angles_of(hidden, 1, 128, "cpu")).backward()
                    with fp4.torch.keep_weights(model):
                        collect_layers(model)
        compare("cpu")
        fp4.torch.cross_entropy(torch.zeros(16, VOCABULARY, dtype=torch.bfloat16, requires_grad=True),
                                torch.zeros(16, dtype=torch.int64)).backward()
    print(f"{len(found)} programs", file=sys.stderr)
    kit.assemble(found, gpus)


def collect_layers(model):
    """Calls the layers with the tokens of a step and of a micro-batch, which are K of dW."""
    import fp4.torch
    import torch
    for layer in model.modules():
        if isinstance(layer, fp4.torch.Linear):
            for tokens in (TOKENS, TOKENS // PARTS):
                y = layer(torch.zeros(tokens, layer.in_features, dtype=torch.bfloat16, requires_grad=True))
                y.backward(torch.zeros_like(y))


# ===--- Steps ------------------------------------------------------------=== #


class Step:
    """A whole step of a model; `parts` are micro-batches."""

    def __init__(self, way, hidden, layers, parts=1, compiled=False):
        import torch
        with torch.device("cuda"):
            self.model = model_of(way, hidden, layers)
        self.parts, self.keeps = parts, way.startswith("NVFP4")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-5, fused=True, capturable=True)
        ids = torch.randint(VOCABULARY, (SEQUENCES, TOKENS // SEQUENCES), device="cuda")
        self.batches = list(zip(ids.chunk(parts), ids.roll(-1, 1).chunk(parts)))
        self.angles = angles_of(hidden, SEQUENCES // parts, TOKENS // SEQUENCES, "cuda")
        self.call = torch.compile(self.model) if compiled else self.model

    def forward_backward(self):
        for ids, labels in self.batches:
            loss = self.call(ids, labels, self.angles)
            loss.backward()
        return loss

    def __call__(self):
        import fp4.torch
        if self.parts > 1 and self.keeps:
            with fp4.torch.keep_weights(self.model):
                loss = self.forward_backward()
        else:
            loss = self.forward_backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def captured(self):
        """The step as one graph; what lives as long is an attribute of the result."""
        graph = kit.captured(self, 2)

        def replay():
            graph.replay()
            return graph.kept
        replay.alive = self
        return replay


def steps_of(hidden, layers, names, limit):
    """Calls of steps by their names; those that cannot run here are left out with a note."""
    import torch
    makers = {name: (lambda name=name: Step(name, hidden, layers)) for name in WAYS}
    makers |= {"bf16 compiled": lambda: Step("bf16", hidden, layers, compiled=True),
               "NVFP4 compiled": lambda: Step("NVFP4", hidden, layers, compiled=True),
               "bf16 fused, graph": lambda: Step("bf16 fused", hidden, layers).captured(),
               "NVFP4 fused, graph": lambda: Step("NVFP4 fused", hidden, layers).captured(),
               "bf16 fused, 4 parts": lambda: Step("bf16 fused", hidden, layers, PARTS),
               "NVFP4 fused, 4 parts": lambda: Step("NVFP4 fused", hidden, layers, PARTS)}
    begin = time.monotonic()
    for name in names or makers:
        if time.monotonic() - begin > limit:
            print(f"note: no '{name}': the time to prepare steps is over", file=sys.stderr, flush=True)
            continue
        try:
            step = makers[name]()
            losses = [step().item() for _ in range(3)]
        except Exception as error:  # Inductor without a C compiler, memory
            if name in WAYS:
                raise
            print(f"note: no '{name}': {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
            continue
        print(json.dumps({"hidden": hidden, "layers": layers, "step": name, "losses": losses}), flush=True)
        if not all(abs(loss - losses[0]) < 1 for loss in losses):
            raise RuntimeError(f"losses must be near one another, but got {losses} of '{name}'")
        torch.cuda.synchronize()
        yield name, step


def milliseconds_of(steps, seconds, count=3):
    """Median milliseconds of a step, and of its host's share. Rounds of `count` steps take
    turns."""
    import torch
    times, hosts = ({name: [] for name in steps} for _ in range(2))
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(next(iter(times.values()))) < 4:
        for name, step in steps.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(count):
                step()
            hosts[name].append((time.perf_counter() - begin) * 1e3 / count)
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - begin) * 1e3 / count)
    return tuple({name: statistics.median(values[1:]) for name, values in some.items()} for some in (times, hosts))


def rows_of(hidden, options, kernels):
    import torch
    layers, traces = options.layers, options.traces
    steps = dict(steps_of(hidden, layers, options.steps, options.limit))
    times, hosts = milliseconds_of(steps, options.seconds)
    for name in steps:
        base = "bf16" if "bf16" in times else next(iter(times))
        row = {"hidden": hidden, "layers": layers, "step": name, "milliseconds": times[name],
               "host_milliseconds": hosts[name], "of_bf16": times[name] / times[base]}
        fused = name.replace("NVFP4", "bf16")
        if name != fused and fused in times:
            row["of_same"] = times[name] / times[fused]
        yield row
    for name in WAYS:
        if name in steps:
            print(f"{name}, hidden {hidden}", file=sys.stderr)
            for row in kernels_of(steps[name], traces and traces / f"{name.replace(' ', '_')}_{hidden}.json.gz"):
                kernels({"hidden": hidden, "layers": layers, "step": name, **row})
    del steps
    torch.cuda.empty_cache()


# ===--- Kernels ----------------------------------------------------------=== #

#: Kinds of kernels of operations of fp4, which are all called "kernel".
OURS = {"amax": "amaxes", "hadamard_amax": "amaxes", "quantize": "quantizers", "quantize_both": "quantizers",
        "silu_and_mul": "gate", "silu_and_mul_backward": "gate", "rotate": "rotation", "cross_entropy": "loss",
        "cross_entropy_backward": "loss"}
#: Kinds of other kernels by parts of their names, the first that fits.
KINDS = (("attention", ("flash", "fmha", "sdpa", "attention")),
         ("bf16 GEMMs", ("gemm", "nvjet", "cutlass", "xmma", "cublas", "splitk")), ("optimizer", ("adam", "multi_tensor")),
         ("loss", ("softmax", "nll_loss", "cross_entropy")), ("norms", ("norm", "gammabeta", "gamma")),
         ("random numbers", ("distribution", "random")), ("copies", ("memcpy", "memset", "copy", "cat")))


def kind_of(operation, place, count, name):
    """The kind of a kernel, one of `count` of an operation."""
    ours = operation.removeprefix("fp4::")
    if ours != operation:
        parts = ("GEMMs of fp4", "conversions to 16 bits", "factors")  # from the last on
        return OURS.get(ours, ours) if ours != "scaled_mm" else parts[min(count - 1 - place, 2)]
    low = name.lower()
    return next((kind for kind, parts in KINDS if any(part in low for part in parts)), "elementwise and other")


def kernels_of(step, file=None):
    """Microseconds and launches of each kind of kernels of a step; the kernels themselves go to
    stderr, and the trace to `file`."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        step()
        torch.cuda.synchronize()
    if file:
        trace.export_chrome_trace(str(file))
    sums, kinds, events = {}, {}, trace.events()
    for event in events:
        for place, kernel in enumerate(event.kernels):
            kind = kind_of(event.name, place, len(event.kernels), kernel.name)
            for table, key in ((sums, (kind, event.name, kernel.name[:90])), (kinds, kind)):
                microseconds, count = table.get(key, (0.0, 0))
                table[key] = microseconds + kernel.duration, count + 1
    whole = sum(microseconds for microseconds, _ in kinds.values()), sum(count for _, count in kinds.values())
    for key, (microseconds, count) in [*sorted(kinds.items(), key=lambda item: -item[1][0]), ("all", whole)]:
        yield {"kind": key, "microseconds": microseconds, "launches": count}
    for key, (microseconds, count) in sorted(sums.items(), key=lambda item: -item[1][0])[:70]:
        print(f"  {microseconds:10.1f} us {count:4}  {' | '.join(key)}", file=sys.stderr, flush=True)


def beside_matmul(hidden, times=10):
    """Microseconds of Y = X W^T of the gated unit and of quantizers of W in one stream, and with
    the quantizers in a second one."""
    import fp4.torch
    import torch
    from fp4.torch import layers
    x = torch.randn(TOKENS, hidden, device="cuda").bfloat16()
    weight = torch.randn(2 * SHAPES[hidden][0], hidden, device="cuda").bfloat16()
    recipe = fp4.torch.NVFP4Training().recipe

    def quantized():
        return layers._quantize(weight, None, recipe, False, True, True, True)
    a, w, other = layers._quantize(x, None, recipe, True, False, True, True), quantized(), torch.cuda.Stream()

    def in_turns():
        kept = layers._product(a[:3], w[:3], None, recipe, torch.bfloat16), quantized()
        del kept

    def together():
        here = torch.cuda.current_stream()
        other.wait_stream(here)
        kept = [layers._product(a[:3], w[:3], None, recipe, torch.bfloat16)]
        with torch.cuda.stream(other):
            kept.append(quantized())
        here.wait_stream(other)
    found = {"one stream": in_turns, "two streams": together, "the matmul alone": lambda: layers._product(
        a[:3], w[:3], None, recipe, torch.bfloat16)}
    for _ in range(2):
        rows = {name: kit.microseconds_of(call, times) for name, call in found.items()}
    for name, microseconds in rows.items():
        yield {"hidden": hidden, "step": f"matmul of gate and up, quantizers of W: {name}", "kind": "all",
               "microseconds": microseconds}


# ===--- The run ----------------------------------------------------------=== #

COLUMNS = {
    "training": [("hidden", "hidden", None), ("step", "step", None), ("milliseconds", "time", "ms"), ("of_bf16", "of bf16", None),
                 ("of_same", "of the same in bf16", None)],
    "training-kernels": [("hidden", "hidden", None), ("step", "step", None), ("kind", "kernels", None),
                         ("microseconds", "time", "us"), ("launches", "launches", None)]}


def document(area, rows, options, revision):
    """A result as docgen/result_tables.py reads it."""
    names = [name for name, _, _ in COLUMNS[area]]
    tidy = [{name: round(value, 3) if isinstance(value := row[name], float) else value for name in names if name in row}
            for row in rows]
    return kit.document(
        area, COLUMNS[area], tidy, key=[name for name in names if name in ("hidden", "step", "kind")], revision=revision,
        clock="steps in turns", command="benchmarks/models/training.py run FOLDER",
        program=f"{options.layers} layers, {TOKENS} tokens, vocabulary {VOCABULARY}, AdamW of bf16 parameters")


def run(options):
    folder = options.folder.resolve()
    os.environ.update(FP4_LIBRARY=str(folder / "libfp4rt.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import torch
    print(torch.cuda.get_device_name(), torch.__version__, file=sys.stderr)
    revision, found, parts = (folder / "revision").read_text().strip(), [], []

    def kernels(row):
        parts.append(row)
        print(json.dumps(row), flush=True)

    def write():
        for area, rows, file in (("training", found, options.json), ("training-kernels", parts, options.kernels)):
            if file:
                pathlib.Path(file).write_text(json.dumps(document(area, rows, options, revision), indent=1) + "\n")
    verify("cuda")
    for hidden in options.hidden:
        for row in rows_of(hidden, options, kernels):
            found.append(row)
            print(json.dumps(row), flush=True)
        for row in beside_matmul(hidden):
            kernels(row)
        write()


def main():
    parser, _, _, running = kit.commands_of(__doc__, GPUS)
    running.add_argument("folder", type=pathlib.Path)
    running.add_argument("--hidden", type=int, nargs="+", default=[4096, 2048])
    running.add_argument("--layers", type=int, default=2)
    running.add_argument("--steps", nargs="+", help="ways of a step; all without it")
    running.add_argument("--seconds", type=float, default=20, help="of the steps of one size")
    running.add_argument("--limit", type=float, default=300, help="seconds after which no other way is prepared")
    running.add_argument("--json")
    running.add_argument("--kernels")
    running.add_argument("--traces", type=pathlib.Path, help="a folder for traces of the profiler")
    options = parser.parse_args()
    if options.command == "pack":
        return pack(options.build, options.folder, options.gpus)
    run(options)


if __name__ == "__main__":
    main()
