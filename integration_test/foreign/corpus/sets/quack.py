"""Kernels of QuACK, which the CuTe DSL compiles, through the package's own functions.

Operands of products are small integers times powers of two, so that sums are exact in float32 in any
order: a product in bf16 must be the rounded reference, bit for bit. Quantized results must equal the
package's own quantizer in PyTorch.
"""
import torch

from cases import case

SOURCE = "quack"
DEFAULTS = {"policies": ("eager", "lazy", "random"), "limit": 600}


def on_device(x):
    return x.to("cuda")


def integers(*shape, most=3):
    return torch.randint(-most, most + 1, shape).float()


# Products


@case("b200", "h200", "rtx5090")
def product():
    from quack.gemm_interface import gemm
    a, b = integers(300, 512), integers(512, 264)
    found = gemm(on_device(a.bfloat16()), on_device(b.bfloat16()), tuned=False)
    yield "bf16", found, (a @ b).bfloat16()


@case("b200", "h200")
def gated():
    from quack.gemm_interface import gemm_act
    a, b = integers(256, 256), integers(256, 512)
    before, found = gemm_act(on_device(a.bfloat16()), on_device(b.bfloat16()), activation="swiglu", tuned=False)
    sums = a @ b
    yield "before the gate", before, sums.bfloat16()
    gate, up = sums[:, ::2], sums[:, 1::2]
    expected = torch.nn.functional.silu(gate) * up
    yield "swiglu", found, expected, 1 / 128


@case("b200", verdict="lane-race", policies=("eager", "lazy"),  # not every random order shows it
      reason="docs/reference/found-bugs.md: the scheduler reads a response and requests the next")
def groups():
    from quack.gemm_interface import gemm
    rows = [0, 130, 130, 131, 300]  # one group is empty, and one has one row
    a, b = integers(rows[-1], 256), integers(len(rows) - 1, 256, 192)
    offsets = torch.tensor(rows, dtype=torch.int32)
    found = gemm(on_device(a.bfloat16()), on_device(b.bfloat16()), cu_seqlens_m=on_device(offsets), tuned=False)
    expected = torch.cat([a[begin:end] @ b[group] for group, (begin, end) in enumerate(zip(rows, rows[1:]))])
    yield "groups", found, expected.bfloat16()


# Block-scaled products


def block_scaled(name, other=None, result=None, shape=(300, 384, 512), rows=2.0):
    from quack.blockscaled.operand import BlockScaledOperand
    from quack.gemm_interface import gemm, gemm_blockscaled_ref
    m, n, k = shape
    a = BlockScaledOperand.quantize((integers(m, k) * rows).bfloat16(), name)
    b = BlockScaledOperand.quantize(integers(n, k).bfloat16(), other or name)
    expected = gemm_blockscaled_ref(a, b.mT, out_dtype=torch.float32)
    wanted = {"out_dtype": result} if result else {}
    found = gemm(a.to("cuda"), b.to("cuda").mT, tuned=False, **wanted)
    if not result:
        yield name, found, expected.bfloat16()
        return
    quantized = BlockScaledOperand.quantize(expected, result)
    yield f"codes in {result}", found.qdata, quantized.qdata
    yield f"scales in {result}", found.scale, quantized.scale


@case("b200", "rtx5090")
def nvfp4():
    yield from block_scaled("nvfp4")


@case("b200", "rtx5090")
def mxfp4():
    yield from block_scaled("mxfp4")


@case("b200", "rtx5090")
def mxfp8():
    yield from block_scaled("mxfp8")


@case("b200")
def nvfp4_to_nvfp4():
    yield from block_scaled("nvfp4", result="nvfp4", shape=(256, 256, 512))


@case("b200")
def mxfp8_to_mxfp8():
    yield from block_scaled("mxfp8", result="mxfp8", shape=(256, 256, 512))


# Weights of 4 bits


def weights(name, codes, scales, values, rows):
    from quack.gemm_w4 import gemm_w4a16
    from quack.operand_transform.formats import decode_format
    blob, strip = decode_format(name).prepare(codes, scales)
    x = integers(rows, values.shape[1])
    found = gemm_w4a16(on_device(x.bfloat16()), on_device(blob), on_device(strip), wformat=name)
    yield name, found, (x @ values.t()).bfloat16()


def codes_of(n, k):
    codes = torch.randint(0, 16, (n, k), dtype=torch.uint8)
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    table = torch.cat([table, -table])
    return codes[:, 0::2] | codes[:, 1::2] << 4, table[codes.long()]


@case("h200")  # of sm_120a ptxas refuses what the package writes
def nvfp4_weights():
    packed, values = codes_of(256, 512)
    scales = 2.0 ** torch.randint(-2, 3, (256, 32))
    yield from weights("nvfp4", packed, scales.to(torch.float8_e4m3fn), values * scales.repeat_interleave(16, 1),
                       20)


@case("h200")
def mxfp4_weights():
    packed, values = codes_of(256, 512)
    exponents = torch.randint(-2, 3, (256, 16))
    yield from weights("mxfp4", packed, (exponents + 127).to(torch.uint8),
                       values * (2.0 ** exponents).repeat_interleave(32, 1), 20)


# Rows


@case("b200", "h200", tolerance=1e-5)
def softmax():
    from quack.softmax import softmax
    x = torch.randn(40, 1000)
    yield "softmax", softmax(on_device(x)), torch.softmax(x, -1)


@case("b200", "h200", tolerance=1e-5)
def rmsnorm():
    from quack.rmsnorm import rmsnorm
    x, w = torch.randn(40, 1024), torch.randn(1024)
    expected = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w
    yield "rmsnorm", rmsnorm(on_device(x), on_device(w)), expected


@case("b200", tolerance=1e-5)
def cross_entropy():
    from quack.cross_entropy import cross_entropy
    x, target = torch.randn(40, 1000), torch.randint(0, 1000, (40,))
    found = cross_entropy(on_device(x), on_device(target), reduction="none")
    yield "cross entropy", found, torch.nn.functional.cross_entropy(x, target, reduction="none")


@case("b200", tolerance=1e-4)
def largest():
    from quack.topk import topk
    x = torch.randn(40, 256)
    values, _ = topk(on_device(x), 8)
    yield "topk", values, torch.topk(x, 8).values


@case("b200")
def hadamard():
    from quack.transform.hadamard import hadamard_transform, hadamard_transform_ref
    x = integers(40, 512)
    yield "Hadamard", hadamard_transform(on_device(x)), hadamard_transform_ref(x)
