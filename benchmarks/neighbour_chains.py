"""The chains of neighbours.py, and the cells of these and of norms.py: programs, arguments, bytes,
and the same functions in PyTorch.

A row is a token. Programs are those of fp4.torch where it has them, in upstream operations.
"""
import dataclasses
import typing

import norm_peers

#: Rows and columns of cells: norms have all of them, and other chains CELLS. torch.compile has one
#: of them, and so have few rows.
ROWS, COLUMNS = (64, 4096, 16384, 65536), (2048, 4096, 7168, 8192, 16384)
FEW, COMPILED = (64, 7168), (16384, 8192)
CELLS = (FEW, (4096, 2048), (4096, 8192), (4096, 16384), (16384, 4096), COMPILED, (65536, 2048), (65536, 8192), (65536, 16384))
#: Elements of a head, rows of a table of cosines and sines, and rows of caches.
HEAD, POSITIONS, SLOTS, FEW_SLOTS = 128, 4096, 65536 + 1024, 512
#: Bytes of an element with its share of a scale, by what follows.
WRITTEN = {"bf16": 2, "nvfp4": 0.5 + 1 / 16, "mxfp4": 0.5 + 1 / 32, "mxfp8": 1 + 1 / 32, "fp8_row": 1, "fp8_block": 1 + 1 / 32,
           "fp8": 1, "nvfp4_random": 0.5 + 1 / 16}


@dataclasses.dataclass(frozen=True)
class Chain:
    """A kind of program.

    Attributes:
        text: (columns) -> MLIR.
        arguments: (rows, columns, torch) -> tensors, and for each of them whether it has a row for
            each row of the result, or for each head of it.
        bytes: (columns) -> those that are read and written for a row.
        sizes: of dimensions that are no rows, as fp4-run takes them.
        function: (after, torch) -> what torch.compile compiles for the same arguments, or None.
        few: (columns) -> MLIR with a cache of few rows, where results are caches, to which the
            second argument says the row.
    """

    text: typing.Callable
    arguments: typing.Callable
    bytes: typing.Callable
    sizes: tuple = ()
    function: typing.Callable | None = None
    few: typing.Callable | None = None


def ending(after, layout="tiled_128x4", **more):
    from fp4.torch.row_programs import ALONE, Ending
    if after == "bf16":
        return ALONE
    if after == "fp8":
        return Ending("fp8_static", amax_rank=0)
    if after.startswith("nvfp4"):
        return Ending("nvfp4", "transformer_engine", layout, amax_rank=0, stochastic=after.endswith("random"), **more)
    format, recipe = {"mxfp4": ("mxfp4", "ocp_floor"), "mxfp8": ("mxfp8_e4m3", "mxfp8_e4m3_floor"),
                      "fp8_row": ("fp8_row", "fp8_deepgemm"), "fp8_block": ("fp8_block128", "fp8_deepgemm")}[after]
    return Ending(format, recipe, "linear" if after.startswith("fp8") else layout, **more)


def matrix(rows, columns, torch):
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)


def given(after, torch):
    """The last arguments: an amax or a scale, and seed and offset."""
    if after == "fp8":
        return [(torch.tensor(0.02, device="cuda"), False)]
    amax = [(torch.tensor(norm_peers.AMAX, device="cuda"), False)] if after.startswith("nvfp4") else []
    return amax + ([(torch.tensor([5, 9], device="cuda"), False)] if after.endswith("random") else [])


# ===--- Gates ------------------------------------------------------------=== #


def gate_text(activation, after):
    def text(columns):
        from fp4.torch.expert_programs import ACTIVATIONS
        from fp4.torch.row_programs import Text, amax_argument, end, rng_argument
        program = Text(columns, "bf16", strided=after != "bf16")
        inputs = [program.argument(name, program.matrix("bf16")) for name in ("gate", "up")]
        last = ending(after)
        amax = amax_argument(program, last)
        rng_argument(program, last)
        program.begin(inputs[0])
        body = ACTIVATIONS[activation].text().replace("%gate", "%gate.f").replace("%up", "%up.f")
        end(program, last, program.elements("gated", inputs, body, "%y", "bf16"), amax)
        return program.text("gate")
    return text


