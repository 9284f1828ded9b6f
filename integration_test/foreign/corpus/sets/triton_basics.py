"""Elementwise kernels, conversions, mathematics, atomics, random numbers."""
import ml_dtypes
import numpy
import triton
import triton.language as tl
from triton.language.extra import libdevice

from arrays import close, equal, integers, numbers
from cases import case
from device import Array, zeros

SOURCE = "triton-own"
DEFAULTS = {"devices": ("b200", "h200", "rtx5090"), "policies": ("eager", "lazy", "random"),
            "against": "numpy"}


@triton.jit
def _add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@case()
def vector_add():
    for dtype in (numpy.float32, numpy.float16, numpy.float64, ml_dtypes.bfloat16, numpy.int8, numpy.int64):
        for n in (1, 1000, 4096):
            x, y = Array(integers(n, -50, 50, 1, dtype)), Array(integers(n, -50, 50, 2, dtype))
            out = zeros(n, dtype)
            _add[(triton.cdiv(n, 1024), )](x, y, out, n, BLOCK=1024)
            equal(out.numpy(), x.host + y.host, f"{numpy.dtype(dtype)}[{n}]")


@triton.jit
def _strided(x, out, rows, columns, sx, so, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)[:, None]
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, :]
    inside = (r < rows) & (c < columns)
    v = tl.load(x + r * sx + c, inside, other=7, cache_modifier=".cg", eviction_policy="evict_first")
    tl.store(out + c * so + r, v, inside, eviction_policy="evict_last")


@case()
def transpose():
    for dtype in (numpy.int8, numpy.float16, numpy.float32, numpy.int64):
        x, out = Array(integers((100, 77), -99, 99, 3, dtype)), zeros((77, 100), dtype)
        _strided[(4, 3)](x, out, 100, 77, 77, 100, BR=32, BC=32)
        equal(out.numpy(), x.host.T.copy(), str(numpy.dtype(dtype)))


@triton.jit
def _cast(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n).to(out.dtype.element_ty), i < n)


@case()
def casts():
    x = numpy.concatenate([numbers(2000) * 10.0**integers(2000, -9, 4).astype(numpy.float32),
                           numpy.float32([0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 448, 65504, 1e-8, 2**-133])])
    finite = x[numpy.isfinite(x) & (numpy.abs(x) < 100)]
    narrow = (numpy.float16, ml_dtypes.bfloat16, numpy.float64)
    pairs = [(numpy.float32, d) for d in narrow] + [(d, numpy.float32) for d in narrow]
    pairs += [(numpy.float16, numpy.float64), (ml_dtypes.bfloat16, numpy.float16)]
    for source, target in pairs:
        with numpy.errstate(over="ignore"):
            a = Array(x.astype(source))
            out = zeros(len(x), target)
            _cast[(3, )](a, out, len(x), BLOCK=1024)
            through = a.host.astype(numpy.float32) if a.host.dtype.itemsize < 4 else a.host
            equal(out.numpy(), through.astype(target), f"{a.dtype} to {out.dtype}")
    for target in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        for source in (numpy.float32, numpy.float16, ml_dtypes.bfloat16):
            a, out = Array(finite.astype(source)), zeros(len(finite), target)
            _cast[(3, )](a, out, len(finite), BLOCK=1024)
            equal(out.numpy(), a.host.astype(numpy.float32).astype(target), f"{a.dtype} to {out.dtype}")
            back = zeros(len(finite), source)
            _cast[(3, )](out, back, len(finite), BLOCK=1024)
            equal(back.numpy(), out.numpy().astype(source), f"{out.dtype} to {back.dtype}")
    whole = integers(1500, -100, 100)
    for target in (numpy.int8, numpy.int16, numpy.int64, numpy.float16, numpy.float32, numpy.float64):
        for source in (numpy.int32, numpy.int8, numpy.int64, numpy.float32):
            a, out = Array(whole.astype(source)), zeros(len(whole), target)
            _cast[(2, )](a, out, len(whole), BLOCK=1024)
            equal(out.numpy(), whole.astype(target), f"{a.dtype} to {out.dtype}")


