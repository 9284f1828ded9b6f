#!/usr/bin/env python3
"""Compiles attention of many shapes, runs it in the simulator and checks.

  validation/sweep_attention.py          a covering subset: every pair of values of two parameters
  validation/sweep_attention.py --full   the cross product
  validation/sweep_attention.py --list   what would run
  validation/sweep_attention.py --target=sm_100a   tiles with tcgen05
  validation/sweep_attention.py --bytes            e4m3 on sm_90a
  validation/sweep_attention.py --latent           values that are elements of keys, on sm_90a

Each result must lie within its bound around attention in fp64, and equal the model of its order bit
for bit where the operation gives one. Each library runs under every schedule of the simulator with
its strict hazard check.
"""
import math
import random
import sys

import sweeping

BATCHES = [1, 2, 3]
QUERIES = [1, 5, 64, 127, 129, 200]
KEYS = [1, 7, 16, 33, 96, 130, 300, 336]
HEADS = [(1, 1), (2, 1), (6, 2)]  # of queries, and of keys and values
# Elements of a head of keys, and of values.
ELEMENTS = [(64, 64), (64, 128), (128, 64), (128, 128), (192, 128), (192, 192), (256, 256), (96, 96), (32, 160)]
TYPE = ["bf16", "f16"]
MASK = ["full", "causal"]
SCALE = ["0.125", "0.001", "1.5"]
BLOCK = [0, 16, 48, 80, 160]  # keys of a block; 0 leaves them to the planner
# Keys of a sequence that are all, or have a length, or lie in pages of so many tokens; packed
# sequences of dynamic sizes, and such queries of a cache; pages with heads in front of tokens.
CACHE = ["", "lengths", 8, 16, 64, "packed", "packed 16", "heads 16", "heads 64"]
SPLITS = [0, 1, 2, 4, 8]  # CTAs that share the keys of a tile; 0 leaves them to the planner
DIST = ["gaussian", "zeros"]
# Keys and values of 16 bits in tiles or warps, or codes: their type, that of scales, the block.
FORMS = {"": None, "warps": None, "nvfp4": ("f4E2M1FN", "f8E4M3FN", 16), "mxfp4": ("f4E2M1FN", "f8E8M0FNU", 32),
         "mxfp8": ("f8E4M3FN", "f8E8M0FNU", 32), "fp8": ("f8E4M3FN", None, 0)}
# Softcaps of scores, keys of a window of a causal mask, sinks of heads and logarithms of sums.
SOFTCAP = ["", "0.5", "30.0"]
WINDOW = [0, 1, 17, 64, 200]
ROWS = ["", "sinks", "lse", "sinks lse", "slopes", "slopes lse"]
GROWTH = [""]  # of a maximum before sums are scaled, in a given order of keys; "" leaves both to the kernel
ORDERED = 64  # keys of a block of a given order, where the plan has none
FACTORS = ["", "one", "heads", "sequences"]  # of keys and values of e4m3 queries
SCHEDULES = sweeping.schedules(1)


def page_of(cache):
    """Tokens of a page; 0 without a cache."""
    return cache if isinstance(cache, int) else int(cache.split()[-1]) if cache[-1:].isdigit() else 0


def is_packed(cache):
    return str(cache).startswith("packed")


def list_of(name, numbers):
    """A constant of i32, which may be a table."""
    shape = f"{len(numbers)}x" + (f"{len(numbers[0])}x" if isinstance(numbers[0], list) else "")
    kind = f"tensor<{shape}i32>"
    return kind, f"  %{name} = arith.constant dense<{numbers}> : {kind}\n"


def offsets_of(generator, sequences, tokens):
    """Offsets of sequences, some of them empty or about a tile. Tokens may lie behind the last."""
    offsets = [0]
    for _ in range(sequences):
        left = tokens - offsets[-1]
        offsets.append(offsets[-1] + min(left, generator.choice((0, 1, 127, 129, left, generator.randint(0, left)))))
    return offsets