def gate(activation, after):
    def function(after, torch):
        def of(g, u, *_):
            g, u = g.float(), u.float()
            if activation == "gpt_oss":
                g, u = g.clamp(max=7.0), u.clamp(-7.0, 7.0) + 1
                y = g * torch.sigmoid(1.702 * g) * u
            else:
                y = (torch.nn.functional.silu(g) if activation == "silu" else torch.nn.functional.gelu(g, approximate="tanh")) * u
            return norm_peers.quantized(y.bfloat16(), after, torch)
        return of
    return Chain(gate_text(activation, after),
                 lambda rows, columns, torch: [(matrix(rows, columns, torch), True) for _ in "gu"] + given(after, torch),
                 lambda columns: columns * (4 + WRITTEN[after]), function=function if after in PLAIN else None)


# ===--- Rotations and caches ---------------------------------------------=== #


def rotation_text(normed, after):
    def text(columns):
        from fp4.torch.norm_programs import Norm
        from fp4.torch.rotation_programs import Rotation, rotation_text
        norm = Norm(HEAD, "bf16", "rms", 1e-6, weight="bf16") if normed else None
        return rotation_text(Rotation(columns // HEAD, HEAD, "bf16", HEAD, "f32", False, norm, ending=ending(after, "linear")))
    return text


def rotation(normed, after):
    def arguments(rows, columns, torch):
        x = matrix(rows, columns, torch).view(rows, -1, HEAD)
        weight = [(x[0, 0].contiguous(), False)] if normed else []
        return [(x, True), (torch.randint(POSITIONS, (rows,), device="cuda"), True),
                (torch.randn(POSITIONS, HEAD, device="cuda"), False), *weight, *given(after, torch)]

    def function(after, torch):
        def of(x, positions, table, *weight):
            heads = x.float()
            if normed:
                heads = (heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + 1e-6) * weight[0].float()).bfloat16().float()
            cos, sin = table[positions].unsqueeze(1).chunk(2, -1)
            one, two = heads.chunk(2, -1)
            y = torch.cat((one * cos - two * sin, two * cos + one * sin), -1).bfloat16()
            return norm_peers.quantized(y.view(-1, HEAD), after, torch)
        return of
    return Chain(rotation_text(normed, after), arguments, lambda columns: columns * (2 + WRITTEN[after]),
                 sizes=(f"P={POSITIONS}",), function=function if after in PLAIN else None)


def cache_text(after, slots):
    def text(columns):
        from fp4.torch.row_programs import Tensor, Text, amax_argument, end
        program = Text(columns, "bf16", strided=False)
        x = program.argument("x", program.matrix("bf16"))
        numbers = program.argument("slots", "tensor<?xi64>", "#row")
        last = ending(after, "linear")
        amax = amax_argument(program, last)
        program.begin(x)
        if after == "bf16":
            program.results.append((x.name, x.type))
        else:
            end(program, last, x, amax)
        results, program.results = program.results, []
        for name, type in results:
            stored = program.scatter(f"{name}_cache", Tensor(name, type), numbers, slots)
            program.result(stored.name, stored.type)
        return program.text("cache")
    return text


def cache(after):
    def arguments(rows, columns, torch):
        return [(matrix(rows, columns, torch), True), (torch.randperm(SLOTS, device="cuda")[:rows], True), *given(after, torch)]
    return Chain(cache_text(after, SLOTS), arguments, lambda columns: columns * (2 + WRITTEN[after]), few=cache_text(after, FEW_SLOTS))


# ===--- Rows by number ---------------------------------------------------=== #


def gather(after):
    def text(columns):
        from fp4.torch.rotation_programs import Gather, gather_text
        return gather_text(Gather(columns, "bf16", ending(after)))

    def arguments(rows, columns, torch):
        return [(matrix(rows, columns, torch), False), (torch.randperm(rows, device="cuda"), True), *given(after, torch)]

    def function(after, torch):
        return lambda x, rows, *_: norm_peers.quantized(x[rows], after, torch)
    return Chain(text, arguments, lambda columns: columns * (2 + WRITTEN[after]), function=function)


def weighted_sum(count):
    """`count` rows of a matrix that has as many for each token are added: all are read once."""
    def text(columns):
        from fp4.torch.rotation_programs import Sum, sum_text
        return sum_text(Sum(columns, "bf16", count))

    def arguments(rows, columns, torch):
        places = torch.randperm(rows * count, device="cuda").view(rows, count)
        return [(matrix(rows * count, columns, torch), False), (torch.rand(rows, count, device="cuda"), True),
                *((places[:, number].contiguous(), True) for number in range(count))]

    def function(after, torch):
        def of(y, weights, *rows):
            return (y[torch.stack(rows, 1)].float() * weights.unsqueeze(-1)).sum(1).bfloat16()
        return of
    return Chain(text, arguments, lambda columns: columns * 2 * (count + 1), function=function)


# ===--- Training ---------------------------------------------------------=== #


def norm_gradient_text(kind):
    """Gradients of y = n * w, n = (x - mean) * rstd: dx = (w * dy - a - n * b) * rstd, where b is
    the mean of w * dy * n, and a that of w * dy; RMSNorm has no means of x and w * dy. rstd is
    given."""
    def text(columns):
        from fp4.torch.row_programs import NUMBERS, Text, constant
        is_layer = kind == "layer"
        program = Text(columns, "bf16", strided=False)
        dy, x = (program.argument(name, program.matrix("bf16")) for name in ("dy", "x"))
        w = program.argument("w", f"tensor<{columns}xbf16>", "#column")
        rstd = program.argument("rstd", NUMBERS, "#row")
        inputs = [dy, x, w, rstd]
        mean = program.argument("mean", NUMBERS, "#row") if is_layer else None
        program.begin(x)
        lines, value = "", "%x.f"
        if mean:
            inputs.append(mean)
            lines, value = "    %d = arith.subf %x.f, %mean.f : f32\n", "%d"
        lines += f"    %n = arith.mulf {value}, %rstd.f : f32\n    %g = arith.mulf %w.f, %dy.f : f32\n"
        sums = [program.reduce("along", inputs, lines + "    %p = arith.mulf %g, %n : f32\n", "%p")]
        if is_layer:
            sums.append(program.reduce("total", [dy, w], "    %g = arith.mulf %w.f, %dy.f : f32\n", "%g"))
        body = lines + constant("c", 1 / columns) + """\
    %b = arith.mulf %along.f, %c : f32
    %t = arith.mulf %n, %b : f32
    %l = arith.subf %g, %t : f32
"""
        last = "%l"
        if is_layer:
            body += "    %a = arith.mulf %total.f, %c : f32\n    %m = arith.subf %l, %a : f32\n"
            last = "%m"
        body += f"    %z = arith.mulf {last}, %rstd.f : f32\n"
        dx = program.elements("dx", [*inputs, *sums], body, "%z", "bf16")
        program.result(dx.name, dx.type)
        return program.text("norm_gradient")
    return text


def norm_gradient(kind):
    def arguments(rows, columns, torch):
        numbers = [(torch.rand(rows, device="cuda"), True)] * (2 if kind == "layer" else 1)
        return [(matrix(rows, columns, torch), True), (matrix(rows, columns, torch), True),
                (matrix(1, columns, torch)[0], False), *numbers]

    def function(after, torch):
        def of(dy, x, w, rstd, mean=None):
            n = (x.float() if mean is None else x.float() - mean[:, None]) * rstd[:, None]
            g = w.float() * dy.float()
            d = g - n * (g * n).mean(-1, keepdim=True)
            return ((d if mean is None else d - g.mean(-1, keepdim=True)) * rstd[:, None]).bfloat16()
        return of
    return Chain(norm_gradient_text(kind), arguments, lambda columns: 6 * columns, function=function)


def gate_gradient():
    def text(columns):
        from fp4.torch import gates
        return gates.gradients_text(gates.Unit(columns, "bf16"))

    def arguments(rows, columns, torch):
        return [(matrix(rows, columns, torch), True), (matrix(rows, 2 * columns, torch), True)]

    def function(after, torch):
        def of(dy, x):
            g, u = x.float().chunk(2, -1)
            s, dy = torch.sigmoid(g), dy.float()
            return torch.cat((dy * u * (s + g * s * (1 - s)), dy * g * s), -1).bfloat16()
        return of
    return Chain(text, arguments, lambda columns: 10 * columns, function=function)


def loss(is_gradient):
    def text(columns):
        from fp4.torch import cross_entropies
        what = cross_entropies.Loss(columns, "bf16")
        return cross_entropies.gradients_text(what) if is_gradient else cross_entropies.losses_text(what)

    def arguments(rows, columns, torch):
        more = [(torch.full((rows,), 9.0, device="cuda"), True)] * 2 if is_gradient else []
        return [(matrix(rows, columns, torch), True),
                (torch.randint(columns, (rows,), device="cuda", dtype=torch.int32), True), *more]

    def function(after, torch):
        def of_loss(x, labels):
            return torch.nn.functional.cross_entropy(x.float(), labels.long(), reduction="none")

        def of_gradient(x, labels, lse, factor):
            p = (x.float() - lse[:, None]).exp()
            at = torch.arange(x.shape[1], device=x.device)[None] == labels[:, None]
            return ((p - at.float()) * factor[:, None]).bfloat16()
        return of_gradient if is_gradient else of_loss
    return Chain(text, arguments, lambda columns: (4 if is_gradient else 2) * columns, function=function)


def stochastic(kind):
    """A quantizer alone, or behind RMSNorm, that rounds stochastically."""
    def text(columns):
        from fp4.torch.norm_programs import Norm, norm_text
        return norm_text(Norm(columns, "bf16", "rms", 1e-5, weight="bf16", ending=ending("nvfp4_random")))

    def arguments(rows, columns, torch):
        return [(matrix(rows, columns, torch), True), (matrix(1, columns, torch)[0], False), *given("nvfp4_random", torch)]
    return Chain(text, arguments, lambda columns: columns * (2 + WRITTEN["nvfp4"]))


#: What follows that norm_peers.quantized has.
PLAIN = ("bf16", *norm_peers.AFTER)
KINDS = {**{f"silu-{after}": gate("silu", after) for after in (*PLAIN, "nvfp4_random")},
         **{f"{name}-{after}": gate(name, after) for name in ("gelu_tanh", "gpt_oss") for after in ("bf16", "nvfp4", "mxfp4", "mxfp8")},
         **{f"rope-{after}": rotation(False, after) for after in ("bf16", "fp8", "nvfp4")},
         **{f"norm_rope-{after}": rotation(True, after) for after in ("bf16", "fp8", "nvfp4")},
         **{f"cache-{after}": cache(after) for after in ("bf16", "fp8", "nvfp4", "mxfp8")},
         **{f"gather-{after}": gather(after) for after in PLAIN if after != "bf16"},
         **{f"combine-{count}": weighted_sum(count) for count in (2, 4, 8)},
         **{f"{kind}_gradient": norm_gradient(kind) for kind in ("rms", "layer")}, "silu_gradient": gate_gradient(),
         "loss": loss(False), "loss_gradient": loss(True), "rms-nvfp4_random": stochastic("rms")}
