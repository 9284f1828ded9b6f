#!/usr/bin/env python3
"""Rotations of heads, caches, and gathers of tokens, beside a copy and torch.compile.

  benchmarks/rotations.py pack BUILD FOLDER     compiles the programs for sm_90a into FOLDER
  benchmarks/rotations.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch, verifies each program, times it with a cold L2 beside a copy
of as many bytes, and times the code that torch.compile makes of the same function. A line of JSON
for each program and number of tokens has microseconds.
"""
import os

import kit
import norms

TOKENS = (64, 512, 4096, 16384)
HEAD, HEADS, COLUMNS, POSITIONS, SLOTS = 128, 32, 7168, 4096, 524288
MAPS = f"""#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
#partner = affine_map<(r, c) -> (r, (c + {HEAD // 2}) mod {HEAD})>
#cosine = affine_map<(r, c) -> (r floordiv {HEADS}, c mod {HEAD // 2})>
#sine = affine_map<(r, c) -> (r floordiv {HEADS}, c mod {HEAD // 2} + {HEAD // 2})>
#one = affine_map<(r, c) -> (r, 0)>
"""
HEADS_TYPE = f"tensor<?x{HEAD}xbf16>"
BEGIN = f"""  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x{HEADS * HEAD}xbf16>
  %heads = tensor.expand_shape %x [[0], [1, 2]] output_shape [%t, {HEADS}, {HEAD}] : tensor<?x{HEADS * HEAD}xbf16> into tensor<?x{HEADS}x{HEAD}xbf16>
  %h = tensor.collapse_shape %heads [[0, 1], [2]] : tensor<?x{HEADS}x{HEAD}xbf16> into {HEADS_TYPE}
  %n = tensor.dim %h, %c0 : {HEADS_TYPE}
  %empty = tensor.empty(%n) : {HEADS_TYPE}
  %cs = tensor.gather %table[%positions] gather_dims([0]) : (tensor<{POSITIONS}x{HEAD}xf32>, tensor<?x1xi64>) -> tensor<?x{HEAD}xf32>
"""
NORM = f"""  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%h : {HEADS_TYPE}) outs(%init : tensor<?xf32>) {{
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %e = arith.mulf %f, %f : f32
    %s = arith.addf %acc, %e : f32
    linalg.yield %s : f32
  }} -> tensor<?xf32>
  %y = linalg.generic {{indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%h, %sum, %w : {HEADS_TYPE}, tensor<?xf32>, tensor<{HEAD}xbf16>) outs(%empty : {HEADS_TYPE}) {{
  ^bb0(%v: bf16, %q: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %c = arith.constant {1 / HEAD!r} : f32
    %eps = arith.constant 1.0e-6 : f32
    %ms = arith.mulf %q, %c : f32
    %shifted = arith.addf %ms, %eps : f32
    %rs = math.rsqrt %shifted : f32
    %z = arith.mulf %f, %rs : f32
    %gw = arith.extf %g : bf16 to f32
    %scaled = arith.mulf %z, %gw : f32
    %b = arith.truncf %scaled : f32 to bf16
    linalg.yield %b : bf16
  }} -> {HEADS_TYPE}
"""
ROTATION = f"""  %r = linalg.generic {{indexing_maps = [#all, #partner, #cosine, #sine, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%in, %in, %cs, %cs : {HEADS_TYPE}, {HEADS_TYPE}, tensor<?x{HEAD}xf32>, tensor<?x{HEAD}xf32>) outs(%empty : {HEADS_TYPE}) {{
  ^bb0(%a: bf16, %b: bf16, %co: f32, %si: f32, %o: bf16):
    %half = arith.constant {HEAD // 2} : i32
    %index = linalg.index 1 : index
    %column = arith.index_cast %index : index to i32
    %first = arith.cmpi ult, %column, %half : i32
    %af = arith.extf %a : bf16 to f32
    %bf = arith.extf %b : bf16 to f32
    %minus = arith.negf %bf : f32
    %p = arith.select %first, %minus, %bf : f32
    %u = arith.mulf %af, %co : f32
    %v = arith.mulf %p, %si : f32
    %s = arith.addf %u, %v : f32
    %rounded = arith.truncf %s : f32 to bf16
    linalg.yield %rounded : bf16
  }} -> {HEADS_TYPE}
"""


TOKENS_TYPE = f"tensor<?x{HEADS}x{HEAD}xbf16>"
#: The rotation of tokens, heads and columns: the compiler chooses what is a row.
OF_TOKENS = ROTATION.replace("ins(%in, %in,", "ins(%heads, %heads,").replace("%empty", "%whole").replace(HEADS_TYPE, TOKENS_TYPE).replace(
    "linalg.index 1", "linalg.index 2").replace('["parallel", "parallel"]', '["parallel", "parallel", "parallel"]')