@triton.jit
def _unary(x, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n, other=1.0)
    if OP == "exp":
        v = tl.exp(v)
    elif OP == "exp2":
        v = tl.exp2(v)
    elif OP == "log":
        v = tl.log(tl.abs(v) + 0.25)
    elif OP == "log2":
        v = tl.log2(tl.abs(v) + 0.25)
    elif OP == "sin":
        v = tl.sin(v)
    elif OP == "cos":
        v = tl.cos(v)
    elif OP == "sqrt":
        v = tl.sqrt(tl.abs(v))
    elif OP == "sqrt_rn":
        v = tl.sqrt_rn(tl.abs(v))
    elif OP == "rsqrt":
        v = tl.rsqrt(tl.abs(v) + 0.25)
    elif OP == "erf":
        v = tl.erf(v)
    elif OP == "floor":
        v = tl.floor(v)
    elif OP == "ceil":
        v = tl.ceil(v)
    elif OP == "sigmoid":
        v = tl.sigmoid(v)
    elif OP == "tanh":
        v = libdevice.tanh(v)
    elif OP == "expm1":
        v = libdevice.expm1(v)
    elif OP == "log1p":
        v = libdevice.log1p(tl.abs(v))
    elif OP == "cbrt":
        v = libdevice.cbrt(v)
    elif OP == "atan":
        v = libdevice.atan(v)
    elif OP == "rint":
        v = libdevice.rint(v)
    elif OP == "trunc":
        v = libdevice.trunc(v)
    tl.store(out + i, v, i < n)


@case()
def mathematics():
    from math import erf
    references = {
        "exp": numpy.exp, "exp2": numpy.exp2, "log": lambda v: numpy.log(numpy.abs(v) + 0.25),
        "log2": lambda v: numpy.log2(numpy.abs(v) + 0.25), "sin": numpy.sin, "cos": numpy.cos,
        "sqrt": lambda v: numpy.sqrt(numpy.abs(v)), "sqrt_rn": lambda v: numpy.sqrt(numpy.abs(v)),
        "rsqrt": lambda v: 1 / numpy.sqrt(numpy.abs(v) + 0.25), "erf": numpy.vectorize(erf), "floor": numpy.floor,
        "ceil": numpy.ceil, "sigmoid": lambda v: 1 / (1 + numpy.exp(-v)), "tanh": numpy.tanh, "expm1": numpy.expm1,
        "log1p": lambda v: numpy.log1p(numpy.abs(v)), "cbrt": numpy.cbrt, "atan": numpy.arctan, "rint": numpy.rint,
        "trunc": numpy.trunc
    }
    for dtype, bound in ((numpy.float32, 4e-6), (numpy.float64, 1e-14)):
        x = Array((numbers(1000) * 5).astype(dtype))
        for name, reference in references.items():
            if dtype == numpy.float64 and name == "sqrt_rn":
                continue
            out = zeros(1000, dtype)
            _unary[(1, )](x, out, 1000, OP=name, BLOCK=1024)
            close(out.numpy(), reference(x.host.astype(numpy.float64)), bound, bound, f"{name} in {x.dtype}")


