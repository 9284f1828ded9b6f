"""Conch's Triton kernels for inference."""
import torch
import torch.nn.functional as F

from cases import case

SOURCE = "conch"
DEFAULTS = {"tolerance": 1e-5}


@case()
def silu_and_mul():
    from conch.ops.activation.silu_and_mul import silu_and_mul as function
    x = torch.randn(20, 256)
    yield "result", function(x.to("cuda")), F.silu(x[:, :128]) * x[:, 128:]


@case()
def gelu_tanh_and_mul():
    from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul as function
    x = torch.randn(20, 256)
    yield "result", function(x.to("cuda")), F.gelu(x[:, :128], approximate="tanh") * x[:, 128:]


@case()
def rms_norm():
    from conch.ops.normalization.rms_norm import rms_norm as function
    x, w = torch.randn(20, 256), torch.randn(256)
    yield "result", function(x.to("cuda"), w.to("cuda"), 1e-6), F.rms_norm(x, (256,), w, 1e-6)


@case()
def fused_add_rms_norm():
    from conch.ops.normalization.rms_norm import fused_add_rms_norm as function
    x, r, w = torch.randn(20, 256), torch.randn(20, 256), torch.randn(256)
    found, sums = function(x.to("cuda"), r.to("cuda"), w.to("cuda"), 1e-6)
    yield "result", found, F.rms_norm(x + r, (256,), w, 1e-6)
    yield "sums", sums, x + r


@case()
def gemma_rms_norm():
    from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm as function
    x, w = torch.randn(20, 256), torch.randn(256)
    yield "result", function(x.to("cuda"), w.to("cuda"), 1e-6), F.rms_norm(x, (256,), 1 + w, 1e-6)


@case(tolerance=0)
def copy_blocks():
    from conch.ops.vllm.copy_blocks import copy_blocks as function
    keys, values = torch.randn(8, 1024), torch.randn(8, 1024)
    there = [keys.to("cuda"), values.to("cuda")]
    function([there[0]], [there[1]], torch.tensor([[0, 5], [1, 6]]).to("cuda"))
    for name, found, old in zip(("keys", "values"), there, (keys, values)):
        expected = old.clone()
        expected[5], expected[6] = old[0], old[1]
        yield name, found, expected


@case()
def int8_quant():
    from conch.ops.quantization.int8 import static_scaled_int8_quant as function
    x, scale = torch.randn(20, 256), torch.tensor([0.02])
    found = torch.empty(20, 256, dtype=torch.int8, device="cuda")
    function(found, x.to("cuda"), scale.to("cuda"))
    expected = (x / scale).round().clamp(-128, 127)
    yield "values", found.float(), expected, 1 / 127
