"""Matrix products: pointers, tensor descriptors, persistent and warp-specialized, block-scaled; attention."""
import ml_dtypes
import numpy
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from arrays import close, equal, integers, numbers
from cases import case
from device import Array, set_allocator, zeros

# Small integers: every sum is exact in every order, so results are compared bit for bit.

SOURCE = "triton-own"
DEFAULTS = {"devices": ("b200", "h200", "rtx5090"), "policies": ("eager", "lazy", "random"),
            "against": "numpy"}
set_allocator()


@triton.jit
def _matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            PRECISION: tl.constexpr, ACC: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa, pb = a + m[:, None] * sam + k[None, :] * sak, b + k[:, None] * sbk + n[None, :] * sbn
    acc = tl.zeros((BM, BN), ACC)
    for start in range(0, tl.cdiv(K, BK)):
        left = K - start * BK
        x = tl.load(pa, (m[:, None] < M) & (k[None, :] < left), other=0.0)
        y = tl.load(pb, (k[:, None] < left) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
        pa += BK * sak
        pb += BK * sbk
    tl.store(c + m[:, None] * scm + n[None, :], acc.to(c.dtype.element_ty), (m[:, None] < M) & (n[None, :] < N))


def product(dtype, out, shape, tile, transposed=False, precision="tf32", acc=tl.float32, low=-4, **options):
    (M, N, K), (BM, BN, BK) = shape, tile
    a, b = integers((M, K), low, 5, 1).astype(dtype), integers((K, N), low, 5, 2).astype(dtype)
    db = Array(b.T if transposed else b)
    sbk, sbn = db.stride()[::-1] if transposed else db.stride()
    c = zeros((M, N), out)
    _matmul[(triton.cdiv(M, BM), triton.cdiv(N, BN))](Array(a), db, c, M, N, K, K, 1, sbk, sbn, N, BM, BN, BK, precision,
                                                      acc, **options)
    wanted = a.astype(numpy.float64) @ b.astype(numpy.float64)
    equal(c.numpy(), wanted.astype(out), f"{numpy.dtype(dtype)} {shape} {tile} {options}")


@case()
def matmul_halves():
    for dtype in (numpy.float16, ml_dtypes.bfloat16):
        product(dtype, numpy.float32, (128, 128, 128), (64, 64, 32))
        product(dtype, numpy.float32, (200, 136, 192), (128, 64, 64), num_warps=4, num_stages=3)
        product(dtype, dtype, (256, 256, 256), (128, 128, 64), True, num_warps=8, num_stages=4)
        product(dtype, numpy.float32, (40, 24, 80), (16, 16, 16), num_warps=1)


@case()
def matmul_fp8():
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        product(dtype, numpy.float32, (128, 128, 256), (128, 128, 64), True, num_stages=3)
        product(dtype, numpy.float16, (100, 128, 160), (64, 64, 64), True)


@case()
def matmul_tf32():
    product(numpy.float32, numpy.float32, (128, 128, 128), (64, 64, 32))
    product(numpy.float32, numpy.float32, (256, 128, 128), (128, 128, 32), num_warps=8, num_stages=3)
    product(numpy.float32, numpy.float32, (64, 64, 64), (64, 64, 32), precision="tf32x3")
    product(numpy.float32, numpy.float32, (64, 64, 64), (32, 32, 32), precision="ieee")


@case()
def matmul_int8():
    product(numpy.int8, numpy.int32, (128, 128, 256), (128, 64, 64), True, acc=tl.int32, low=-100)
    product(numpy.int8, numpy.int32, (96, 72, 100), (32, 32, 32), acc=tl.int32, low=-100)


@case()
def matmul_fp64():
    product(numpy.float64, numpy.float64, (64, 64, 64), (32, 32, 16), precision="ieee", acc=tl.float64)


@case("b200", "h200")
def matmul_of_clusters():
    product(numpy.float16, numpy.float32, (256, 256, 128), (128, 128, 64), num_warps=4, num_ctas=2)


@case("b200")
def matmul_with_cluster_launch_control():
    product(numpy.float16, numpy.float32, (256, 256, 128), (128, 128, 64), clc=True)


@triton.jit
def _descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALIZE: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIALIZE):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(c.dtype))


