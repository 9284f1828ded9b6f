"""FlagGems' Triton kernels of torch's operations, and of its fused ones for inference."""
import flag_gems as gems
import torch
import torch.nn.functional as F

from cases import case

SOURCE = "flag-gems"
DEFAULTS = {"tolerance": 2e-5}


def normal(*shapes):
    return lambda: [torch.randn(*shape) for shape in shapes]


def image(*more):
    return lambda: [torch.randn(2, 3, 10, 12), *(torch.randn(*shape) for shape in more)]


def picks(most, *shape):
    return torch.randint(0, most, shape)


CALLS = {
    # Rows
    "softmax": (lambda x: gems.softmax(x, -1), lambda x: x.softmax(-1), normal((20, 300))),
    "log_softmax": (lambda x: gems.log_softmax(x, 1), lambda x: x.log_softmax(1), normal((20, 300))),
    "layer_norm": (lambda x, w, b: gems.layer_norm(x, (300,), w, b)[0],
                   lambda x, w, b: F.layer_norm(x, (300,), w, b), normal((20, 300), (300,), (300,))),
    "rms_norm": (lambda x, w: gems.rms_norm(x, (300,), w), lambda x, w: F.rms_norm(x, (300,), w, 1e-5),
                 normal((20, 300), (300,))),
    "group_norm": (lambda x, w, b: gems.group_norm(x, w, b, 2, 12, 50, 3)[0],
                   lambda x, w, b: F.group_norm(x, 3, w, b), normal((2, 12, 50), (12,), (12,))),
    "instance_norm": (lambda x, w, b: gems.instance_norm(x, w, b), lambda x, w, b:
                      F.instance_norm(x, weight=w, bias=b), image((3,), (3,))),
    "skip_layer_norm": (lambda x, r, w, b: gems.skip_layer_norm(x, r, (300,), w, b),
                        lambda x, r, w, b: F.layer_norm(x + r, (300,), w, b),
                        normal((20, 300), (20, 300), (300,), (300,))),
    "cumsum": (lambda x: gems.cumsum(x, 1), lambda x: x.cumsum(1), normal((10, 3000))),
    "cummax": (lambda x: gems.cummax(x, 1), lambda x: tuple(x.cummax(1)), normal((10, 300))),
    "cummin": (lambda x: gems.cummin(x, 1), lambda x: tuple(x.cummin(1)), normal((10, 300))),
    "weight_norm": (lambda v, g: gems.weight_norm(v, g), lambda v, g:
                    torch._weight_norm(v, g, 0), normal((20, 300), (20, 1))),
    # Reductions
    "sum": (gems.sum, torch.sum, normal((100, 77))),
    "mean": (gems.mean, torch.mean, normal((100, 77))),
    "prod": (gems.prod, torch.prod, lambda: [1 + torch.randn(300) / 50]),
    "amax": (lambda x: gems.amax(x, (1,)), lambda x: x.amax(1), normal((30, 500))),
    "argmax": (lambda x: gems.argmax(x, 1), lambda x: x.argmax(1), normal((30, 500))),
    "argmin": (lambda x: gems.argmin(x, 0), lambda x: x.argmin(0), normal((30, 50))),
    "std": (lambda x: gems.std(x, [1]), lambda x: x.std(1), normal((30, 500))),
    "vector_norm": (gems.vector_norm, torch.linalg.vector_norm, normal((30, 500))),
    "any": (gems.any, torch.any, lambda: [torch.arange(3000) == 2222]),
    "all": (gems.all, torch.all, lambda: [torch.arange(3000) != 2222]),
    "count_nonzero": (gems.count_nonzero, torch.count_nonzero, lambda: [picks(3, 1000)]),
    "trace": (gems.trace, torch.trace, normal((70, 90))),
    "dot": (gems.dot, torch.dot, normal((3000,), (3000,))),
    # Order, places
    "sort": (lambda x: gems.sort(x, -1)[0], lambda x: x.sort(-1)[0], normal((5, 300))),
    "topk": (lambda x: gems.topk(x, 7)[0], lambda x: x.topk(7)[0], normal((5, 300))),
    "nonzero": (gems.nonzero, torch.nonzero, lambda: [picks(2, 30, 40)]),
    "isin": (gems.isin, torch.isin, lambda: [picks(50, 300), picks(50, 20)]),
    "unique": (lambda x: gems._unique2(x)[0], torch.unique, lambda: [picks(100, 400)]),
    "bincount": (gems.bincount, torch.bincount, lambda: [picks(20, 500)]),
    "index_select": (lambda x, i: gems.index_select(x, 0, i), lambda x, i: x.index_select(0, i),
                     lambda: [torch.randn(30, 50), picks(30, 20)]),
    "index_add": (lambda x, i, y: gems.index_add(x, 0, i, y), lambda x, i, y: x.index_add(0, i, y),
                  lambda: [torch.randn(30, 50), torch.randperm(30)[:20], torch.randn(20, 50)]),
    "index_put": (lambda x, i, y: gems.index_put(x, (i,), y), lambda x, i, y: x.index_put((i,), y),
                  lambda: [torch.randn(30, 50), torch.randperm(30)[:20], torch.randn(20, 50)]),
    "gather": (lambda x, i: gems.gather(x, 1, i), lambda x, i: x.gather(1, i),
               lambda: [torch.randn(30, 50), picks(50, 30, 20)]),
    "scatter": (lambda x, i, y: gems.scatter(x, 1, i, y), lambda x, i, y: x.scatter(1, i, y),
                lambda: [torch.randn(8, 50), torch.stack([torch.randperm(50)[:20] for _ in range(8)]),
                         torch.randn(8, 20)]),
    "scatter_add": (lambda x, i, y: gems.scatter_add_(x, 1, i, y), lambda x, i, y: x.scatter_add(1, i, y),
                    lambda: [torch.randn(8, 50), picks(50, 8, 40), torch.randn(8, 40)]),
    "masked_select": (gems.masked_select, torch.masked_select,
                      lambda: [torch.randn(40, 50), torch.rand(40, 50) > 0.5]),
    "masked_scatter": (gems.masked_scatter, torch.masked_scatter,
                       lambda: [torch.randn(40, 50), torch.rand(40, 50) > 0.5, torch.randn(2000)]),
    "embedding": (gems.embedding, lambda w, i: F.embedding(i, w),
                  lambda: [torch.randn(30, 50), picks(30, 4, 7)]),
    "embedding_backward": (lambda g, i: gems.embedding_backward(g, i, 30),
                           lambda g, i: torch.ops.aten.embedding_backward(g, i, 30, -1, False, False),
                           lambda: [torch.randn(4, 7, 50), picks(30, 4, 7)]),
    "repeat_interleave": (gems.repeat_interleave_tensor, torch.repeat_interleave, lambda: [picks(5, 60)]),
    "roll": (lambda x: gems.roll(x, 7, 1), lambda x: x.roll(7, 1), normal((30, 50))),
    "kron": (gems.kron, torch.kron, normal((6, 7), (8, 5))),
    "pad": (lambda x: gems.pad(x, (3, 4, 1, 2)), lambda x: F.pad(x, (3, 4, 1, 2)), normal((30, 50))),
    "tril": (lambda x: gems.tril(x, 2), lambda x: x.tril(2), normal((40, 50))),
    # Products
    "mm": (gems.mm, torch.mm, normal((70, 90), (90, 50)), 1e-3),
    "bmm": (gems.bmm, torch.bmm, normal((2, 70, 90), (2, 90, 50)), 1e-3),
    "addmm": (gems.addmm, torch.addmm, normal((50,), (70, 90), (90, 50)), 1e-3),
    "baddbmm": (gems.baddbmm, torch.baddbmm, normal((2, 70, 50), (2, 70, 90), (2, 90, 50)), 1e-3),
    "mv": (gems.mv, torch.mv, normal((70, 90), (90,))),
    "addr": (gems.addr, torch.addr, normal((70, 90), (70,), (90,))),
    # Images
    "conv1d": (gems.conv1d, F.conv1d, normal((2, 6, 40), (8, 6, 3)), 1e-3),
    "conv2d": (lambda x, w: gems.conv2d(x, w, padding=1), lambda x, w: F.conv2d(x, w, padding=1),
               image((8, 3, 3, 3)), 1e-3),
    "conv3d": (gems.conv3d, F.conv3d, normal((1, 3, 6, 7, 8), (4, 3, 3, 3, 3)), 1e-3),
    "conv_depthwise2d": (lambda x, w: gems._conv_depthwise2d(x, w, (3, 3), None, 1, 1, 1),
                         lambda x, w: F.conv2d(x, w, padding=1, groups=3), image((3, 1, 3, 3)), 1e-3),
    "avg_pool2d": (lambda x: gems.avg_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1), image()),
    "max_pool2d": (lambda x: gems.max_pool2d_with_indices(x, 3, 2, 1)[0],
                   lambda x: F.max_pool2d(x, 3, 2, 1), image()),
    "upsample_nearest2d": (lambda x: gems.upsample_nearest2d(x, (17, 31)),
                           lambda x: F.interpolate(x, (17, 31)), image()),
    "upsample_bicubic2d_aa": (lambda x: gems._upsample_bicubic2d_aa(x, (5, 7)),
                              lambda x: F.interpolate(x, (5, 7), mode="bicubic", antialias=True), image()),
    "reflection_pad2d": (lambda x: gems.reflection_pad2d(x, (2, 3, 1, 2)),
                         lambda x: F.pad(x, (2, 3, 1, 2), "reflect"), image()),
    # Losses, functions
    "cross_entropy": (gems.cross_entropy_loss, F.cross_entropy, lambda: [torch.randn(30, 500), picks(500, 30)]),
    "soft_margin_loss": (lambda x, y: gems.soft_margin_loss(x, y, 1),
                         F.soft_margin_loss, lambda: [torch.randn(300), picks(2, 300) * 2.0 - 1]),
    "special_i1": (gems.special_i1, torch.special.i1, normal((1000,)), 1e-4),
    "hadamard_transform": (gems.hadamard_transform, lambda x: x @ _hadamard(128), normal((20, 128)), 1e-5),
    # Inference
    "scaled_softmax": (lambda x: gems.scaled_softmax_forward(x, 0.3), lambda x: (x * 0.3).softmax(-1),
                       lambda: [torch.randn(1, 2, 16, 128).half()], 1e-3),
    "attention": (lambda q, k, v: gems.scaled_dot_product_attention(q, k, v, is_causal=True),
                  lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                  lambda: [torch.randn(1, 2, 70, 64).half() for _ in range(3)], 5e-3),
}