for name in ("all", "partner", "cosine", "sine"):
    OF_TOKENS = OF_TOKENS.replace(f"#{name}", f"#{name}3")
MAPS += f"""#all3 = affine_map<(t, h, c) -> (t, h, c)>
#partner3 = affine_map<(t, h, c) -> (t, h, (c + {HEAD // 2}) mod {HEAD})>
#cosine3 = affine_map<(t, h, c) -> (t, c mod {HEAD // 2})>
#sine3 = affine_map<(t, h, c) -> (t, c mod {HEAD // 2} + {HEAD // 2})>
"""


def quantized(value, columns):
    codes, scales = f"tensor<?x{columns}xf4E2M1FN>", f"tensor<?x{columns // 16}xf8E4M3FN>"
    return codes, scales, (f"  %q, %s = fp4.quantize %{value} {{format = #fp4.format<nvfp4>, recipe = "
                           f"#fp4.recipe<torchao_1level>}} : (tensor<?x{columns}xbf16>) -> ({codes}, {scales})\n")


def scattered(value, name, type):
    whole = type.replace("?", str(SLOTS))
    return whole, (f"  %{name}.e = tensor.empty() : {whole}\n  %{name} = tensor.scatter %{value} into %{name}.e[%slots] "
                   f"scatter_dims([0]) unique : ({type}, {whole}, tensor<?x1xi64>) -> {whole}\n")


def rotation(kind):
    """[norm_]rope and what follows: bf16, nvfp4, or cache (NVFP4 in the slots of a cache)."""
    before, after = kind.rsplit("-", 1)
    arguments = [f"%x: tensor<?x{HEADS * HEAD}xbf16>", f"%table: tensor<{POSITIONS}x{HEAD}xf32>",
                 "%positions: tensor<?x1xi64>"]
    body = BEGIN
    if kind == "rope-bf16":
        body += f"  %whole = tensor.empty(%t) : {TOKENS_TYPE}\n" + OF_TOKENS
        body += (f"  %z = tensor.collapse_shape %r [[0], [1, 2]] : {TOKENS_TYPE} into "
                 f"tensor<?x{HEADS * HEAD}xbf16>\n")
        return function(arguments, body, [("%z", f"tensor<?x{HEADS * HEAD}xbf16>")])
    if before == "norm_rope":
        arguments.append(f"%w: tensor<{HEAD}xbf16>")
        body += NORM
    body += ROTATION.replace("%in", "%y" if before == "norm_rope" else "%h")
    flat = (f"  %back = tensor.expand_shape %r [[0, 1], [2]] output_shape [%t, {HEADS}, {HEAD}] : {HEADS_TYPE} into "
            f"tensor<?x{HEADS}x{HEAD}xbf16>\n  %z = tensor.collapse_shape %back [[0], [1, 2]] : "
            f"tensor<?x{HEADS}x{HEAD}xbf16> into tensor<?x{HEADS * HEAD}xbf16>\n")
    if after == "bf16":
        return function(arguments, body + flat, [("%z", f"tensor<?x{HEADS * HEAD}xbf16>")])
    codes, scales, line = quantized("r", HEAD)
    body += line
    if after == "nvfp4":
        return function(arguments, body, [("%q", codes), ("%s", scales)])
    # The rows of a cache are heads of slots.
    arguments.append("%slots: tensor<?x1xi64>")
    codes, first = scattered("q", "kq", codes)
    scales, second = scattered("s", "ks", scales)
    return function(arguments, body + first + second, [("%kq", codes), ("%ks", scales)])


def gathering(kind):
    """gather-nvfp4, or combine-K: the weighted sum of K rows."""
    matrix = f"tensor<?x{COLUMNS}xbf16>"
    if kind == "gather-nvfp4":
        codes, scales, line = quantized("g", COLUMNS)
        return function([f"%x: {matrix}", "%rows: tensor<?x1xi64>"],
                        f"  %g = tensor.gather %x[%rows] gather_dims([0]) : ({matrix}, tensor<?x1xi64>) -> {matrix}\n" +
                        line, [("%q", codes), ("%s", scales)])
    count = int(kind.rsplit("-", 1)[1])
    numbers = range(count)
    arguments = [f"%x: {matrix}"] + [f"%p{i}: tensor<?x1xi64>" for i in numbers] + \
        [f"%w{i}: tensor<?x1xf32>" for i in numbers]
    body = "  %c0 = arith.constant 0 : index\n  %t = tensor.dim %p0, %c0 : tensor<?x1xi64>\n"
    body += f"  %e = tensor.empty(%t) : {matrix}\n"
    for i in numbers:
        body += (f"  %g{i} = tensor.gather %x[%p{i}] gather_dims([0]) : ({matrix}, tensor<?x1xi64>) -> {matrix}\n")
    body += (f"  %y = linalg.generic {{indexing_maps = [{'#all, ' * count}{'#one, ' * count}#all], iterator_types = "
             f"[\"parallel\", \"parallel\"]}}\n      ins({', '.join(f'%g{i}' for i in numbers)}, "
             f"{', '.join(f'%w{i}' for i in numbers)} : {', '.join([matrix] * count)}, "
             f"{', '.join(['tensor<?x1xf32>'] * count)}) outs(%e : {matrix}) {{\n  ^bb0("
             f"{', '.join(f'%a{i}: bf16' for i in numbers)}, {', '.join(f'%b{i}: f32' for i in numbers)}, %o: bf16):\n")
    last = ""
    for i in numbers:
        body += f"    %f{i} = arith.extf %a{i} : bf16 to f32\n    %m{i} = arith.mulf %f{i}, %b{i} : f32\n"
        if last:
            body += f"    %s{i} = arith.addf {last}, %m{i} : f32\n"
        last = f"%s{i}" if last else f"%m{i}"
    body += f"    %z = arith.truncf {last} : f32 to bf16\n    linalg.yield %z : bf16\n  }} -> {matrix}\n"
    return function(arguments, body, [("%y", matrix)])


