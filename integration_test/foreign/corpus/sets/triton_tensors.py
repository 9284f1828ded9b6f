"""Kernels whose lanes talk to each other: reductions, scans, sorting, normalization."""
import ml_dtypes
import numpy
import triton
import triton.language as tl

from arrays import close, equal, integers, numbers
from cases import case
from device import Array, zeros

SOURCE = "triton-own"
DEFAULTS = {"devices": ("b200", "h200", "rtx5090"), "policies": ("eager", "lazy", "random"),
            "against": "numpy"}


@triton.jit
def _reduce(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        r = tl.sum(v, AXIS)
    elif OP == "max":
        r = tl.max(v, AXIS)
    elif OP == "min":
        r = tl.min(v, AXIS)
    elif OP == "argmax":
        r = tl.argmax(v, AXIS).to(v.dtype)
    elif OP == "argmin":
        r = tl.argmin(v, AXIS).to(v.dtype)
    else:
        r = tl.xor_sum(v, AXIS)
    tl.store(out + tl.arange(0, M if AXIS == 1 else N), r)


@case()
def reductions():
    operations = {"sum": numpy.sum, "max": numpy.max, "min": numpy.min, "argmax": numpy.argmax, "argmin": numpy.argmin,
                  "xor": numpy.bitwise_xor.reduce}
    for dtype in (numpy.int32, numpy.float32, numpy.int64, numpy.float16):
        for axis in (0, 1):
            for shape, warps in (((64, 32), 4), ((4, 512), 8)):
                for name, operation in operations.items():
                    if name == "xor" and dtype not in (numpy.int32, numpy.int64):
                        continue
                    x = Array(integers(shape, -9, 10, 3, dtype))
                    out = zeros(shape[1 - axis], dtype)
                    _reduce[(1, )](x, out, M=shape[0], N=shape[1], AXIS=axis, OP=name, num_warps=warps)
                    equal(out.numpy(), operation(x.host, axis=axis).astype(dtype), f"{name} of {x.dtype} along {axis}")


@triton.jit
def _softmax(x, out, n, stride, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, (e / tl.sum(e, 0)).to(out.dtype.element_ty), i < n)


@case()
def softmax():
    for dtype, bound in ((numpy.float32, 2e-6), (numpy.float16, 1e-3), (ml_dtypes.bfloat16, 8e-3)):
        for n, warps in ((781, 4), (32, 1), (2048, 8)):
            x, out = Array(numbers((5, n), 2, dtype)), zeros((5, n), dtype)
            _softmax[(5, )](x, out, n, n, BLOCK=triton.next_power_of_2(n), num_warps=warps)
            e = numpy.exp(x.host.astype(numpy.float64))
            close(out.numpy(), e / e.sum(1, keepdims=True), bound, 1e-7, f"{x.dtype}[{n}]")


@triton.jit
def _layer_norm(x, out, weight, bias, mean_out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK, ), tl.float32)
    squares = tl.zeros((BLOCK, ), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + i, i < n, other=0.0).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total, 0) / n
    scale = tl.rsqrt(tl.sum(squares, 0) / n - mean * mean + eps)
    tl.store(mean_out + row, mean)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + i, i < n, other=0.0).to(tl.float32)
        y = (v - mean) * scale * tl.load(weight + i, i < n) + tl.load(bias + i, i < n)
        tl.store(out + row * n + i, y.to(out.dtype.element_ty), i < n)


@case()
def layer_norm():
    for dtype, bound in ((numpy.float32, 1e-5), (ml_dtypes.bfloat16, 1e-2)):
        n = 1151
        x, w, b = Array(numbers((7, n), 1, dtype)), Array(numbers(n, 2)), Array(numbers(n, 3))
        out, mean = zeros((7, n), dtype), zeros(7, numpy.float32)
        _layer_norm[(7, )](x, out, w, b, mean, n, 1e-5, BLOCK=512)
        v = x.host.astype(numpy.float64)
        wanted = (v - v.mean(1, keepdims=True)) / numpy.sqrt(v.var(1, keepdims=True) + 1e-5) * w.host + b.host
        close(out.numpy(), wanted, bound, bound)
        close(mean.numpy(), v.mean(1), 1e-5, 1e-7, "mean")


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def _scan(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr, OP: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + place)
    if OP == "sum":
        v = tl.cumsum(v, AXIS, reverse=REVERSE)
    elif OP == "product":
        v = tl.cumprod(v, AXIS, reverse=REVERSE)
    else:
        a, v = tl.associative_scan((tl.full((M, N), 2, v.dtype), v), AXIS, _affine)
    tl.store(out + place, v)


@case()
def scans():
    def affine(x, axis):
        result, state = numpy.zeros_like(x), 0
        for i in range(x.shape[axis]):
            at = (slice(None), i) if axis else (i, )
            state = state * 2 + x[at]
            result[at] = state
        return result

    for dtype in (numpy.int32, numpy.float32, numpy.int64):
        for axis in (0, 1):
            for reverse in (False, True):
                x, out = Array(integers((16, 128), -3, 4, 2, dtype)), zeros((16, 128), dtype)
                _scan[(1, )](x, out, M=16, N=128, AXIS=axis, REVERSE=reverse, OP="sum")
                ordered = numpy.flip(x.host, axis) if reverse else x.host
                wanted = numpy.cumsum(ordered, axis).astype(dtype)
                equal(out.numpy(), numpy.flip(wanted, axis) if reverse else wanted, f"cumsum of {x.dtype} along {axis}")
        signs = Array(integers((16, 128), 0, 2, 3, dtype) * 2 - 1)
        _scan[(1, )](signs, out, M=16, N=128, AXIS=1, REVERSE=False, OP="product")
        equal(out.numpy(), numpy.cumprod(signs.host, 1).astype(dtype), "cumprod")
    x, out = Array(integers((16, 16), -3, 4)), zeros((16, 16), numpy.int32)
    for axis in (0, 1):
        _scan[(1, )](x, out, M=16, N=16, AXIS=axis, REVERSE=False, OP="affine")
        equal(out.numpy(), affine(x.host, axis), "associative scan")


