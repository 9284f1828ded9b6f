"""Liger-Kernel's Triton kernels for training, with their gradients, against torch on the CPU."""
import torch
import torch.nn.functional as F
from liger_kernel.transformers import functional as liger

from cases import case, gradients

SOURCE = "liger"
DEFAULTS = {"tolerance": 2e-5}


def rms(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def logits(*shape):
    return torch.log_softmax(torch.randn(*shape), -1)


@case()
def rms_norm():
    yield from gradients(lambda x, w: liger.liger_rms_norm(x, w, 1e-6), rms,
                         [torch.randn(40, 300), torch.randn(300)])


@case()
def layer_norm():
    yield from gradients(lambda x, w, b: liger.liger_layer_norm(x, w, b, 1e-6),
                         lambda x, w, b: F.layer_norm(x, (300,), w, b, 1e-6),
                         [torch.randn(40, 300), torch.randn(300), torch.randn(300)])


@case()
def fused_add_rms_norm():
    yield from gradients(
        lambda x, r, w: torch.cat(liger.liger_fused_add_rms_norm(x, r, w, 1e-6)),
        lambda x, r, w: torch.cat([rms(x + r, w), x + r]),
                         [torch.randn(40, 300), torch.randn(40, 300), torch.randn(300)])


@case(verdict="shared-race", reason="fused multiply-adds round a partial sum differently in each lane, "
      "and several warps store it; TRITON_DEFAULT_FP_FUSION=0 ends it")
def group_norm():
    yield from gradients(lambda x, w, b: liger.liger_group_norm(x, w, b, 12, 3, 1e-6),
                         lambda x, w, b: F.group_norm(x, 3, w, b, 1e-6),
                         [torch.randn(4, 12, 50), torch.randn(12), torch.randn(12)])


@case()
def poly_norm():
    def reference(x, w, b):
        def norm(y):
            return y * (y.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return w[0] * norm(x ** 3) + w[1] * norm(x ** 2) + w[2] * norm(x) + b
    yield from gradients(lambda x, w, b: liger.liger_poly_norm(x, w, b), reference,
                         [torch.randn(20, 130), torch.randn(3), torch.randn(())])


@case()
def dyt():
    yield from gradients(liger.liger_dyt, lambda x, a, g, b: g * torch.tanh(a * x) + b,
                         [torch.randn(30, 256), torch.randn(1), torch.randn(256), torch.randn(256)])


@case()
def geglu():
    yield from gradients(liger.liger_geglu, lambda a, b: F.gelu(a, approximate="tanh") * b,
                         [torch.randn(30, 300), torch.randn(30, 300)])


@case()
def swiglu():
    yield from gradients(liger.liger_swiglu, lambda a, b: F.silu(a) * b,
                         [torch.randn(30, 300), torch.randn(30, 300)])


@case()
def swiglu_gate_up():
    from liger_kernel.ops.swiglu import LigerFusedGateUpSiLUMulFunction
    yield from gradients(LigerFusedGateUpSiLUMulFunction.apply,
                         lambda y: F.silu(y[..., :128]) * y[..., 128:], [torch.randn(30, 256)])


@case()
def relu_squared():
    yield from gradients(liger.liger_relu_squared, lambda x: F.relu(x).square(), [torch.randn(30, 300)])


@case()
def softmax():
    yield from gradients(liger.liger_softmax, lambda x: torch.softmax(x, -1), [torch.randn(30, 1000)])


@case()
def sparsemax():
    def reference(x):
        ordered = x.sort(-1, descending=True).values
        sums = ordered.cumsum(-1) - 1
        count = (ordered * torch.arange(1, x.shape[-1] + 1) > sums).sum(-1, keepdim=True)
        return F.relu(x - sums.gather(-1, count - 1) / count)
    yield from gradients(liger.liger_sparsemax, reference, [torch.randn(20, 200)])


@case()
def cross_entropy():
    target = torch.randint(0, 1000, (30,))
    yield from gradients(lambda x: liger.liger_cross_entropy(x, target.to("cuda"), label_smoothing=0.1),
                         lambda x: F.cross_entropy(x, target, label_smoothing=0.1), [torch.randn(30, 1000)])


@case(tolerance=2e-3)
def fused_linear_cross_entropy():
    target = torch.randint(0, 300, (40,))
    yield from gradients(
        lambda x, w: liger.liger_fused_linear_cross_entropy(x, w, target.to("cuda")),
        lambda x, w: F.cross_entropy(x @ w.t(), target), [torch.randn(40, 64), torch.randn(300, 64)])


@case()
def kl_div():
    yield from gradients(lambda x, y: liger.liger_kl_div(x, y.detach(), reduction="batchmean"),
                         lambda x, y: F.kl_div(x, y.detach(), reduction="batchmean"),
                         [logits(30, 500), torch.softmax(torch.randn(30, 500), -1)])


@case()
def jsd():
    def reference(x, y):
        y = y.detach()
        middle = ((x.exp() + y.exp()) / 2).log()
        return (F.kl_div(middle, x, reduction="batchmean", log_target=True)
                + F.kl_div(middle, y, reduction="batchmean", log_target=True)) / 2
    yield from gradients(lambda x, y: liger.liger_jsd(x, y.detach()), reference,
                         [logits(30, 300), logits(30, 300)])


@case()
def tvd():
    yield from gradients(lambda p, q: liger.liger_tvd(p, q.detach(), reduction="batchmean"),
                         lambda p, q: (p - q.detach()).abs().sum() / 2 / p.shape[0],
                         [logits(30, 300).exp(), logits(30, 300).exp()])


@case()
def rope():
    angles = torch.outer(torch.arange(20.0), 10000 ** (-torch.arange(0, 32) / 32)).repeat(1, 2)
    cos, sin = angles.cos()[None], angles.sin()[None]

    def reference(q, k):
        def turned(x):
            half = torch.cat([-x[..., 32:], x[..., :32]], -1)
            return x * cos[:, None] + half * sin[:, None]
        return torch.cat([turned(q), turned(k)], 1)
    yield from gradients(
        lambda q, k: torch.cat(liger.liger_rope(q, k, cos.to("cuda"), sin.to("cuda")), 1), reference,
        [torch.randn(2, 4, 20, 64), torch.randn(2, 2, 20, 64)])


@case(tolerance=2e-3)
def multi_token_attention():
    def reference(scores, weight, bias):
        mask = torch.ones(scores.shape[-2:]).tril().bool()
        s = torch.softmax(scores.masked_fill(~mask, -1e9), -1)
        return F.conv2d(s, weight, bias, padding=1).masked_fill(~mask, 0.0)
    yield from gradients(lambda s, w, b: liger.liger_multi_token_attention(s, w, b, padding=1), reference,
                         [torch.randn(2, 4, 20, 20), torch.randn(4, 4, 3, 3), torch.randn(4)])


@case("h200", "b200", tolerance=2e-3)
def fused_neighborhood_attention():
    def reference(q, k, v):
        near = (torch.arange(40)[:, None] - torch.arange(40)).abs() <= 3
        scores = (q @ k.transpose(-1, -2)) * 32 ** -0.5
        return torch.softmax(scores.masked_fill(~near, float("-inf")), -1) @ v
    yield from gradients(lambda q, k, v: liger.liger_fused_neighborhood_attention(q, k, v, 7), reference,
                         [torch.randn(1, 2, 40, 32) for _ in range(3)])


@case(tolerance=1e-4)
def attn_res():
    from liger_kernel.ops.attn_res import LigerAttnResFunction

    def reference(v, q, n):
        keys = v * (v.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * n
        return (torch.softmax((keys * q).sum(-1), 0)[..., None] * v).sum(0)
    yield from gradients(lambda v, q, n: LigerAttnResFunction.apply(v, q, n, 1e-6), reference,
                         [torch.randn(4, 2, 10, 128), torch.randn(128), torch.randn(128)])
