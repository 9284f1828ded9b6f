"""Gluon kernels: those of flash-linear-attention, and ours of TMA, mbarriers, warp specialization, wgmma and tcgen05."""
import ml_dtypes
import numpy
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout, TensorMemoryScalesLayout, allocate_tensor_memory, tcgen05_commit, tcgen05_mma, tcgen05_mma_scaled)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from arrays import equal, integers
from cases import case
from device import Array, zeros

SOURCE = "fla"
DEFAULTS = {"devices": ("h200", "b200"), "policies": ("eager", "lazy"), "tolerance": 1e-4}


#===--- flash-linear-attention --------------------------------------------===#


@case()
def sinkhorn():
    from fla.ops.utils.sinkhorn.gluon import sinkhorn_bwd_gluon, sinkhorn_fwd_gluon
    from fla.ops.utils.sinkhorn.naive import naive_sinkhorn
    for tokens in (7, 150):
        x, slope = torch.randn(tokens, 4, 4, requires_grad=True), torch.randn(tokens, 4, 4)
        expected = naive_sinkhorn(x, 5)
        expected.backward(slope)
        found, _ = sinkhorn_fwd_gluon(x.detach().to("cuda"), 5)
        yield f"{tokens} matrices", found, expected
        yield f"gradient of {tokens}", sinkhorn_bwd_gluon(x.detach().to("cuda"), slope.to("cuda"), 5), x.grad


def convolved(x, weight, bias):
    """silu of a causal convolution of each channel: x [B, T, D], weight [D, W]."""
    width = weight.shape[1]
    padded = torch.nn.functional.pad(x.transpose(1, 2), (width - 1, 0))
    return torch.nn.functional.silu(torch.nn.functional.conv1d(padded, weight[:, None], bias, groups=len(weight))).transpose(1, 2)


@case()
def causal_conv1d():
    from fla.modules.causal_conv1d.backends.gluon import causal_conv1d_bwd_gluon, causal_conv1d_fwd_gluon
    x, weight, bias, slope = torch.randn(2, 100, 48), torch.randn(48, 4), torch.randn(48), torch.randn(2, 100, 48)
    here = [one.clone().requires_grad_() for one in (x, weight, bias)]
    expected = convolved(*here)
    expected.backward(slope)
    x, weight, bias, slope = (one.to("cuda") for one in (x, weight, bias, slope))
    yield "result", causal_conv1d_fwd_gluon(x, weight, bias, activation="silu")[0], expected
    found = causal_conv1d_bwd_gluon(x, slope, None, weight, bias, activation="silu")
    for name, one, mine in zip(("x", "weight", "bias"), found, here):
        yield f"gradient of {name}", one, mine.grad


@case()
def cross_entropy():
    from fla.modules.fused_cross_entropy.gluon import cross_entropy_bwd_gluon, cross_entropy_fwd_gluon
    for classes in (1000, 20000):
        logits, target = torch.randn(5, classes), torch.tensor([3, 999, -100, 0, 500])
        mine = logits.clone().requires_grad_()
        expected = torch.nn.functional.cross_entropy(mine, target, reduction="none")
        slope = torch.rand(5)
        expected.backward(slope)
        logits, target, slope = (one.to("cuda") for one in (logits, target, slope))
        loss, _, lse, *_ = cross_entropy_fwd_gluon(logits, target)
        yield f"{classes} classes", loss, expected
        yield f"gradient of {classes}", cross_entropy_bwd_gluon(logits, target, lse, slope), mine.grad


#===--- Copies ------------------------------------------------------------===#