@triton.jit
def _sort(x, out, top, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DOWN: tl.constexpr):
    r = tl.arange(0, M)[:, None]
    v = tl.load(x + r * N + tl.arange(0, N)[None, :])
    tl.store(out + r * N + tl.arange(0, N)[None, :], tl.sort(v, descending=DOWN))
    tl.store(top + r * K + tl.arange(0, K)[None, :], tl.topk(v, K))


@case()
def sort_and_topk():
    for dtype in (numpy.int32, numpy.float32, numpy.float16, numpy.int8, numpy.int64):
        x, out, top = Array(integers((8, 128), -99, 99, 4, dtype)), zeros((8, 128), dtype), zeros((8, 8), dtype)
        for down in (False, True):
            _sort[(1, )](x, out, top, M=8, N=128, K=8, DOWN=down)
            wanted = numpy.sort(x.host, 1)
            equal(out.numpy(), wanted[:, ::-1].copy() if down else wanted, f"sort of {x.dtype}")
            equal(top.numpy(), wanted[:, :-9:-1].copy(), f"topk of {x.dtype}")


@triton.jit
def _shapes(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.flip(v))
    a, b = tl.split(tl.reshape(v, (N // 2, 2)))
    tl.store(out + N + i, tl.interleave(b, a))
    t = tl.trans(tl.reshape(v, (N // 8, 8)))
    tl.store(out + 2 * N + i, tl.reshape(t, (N, )))
    p = tl.permute(tl.reshape(v, (4, N // 8, 2)), (2, 0, 1))
    tl.store(out + 3 * N + i, tl.reshape(p, (N, )))
    tl.store(out + 4 * N + i, tl.reshape(tl.broadcast_to(tl.sum(tl.reshape(v, (N // 4, 4)), 1)[:, None], (N // 4, 4)), (N, )))
    tl.store(out + 5 * N + i, tl.gather(v, (i * 7 + 3) % N, 0))
    c = tl.cat(a, b, can_reorder=True)
    tl.store(out + 6 * N + i, tl.sort(c))


@case()
def shapes():
    for dtype in (numpy.int32, numpy.int16, numpy.int8, numpy.float64):
        n = 512
        v = integers(n, -50, 50, 5, dtype)
        out = zeros((7, n), dtype)
        _shapes[(1, )](Array(v), out, N=n)
        wanted = [v[::-1], v.reshape(-1, 2)[:, ::-1].ravel(), v.reshape(-1, 8).T.ravel(),
                  v.reshape(4, -1, 2).transpose(2, 0, 1).ravel(), v.reshape(-1, 4).sum(1).repeat(4).astype(dtype),
                  v[(numpy.arange(n) * 7 + 3) % n], numpy.sort(v)]
        equal(out.numpy(), numpy.stack(wanted).astype(dtype), str(numpy.dtype(dtype)))


@triton.jit
def _histogram(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@case()
def histogram():
    for n, bins in ((1024, 16), (2048, 128), (256, 2)):
        x, out = Array(integers(n, 0, bins)), zeros(bins, numpy.int32)
        _histogram[(1, )](x, out, N=n, BINS=bins)
        equal(out.numpy(), numpy.bincount(x.host, minlength=bins).astype(numpy.int32))


@triton.jit
def _gather_rows(table, index, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(index + row)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + row * columns + i, tl.load(table + source * columns + i, i < columns), i < columns)


@case()
def embedding():
    table, index = numbers((50, 300), 6, numpy.float16), integers(31, 0, 50, 7, numpy.int64)
    out = zeros((31, 300), numpy.float16)
    _gather_rows[(31, )](Array(table), Array(index), out, 300, BLOCK=128)
    equal(out.numpy(), table[index])


@triton.jit
def _cross_entropy(logits, labels, losses, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    highest, total = -float("inf"), 0.0
    for start in range(0, n, BLOCK):
        v = tl.load(logits + row * n + start + i, start + i < n, other=-float("inf")).to(tl.float32)
        next_highest = tl.maximum(highest, tl.max(v, 0))
        total = total * tl.exp(highest - next_highest) + tl.sum(tl.exp(v - next_highest), 0)
        highest = next_highest
    label = tl.load(labels + row)
    tl.store(losses + row, tl.log(total) + highest - tl.load(logits + row * n + label).to(tl.float32))


@case()
def cross_entropy():
    x, labels, losses = numbers((9, 1000), 8, ml_dtypes.bfloat16), integers(9, 0, 1000), zeros(9, numpy.float32)
    _cross_entropy[(9, )](Array(x), Array(labels), losses, 1000, BLOCK=256)
    v = x.astype(numpy.float64)
    close(losses.numpy(), numpy.log(numpy.exp(v).sum(1)) - v[range(9), labels], 1e-5)
