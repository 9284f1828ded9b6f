"""Llama-like models of benchmarks/models/training.py, by the ways of a step, and what compares the
layers and pieces of fp4.torch with exact ones."""
import copy
import json

#: Hidden size: columns of the gate, heads, heads of keys and values.
SHAPES = {4096: (14336, 32, 8), 2048: (8192, 32, 8), 256: (512, 4, 2)}
VOCABULARY, SMALL = 128256, 256
EPS, MOST_ERROR = 1e-5, 1.5


def functional():
    import torch
    return torch.nn.functional


# ===--- Model ------------------------------------------------------------=== #


def made_of(torch):
    """The classes of the model."""

    class Norm(torch.nn.Module):
        def __init__(self, size, fused):
            super().__init__()
            self.weight, self.fused = torch.nn.Parameter(torch.ones(size)), fused

        def forward(self, x):
            if self.fused:
                return functional().rms_norm(x, self.weight.shape, self.weight, EPS)
            wide = x.float()
            wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
            return self.weight * wide.to(x.dtype)

    class Layer(torch.nn.Module):
        """A layer; `pieces` are rotate(x, angles) and gate(gate_up), or None for those of
        transformers, where Q, K and V, gate and up have matmuls of their own."""

        def __init__(self, hidden, pieces):
            super().__init__()
            inner, self.heads, self.keys = SHAPES[hidden]
            self.size, self.pieces = hidden // self.heads, pieces
            small = self.keys * self.size
            parts = {"qkv": [hidden + 2 * small]} if pieces else {"q": [hidden], "k": [small], "v": [small]}
            parts |= {"gate_up": [2 * inner]} if pieces else {"gate": [inner], "up": [inner]}
            for name, (rows,) in parts.items():
                setattr(self, name, torch.nn.Linear(hidden, rows, bias=False))
            self.out = torch.nn.Linear(hidden, hidden, bias=False)
            self.down = torch.nn.Linear(inner, hidden, bias=False)
            self.norm1, self.norm2 = (Norm(hidden, bool(pieces)) for _ in range(2))

        def heads_of(self, x, angles):
            """Q, K and V, [sequences, heads, tokens, size]."""
            shape = (*x.shape[:2], -1, self.size)
            if self.pieces:
                q, k, v = self.qkv(x).view(shape).split((self.heads, self.keys, self.keys), 2)
                q, k = (self.pieces[0](one, angles) for one in (q, k))
                return tuple(one.transpose(1, 2) for one in (q, k, v))
            q, k, v = (one(x).view(shape).transpose(1, 2) for one in (self.q, self.k, self.v))
            return rotated(q, angles), rotated(k, angles), v

        def forward(self, x, angles):
            q, k, v = self.heads_of(self.norm1(x), angles)
            mixed = functional().scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            y = self.norm2(x)
            if self.pieces:
                return x + self.down(self.pieces[1](self.gate_up(y)))
            return x + self.down(functional().silu(self.gate(y)) * self.up(y))

    class Model(torch.nn.Module):
        def __init__(self, hidden, layers, pieces, loss, vocabulary=VOCABULARY):
            super().__init__()
            self.embedding = torch.nn.Embedding(vocabulary, hidden)
            self.layers = torch.nn.ModuleList(Layer(hidden, pieces) for _ in range(layers))
            self.norm = Norm(hidden, bool(pieces))
            self.head = torch.nn.Linear(hidden, vocabulary, bias=False)
            self.loss = loss
            for parameter in self.parameters():
                if parameter.dim() == 2:
                    torch.nn.init.normal_(parameter, std=0.02)

        def forward(self, ids, labels, angles):
            x = self.embedding(ids)
            for layer in self.layers:
                x = layer(x, angles)
            return self.loss(self.head(self.norm(x)).flatten(0, 1), labels.flatten())

    return Model


def rotated(x, angles):
    """As transformers rotates heads [sequences, heads, tokens, size]."""
    import torch
    cosines, sines = angles["whole"]
    half = x.shape[-1] // 2
    return x * cosines + torch.cat((-x[..., half:], x[..., :half]), -1) * sines


def rotated_torch(x, angles):
    """Rotates heads [sequences, tokens, heads, size]."""
    import torch
    cosines, sines = (one[:, None] for one in angles["whole"])
    half = x.shape[-1] // 2
    return x * cosines + torch.cat((-x[..., half:], x[..., :half]), -1) * sines


def rotated_fp4(x, angles):
    import fp4.torch
    return fp4.torch.rotate(x.flatten(0, 1), angles["table"], angles["positions"]).view(x.shape)