@gluon.jit
def _copied_by_tma(source, target, tiles, COLUMNS: gl.constexpr):
    """Two buffers: the load of a tile runs beside the store of the one before."""
    buffers = gl.allocate_shared_memory(source.dtype, [2] + source.block_type.shape, source.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
    for tile in range(tiles):
        slot = tile % 2
        tma.store_wait(1)
        mbarrier.expect(full.index(slot), source.block_type.nbytes)
        tma.async_load(source, [gl.program_id(0) * source.block_type.shape[0], tile * COLUMNS], full.index(slot), buffers.index(slot))
        mbarrier.wait(full.index(slot), tile // 2 & 1)
        tma.async_store(target, [gl.program_id(0) * source.block_type.shape[0], tile * COLUMNS], buffers.index(slot))
    tma.store_wait(0)
    for i in gl.static_range(2):
        mbarrier.invalidate(full.index(i))


def described(array, box):
    element = {numpy.dtype("float16"): gl.float16, numpy.dtype("float32"): gl.float32, numpy.dtype("uint8"): gl.uint8}.get(array.dtype, gl.bfloat16)
    return TensorDescriptor.from_tensor(array, box, gl.NVMMASharedLayout.get_default_for(box, element))


@case(source="triton-own", against="numpy")
def copy_by_tma():
    x = integers((100, 320), -1000, 1000, dtype=numpy.float32)
    y = zeros(x.shape, numpy.float32)
    _copied_by_tma[(2,)](described(Array(x), [64, 64]), described(y, [64, 64]), 5, 64, num_warps=4)
    equal(y.numpy(), x)


#===--- Products ----------------------------------------------------------===#


@gluon.jit
def _loads(a, b, x, y, full, empty, steps, BK: gl.constexpr, STAGES: gl.constexpr):
    m, n = gl.program_id(0) * a.block_type.shape[0], gl.program_id(1) * b.block_type.shape[0]
    for k in range(steps):
        slot = k % STAGES
        mbarrier.wait(empty.index(slot), (k // STAGES & 1) ^ 1)
        mbarrier.expect(full.index(slot), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [m, k * BK], full.index(slot), x.index(slot))
        tma.async_load(b, [n, k * BK], full.index(slot), y.index(slot))


@gluon.jit
def _stored(c, acc):
    staging = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    staging.store(acc.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [gl.program_id(0) * c.block_type.shape[0], gl.program_id(1) * c.block_type.shape[1]], staging)
    tma.store_wait(0)


@gluon.jit
def _wgmma(c, x, y, full, empty, steps, BM: gl.constexpr, BN: gl.constexpr, STAGES: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for k in range(steps):
        slot = k % STAGES
        mbarrier.wait(full.index(slot), k // STAGES & 1)
        acc = warpgroup_mma(x.index(slot), y.index(slot).permute((1, 0)), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(empty.index(slot), count=1)
    _stored(c, acc)


@gluon.jit
def _tcgen05(tmem, x, y, full, empty, done, steps, STAGES: gl.constexpr):
    for k in range(steps):
        slot = k % STAGES
        mbarrier.wait(full.index(slot), k // STAGES & 1)
        tcgen05_mma(x.index(slot), y.index(slot).permute((1, 0)), tmem, use_acc=k > 0)
        tcgen05_commit(empty.index(slot))
    tcgen05_commit(done)


@gluon.jit
def _from_tensor_memory(c, tmem, done):
    mbarrier.wait(done, 0)
    _stored(c, tmem.load())


@gluon.jit
def _product(a, b, c, steps, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr, BLACKWELL: gl.constexpr):
    """A ring of stages between a warp that loads and those that multiply: c = a b^T."""
    x = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    y = gl.allocate_shared_memory(b.dtype, [STAGES, BN, BK], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    mbarrier.init(done, count=1)
    fence_async_shared()
    if BLACKWELL:
        tmem = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout([BM, BN], col_stride=1))
        gl.warp_specialize([(_from_tensor_memory, (c, tmem, done)), (_loads, (a, b, x, y, full, empty, steps, BK, STAGES)),
                            (_tcgen05, (tmem, x, y, full, empty, done, steps, STAGES))], [1, 1], [24, 24])
    else:
        gl.warp_specialize([(_wgmma, (c, x, y, full, empty, steps, BM, BN, STAGES)),
                            (_loads, (a, b, x, y, full, empty, steps, BK, STAGES))], [1], [24])


def multiplied(blackwell, dtype, shape, tile, stages):
    """Small integers: every sum is exact in every order."""
    (M, N, K), (BM, BN, BK) = shape, tile
    a, b = integers((M, K), -4, 5, 1).astype(dtype), integers((N, K), -4, 5, 2).astype(dtype)
    c = zeros((M, N), dtype)
    _product[(-(-M // BM), -(-N // BN))](described(Array(a), [BM, BK]), described(Array(b), [BN, BK]), described(c, [BM, BN]),
                                         -(-K // BK), BM, BN, BK, stages, blackwell, num_warps=4)
    equal(c.numpy(), (a.astype(numpy.float32) @ b.astype(numpy.float32).T).astype(dtype), f"{shape} {tile}")


@case("h200", source="triton-own", against="numpy")
def product_by_wgmma():
    multiplied(False, numpy.float16, (128, 128, 256), (64, 64, 64), 3)
    multiplied(False, ml_dtypes.bfloat16, (100, 72, 200), (64, 128, 64), 2)


@case("b200", source="triton-own", against="numpy")
def product_by_tcgen05():
    multiplied(True, numpy.float16, (128, 128, 256), (128, 64, 64), 3)
    multiplied(True, ml_dtypes.bfloat16, (200, 72, 200), (128, 128, 64), 2)


@gluon.jit
def _scaled_product(a, b, sa, sb, c, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, BLOCK: gl.constexpr):
    """One tile of NVFP4 or MXFP4: scales go to tensor memory by way of registers."""
    x = gl.allocate_shared_memory(a.dtype, [BM, BK // 2], a.layout)
    y = gl.allocate_shared_memory(b.dtype, [BN, BK // 2], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    mbarrier.init(done, count=1)
    fence_async_shared()
    mbarrier.expect(full, a.block_type.nbytes + b.block_type.nbytes)
    tma.async_load(a, [0, 0], full, x)
    tma.async_load(b, [0, 0], full, y)
    tmem = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout([BM, BN], col_stride=1))
    first = allocate_tensor_memory(sa.dtype.element_ty, [BM, BK // BLOCK], TensorMemoryScalesLayout())
    second = allocate_tensor_memory(sb.dtype.element_ty, [BN, BK // BLOCK], TensorMemoryScalesLayout())
    layout: gl.constexpr = first.get_reg_layout()
    m = gl.arange(0, BM, gl.SliceLayout(1, layout))[:, None] * (BK // BLOCK)
    first.store(gl.load(sa + m + gl.arange(0, BK // BLOCK, gl.SliceLayout(0, layout))[None, :]))
    other: gl.constexpr = second.get_reg_layout()
    n = gl.arange(0, BN, gl.SliceLayout(1, other))[:, None] * (BK // BLOCK)
    second.store(gl.load(sb + n + gl.arange(0, BK // BLOCK, gl.SliceLayout(0, other))[None, :]))
    mbarrier.wait(full, 0)
    tcgen05_mma_scaled(x, y.permute((1, 0)), tmem, first, second, "e2m1", "e2m1", use_acc=False)
    tcgen05_commit(done)
    mbarrier.wait(done, 0)
    _stored(c, tmem.load())


def scaled(block, shape):
    (M, N, K), kind = shape, ml_dtypes.float8_e4m3fn if block == 16 else numpy.uint8
    a, b = (integers((rows, K), -6, 7, seed).astype(numpy.float32).astype(ml_dtypes.float4_e2m1fn) for rows, seed in ((M, 1), (N, 2)))
    sa, sb = (integers((rows, K // block), 1, 5, seed) + (0 if block == 16 else 125) for rows, seed in ((M, 3), (N, 4)))
    packed = [described(Array(x.view(numpy.uint8)[:, ::2] | x.view(numpy.uint8)[:, 1::2] << 4), [len(x), K // 2]) for x in (a, b)]
    c = zeros((M, N), numpy.float32)
    _scaled_product[(1,)](*packed, Array(sa.astype(kind)), Array(sb.astype(kind)), described(c, [M, N]), M, N, K, block, num_warps=4)
    va, vb = (x if block == 16 else 2.0 ** (x - 127.0) for x in (sa, sb))
    wanted = (a.astype(float) * va.repeat(block, 1)) @ (b.astype(float) * vb.repeat(block, 1)).T
    equal(c.numpy(), wanted.astype(numpy.float32), f"{shape}, blocks of {block}")


@case("b200", source="triton-own", against="numpy")
def scaled_product_by_tcgen05():
    scaled(16, (128, 64, 256))
    scaled(32, (128, 128, 256))