@triton.jit
def _integer(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, i < n, other=1), tl.load(y + i, i < n, other=1)
    s = (b & 7).to(a.dtype)
    tl.store(out + 0 * n + i, a // b, i < n)
    tl.store(out + 1 * n + i, a % b, i < n)
    tl.store(out + 2 * n + i, (a << s) ^ (a >> s), i < n)
    tl.store(out + 3 * n + i, tl.minimum(a, b) | ~tl.maximum(a, b), i < n)
    tl.store(out + 4 * n + i, tl.where((a < b) & (b != 3), -a, tl.abs(b)), i < n)
    tl.store(out + 5 * n + i, tl.clamp(a.to(tl.float32), -5.0, 5.0).to(a.dtype) * b, i < n)


@case()
def integer_arithmetic():
    for dtype in (numpy.int32, numpy.int64, numpy.int16):
        n, bits = 900, numpy.dtype(dtype).itemsize * 8
        a, b = integers(n, -2**(bits - 2), 2**(bits - 2), 4, dtype), integers(n, 1, 100, 5, dtype)
        out = zeros((6, n), dtype)
        _integer[(1, )](Array(a), Array(b), out, n, BLOCK=1024)
        s, truncated = b & 7, numpy.fix(a.astype(object) / b) if bits == 16 else None
        quotient = numpy.where(a < 0, -(-a // b), a // b).astype(dtype)
        wanted = numpy.stack([quotient, a - quotient * b, (a << s) ^ (a >> s), numpy.minimum(a, b) | ~numpy.maximum(a, b),
                              numpy.where((a < b) & (b != 3), -a, numpy.abs(b)), (numpy.clip(a, -5, 5) * b)])
        equal(out.numpy(), wanted.astype(dtype), str(numpy.dtype(dtype)))


@triton.jit
def _umulhi(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


@case()
def high_products():
    for dtype, bits in ((numpy.uint32, 32), (numpy.uint64, 64)):
        a, b = (numpy.random.default_rng(s).integers(0, 2**bits, 256, dtype) for s in (1, 2))
        out = zeros(256, dtype)
        _umulhi[(1, )](Array(a), Array(b), out, BLOCK=256)
        equal(out.numpy(), numpy.array([(int(p) * int(q)) >> bits for p, q in zip(a, b)], dtype), str(a.dtype))


@triton.jit
def _fma(x, y, z, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    tl.store(out + i, tl.fma(a, b, c))
    tl.store(out + BLOCK + i, tl.div_rn(a, b))
    tl.store(out + 2 * BLOCK + i, tl.fdiv(a, b))
    tl.store(out + 3 * BLOCK + i, libdevice.pow(tl.abs(a), b))
    tl.store(out + 4 * BLOCK + i, libdevice.fmod(a, b))


@case()
def binary_functions():
    a, b, c = (numbers(512, s) * 3 for s in (1, 2, 3))
    out = zeros((5, 512), numpy.float32)
    _fma[(1, )](Array(a), Array(b), Array(c), out, BLOCK=512)
    found = out.numpy()
    equal(found[0], (a.astype(numpy.longdouble) * b + c).astype(numpy.float32), "fma")
    equal(found[1], a / b, "div_rn")
    close(found[2], a / b, 1e-6, what="fdiv")
    close(found[3], numpy.abs(a.astype(numpy.float64))**b, 2e-6, what="pow")
    equal(found[4], numpy.fmod(a, b), "fmod")


@triton.jit
def _atomics(values, index, sums, highest, bits, swapped, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    at, v = tl.load(index + i, m, other=0), tl.load(values + i, m, other=0)
    tl.atomic_add(sums + at, v, m, sem="relaxed")
    tl.atomic_max(highest + at, v, m)
    tl.atomic_min(highest + 16 + at, v, m, scope="sys")
    one = v.to(tl.int32)
    tl.atomic_or(bits + at, one, m)
    tl.atomic_and(bits + 16 + at, one, m)
    tl.atomic_xor(bits + 32 + at, one, m)
    old = tl.atomic_xchg(swapped + i, i, m)
    tl.store(swapped + n + i, old, m)


@case()
def atomics():
    n = 1000
    at, v = integers(n, 0, 16, 6), integers(n, -1000, 1000, 7)
    reduce = lambda f, start: numpy.array([f.reduce(v[at == k], initial=start) for k in range(16)], numpy.int32)
    for dtype in (numpy.int32, numpy.float32):
        sums, highest = zeros(16, dtype), Array(numpy.full(32, 0, dtype))
        bits, swapped = Array(numpy.repeat(numpy.int32([0, -1, 0]), 16)), zeros(2 * n, numpy.int32)
        _atomics[(2, )](Array(v.astype(dtype)), Array(at), sums, highest, bits, swapped, n, BLOCK=512)
        equal(sums.numpy(), reduce(numpy.add, 0).astype(dtype), "add")
        equal(highest.numpy()[:16], reduce(numpy.maximum, 0).astype(dtype), "max")
        equal(highest.numpy()[16:], reduce(numpy.minimum, 0).astype(dtype), "min")
        equal(bits.numpy(), numpy.concatenate([reduce(numpy.bitwise_or, 0), reduce(numpy.bitwise_and, -1),
                                               reduce(numpy.bitwise_xor, 0)]), "bits")
        equal(swapped.numpy(), numpy.int32([*range(n), *[0] * n]), "exchange")


@triton.jit
def _narrow_sums(values, index, sums, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sums + tl.load(index + i), tl.load(values + i))


@case()
def atomic_sums_of_halves():
    at, v = integers(1024, 0, 64, 8), integers(1024, -4, 5, 9)
    for dtype in (numpy.float16, ml_dtypes.bfloat16, numpy.float64):
        sums = zeros(64, dtype)
        _narrow_sums[(2, )](Array(v.astype(dtype)), Array(at), sums, BLOCK=512)
        equal(sums.numpy(), numpy.array([v[at == k].sum() for k in range(64)]).astype(dtype), str(sums.dtype))


@triton.jit
def _contiguous_sums(values, sums, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(sums + i, tl.load(values + tl.program_id(0) * BLOCK + i))


@case()
def atomic_sums_of_vectors():
    """Contiguous lanes become vector atomics (.v2, .v4, .v8) where the target has them."""
    for dtype in (numpy.float32, numpy.float16, ml_dtypes.bfloat16):
        v, sums = integers((5, 2048), -8, 9, 11), zeros(2048, dtype)
        _contiguous_sums[(5, )](Array(v.astype(dtype)), sums, BLOCK=2048)
        equal(sums.numpy(), v.sum(0).astype(dtype), str(sums.dtype))


@triton.jit
def _locked(lock, count, values, BLOCK: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    i = tl.arange(0, BLOCK)
    tl.store(values + i, tl.load(values + i) + 1)
    tl.store(count, tl.load(count) + tl.program_id(0))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@case()
def spin_lock():
    lock, count, values = zeros(1, numpy.int32), zeros(1, numpy.int32), zeros(128, numpy.float32)
    _locked[(40, )](lock, count, values, BLOCK=128)
    equal(count.numpy(), numpy.full(1, 780, numpy.int32))
    equal(values.numpy(), numpy.full(128, 40, numpy.float32))


def philox(seed, offset):
    """Philox 4x32-10 with key (seed, 0) and counter (offset, 0, 0, 0)."""
    c = [offset.astype(numpy.uint64)] + [numpy.zeros_like(offset, numpy.uint64)] * 3
    k0, k1, low = seed & 0xFFFFFFFF, seed >> 32, numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(b >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k0), b & low,
             (a >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [part.astype(numpy.uint32) for part in c]


@triton.jit
def _dropout(x, out, raw, seed, n, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, m) / (1 - p), 0.0), m)
    tl.store(raw + i, tl.randint(seed, i), m)


@case()
def dropout():
    n, seed = 3000, 1234567
    x, out, raw = Array(numbers(n)), zeros(n, numpy.float32), zeros(n, numpy.uint32)
    _dropout[(3, )](x, out, raw, seed, n, 0.25, BLOCK=1024)
    bits = philox(seed, numpy.arange(n))[0]
    equal(raw.numpy(), bits, "random words")
    signed = bits.view(numpy.int32)
    uniform = numpy.where(signed < 0, -signed - 1, signed).astype(numpy.float32) * numpy.float32(4.6566127342e-10)
    kept = uniform > numpy.float32(0.25)
    equal(out.numpy() != 0, kept, "kept")
    close(out.numpy(), numpy.where(kept, x.host / 0.75, 0), 3e-7)


@triton.jit
def _print(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.device_print("value", v)
    tl.device_assert(v < 100, "too large")


@case()
def prints_and_assertions():
    _print[(1, )](Array(numpy.arange(8, dtype=numpy.int32)), BLOCK=8, num_warps=1, debug=True)


@triton.jit
def _assembly(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise("""{ .reg .b32 t; prmt.b32 t, $1, 0, 0x0123; add.u32 $0, t, 1; }""", "=r,r",
                                  [tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + i, v)


@case()
def inline_assembly():
    x, out = Array(integers(256, 0, 2**31 - 1)), zeros(256, numpy.int32)
    _assembly[(1, )](x, out, BLOCK=256)
    equal(out.numpy(), x.host.byteswap() + numpy.int32(1))


@triton.jit
def _loops(out, n, BLOCK: tl.constexpr):
    """Collatz steps: a data-dependent loop, lanes of one program together."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v, steps = i + 1, tl.zeros((BLOCK, ), tl.int32)
    while tl.max(v, 0) > 1:
        steps += tl.where(v > 1, 1, 0)
        v = tl.where(v > 1, tl.where(v % 2 == 0, v // 2, 3 * v + 1), v)
    tl.store(out + i, steps, i < n)


@case()
def loops():
    out = zeros(200, numpy.int32)
    _loops[(2, )](out, 200, BLOCK=128)

    def steps(v):
        count = 0
        while v > 1:
            v, count = v // 2 if v % 2 == 0 else 3 * v + 1, count + 1
        return count

    equal(out.numpy(), numpy.int32([steps(v) for v in range(1, 201)]))