def _hadamard(size):
    found = torch.ones(1, 1)
    while len(found) < size:
        found = torch.cat([torch.cat([found, found], 1), torch.cat([found, -found], 1)])
    return found


@case(tolerance=1e-5)
def topk_softmax():
    x = torch.randn(20, 16)
    weights, chosen = torch.empty(20, 4, device="cuda"), torch.empty(20, 4, dtype=torch.int32, device="cuda")
    gems.topk_softmax(weights, chosen, torch.empty_like(chosen), x.to("cuda"))
    expected, places = x.softmax(-1).topk(4)
    yield "weights", weights, expected
    yield "experts", chosen, places.int(), 0


@case()
def moe_sum():
    x, out = torch.randn(20, 4, 64), torch.empty(20, 64, device="cuda")
    gems.moe_sum(x.to("cuda"), out)
    yield "sums", out, x.sum(1)


@case()
def moe_align_block_size():
    chosen, experts, block = torch.randint(0, 8, (50, 2), dtype=torch.int32), 8, 16
    size = chosen.numel() + experts * (block - 1)
    ids = torch.full((size,), chosen.numel(), dtype=torch.int32, device="cuda")
    of_blocks = torch.zeros(-(-size // block), dtype=torch.int32, device="cuda")
    count = torch.zeros(1, dtype=torch.int32, device="cuda")
    gems.moe_align_block_size_triton(chosen.to("cuda"), experts, block, ids, of_blocks, count)
    lists = [(chosen.flatten() == e).nonzero().flatten() for e in range(experts)]
    padded = [-(-len(one) // block) * block for one in lists]
    yield "rows", count, torch.tensor([sum(padded)], dtype=torch.int32), 0
    begin = 0
    for expert, (one, width) in enumerate(zip(lists, padded)):
        yield f"expert {expert}", ids[begin:begin + len(one)].cpu().sort()[0], one.int(), 0
        begin += width


@case()
def reshape_and_cache_flash():
    key, value = torch.randn(2, 12, 2, 32)
    caches = [torch.zeros(4, 8, 2, 32, device="cuda") for _ in range(2)]
    places, one = torch.randperm(32)[:12], torch.ones(1, device="cuda")
    gems.reshape_and_cache_flash(key.to("cuda"), value.to("cuda"), *caches, places.to("cuda"), "auto", one, one)
    yield "keys", caches[0].cpu().view(32, 2, 32)[places], key, 0
    yield "values", caches[1].cpu().view(32, 2, 32)[places], value, 0


# True hazards


@case(verdict="global-race lane-race wrong",
      reason="without running_mean its place is the input, which the kernel overwrites (batch_norm.py:125)")
def batch_norm():
    x, w, b = torch.randn(2, 3, 10, 12), torch.randn(3), torch.randn(3)
    found = gems.batch_norm(x.to("cuda"), w.to("cuda"), b.to("cuda"), None, None, True)[0]
    yield "result", found, F.batch_norm(x, None, None, w, b, True)


@case(verdict="global-race lane-race",
      reason="a plain load of the counter races with the atomics that count (nllloss.py:55)")
def nll_loss():
    x, target = torch.randn(30, 50).log_softmax(-1), torch.randint(0, 50, (30,))
    yield "result", gems.nll_loss_forward(x.to("cuda"), target.to("cuda"))[0], F.nll_loss(x, target)


@case(verdict="shared-race",
      reason="several warps store a partial result, which lanes rounded in different orders")
def var_mean():
    x = torch.randn(30, 500)
    found = gems.var_mean(x.to("cuda"), [1])
    yield "variance", found[0], x.var(1)
    yield "mean", found[1], x.mean(1)


@case(verdict="shared-race", reason="fused multiply-adds round a partial sum differently in each lane, "
      "and several warps store it; TRITON_DEFAULT_FP_FUSION=0 ends it")
def mse_loss():
    x, y = torch.randn(30, 50), torch.randn(30, 50)
    yield "result", gems.mse_loss(x.to("cuda"), y.to("cuda")), F.mse_loss(x, y)