def gated_torch(x):
    gate, up = x.chunk(2, -1)
    return functional().silu(gate) * up


def gated_fp4(x):
    import fp4.torch
    return fp4.torch.silu_and_mul(x)


def loss_of_float(logits, labels):
    return functional().cross_entropy(logits.float(), labels)


def loss_of_logits(logits, labels):
    return functional().cross_entropy(logits, labels)


def loss_fp4(logits, labels):
    import fp4.torch
    return fp4.torch.cross_entropy(logits, labels)


def angles_of(hidden, sequences, tokens, device):
    """Cosines and sines in the forms of the model's two rotations."""
    import torch
    size = hidden // SHAPES[hidden][1]
    rates = 500000.0 ** (-torch.arange(0, size, 2, device=device).float() / size)
    rows = torch.arange(tokens, device=device).float()[:, None] * rates
    whole = [torch.cat((one, one), 1).bfloat16() for one in (rows.cos(), rows.sin())]
    return {"whole": whole, "table": torch.cat((rows.cos(), rows.sin()), 1),
            "positions": torch.arange(tokens, device=device).repeat(sequences)}


WAYS = {"bf16": (None, loss_of_float), "bf16 fused": ((rotated_torch, gated_torch), loss_of_logits),
        "NVFP4": (None, loss_of_float), "NVFP4 fused": ((rotated_fp4, gated_fp4), loss_fp4)}


def model_of(way, hidden, layers, vocabulary=VOCABULARY, training=True):
    """A model on torch's default device; equal seeds give the two kinds of layers other weights."""
    import fp4.torch
    import torch
    torch.manual_seed(1)
    model = made_of(torch)(hidden, layers, *WAYS[way], vocabulary).bfloat16()
    if way.startswith("NVFP4"):
        fp4.torch.quantize_(model, lambda _, name: name != "head", training=training)
    return model


# ===--- Verification -----------------------------------------------------=== #


