"""The chains of norms.py as functions of PyTorch, for torch.compile.

Codes and scales are rounded as the recipes say, but for halfway values: no result is compared. The
codes of FP4 are packed two to a byte, and scales are linear.
"""

#: The amax of NVFP4 that a program is given.
AMAX = 16.0
#: What may follow a chain, but for its elements in bf16.
AFTER = ("nvfp4", "mxfp4", "mxfp8", "fp8_row", "fp8_block")


def packed(z, torch):
    """E2M1 codes of `z`, two to a byte."""
    m = z.abs()
    steps = (m > 0.25, m >= 0.75, m > 1.25, m >= 1.75, m > 2.5, m >= 3.5, m > 5.0)
    codes = sum(step.to(torch.uint8) for step in steps) | ((z < 0).to(torch.uint8) << 3)
    pairs = codes.view(*codes.shape[:-1], codes.shape[-1] // 2, 2)
    return pairs[..., 0] | (pairs[..., 1] << 4)


def of_nvfp4(y, torch):
    blocks = y.view(y.shape[0], y.shape[1] // 16, 16)
    stretch = 2688.0 / AMAX
    scales = (blocks.abs().amax(-1, keepdim=True) / 6.0 * stretch).clamp(max=448.0).to(torch.float8_e4m3fn)
    return packed((blocks * (stretch / scales.float())).view(y.shape), torch), scales


def of_powers(y, largest, codes_of, torch):
    """Blocks of 32 under a power of two; `largest` is the exponent of the largest element."""
    blocks = y.view(y.shape[0], y.shape[1] // 32, 32)
    exponents = (blocks.abs().amax(-1, keepdim=True).view(torch.int32) >> 23) - largest
    factors = ((254 - exponents.clamp(0, 254)) << 23).view(torch.float32)
    return codes_of((blocks * factors).view(y.shape)), exponents.to(torch.uint8)


def of_fp8(y, block, torch):
    blocks = y.view(y.shape[0], y.shape[1] // block, block)
    scales = blocks.abs().amax(-1, keepdim=True) / 448.0
    return (blocks / scales).view(y.shape).to(torch.float8_e4m3fn), scales


def quantized(y, after, torch):
    """The results of what follows a norm: `after` as norms.program has it."""
    if after == "bf16":
        return y
    wide = y.float()
    if after == "nvfp4":
        return of_nvfp4(wide, torch)
    if after == "mxfp4":
        return of_powers(wide, 2, lambda z: packed(z, torch), torch)
    if after == "mxfp8":
        return of_powers(wide, 8, lambda z: z.clamp(-448.0, 448.0).to(torch.float8_e4m3fn), torch)
    return of_fp8(wide, wide.shape[1] if after == "fp8_row" else 128, torch)


def compiled(kind, torch):
    """The function of a kind, which PyTorch compiles for each number of rows."""
    norm, after = kind.rsplit("-", 1)

    def function(x, w, *residual):
        h = x + residual[0] if residual else x
        f = h.float()
        if norm == "layer":
            f = f - f.mean(-1, keepdim=True)
        y = (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + 1e-5) * w.float()).bfloat16()
        result = quantized(y, after, torch)
        return (h, result) if residual else result

    torch._dynamo.reset()
    return torch.compile(function, dynamic=False)


def arguments(kind, rows, columns, torch):
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    return [x, x[0].contiguous(), *([x.flip(0)] if kind.startswith("add_rms") else [])]
