#!/usr/bin/env python3
"""Time of the host: a call of a layer, and a decode step of a Llama-like model, beside bf16.

  benchmarks/models/host.py pack BUILD FOLDER     compiles the programs for two GPUs into FOLDER
  benchmarks/models/host.py run FOLDER [--calls] [--json=FILE]

`run` needs a Hopper GPU, PyTorch and transformers, and no compiler: the programs come from the
exported cache. Each layer is compared with the product of its dequantized weight before it is
timed. Calls are medians of batches that take turns, with an idle GPU at the start of each. Steps
have 8 layers of Llama-3-8B with random weights, one token for each sequence behind 128 others.
"""
import copy
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from unittest import mock

HERE = pathlib.Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))  # in a packed folder the module lies beside this file
import kit  # noqa: E402

GPUS = ("sm_90a/h100", "sm_90a/h200")
SHAPES = ((4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336))  # rows and columns of weights
LAYERS, PROMPT, BATCHES = 8, 128, (1, 8)
COUNT, ROUNDS = 200, 100


def pack(build, folder):
    kit.begin(folder, HERE)
    kit.copy_package(build, folder)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE.with_name("launches.c"), "-o",
                    folder / "launches.so", "-ldl"], check=True)
    os.environ.update(FP4_LIBRARY=str(build / "lib" / "libfp4.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import torch
    from fp4.torch import execution
    with torch.no_grad(), execution.collecting() as found:
        for rows, columns in SHAPES:
            linear = torch.nn.Linear(columns, rows, bias=False, dtype=torch.bfloat16)
            for layer in layers_of(linear).values():
                layer(torch.zeros(1, columns, dtype=torch.bfloat16))
                layer.weight.to(torch.float32)
    kit.assemble(found, GPUS)


def layers_of(linear):
    import fp4.torch
    return {"W4A16": fp4.torch.WeightOnlyLinear.from_linear(linear),
            "W4A4": fp4.torch.QuantizedLinear.from_linear(linear)}


def median_microseconds(functions):
    """The median of each function, whose calls the host issues; batches take turns."""
    import torch
    times = {name: [] for name in functions}
    for number in range(ROUNDS + 3):
        for name, function in functions.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(COUNT):
                function()
            if number >= 3:
                times[name].append((time.perf_counter() - begin) * 1e6 / COUNT)
    return {name: statistics.median(values) for name, values in times.items()}


def launch_time(folder, function):
    """Median microseconds of launching the kernel of `function` from C, and what must live."""
    import torch
    library = ctypes.CDLL(str(folder / "launches.so"))
    library.launch.restype = ctypes.c_double
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        kept = function()
    handle, stream = graph.raw_cuda_graph(), torch.cuda.current_stream().cuda_stream

    def microseconds():
        torch.cuda.synchronize()
        found = library.launch(ctypes.c_void_p(handle), ctypes.c_void_p(stream), COUNT)
        if found < 0:
            raise RuntimeError("the call must be one kernel")
        return found
    return statistics.median(microseconds() for _ in range(ROUNDS)), (graph, kept)


def calls(folder):
    import torch
    rows, columns = SHAPES[0]
    torch.manual_seed(1)
    linear = torch.nn.Linear(columns, rows, bias=False, dtype=torch.bfloat16, device="cuda")
    x, weight = torch.randn(1, columns, device="cuda").bfloat16(), linear.weight
    layers = layers_of(linear)
    ours = layers["W4A16"]
    expected = (x.float() @ ours.weight.to(torch.float32).T)
    difference = ((ours(x).float() - expected).abs().max() / expected.abs().max()).item()
    if difference > 0.01:
        raise RuntimeError(f"the layer differs by {difference} of the largest result")
    multiply, empty = torch.ops.fp4.weight_mm.default, empty_operation()
    functions = {
        "torch.nn.functional.linear, bf16": lambda: torch.nn.functional.linear(x, weight),
        "an operation in Python that makes its result": lambda: empty(x, weight),
        "torch.empty_like of its result": lambda: torch.empty_like(x),
        "torch.nn.Linear, bf16": lambda: linear(x),
        "torch.ops.fp4.weight_mm": lambda: multiply(x, ours.packed, ours.alpha, None, rows),
        "WeightOnlyLinear, W4A16": lambda: ours(x),
        "QuantizedLinear, W4A4, three kernels": lambda: layers["W4A4"](x),
        "program(...), the same kernel": programs_of(x, ours)}
    launch, alive = launch_time(folder, functions["WeightOnlyLinear, W4A16"])
    yield {"call": "cuLaunchKernelEx of its kernel, in C", "host_microseconds": launch}
    for name, microseconds in median_microseconds(functions).items():
        yield {"call": name, "host_microseconds": microseconds}
    del alive


def empty_operation():
    """An operation of torch.library whose implementation in Python allocates the result, and
    launches nothing."""
    import torch
    library = torch.library.Library("fp4_host", "FRAGMENT")
    library.define("empty(Tensor x, Tensor weight) -> Tensor")
    library.impl("empty", lambda x, weight: x.new_empty((x.shape[0], weight.shape[0])), "CUDA")
    call = torch.ops.fp4_host.empty.default
    call.library = library  # lives as long
    return call


def programs_of(x, layer):
    """A call of the layer's program itself."""
    from fp4.torch import execution, planned
    found, ready = [], execution.ready
    with planned.held(), mock.patch.object(execution, "ready", lambda *what: found.append(ready(*what)) or found[-1]):
        layer(x)
    return lambda: found[0](x, layer.packed, layer.alpha)


def masks_of(window, device):
    """The numbers that a step adds to scores, by kinds of layers. Transformers would make them of
    numbers of the host, which no graph captures."""
    import torch
    keys = torch.arange(2 * PROMPT, device=device)
    hidden = {"full_attention": keys > PROMPT, "sliding_attention": (keys > PROMPT) | (keys <= PROMPT - window)}
    return {kind: torch.zeros(1, 1, 1, len(keys), dtype=torch.bfloat16, device=device).masked_fill(
        mask, torch.finfo(torch.bfloat16).min) for kind, mask in hidden.items()}


class Decoder:
    """A model with a cache of one length, whose steps read the same token."""

    def __init__(self, model, batch):
        import torch
        from transformers import StaticCache
        self.model, self.masks = model, None
        config = copy.deepcopy(model.config)
        has_windows = "sliding_attention" in (getattr(config, "layer_types", None) or ())
        if has_windows:  # a layer that has the last tokens alone copies from the host at each step
            config.layer_types = ["full_attention"] * config.num_hidden_layers
        self.cache = StaticCache(config=config, max_cache_len=2 * PROMPT)
        ids = torch.arange(batch * PROMPT, device=model.device).view(batch, PROMPT) % 1000
        self.call(ids, torch.arange(PROMPT, device=model.device))
        if has_windows:
            self.masks = masks_of(model.config.sliding_window, model.device)
        self.token, self.place = ids[:, :1].clone(), torch.tensor([PROMPT], device=model.device)

    def call(self, ids, places):
        return self.model(input_ids=ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1,
                          attention_mask=self.masks, cache_position=places, position_ids=places[None].expand(len(ids), -1)).logits

    def step(self):
        return self.call(self.token, self.place)

    def forget(self):
        """Drops the tokens behind the prompt, which the cache counts."""
        for layer in self.cache.layers:
            layer.cumulative_length.fill_(PROMPT)


def step_times(decoders, functions):
    """Median milliseconds of each step; rounds of four steps take turns."""
    import torch
    times = {name: [] for name in functions}
    for number in range(23):
        for name, function in functions.items():
            decoders[name].forget()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(4):
                function()
            torch.cuda.synchronize()
            if number >= 3:
                times[name].append((time.perf_counter() - begin) * 1e3 / 4)
    return {name: statistics.median(values) for name, values in times.items()}


def model_of(layers=LAYERS, **sizes):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(**{
        "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
        "num_hidden_layers": layers, **sizes}))


def steps(device="cuda", batches=BATCHES, **sizes):
    import fp4.torch
    import torch
    torch.manual_seed(1)
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16)
        plain = model_of(**sizes).eval()
        torch.set_default_dtype(torch.float32)
    ours = copy.deepcopy(plain)
    fp4.torch.quantize_(ours, weight_only=True)
    begin = time.monotonic()
    prepared = fp4.torch.prepare(ours)
    yield {"call": "fp4.torch.prepare, of the cache", "milliseconds": (time.monotonic() - begin) * 1e3,
           "programs": prepared.programs}
    for batch in batches:
        with torch.no_grad():
            decoders = {"bf16": Decoder(plain, batch), "W4A16": Decoder(ours, batch)}
            if device == "cuda":
                times = step_times(decoders, {name: one.step for name, one in decoders.items()})
                graphs = step_times(decoders, {name: kit.captured(one.step).replay for name, one in decoders.items()})
            else:
                times = graphs = {name: one.step().float().std().item() for name, one in decoders.items()}
        for kind, found in (("eager", times), ("graph", graphs)):
            yield {"call": f"decode step, batch {batch}, {kind}", "bf16_milliseconds": found["bf16"],
                   "milliseconds": found["W4A16"], "ratio": found["bf16"] / found["W4A16"]}


def run(folder, file, only_calls):
    os.environ.update(FP4_LIBRARY=str(folder / "libfp4rt.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import torch
    print(torch.cuda.get_device_name(), torch.__version__, file=sys.stderr)
    with torch.no_grad():
        for part in (calls(folder), () if only_calls else steps()):
            for row in part:
                print(json.dumps(row), flush=True)
                file.write(json.dumps(row) + "\n")


def main():
    parser, _, _, running = kit.commands_of(__doc__)
    running.add_argument("folder", type=pathlib.Path)
    running.add_argument("--json", default=os.devnull)
    running.add_argument("--calls", action="store_true", help="no decode steps, which need transformers")
    options = parser.parse_args()
    if options.command == "pack":
        return pack(options.build.resolve(), options.folder.resolve())
    with open(options.json, "w") as file:
        run(options.folder.resolve(), file, options.calls)


if __name__ == "__main__":
    main()
