#!/usr/bin/env python3
"""Training losses on real text, by the same model in bf16, in NVFP4, and with TransformerEngine.

  benchmarks/models/losses.py pack BUILD FOLDER
  benchmarks/models/losses.py run FOLDER [--theirs=FOLDER] [--steps=2000] [--json=FILE]
                                                     [--validation=FILE]

The model, its text and its steps are those of examples/python/train.py; a step, one CUDA graph, has
2048 tokens. All ways begin with the same weights and see the same batches:

  bf16                 torch.nn.Linear under torch.autocast
  NVFP4                fp4.torch.Linear, whose gradients are rounded stochastically
  NVFP4, to nearest    the same with gradients rounded to nearest
  TransformerEngine    quantizers of TransformerEngine's own reference of its recipe, which is in
                       Python and rounds to nearest; matmuls of the numbers that they give, in f32

`run` needs a Hopper GPU and PyTorch, and no compiler. --theirs has the modules reference_nvfp4,
reference_utils and gemm of transformer_engine.pytorch.custom_recipes, which the person who runs it
puts there; the kernels of TransformerEngine itself need a Blackwell GPU. Before anything is
trained, codes and scales of fp4 and of this reference are compared bit for bit, and the matmul of
its numbers with the reference's own. Without --theirs there is no such way.
"""
import copy
import functools
import json
import os
import pathlib
import sys
import time
import types

HERE = pathlib.Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))  # in a packed folder the modules lie beside this file
sys.path.append(str(HERE.parents[2] / "examples" / "python"))
import kit  # noqa: E402

GPUS = ("sm_90a/h200", "sm_90a/h100")
SIZES = ["--batch=8", "--steps=2000", "--every=200"]
TRANSFORMER_ENGINE = "TransformerEngine"
#: Tensors of the comparison: rows and columns, and rows of the weight of a layer.
SHAPES = ((2048, 512), (512, 2048), (1536, 512))
SMALL = ((64, 128), (128, 64))
LAYER_ROWS = 1536
#: Errors of the order of sums: in f32, and with one rounding to bf16.
MOST_OF_MATMUL, MOST_OF_LAYER = 1e-4, 4e-3
AREAS = ("losses", "losses-validation")
#: Names in a result of the ways of a step.
COLUMNS = {"bf16": "bf16", "NVFP4": "nvfp4", "NVFP4, to nearest": "nearest", TRANSFORMER_ENGINE: "theirs"}


# ===--- Programs ---------------------------------------------------------=== #