def with_descriptors(dtype, out, shape, tile, specialize=False, **options):
    (M, N, K), (BM, BN, BK) = shape, tile
    a, b, c = (Array(integers(s, -4, 5, 1).astype(d)) for s, d in (((M, K), dtype), ((N, K), dtype), ((M, N), out)))
    describe = lambda x, box: TensorDescriptor.from_tensor(x, box)
    _descriptors[(triton.cdiv(M, BM), triton.cdiv(N, BN))](describe(a, [BM, BK]), describe(b, [BN, BK]),
                                                           describe(c, [BM, BN]), K, BM, BN, BK, specialize, **options)
    wanted = a.host.astype(numpy.float64) @ b.host.astype(numpy.float64).T
    equal(c.numpy(), wanted.astype(out), f"{a.dtype} {shape} {tile} {options}")


@case()
def matmul_with_descriptors():
    with_descriptors(numpy.float16, numpy.float16, (256, 128, 256), (128, 128, 64))
    with_descriptors(ml_dtypes.bfloat16, numpy.float32, (200, 136, 192), (128, 64, 64), num_warps=8, num_stages=3)
    with_descriptors(ml_dtypes.float8_e4m3fn, numpy.float16, (128, 128, 256), (128, 128, 128), num_stages=3)


@case("b200") # Triton 3.9 cannot compile it for Hopper
def matmul_warp_specialized():
    with_descriptors(numpy.float16, numpy.float16, (256, 128, 512), (128, 128, 64), True, num_stages=3)