def sequences(batches, queries, keys, cache):
    """Lengths of the sequences, pages in any order, and offsets, as operands and definitions."""
    if not cache:
        return "", ""
    generator = random.Random(repr((batches, keys, cache)))
    operands = definitions = ""
    if is_packed(cache):
        kind, definitions = list_of("qo", offsets_of(generator, batches, queries * batches))
        operands = f" query_offsets(%qo : {kind})"
    if cache == "packed":
        kind, more = list_of("ko", offsets_of(generator, batches, keys * batches))
        return operands + f" key_offsets(%ko : {kind})", definitions + more
    lengths = [generator.choice((0, 1, keys, generator.randint(0, keys))) for _ in range(batches)]
    kind, more = list_of("n", lengths)
    of_lengths, definitions = f" lengths(%n : {kind})", definitions + more
    if cache == "lengths":
        return of_lengths, definitions
    of_sequence = -(-keys // page_of(cache))
    pages = list(range(batches * of_sequence))
    generator.shuffle(pages)
    pages[generator.randrange(len(pages))] = generator.choice((-1, len(pages)))  # one that does not exist
    kind, more = list_of("p", [pages[i * of_sequence:(i + 1) * of_sequence] for i in range(batches)])
    order = " heads_first" if str(cache).startswith("heads") else ""
    return f"{of_lengths} pages(%p : {kind}){order}{operands}", definitions + more


def codes_of(form, rows, shared, elements):
    """Arguments and operands of scales, and of factors where there are no scales."""
    code, scale, block = FORMS[form]
    if not scale:
        kind = f"tensor<{shared}xf32>"
        return code, f", %fk: {kind}, %fv: {kind}", f" factors(%fk, %fv : {kind}, {kind})"
    kinds = [f"tensor<{rows}x{count // block}x{scale}>" for count in elements]
    return code, f", %ks: {kinds[0]}, %vs: {kinds[1]}", f" scales(%ks, %vs : {kinds[0]}, {kinds[1]})"


def factors_of(factors, batches, shared):
    """Positive factors of e4m3, as operands and definitions."""
    shape = {"one": "1", "heads": str(shared), "sequences": f"{batches}x{shared}"}.get(factors)
    if not shape:
        return "", ""
    kind = f"tensor<{shape}xf32>"
    numbers = ([[0.25 + (3 * i + j) % 5 for j in range(shared)] for i in range(batches)] if factors == "sequences" else
               [0.25 + j for j in range(shared if factors == "heads" else 1)])
    return f" factors(%fk, %fk : {kind}, {kind})", f"  %fk = arith.constant dense<{numbers}> : {kind}\n"


def program(case, cache="", form="", softcap="", window=0, rows="", growth="", factors="", *, latent=False):
    batches, queries, keys, (heads, shared), (of_keys, of_values), element, mask, scale, *_ = case
    tokens = f"?x{heads}" if is_packed(cache) else f"{batches}x{queries}x{heads}"
    query = f"tensor<{tokens}x{of_keys}x{element}>"
    operands, definitions = sequences(batches, queries, keys, cache)
    page = page_of(cache)
    rows_of_keys = f"{batches * -(-keys // page)}x{page}x{shared}" if page else f"{batches}x{keys}x{shared}"
    if str(cache).startswith("heads"):
        rows_of_keys = f"{batches * -(-keys // page)}x{shared}x{page}"
    elif cache == "packed":
        rows_of_keys = f"?x{shared}"
    code, arguments, scales = element, "", ""
    if FORMS[form]:
        code, arguments, scales = codes_of(form, rows_of_keys, shared, (of_keys, of_values))
    key = f"tensor<{rows_of_keys}x{of_keys}x{code}>"
    value = f"tensor<{rows_of_keys}x{of_values}x{code}>"
    result = f"tensor<{tokens}x{of_values}x{'bf16' if element == 'f8E4M3FN' else element}>"
    if factors:
        scales, more = factors_of(factors, batches, shared)
        definitions += more
    for word, name in (("sinks", "s"), ("slopes", "a")):
        if word in rows:
            kind = f"tensor<{heads}xf32>"
            arguments, operands = arguments + f", %{name}: {kind}", operands + f" {word}(%{name} : {kind})"
    names, results = "%o", result
    if "lse" in rows:
        names, results = "%o, %l", f"{result}, tensor<{tokens}xf32>"
    scores = (f"scale {scale}" + (f" softcap {softcap}" if softcap else "") + (" causal" if mask == "causal" else "")
              + (f" window {window}" if window else "") + (f" order <in_blocks = {case[8] or (Bytes.block(of_values) if element == 'f8E4M3FN' else ORDERED)}, growth = {growth}>" if growth else ""))
    values, name = f", %v: {value}", "v"
    if latent:
        value, values, name, scores = key, "", "k", f"{scores} latent {of_values}"
    return (f"func.func @attention(%q: {query}, %k: {key}{values}{arguments}) -> ({results}) {{\n"
            f"{definitions}  {names} = fp4.attention %q, %k, %{name}{scales}{operands} {scores}\n"
            f"      : {query}, {key}, {value} -> {results}\n"
            f"  return {names} : {results}\n}}\n")


class Tcgen05:
    """Values of parameters that differ for tiles of sm_100a, whose parts have 128 rows."""
    ELEMENTS = [(64, 64), (64, 128), (128, 64), (128, 128), (192, 128), (256, 64)]
    QUERIES = [1, 64, 127, 129, 200, 257]
    BLOCK = [0, 64, 128]
    GROWTH = ["", "0.0", "1.5", "8.0"]

    @staticmethod
    def valid(case):
        _, queries, _, (heads, shared), (_, of_values), _, _, _, block, _, cache, splits, form, *_, growth = case
        parts = 1 if not is_packed(cache) and queries * tile_heads(case) <= 128 else 2
        keys = block or (ORDERED if growth else 0)
        has_room = parts * (keys * 3 // 2 + of_values) <= 512  # columns of tensor memory
        return not splits and not form and has_room and valid(case)


class Bytes:
    """Values of parameters that differ for queries of e4m3."""
    TYPE = ["f8E4M3FN"]
    GROWTH = ["", "0.0"]

    @staticmethod
    def block(of_values):
        """Keys of a block."""
        return 128 if of_values <= 128 else 64

    @staticmethod
    def valid(case):
        *_, block, _, _, splits, form, _, _, _, _, factors = case
        return not block and not splits and not form and not has_half_panels(case) and valid(case[:-1])


class Latent:
    """Values of parameters that differ for values that are elements of keys."""
    QUERIES = [1, 2, 5, 17]
    KEYS = [1, 63, 64, 65, 127, 200]
    HEADS = [(1, 1), (16, 1), (128, 1), (6, 2)]
    ELEMENTS = [(128, 128), (192, 128), (320, 256), (576, 512)]
    CACHE = ["", "lengths", 8, 16, 64, "heads 16", "heads 64"]
    SLICES = [0, 1, 2, 3]

    @staticmethod
    def valid(case):
        batches, queries, keys, (heads, _), (of_keys, of_values), _, mask, _, _, _, _, slices, _, _, window, _, growth = case
        if growth and slices > 1:
            return False
        work = batches * queries * heads * max(keys, 64) * (of_keys + of_values)
        return work < 1 << 24 and slices <= -(-keys // 64) and (mask == "causal" or not window)

    @staticmethod
    def library(case):
        *_, slices, _, softcap, window, rows, growth = case
        plan = [f"--plan=tile_attention, k_slices = {slices}"] if slices else []
        name = "latent_" + sweeping.file_name(*("of".join(map(str, x)) if isinstance(x, tuple) else x or "all" for x in case))
        text = program(case, case[10], "", softcap, window, rows, growth, latent=True)
        return sweeping.Program(name, text, ["--target=sm_90a", *plan], [[f"--dist={case[9]}"]])


def tile_heads(case):
    """Heads of a token that are rows of a tile of tcgen05."""
    _, queries, _, (heads, shared), *_ = case
    together = 1 << (heads // shared - 1).bit_length()
    return together if queries < 128 and not is_packed(case[10]) else 1


def is_small(case):
    """A tile of one warpgroup: few queries, with the heads that share keys."""
    _, queries, _, (heads, shared), *_ = case
    return not is_packed(case[10]) and queries * (1 << (heads // shared - 1).bit_length()) <= 64


def has_half_panels(case):
    """Heads of panels of 64 bytes, which tiles of 16 bits alone have."""
    return any(elements % 64 for elements in case[4])


def is_valid_form(case):
    """A form that has the elements of heads, the queries, the pages and the parts of keys."""
    _, _, keys, _, elements, element, _, _, block, _, cache, splits, form, *_ = case
    if block or cache == 8 or is_packed(cache) or has_half_panels(case) or (splits and splits > -(-keys // 16)):
        return False
    if form in ("warps", "fp8"):
        return True
    return 192 not in elements and (form == "nvfp4" or element == "bf16")


def valid(case):
    batches, queries, keys, (heads, _), (of_keys, of_values), _, mask, _, block, _, cache, splits, form, _, window, *_ = case
    if window and mask != "causal":
        return False
    if form:
        work = batches * queries * heads * keys * (of_keys + of_values)
        return is_valid_form(case) and work < 1 << 24  # a step for a few keys and rows
    if of_values > 128 and block > 80:  # registers have no room for more
        return False
    if splits and (not is_small(case) or of_values % (8 * splits)):
        return False
    if page_of(cache) and block and math.gcd(block, page_of(cache)) < 8:
        return False
    return batches * queries * heads * keys * (of_keys + of_values) < 1 << 26  # the simulator takes seconds for more


def library(case, target):
    batches, queries, keys, (heads, shared), _, _, _, _, block, dist, cache, splits, form, softcap, window, rows, growth, *factors = case
    fields = []
    if form and splits:
        fields.append(f"k_slices = {splits}")
    elif block and target != "sm_90a":
        together = tile_heads(case)
        of_tile = 128 if not is_packed(cache) and queries * together <= 128 else 256
        fields.append(f"tile = [{of_tile}, {block}, {together}]")
    elif block:
        of_tile, together = (64, 1 << (heads // shared - 1).bit_length()) if is_small(case) else (128, 1)
        fields.append(f"tile = [{of_tile}, {block}, {together}]")
    if splits and not form:
        fields.append(f"cluster = [{splits}, 1]")
    family = "warp_attention" if form else "tile_attention"
    is_chosen = fields or form == "warps" or target != "sm_90a"
    plan = [f"--plan={', '.join([family, *fields])}"] if is_chosen else []
    name = sweeping.file_name(*("of".join(map(str, part)) if isinstance(part, tuple) else part or "all"
                                for part in case))
    options = [f"--dist={dist}"]
    if is_packed(cache):
        options.append(f"--dim=a0={batches * queries}")
    if cache == "packed":
        options += [f"--dim={name}={batches * keys}" for name in ("a1", "a2")]
    text = program(case, cache, form, softcap, window, rows, growth, *factors)
    return sweeping.Program(name, text, [f"--target={target}", *plan], [options])


def main():
    parser = sweeping.product_parser(__doc__)
    parser.add_argument("--bytes", action="store_true", help="queries, keys and values of e4m3")
    parser.add_argument("--latent", action="store_true", help="values that are elements of keys")
    options = parser.parse_args()
    target = options.target or "sm_90a"
    parameters = [BATCHES, QUERIES, KEYS, HEADS, ELEMENTS, TYPE, MASK, SCALE, BLOCK, DIST, CACHE,
                  SPLITS, list(FORMS), SOFTCAP, WINDOW, ROWS, GROWTH]
    is_valid = valid
    if target != "sm_90a":
        parameters[1], parameters[4], parameters[8] = Tcgen05.QUERIES, Tcgen05.ELEMENTS, Tcgen05.BLOCK
        parameters[11], parameters[12], parameters[16], is_valid = [0], [""], Tcgen05.GROWTH, Tcgen05.valid
    if options.bytes:
        parameters[5], parameters[8], parameters[11], parameters[12] = Bytes.TYPE, [0], [0], [""]
        parameters[16], is_valid = Bytes.GROWTH, Bytes.valid
        parameters.append(FACTORS)
    if options.latent:
        parameters[1:5] = Latent.QUERIES, Latent.KEYS, Latent.HEADS, Latent.ELEMENTS
        parameters[8], parameters[10:13], is_valid = [0], [Latent.CACHE, Latent.SLICES, [""]], Latent.valid
        parameters[16] = Bytes.GROWTH
    cases = sweeping.cases_of(options.full, parameters, is_valid)
    programs = [Latent.library(case) if options.latent else library(case, target) for case in cases]
    return sweeping.run_gemms(options, programs, SCHEDULES)


if __name__ == "__main__":
    sys.exit(main())