def pack(build, folder, gpus):
    kit.begin(folder, HERE, HERE.parents[2] / "examples" / "python" / "train.py")
    kit.copy_package(build, folder)
    kit.write_revision(folder)
    os.environ.update(FP4_LIBRARY=str(build / "lib" / "libfp4.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import train
    from fp4.torch import execution
    with execution.collecting() as found:
        models, batches = models_of(train.parse([*SIZES, "--layers=1"]), None)
        for name in ("NVFP4", "NVFP4, to nearest"):
            train.train(models[name], batches, 1, 1)
        ours(SHAPES, "cpu")
    kit.assemble(found, gpus)


# ===--- TransformerEngine's reference ------------------------------------=== #


def reference(folder):
    """The module reference_nvfp4 of `folder`. Scalars are made once for a device, and one question
    to the GPU about a scale that may be 0 becomes the branch for rows, because a graph may not wait
    for the GPU."""
    import torch
    package = "transformer_engine.pytorch.custom_recipes"
    for name in ("transformer_engine", "transformer_engine.pytorch", package):
        sys.modules.setdefault(name, types.ModuleType(name))
    for name, members in {"transformer_engine.pytorch.quantized_tensor": {
            "QuantizedTensorStorage": type("QuantizedTensorStorage", (), {}), "Quantizer": Usages},
            "transformer_engine.pytorch.tensor.utils": {"is_custom": lambda x: x.custom}}.items():
        sys.modules.setdefault(name, types.ModuleType(name)).__dict__.update(members)
    for name in ("reference_utils", "gemm", "reference_nvfp4"):
        text, made = (folder / f"{name}.py").read_text(), types.ModuleType(f"{package}.{name}")
        question = "if global_encode_scale.numel() == 1:"
        if name == "reference_nvfp4" and text.count(question) != 1:
            raise RuntimeError(f"{name}.py must have '{question}' once, as on 22 August 2026")
        sys.modules[made.__name__] = made
        setattr(sys.modules[package], name, made)
        exec(compile(text.replace(question, "if False:"), folder / f"{name}.py", "exec"), made.__dict__)
    made.torch = Constants(torch)
    matrix = made.NVFP4QuantizerRef._build_hadamard_matrix
    made.NVFP4QuantizerRef._build_hadamard_matrix = staticmethod(functools.cache(matrix))
    return made


class Usages:
    """The part of TransformerEngine's Quantizer that the reference reads."""

    def __init__(self, rowwise, columnwise):
        self.rowwise_usage, self.columnwise_usage = rowwise, columnwise


class Constants:
    """torch, with tensors of numbers of the host made once."""

    def __init__(self, torch):
        self._torch, self._known = torch, {}

    def __getattr__(self, name):
        return getattr(self._torch, name)

    def tensor(self, value, device=None, dtype=None):
        key = (repr(value), str(device), dtype)
        if key not in self._known:
            self._known[key] = self._torch.tensor(value, device=device, dtype=dtype)
        return self._known[key]


class Theirs:
    """Quantizers of X and dY, and of W, and matmuls of what they give."""

    def __init__(self, module):
        self.module = module
        kinds = {"rows": ((1, 16), True), "weight": ((16, 16), False)}
        self.quantizers = {name: module.NVFP4QuantizerRef(
            module.reference_utils.Fp4Formats.E2M1, quant_tile_shape=tile, with_rht=has_transform)
            for name, (tile, has_transform) in kinds.items()}

    def quantize(self, x, kind="rows"):
        """Codes, scales and amax, and those of the transpose."""
        q = self.quantizers[kind].quantize(x)
        return q.data, q.scale, q.global_amax_row, q.data_t, q.scale_t, q.global_amax_col

    def numbers(self, codes, scales):
        """Codes times block scales, exact in bf16."""
        import torch
        wide = self.module.cast_from_fp4x2(codes, torch.bfloat16)
        return (wide.view(*scales.shape, 16) * scales.to(torch.bfloat16)[..., None]).view(wide.shape)

    def product(self, a, b, dtype):
        """A B^T, summed in f32."""
        import torch
        left, right = (self.numbers(*one[:2]) for one in (a, b))
        wide = torch.mm(left, right.T, out_dtype=torch.float32) if left.is_cuda else left.float() @ right.float().T
        return (wide * (a[2] * b[2] / (6 * 6 * 448 * 448))).to(dtype)


def layer_of(theirs):
    """A class of linear layers that `theirs` quantizes."""
    import torch

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            qx, qw = theirs.quantize(x), theirs.quantize(weight, "weight")
            ctx.save_for_backward(*qx[3:], *qw[3:])
            ctx.dtypes = x.dtype, weight.dtype
            return theirs.product(qx, qw, x.dtype)

        @staticmethod
        def backward(ctx, dy):
            q, saved = theirs.quantize(dy.contiguous()), ctx.saved_tensors
            return theirs.product(q, saved[3:], ctx.dtypes[0]), theirs.product(q[3:], saved[:3], ctx.dtypes[1])

    class Linear(torch.nn.Linear):
        def forward(self, input):
            device = input.device.type
            x = input.to(torch.get_autocast_dtype(device)).reshape(-1, self.in_features).contiguous()
            with torch.autocast(device, enabled=False):  # would round sums in f32
                return Product.apply(x, self.weight).view(*input.shape[:-1], self.out_features)
    return Linear


# ===--- Comparison -------------------------------------------------------=== #


def tensors_of(shapes, device):
    """X in bf16 with outliers, and a W in f32, of each shape."""
    import torch
    generator = torch.Generator().manual_seed(3)
    for shape in shapes:
        x = torch.randn(shape, generator=generator) * torch.exp(torch.randn(shape, generator=generator))
        yield x.bfloat16().to(device), (0.02 * torch.randn(shape, generator=generator)).to(device)


def ours(shapes, device):
    """Codes, linear scales and amax that fp4 makes of these tensors, and those of the transpose."""
    import fp4.torch
    import torch
    from fp4.torch import layers
    for x, weight in tensors_of(shapes, device):
        for tensor, hadamard, square in ((x, True, False), (weight, False, True)):
            rows, columns = tensor.shape
            q, s, amax, qt, st, amax_t = layers._quantize(tensor, None, fp4.torch.NVFP4Training().recipe, hadamard, square, True, True)
            yield tuple(part.view(torch.uint8) if part.dtype != torch.float32 else part for part in (
                q, linear(s, rows, columns // 16), amax, qt, linear(st, columns, rows // 16), amax_t))


def linear(scales, rows, columns):
    """Scales [rows, columns] of the tiles of 128 x 4 that matmuls read."""
    tiles = scales.reshape(-1, (columns + 3) // 4, 32, 4, 4)
    return tiles.permute(0, 3, 2, 1, 4).reshape(-1, (columns + 3) // 4 * 4)[:rows, :columns]


def compare(theirs, shapes, device):
    """Rows that say how many codes and scales differ; and checks the matmul of numbers."""
    import torch
    made = ours(shapes, device)
    for x, weight in tensors_of(shapes, device):
        a, b = theirs.quantize(x), theirs.quantize(weight, "weight")
        for kind, expected, found in (("X", a, next(made)), ("W", b, next(made))):
            parts = zip(("codes", "scales", "amax", "codes of the transpose", "scales of the transpose", "amax of the transpose"),
                        expected, found)
            yield {"tensor": kind, "shape": list(x.shape), "differ": {
                name: [int((one.reshape(-1).view(torch.uint8) != other.reshape(-1).view(torch.uint8)).sum()),
                       one.numel() * one.itemsize] for name, one, other in parts}}
        yield {"matmul": list(x.shape), "error": matmul_error(theirs, x, weight)}
    yield layer_errors(theirs, *next(tensors_of(shapes[:1], device)))


def matmul_error(theirs, x, weight):
    """The distance of the matmul of numbers from the reference's own, of its largest result."""
    import torch
    a, b = theirs.quantizers["rows"].quantize(x), theirs.quantizers["weight"].quantize(weight)
    own = a._quantizer.qgemm(a.data, b.data, None, torch.float32, a.scale, b.scale, qresult_x=a, qresult_w=b)
    found = theirs.product(theirs.quantize(x), theirs.quantize(weight, "weight"), torch.float32)
    return checked("the matmul", (found - own).abs().max() / own.abs().max(), MOST_OF_MATMUL)


def layer_errors(theirs, x, weight):
    """Differences of Y, dX and dW of two layers of one weight, as norms: sums have other orders."""
    import fp4.torch
    import torch
    made, weight = [], weight[:LAYER_ROWS]
    source = torch.nn.Linear(weight.shape[1], len(weight), bias=False, device=x.device)
    with torch.no_grad():
        source.weight.copy_(weight)
    dy = torch.randn(len(x), len(weight), generator=torch.Generator().manual_seed(4)).bfloat16().to(x.device)
    other = copy.deepcopy(source)
    other.__class__ = layer_of(theirs)
    training = fp4.torch.NVFP4Training(stochastic_rounding=False)
    for layer in (other, fp4.torch.Linear.from_linear(source, training)):
        leaf = x.clone().requires_grad_()
        with torch.autocast(x.device.type, torch.bfloat16):
            y = layer(leaf)
        y.backward(dy)
        made.append((y.detach(), leaf.grad, layer.weight.grad))
    return {"layer": list(weight.shape), **{name: checked(name, (one.float() - mine.float()).norm() / one.float().norm(), MOST_OF_LAYER)
                                            for name, one, mine in zip(("y", "dx", "dw"), *made)}}


def checked(name, error, most):
    if not error < most:
        raise RuntimeError(f"{name} must lie within {most} of the reference's, but differs by {error}")
    return error.item()


# ===--- Training ---------------------------------------------------------=== #


def models_of(options, theirs):
    """Models of the same first weights by name, and batches."""
    import fp4.torch
    import train
    models, batches = train.build(options)
    nearest = copy.deepcopy(models["bf16"])
    fp4.torch.quantize_(nearest, lambda layer, name: name != "head",
                        training=fp4.torch.NVFP4Training(stochastic_rounding=False))
    models["NVFP4, to nearest"] = nearest
    if theirs:
        models[TRANSFORMER_ENGINE] = copy.deepcopy(models["bf16"])
        for name, layer in list(models["bf16"].named_modules()):
            if type(layer).__name__ == "Linear" and name != "head":
                models[TRANSFORMER_ENGINE].get_submodule(name).__class__ = layer_of(theirs)
    return models, batches


class Step:
    """A training step of examples/python/train.py as one graph, whose learning rate and tokens are
    tensors."""

    def __init__(self, model, window, rate=1e-3):
        import torch
        self.model, self.window = model, window
        self.rate = torch.tensor(rate, device=window.device)
        self.optimizer = torch.optim.AdamW(model.parameters(), self.rate, (0.9, 0.95), weight_decay=0.1, capturable=True)
        self.before = copy.deepcopy(model.state_dict())
        self.graph = kit.captured(self.call)
        self.forget()  # the calls before the capture trained

    def forget(self):
        import torch
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                value.copy_(self.before[name])
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def call(self):
        import torch
        import train
        loss = train.loss_of(self.model, self.window)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def graph_beside_eager(step, steps=8):
    """The largest difference of losses of replays from those of the same steps without a graph."""
    import torch
    found = []
    for call in (step.call, lambda: (step.graph.replay(), step.graph.kept)[1]):
        torch.manual_seed(2)
        found.append([call().item() for _ in range(steps)])
        step.forget()
    return max(abs(one - other) for one, other in zip(*found))


def nudge(model):
    """Moves all weights by one unit in the last place, which later differences come from."""
    import torch
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.nextafter(parameter, parameter.new_tensor(torch.inf)))


def trained(model, batches, options):
    """(step, mean training loss since the row before, validation loss) of some steps."""
    import math

    import torch
    import train
    generator, warmup, rate = torch.Generator().manual_seed(1), max(1, options.steps // 20), 1e-3
    step = Step(model, batches.draw("train", torch.Generator().manual_seed(1)))
    print(json.dumps({"graph_beside_eager": graph_beside_eager(step)}), flush=True)
    torch.manual_seed(2)  # of stochastic rounding
    losses = torch.zeros(options.every, device=step.window.device)
    for number in range(options.steps):
        step.window.copy_(batches.draw("train", generator))
        step.rate.fill_(rate * min((number + 1) / warmup, 0.1 + 0.45 * (1 + math.cos(math.pi * number / options.steps))))
        step.graph.replay()
        losses[number % options.every].copy_(step.graph.kept)
        if (number + 1) % options.every == 0:
            yield number + 1, losses.mean().item(), train.validate(model, batches)


# ===--- The run ----------------------------------------------------------=== #


def document(area, curves, options, revision):
    """A result as docgen/result_tables.py reads it: losses of training, or of validation."""
    titles, place, rows = {TRANSFORMER_ENGINE: "TransformerEngine's reference"}, AREAS.index(area) + 1, {}
    for way, curve in curves.items():
        for row in curve:
            rows.setdefault(row[0], {"step": row[0]})[COLUMNS[way]] = round(row[place], 4)
    columns = [("step", "step", None), *((COLUMNS[way], titles.get(way, way), "nats") for way in curves)]
    return kit.document(
        area, columns, list(rows.values()), key=["step"], revision=revision,
        command="benchmarks/models/losses.py run FOLDER --theirs=FOLDER",
        program=f"6 layers of 512, {options.batch * options.context} tokens a step, a token is a byte, "
                f"means of {options.every} steps")


def run(options):
    folder = options.folder.resolve()
    if options.device == "cuda":  # the simulator compiles programs
        os.environ.update(FP4_LIBRARY=str(folder / "libfp4rt.so"), FP4_CACHE=str(folder / "cache"))
    sys.path.insert(0, str(folder))
    import train
    theirs = Theirs(reference(options.theirs.resolve())) if options.theirs else None
    for row in compare(theirs, SHAPES if options.device == "cuda" else SMALL, options.device) if theirs else ():
        print(json.dumps(row), flush=True)
    if options.device != "cuda":
        return
    sizes = train.parse([*SIZES, "--device=cuda", f"--steps={options.steps}", f"--every={options.every}"])
    models, batches = models_of(sizes, theirs)
    curves, revision = {}, (folder / "revision").read_text().strip()
    for name in options.ways or models:
        begin, curves[name] = time.perf_counter(), []
        if options.nudged:
            nudge(models[name])
        for row in trained(models[name], batches, sizes):
            curves[name].append(row)
            print(json.dumps({"way": name, "step": row[0], "loss": row[1], "validation": row[2],
                              "seconds": round(time.perf_counter() - begin, 1)}), flush=True)
            for area, file in zip(AREAS, (options.json, options.validation)):
                if file:
                    file.write_text(json.dumps(document(area, curves, sizes, revision), indent=1) + "\n")


def main():
    parser, _, _, running = kit.commands_of(__doc__, GPUS)
    running.add_argument("folder", type=pathlib.Path)
    running.add_argument("--theirs", type=pathlib.Path, help="a folder with TransformerEngine's reference")
    running.add_argument("--steps", type=int, default=2000)
    running.add_argument("--every", type=int, default=200, help="steps of a row")
    running.add_argument("--ways", nargs="+", help="all without it")
    running.add_argument("--nudged", action="store_true", help="first weights are one unit in the last place larger")
    running.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: the comparison alone, simulated")
    running.add_argument("--json", type=pathlib.Path, help="losses of training")
    running.add_argument("--validation", type=pathlib.Path, help="losses of validation")
    options = parser.parse_args()
    if options.command == "pack":
        return pack(options.build.resolve(), options.folder.resolve(), options.gpus)
    run(options)


if __name__ == "__main__":
    main()