@triton.jit
def _persistent(pa, pb, pc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
                SPECIALIZE: tl.constexpr, FLATTEN: tl.constexpr):
    """Tensor maps are made on the device; the epilogue of a tile overlaps the next one's products."""
    a = tl.make_tensor_descriptor(pa, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(pb, [N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(pc, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, PROGRAMS, flatten=FLATTEN,
                         warp_specialize=SPECIALIZE):
        m, n = tile // columns * BM, tile % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, acc)
        c.store([m, n], acc.to(c.dtype))


def persistent(specialize, flatten, shape=(384, 200, 256), tile=(128, 64, 64), **options):
    (M, N, K) = shape
    a, b = (Array(integers(s, -4, 5, 3, numpy.float16)) for s in ((M, K), (N, K)))
    c = zeros((M, N), numpy.float16)
    _persistent[(2, )](a, b, c, M, N, K, *tile, 2, specialize, flatten, **options)
    equal(c.numpy(), (a.host.astype(numpy.float32) @ b.host.astype(numpy.float32).T).astype(numpy.float16),
          f"specialize {specialize} flatten {flatten}")


@case()
def matmul_persistent():
    persistent(False, False, num_stages=2)
    persistent(False, True, num_stages=3)


@case("b200", "h200")
def matmul_persistent_specialized():
    persistent(True, False, num_stages=3)


@case("b200")
def matmul_persistent_flattened_specialized():
    persistent(True, True, num_stages=2)


@triton.jit
def _fused(a, b, bias, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Product, bias, GELU, the sum of every row."""
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc)
    v = acc + tl.load(bias + n)[None, :]
    v = 0.5 * v * (1 + tl.erf(v * 0.7071067811865476))
    tl.store(c + m, tl.sum(v, 1))


@case()
def matmul_with_epilogue():
    from math import erf
    a, b, bias = (numbers(s, i, numpy.float16) for i, s in enumerate(((64, 128), (128, 64), (64, ))))
    c = zeros(64, numpy.float32)
    _fused[(1, )](Array(a), Array(b), Array(bias.astype(numpy.float32)), c, 64, 64, 128, 64, 64, 32)
    v = a.astype(numpy.float64) @ b.astype(numpy.float64) + bias
    close(c.numpy(), (0.5 * v * (1 + numpy.vectorize(erf)(v * 0.7071067811865476))).sum(1), 1e-4, 1e-3)


@triton.jit
def _scaled(a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr, FA: tl.constexpr, FB: tl.constexpr, BLOCK: tl.constexpr):
    PA: tl.constexpr = 2 if FA == "e2m1" else 1
    PB: tl.constexpr = 2 if FB == "e2m1" else 1
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + m[:, None] * (K // PA) + k // PA + tl.arange(0, BK // PA)[None, :])
        y = tl.load(b + n[:, None] * (K // PB) + k // PB + tl.arange(0, BK // PB)[None, :])
        scales = k // BLOCK + tl.arange(0, BK // BLOCK)[None, :]
        xs = tl.load(sa + m[:, None] * (K // BLOCK) + scales)
        ys = tl.load(sb + n[:, None] * (K // BLOCK) + scales)
        acc = tl.dot_scaled(x, xs, FA, y.T, ys, FB, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc)


FORMATS = {"e2m1": ml_dtypes.float4_e2m1fn, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def operand(format, rows, k, seed):
    """(values, bytes): random codes without NaN or infinity; of e2m1 two in a byte, the first in the low bits."""
    values = integers((rows, k), -6, 7, seed).astype(numpy.float32).astype(FORMATS[format])
    codes = values.view(numpy.uint8)
    return values.astype(numpy.float64), codes[:, ::2] | codes[:, 1::2] << 4 if format == "e2m1" else codes


def scaled(fa, fb, block, tile, shape=(256, 256, 256), **options):
    (M, N, K), (BM, BN, BK) = shape, tile
    (a, xa), (b, xb) = operand(fa, M, K, 1), operand(fb, N, K, 2)
    if block == 32: # powers of two
        sa, sb = (integers((rows, K // 32), 125, 129, s, numpy.uint8) for rows, s in ((M, 3), (N, 4)))
        va, vb = 2.0**(sa.astype(float) - 127), 2.0**(sb.astype(float) - 127)
    else: # e4m3
        sa, sb = (integers((rows, K // 16), 1, 5, s).astype(ml_dtypes.float8_e4m3fn) for rows, s in ((M, 3), (N, 4)))
        va, vb = sa.astype(float), sb.astype(float)
    c = zeros((M, N), numpy.float32)
    view = lambda codes, format: Array(codes if format == "e2m1" else codes.view(FORMATS[format]))
    _scaled[(M // BM, N // BN)](view(xa, fa), Array(sa), view(xb, fb), Array(sb), c, M, N, K, BM, BN, BK, fa, fb, block,
                                **options)
    wanted = (a * va.repeat(block, 1)) @ (b * vb.repeat(block, 1)).T
    equal(c.numpy(), wanted.astype(numpy.float32), f"{fa} x {fb}, blocks of {block}, {tile}")


@case()
def scaled_mxfp8():
    for fa, fb in (("e4m3", "e4m3"), ("e5m2", "e4m3")):
        scaled(fa, fb, 32, (128, 128, 128))


@case()
def scaled_mixed():
    scaled("e4m3", "e2m1", 32, (128, 128, 128))
    scaled("e2m1", "e5m2", 32, (128, 64, 128))


@case()
def scaled_mxfp4():
    scaled("e2m1", "e2m1", 32, (128, 128, 128))
    scaled("e2m1", "e2m1", 32, (128, 128, 256), num_warps=8)


@case("b200", "rtx5090")
def scaled_nvfp4():
    scaled("e2m1", "e2m1", 16, (128, 128, 128))
    scaled("e2m1", "e2m1", 16, (128, 64, 256), num_stages=3)


@triton.jit
def _attention(q, k, v, out, scale, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
               CAUSAL: tl.constexpr):
    """Flash attention of one head: running maximum and sum."""
    head, start = tl.program_id(1) * N * D, tl.program_id(0) * BM
    m, n, d = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + head + m[:, None] * D + d[None, :])
    highest = tl.full((BM, ), -float("inf"), tl.float32)
    total = tl.zeros((BM, ), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for at in range(0, start + BM if CAUSAL else N, BN):
        y = tl.load(k + head + (at + n)[:, None] * D + d[None, :])
        s = tl.dot(x, y.T) * (scale * 1.44269504)
        if CAUSAL:
            s = tl.where(m[:, None] >= (at + n)[None, :], s, -float("inf"))
        new = tl.maximum(highest, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        correction = tl.exp2(highest - new)
        total = total * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        acc = tl.dot(p.to(v.dtype.element_ty), tl.load(v + head + (at + n)[:, None] * D + d[None, :]), acc)
        highest = new
    tl.store(out + head + m[:, None] * D + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@case()
def attention():
    for dtype, N, D, BM, BN, causal, warps, bound in ((numpy.float16, 256, 64, 128, 64, False, 4, 2e-3),
                                                      (numpy.float16, 256, 64, 64, 64, True, 4, 2e-3),
                                                      (ml_dtypes.bfloat16, 128, 128, 128, 64, True, 8, 2e-2)):
        q, k, v = (numbers((2, N, D), s, dtype) for s in (1, 2, 3))
        out = zeros((2, N, D), dtype)
        _attention[(N // BM, 2)](Array(q), Array(k), Array(v), out, D**-0.5, N, D, BM, BN, causal, num_warps=warps,
                                 num_stages=2)
        s = q.astype(float) @ k.astype(float).transpose(0, 2, 1) * D**-0.5
        if causal:
            s = numpy.where(numpy.tri(N, dtype=bool), s, -numpy.inf)
        p = numpy.exp(s - s.max(2, keepdims=True))
        close(out.numpy(), p @ v.astype(float) / p.sum(2, keepdims=True), bound, bound, f"{out.dtype} causal {causal}")


@triton.jit
def _grouped(pa, pb, pc, sizes, K: tl.constexpr, N: tl.constexpr, GROUPS: tl.constexpr, BM: tl.constexpr,
             BN: tl.constexpr, BK: tl.constexpr):
    """Rows of A in groups; each group has its own B. One program after the other takes tiles of all groups."""
    tile, row = tl.program_id(0), 0
    before = 0
    for g in range(GROUPS):
        rows = tl.load(sizes + g)
        tiles = tl.cdiv(rows, BM) * (N // BN)
        while tile >= before and tile < before + tiles:
            m, n = (tile - before) // (N // BN) * BM + tl.arange(0, BM), (tile - before) % (N // BN) * BN + tl.arange(0, BN)
            k, acc = tl.arange(0, BK), tl.zeros((BM, BN), tl.float32)
            for start in range(0, K, BK):
                x = tl.load(pa + (row + m)[:, None] * K + start + k[None, :], m[:, None] < rows, other=0.0)
                y = tl.load(pb + g * K * N + (start + k)[:, None] * N + n[None, :])
                acc = tl.dot(x, y, acc)
            tl.store(pc + (row + m)[:, None] * N + n[None, :], acc.to(tl.float16), m[:, None] < rows)
            tile += tl.num_programs(0)
        before += tiles
        row += rows


@case()
def matmul_grouped():
    sizes, K, N = numpy.int32([70, 5, 128, 33]), 64, 64
    a, b = integers((sizes.sum(), K), -4, 5, 1, numpy.float16), integers((4, K, N), -4, 5, 2, numpy.float16)
    c = zeros((int(sizes.sum()), N), numpy.float16)
    _grouped[(3, )](Array(a), Array(b), c, Array(sizes), K, N, 4, 64, 32, 32)
    parts = numpy.split(a.astype(numpy.float32), numpy.cumsum(sizes)[:-1])
    equal(c.numpy(), numpy.concatenate([x @ y.astype(numpy.float32) for x, y in zip(parts, b)]).astype(numpy.float16))