def function(arguments, body, results):
    types = ", ".join(type for _, type in results)
    return (f"{MAPS}func.func @rotate({', '.join(arguments)}) -> ({types}) {{\n{body}"
            f"  return {', '.join(name for name, _ in results)} : {types}\n}}\n")


KINDS = ("rope-bf16", "norm_rope-bf16", "rope-nvfp4", "norm_rope-nvfp4", "norm_rope-cache", "gather-nvfp4", "combine-2",
         "combine-8")


def options_of(kind, tokens):
    """The sizes of arguments that are not the tokens."""
    if kind == "norm_rope-cache":
        return [f"--dim=a4={tokens * HEADS}"]
    return []


def pack(build, folder):
    kit.begin(folder, os.path.join(build, "bin", "fp4-run"), __file__, *norms.FILES)
    kit.compile_programs(build, folder, [(f"{kind}_0", rotation(kind) if "rope" in kind else gathering(kind))
                                         for kind in KINDS])


def bytes_of(kind, tokens):
    """Bytes that the program reads and writes, without tables and row numbers."""
    columns = HEADS * HEAD if "rope" in kind else COLUMNS
    if kind.startswith("combine"):
        return tokens * columns * 2 * (1 + int(kind.rsplit("-", 1)[1]))
    return tokens * columns * 2 + (tokens * columns * 2 if kind.endswith("bf16") else tokens * columns * 9 // 16)


def compiled(kind, torch):
    before, after = kind.rsplit("-", 1)

    def rotate(x, w, table, positions):
        heads = x.view(-1, HEADS, HEAD).float()
        if before == "norm_rope":
            heads = (heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + 1e-6) * w.float()).bfloat16().float()
        cos, sin = table[positions].unsqueeze(1).chunk(2, -1)
        one, two = heads.chunk(2, -1)
        return torch.cat((one * cos - two * sin, two * cos + one * sin), -1).bfloat16().view(x.shape)

    def combine(y, rows, weights):
        return (y[rows].float() * weights.unsqueeze(-1)).sum(1).bfloat16()

    torch._dynamo.reset()
    return torch.compile(rotate if "rope" in kind else combine, dynamic=False)


def time_compiled(kind, tokens, flush, torch):
    function = compiled(kind, torch)
    if "rope" in kind:
        x = torch.randn(tokens, HEADS * HEAD, device="cuda").bfloat16()
        arguments = (x, x[0, :HEAD].contiguous(), torch.randn(POSITIONS, HEAD, device="cuda"),
                     torch.randint(POSITIONS, (tokens,), device="cuda"))
    else:
        count = int(kind.rsplit("-", 1)[1])
        arguments = (torch.randn(tokens, COLUMNS, device="cuda").bfloat16(),
                     torch.randint(tokens, (tokens, count), device="cuda"), torch.rand(tokens, count, device="cuda"))
    return norms.time_torch(function, [arguments], flush, torch)


def measure(folder, tokens_of):
    import torch
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for kind in KINDS:
        for tokens in tokens_of:
            if kind == "norm_rope-cache" and tokens * HEADS > SLOTS:
                continue
            row = {"kind": kind, "tokens": tokens, "bytes": bytes_of(kind, tokens),
                   **norms.time_kernels(folder, kind, tokens, 0, *options_of(kind, tokens))}
            if kind.endswith("bf16") or kind.startswith("combine"):
                row["compiled"] = time_compiled(kind, tokens, flush, torch)
            yield row


if __name__ == "__main__":
    norms.run_by_tokens(__doc__, pack, measure, TOKENS)