def exact_linear(torch, product):
    """A linear layer of the operands of fp4.torch.Linear as they are dequantized, whose three
    matmuls `product` computes."""
    import fp4.torch
    from fp4.torch import layers
    from fp4.torch.scaled import Scaled, scale_shape

    def numbers(x, hadamard, square, device):
        """x and x^T as fp4.torch.Linear quantizes them, in float32."""
        found = layers._quantize(x, None, "transformer_engine", hadamard, square, True, True)
        shapes = (x.shape, x.shape[::-1])
        for (q, s, amax), shape in zip((found[:3], found[3:]), shapes):
            scaled = Scaled(q, s.view(scale_shape(tuple(shape), "nvfp4", "tiled_128x4")), amax, tuple(shape), "nvfp4",
                            "tiled_128x4", "transformer_engine")
            yield fp4.torch.dequantize(scaled, torch.float32)

    class Exact(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            rows = x.flatten(0, -2).contiguous()
            qx, qxt = numbers(rows, True, False, x.device)
            qw, qwt = numbers(weight, False, True, x.device)
            ctx.save_for_backward(qxt, qwt)
            return product(qx, qw).to(x.dtype).view(*x.shape[:-1], -1)

        @staticmethod
        def backward(ctx, dy):
            qxt, qwt = ctx.saved_tensors
            q, qt = numbers(dy.flatten(0, -2).contiguous(), True, False, dy.device)
            return product(q, qwt).to(dy.dtype).view(*dy.shape[:-1], -1), product(qt, qxt).to(dy.dtype)

    class Layer(torch.nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight = weight

        def forward(self, x):
            return Exact.apply(x, self.weight)

    return Layer


def with_exact_layers(model, product):
    """A copy of a model with layers of `exact_linear`."""
    import fp4.torch
    import torch
    kind, made = exact_linear(torch, product), copy.deepcopy(model)
    for name, layer in list(made.named_modules()):
        if isinstance(layer, fp4.torch.Linear):
            parent, _, last = name.rpartition(".")
            setattr(made.get_submodule(parent), last, kind(layer.weight))
    return made


def verify_matmuls(device):
    """Y, dX and dW of a layer differ from products of its dequantized operands in float64 by one
    rounding to bf16, and by what f32 sums may: 2^-22 for each term. Returns the largest part of the
    bound."""
    import fp4.torch
    import torch
    torch.manual_seed(2)
    rows, columns, count = 512, 768, 640
    layer = fp4.torch.Linear(columns, count, bias=False, dtype=torch.bfloat16, device=device,
                             training=fp4.torch.NVFP4Training(stochastic_rounding=False))
    other = exact_linear(torch, lambda a, b: a.double() @ b.double().t())(layer.weight)
    sizes = exact_linear(torch, lambda a, b: a.double().abs() @ b.double().abs().t())(layer.weight)
    x, dy = torch.randn(rows, columns, device=device).bfloat16(), torch.randn(rows, count, device=device).bfloat16()
    found = []
    for one in (layer, other, sizes):
        given = x.detach().requires_grad_()
        layer.weight.grad = None
        y = one(given)
        y.backward(dy)
        found.append([value.detach().double() for value in (y, given.grad, layer.weight.grad)])
    worst = 0.0
    for ours, exact, size, terms in zip(*found, (columns, count, rows)):
        bound = 2 ** -7 * exact.abs() + terms * 2 ** -22 * size  # both are rounded to bf16
        worst = max(worst, ((ours - exact).abs() / bound).max().item())
    return worst


def verify_pieces(device):
    """Rotations, gates and losses of fp4.torch, and their gradients, differ from those in float64
    by one rounding to bf16 and few of f32. Returns the largest part of the bound."""
    import torch
    torch.manual_seed(3)
    hidden, tokens = SMALL, 128
    angles = angles_of(hidden, 2, tokens, device)
    table = angles["table"].double()
    wide = {"whole": [torch.cat((one, one), 1) for one in table.chunk(2, 1)]}
    labels = torch.randint(1000, (2 * tokens,), device=device)
    pieces = [((2, tokens, 4, 64), lambda x: rotated_fp4(x, angles), lambda x: rotated_torch(x, wide)),
              ((2, tokens, 1024), gated_fp4, gated_torch),
              ((2 * tokens, 1000), lambda x: loss_fp4(x, labels), lambda x: loss_of_logits(x, labels))]
    worst = 0.0
    for shape, ours, exact in pieces:
        x = torch.randn(shape, device=device).bfloat16()
        one, other = x.detach().requires_grad_(), x.double().requires_grad_()
        y, wanted = ours(one), exact(other)
        dy = torch.randn(y.shape, device=device).bfloat16() if y.dim() else None
        y.backward(dy)
        wanted.backward(None if dy is None else dy.double())
        for found, right in ((y, wanted), (one.grad, other.grad)):
            bound = 2 ** -8 * right.abs() + 2 ** -20 * right.abs().max()
            worst = max(worst, ((found.double() - right).abs() / bound).max().item())
    return worst


def gradients_of(model, batch):
    model.zero_grad()
    loss = model(*batch)
    loss.backward()
    return [loss.detach().double(), *(value.grad.double() for value in model.parameters())]


def verify_layer(device, hidden=SMALL, tokens=256):
    """The error of the loss and of all gradients of `NVFP4 fused` against float32 pieces and
    products, beside that of the pieces of torch in bf16 with the same quantizers."""
    import fp4.torch
    import torch
    with torch.device(device):
        ours = model_of("NVFP4 fused", hidden, 1, 1024, fp4.torch.NVFP4Training(stochastic_rounding=False))
        ids = torch.randint(1024, (2, tokens))
    batch = ids, ids.roll(-1, 1), angles_of(hidden, 2, tokens, device)
    exact = with_exact_layers(ours, lambda a, b: a.float() @ b.float().t())
    plain = copy.deepcopy(exact)
    for model in (exact, plain):
        model.loss = loss_of_float
        for layer in model.layers:
            layer.pieces = rotated_torch, gated_torch
    for layer in exact.layers:  # the pieces between matmuls in float32
        layer.pieces = (lambda x, angles: rotated_torch(x.float(), angles).to(x.dtype),
                        lambda x: gated_torch(x.float()).to(x.dtype))
    wanted, *others = (gradients_of(model, batch) for model in (exact, ours, plain))
    return [sum((one - right).norm() ** 2 / right.norm() ** 2 for one, right in zip(found, wanted)).item() ** 0.5
            for found in others]


def compare(device):
    """Errors of matmuls and pieces as parts of their bounds, and the two errors of a layer."""
    ours, plain = verify_layer(device)
    return {"matmuls_of_bound": verify_matmuls(device), "pieces_of_bound": verify_pieces(device), "layer_error": ours,
            "layer_error_of_torch": plain}


def verify(device):
    """Fails where the layers or the pieces compute something else."""
    found = compare(device)
    print(json.dumps({"verification": found}), flush=True)
    matmuls, pieces, ours, plain = found.values()
    if not (matmuls <= 1 and pieces <= 1 and ours <= MOST_ERROR * plain + 1e-3):
        raise RuntimeError(f"errors must be within their bounds, but got {found}")
