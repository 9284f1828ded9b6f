"""Every kind of kernel that the compiler emits, as the smallest program whose rings wrap around.

Programs that change kernels, or run them in many orders, walk over this list
(validation/mutate_all.py, validation/order_table.py): a kind that is added here is added there.
Some programs would have too many orders if their accumulators wrapped around too: for these,
mutants change a larger program.
"""
import collections
import json
import pathlib
import re

import recipes
import sweep
import sweep_attention
import sweep_fp8
import sweep_groups
import sweep_results
import sweep_rows
import sweep_weights
import sweep_wide
from sweep_quantize import Case as QuantizeCase

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: `shape` is what the compiler and fp4-run are given. If there are `rows`, M is dynamic, and
#: fp4-run is given each of them; the first `explored` ones, or all, run in every order. `larger` is
#: a program of the same kind with more tiles. If the program has an argument `o`, `offsets` has its
#: possible values by name, each with the error that it gives, or None. If a kernel branches on its
#: operands, `dists` are the distributions of fp4-run that are run.
Kind = collections.namedtuple("Kind", "name text target shape options rows larger offsets explored dists",
                              defaults=[None, (), None, None, None, None, ()])
BOTH = ["sm_100a", "sm_90a"]
NEAR = "nearest_even"
RING = "stages = 2"
#: Scales of MXFP4 up to 8, and some above 16 in most k tiles: two ways of code.
POWERS = ("gaussian", "large")


def on(sms, plan=""):
    return [f"--sms={sms}", *[f"--plan=tile_gemm, {plan}"] * bool(plan)]


def tcgen05(name, text, blocks=1, plan="", shape=None):
    return Kind(name, text, "sm_100a", shape, on(blocks, plan))


def wgmma(name, text, blocks=1, plan=RING, shape=None, rows=None):
    return Kind(name, text, "sm_90a", shape, on(blocks, plan), rows)


def planned(text, plan):
    """A GEMM without a plan, with this one."""
    given = f"fp4.plan = #fp4.plan<tile_gemm, {plan}>"
    matmul = re.search(r"(= fp4\.matmul [^{\n]*?)(?: \{(.*)\})?(?=\n      : )", text)
    attributes = ", ".join(filter(None, [matmul[2], given]))
    return f"{text[:matmul.start()]}{matmul[1]} {{{attributes}}}{text[matmul.end():]}"


def gemm_text(plan, m, n, k=1024, fmt="nvfp4"):
    """A GEMM of operands of 4 bits."""
    return planned(sweep.program(fmt, "bf16", "fp4", "chosen", m, n, k), plan)


def gemm(tile, fmt="nvfp4"):
    """A GEMM of fp4 operands, of 6 k tiles. A tile of 256 columns leaves room for 3 stages, which
    would have the same phase in each tile."""
    facts = recipes.FORMATS[fmt]
    text = (ROOT / "test/Target/mutations.mlir").read_text()
    text = text[text.index("!lhs"):]
    ring = f", {RING}" if tile == 256 else ""
    text = text.replace("tile = [128, 64, 256]", f"tile = [128, {tile}, 256]{ring}")
    text = text.replace("nvfp4", fmt)
    text = re.sub(r"\b64x(\d+)x", rf"{tile}x\1x", text).replace("x64xbf16", f"x{tile}xbf16")
    return text.replace("x96xf8E4M3FN", f"x{1536 // facts.block}x{facts.scale}")


def lanes(k, tile):
    """A GEMM of FP8 with f32 scales, whose sums are in tensor memory for each block of K."""
    text = sweep_fp8.program("bf16", "fp8", "none", "chosen", "one", "?", 264, k)
    return planned(text, f"tile = [128, {tile}, 128], stages = 2")


def weights(element, packed, split, tile, n, k, plans="wgmma", m="?", fmt=None):
    """A GEMM of floats, e4m3 or fp4, and of weights."""
    fmt = fmt or ("mxfp4" if element == "f8E4M3FN" else "nvfp4")
    return sweep_weights.program(element, fmt, "bf16", packed, "none", split, tile, n, k, m, plans)


def told(kind):
    """The rows of groups as an argument of the larger program: once right, and once decreasing."""
    text = kind.larger or kind.text
    constant = re.search(r"  %o = arith\.constant dense<(.*)> : (tensor<\w+>)\n", text)
    right = json.loads(constant[1])
    text = text.replace(constant[0], "")
    text = text.replace(") -> ", f", %o: {constant[2]} {{fp4.name = \"o\"}}) -> ", 1)
    are_ranges = isinstance(right[-1], list)
    begin = right[-1][0] if are_ranges else right[-2]
    wrong = [*right[:-1], [begin, begin - 1] if are_ranges else begin - 1]
    group = len(right) - (1 if are_ranges else 2)
    error = f"must not decrease, but group {group} begins at row {begin} and ends at row {begin - 1}"
    return kind._replace(larger=text, offsets={"right": (right, None), "wrong": (wrong, error)})


def quantizer(target, *case):
    return QuantizeCase((target, "transformer_engine", "bf16", *case)).program()


def of_one_block():
    """9 tiles for 2 CTAs, the last tile not whole: every ring wraps around."""
    for name, text in {"NVFP4 GEMM, 64 columns": gemm(64),
                       "NVFP4 GEMM, 192 columns (two sets of scales)": gemm(192),
                       "NVFP4 GEMM, 256 columns (overlapped accumulators)": gemm(256),
                       "MXFP4 GEMM, 128 columns": gemm(128, "mxfp4")}.items():
        yield tcgen05(name, text, 2, shape=1060)
    for name, k, tile in (("FP8 with f32 scales in tiles", 1024, 128),
                          ("FP8 with f32 scales, two warpgroups", 1040, 256)):
        yield tcgen05(name, lanes(k, tile), 2, shape=300)


def pairs():
    """A pair of CTAs has 3 x 2 tiles where they have 256 rows, each of 4 k tiles."""
    for columns, what in ((128, ""), (192, ", two sets of scales"),
                          (256, ", overlapped accumulators")):
        plan = f"pair, tile = [256, {columns}, 256], store = tma"
        yield tcgen05(f"NVFP4 GEMM, pair of 256 x {columns}{what}",
                      gemm_text(plan, 600, 2 * columns), 2)
    for store in ("tma", "direct"):
        text = gemm_text(f"pair, tile = [128, 256, 256], store = {store}", 300, 256)
        yield tcgen05(f"NVFP4 GEMM, pair of 128 x 256, store {store}", text, 2)


def clusters():
    """Each cluster has tiles for six rounds of its CTAs, of 3 k tiles in a ring of 2 stages: the
    accumulators have up to 4 stages. The last four kinds have two rounds, and six if they are
    larger."""
    def cluster(what, plan, m, n, blocks, times=1):
        small, larger = (gemm_text(f"{plan}, {RING}", rows, n, 768) for rows in (m, times * m))
        kind = tcgen05(f"NVFP4 GEMM, {what}", small, blocks)
        return kind._replace(larger=larger) if times > 1 else kind

    tile, wide, half = (f"tile = [{size}, 256]" for size in ("128, 64", "256, 64", "128, 256"))
    for m, n in ((2, 1), (1, 2), (2, 2), (4, 1)):
        yield cluster(f"cluster of {m} x {n}", f"cluster = [{m}, {n}], {tile}",
                      768 * m, 64 * n, m * n)
    yield cluster("cluster of 16 x 1", "cluster = [16, 1], tile = [128, 128, 256]", 4096, 128, 16, 3)
    for m, n in ((2, 2), (4, 1)):
        yield cluster(f"pairs in a cluster of {m} x {n}", f"pair, cluster = [{m}, {n}], {wide}",
                      768 * m, 64 * n, m * n)
    yield cluster("pairs in a cluster of 4 x 2", f"pair, cluster = [4, 2], {wide}", 1024, 256, 8, 3)
    yield cluster("half pairs in a cluster of 2 x 2", f"pair, cluster = [2, 2], {half}",
                  256, 512, 4, 3)
    yield cluster("cluster of 2 x 2 that may fall back on 2 x 1",
                  f"pair, cluster = [2, 2], fallback = [2, 1], {wide}", 512, 256, 8, 3)


def schedules():
    taken = "schedule = #pipe.cluster_launch<along_m"
    for what, plan, m, n, blocks in (
            ("work taken over", f"tile = [128, 64, 256], {taken}>", 384, 64, 1),
            ("work of pairs taken over", f"pair, tile = [256, 64, 256], {taken} depth 2>",
             768, 64, 2),
            ("results stored by TMA", "tile = [128, 128, 256], store = tma", 384, 128, 1),
            ("an epilogue of eight warps",
             "tile = [128, 128, 256], store = tma, epilogue_warps = 8", 384, 128, 1),
            ("one warp multiplies and copies scales",
             "tile = [128, 64, 256], mma_warps = 1", 384, 64, 1),
            ("one warp of a pair multiplies and copies scales",
             "pair, tile = [256, 192, 256], store = tma, mma_warps = 1", 768, 192, 2),
            ("swapped operands", "route = <orientation = swapped>, tile = [128, 16, 256]", 16, 768, 1)):
        kind = tcgen05(f"NVFP4 GEMM, {what}", gemm_text(f"{plan}, {RING}", m, n, 768), blocks)
        larger = gemm_text(f"{plan}, {RING}", 2 * m, n, 768)
        if "pairs" in what:
            text = kind.text.replace(f"tensor<{m}x", "tensor<?x")
            yield kind._replace(text=text, rows=(m, 2 * m), explored=1)
        else:
            grows = "taken over" in what or "one warp" in what
            yield kind._replace(larger=larger if grows else None)
    # Two CTAs share one tile: each of its four warps may be the first to count. With an even number
    # of tiles in a workspace, one CTA would have both partial sums of each. Behind the last rows,
    # which split a warp, comes another tile.
    for form, what in (("split", "split-K in a workspace"), ("stream", "stream-K"),
                       ("groups", "groups"), ("offsets", "groups of the device"),
                       ("threads", "gemv")):
        whole = form in ("split", "stream")
        rows = (3, 3, 3) if form == "threads" else (128,) if whole else (130, 0, 1)
        text = shared_out(form, rows)
        columns = {"split": 320, "stream": 192}.get(form, 64)
        larger = shared_out(form, (300,) if whole else (1290, 0, 1), columns)
        plan = {"split": f"reduction = workspace, {RING}", "threads": ""}.get(form, RING)
        kind = tcgen05(f"NVFP4 GEMM, {what}", text, 2, plan)
        kind = kind if form == "threads" else kind._replace(larger=larger)
        yield told(kind) if form == "offsets" else kind


def shared_out(form, rows, n=64, split=2):
    """A GEMM whose rows are those of groups, or whose K is cut into ranges."""
    text = sweep_groups.program(form, rows, n, 1312, "nvfp4", "bf16", "none", "chosen")
    return text.replace("split_k = 6", f"split_k = {split}")


def joins():
    """Clusters reduce the partial sums of a tile, in two turns, one or three; of three CTAs the
    last has less. Rows of swapped operands are static."""
    for what, plan, m, blocks, split in (
            ("three CTAs", "tile = [128, 64, 256]", 256, 3, 3),
            ("two pairs", "pair, tile = [256, 64, 256]", 512, 4, 2),
            ("two CTAs with swapped operands", "route = <orientation = swapped>, tile = [128, 16, 256]", 16, 2, 2)):
        swap = "orientation = swapped" in plan
        text = shared_out("split", (m,), 256 if swap else 64, split)
        kind = tcgen05(f"NVFP4 GEMM, split-K of {what} in a cluster", text, blocks,
                       f"{plan}, reduction = cluster, {RING}")
        if swap:
            yield kind._replace(larger=shared_out("split", (m,), 768, split))
        else:
            yield kind._replace(text=text.replace(f"tensor<{m}x", "tensor<?x"), rows=(m, m // 2, 3 * m // 2))


def epilogues():
    """Derived results, and elements of 8 and 6 bits; K = 96 of sm_103a."""
    for dual, result, outputs, amax in (("dual", "none", "rowwise", ""),
                                        ("one", "nvfp4", "both", ""),
                                        ("dual", "mxfp4", "rowwise", "amax")):
        text, larger = (sweep_results.program(("nvfp4", dual, result, outputs, "tiled", amax, "kept",
                                               "bf16", rows, 64, 768, "chosen"))
                        for rows in ("160", "672"))
        what = ["dual GEMM with a gate" if dual == "dual" else "bias"]
        what += [f"{result} codes {outputs}"] * (result != "none") + ["amax"] * bool(amax)
        kind = tcgen05("NVFP4 GEMM, " + ", ".join(what), text, 1, RING)
        yield kind._replace(larger=larger)
    for lhs, rhs in (("mxfp8_e4m3", "mxfp8_e4m3"), ("mxfp8_e4m3", "mxfp4"),
                     ("mxfp6_e2m3", "mxfp6_e2m3")):
        text = sweep_wide.program(lhs, rhs, "bf16", "codes", "none", "64", 260, 64, 512)
        yield tcgen05(f"{lhs} x {rhs} GEMM", text, 1, RING)
        text = sweep_wide.program(lhs, rhs, "bf16", "codes", "none", "warps_64x64", 192, 64, 512)
        yield Kind(f"{lhs} x {rhs} GEMM by mma.sync", text, "sm_120a", None, on(1, RING))
    long = sweep.program("nvfp4", "bf16", "fp4", "k96_64", 600, 64, 2400)
    yield Kind("NVFP4 GEMM, K = 96", long, "sm_103a", None, on(2, RING))
    wide = sweep.program("nvfp4", "bf16", "fp4", "k96_256", 600, 512, 2400)
    yield Kind("NVFP4 GEMM, K = 96, 256 columns", wide, "sm_103a", None, on(2))


def hopper():
    tall = f"tile = [128, 128, 128], {RING}"
    converted = sweep.program("nvfp4", "bf16", "fp4", "converted", 300, 128, 512)
    yield wgmma("NVFP4 GEMM, converted", converted, plan=tall)
    few = sweep.program("nvfp4", "bf16", "fp4", "few", 16, 384, 512)
    yield wgmma("NVFP4 GEMM, converted, swapped", few)
    yield wgmma("NVFP4 GEMM, pre-dequantized, swapped",
                sweep.program("nvfp4", "bf16", "fp4", "few_ahead", 16, 384, 512))
    # The last 12 of 300 rows are stored by some of the threads that exchanged them.
    many = sweep.program("mxfp4", "bf16", "fp4", "converted_ahead", 300, 128, 512)
    yield wgmma("MXFP4 GEMM, pre-dequantized", many)
    for lhs, rhs in (("mxfp8_e4m3", "mxfp8_e4m3"), ("mxfp8_e4m3", "mxfp4")):
        text = sweep_wide.program(lhs, rhs, "bf16", "codes", "none", "chosen", 260, 128, 512)
        yield wgmma(f"{lhs} x {rhs} GEMM, converted", text, plan=tall)
    for form, what in (("one", ""), ("split", ", split-K in a cluster"), ("groups", ", groups"),
                       ("offsets", ", groups of the device"), ("ranges", ", masked groups")):
        text = sweep_fp8.program("bf16", "fp8", "none", "64x56", form, 130, 56, 640)
        kind = wgmma(f"FP8 with f32 scales by wgmma{what}", text, 2 if form == "split" else 1)
        yield told(kind) if form in ("offsets", "ranges") else kind
    strided = sweep_fp8.program("bf16", "fp8", "none", "64x56", "one", 130, 56, 640,
                                " {fp4.strided}")
    yield wgmma("FP8 with f32 scales by wgmma, strided rows", strided)
    stored = sweep_fp8.program("bf16", "fp8", "none", "stored", "one", 600, 128, 2048)
    # Four k tiles are written out: of two stages each of them would always have the same phase.
    yield wgmma("FP8 with f32 scales by wgmma, results stored by TMA", stored, 1, "stages = 3")


def hopper_weights():
    """5 rows: of 8 columns of an instruction, some lanes have rows that exist and others do not. A
    tall tile is stored in parts of 32 rows, each of which is the last one once; where it is whole,
    no zeros are written before the loads. Prepacked weights have a second tile of rows, which
    overwrites the zeros of the first."""
    ends = (*range(5, 256, 32), 256)
    for split, what in ((1, ""), (2, ", split-K in a cluster")):
        for element, packed in (("bf16", "plain"), ("bf16", "prepacked"),
                                ("f8E4M3FN", "prepacked")):
            # Each warp that reduces in a workspace counts: 2^8 orders, of the fewest steps.
            joins = packed == "plain" and split == 2
            size = (128, 768) if joins else (384, 1024)
            tile = "8" if packed == "prepacked" else "chosen"
            text = weights(element, packed, split, tile, *size)
            where = what.replace("cluster", "workspace") if joins else what
            fmt = "mxfp4" if element == "f8E4M3FN" else "nvfp4"
            rows = ends if packed == "plain" else (5, 13)
            yield wgmma(f"{packed} {fmt} weights x {element}{where}", text, split, rows=rows)
    text = weights("bf16", "prepacked", 1, "16", 384, 1024, fmt="mxfp4")
    yield wgmma("prepacked mxfp4 weights x bf16", text, rows=(5, 21))._replace(dists=POWERS)
    broad = weights("bf16", "prepacked", 1, "128x256", 256, 768, fmt="mxfp4")
    yield wgmma("prepacked mxfp4 weights x bf16, tiles of 128 x 256", broad, 1, "stages = 3", 130)._replace(dists=POWERS)
    scaled = weights("f4E2M1FN", "prepacked", 2, "8", 384, 1024)
    yield wgmma("prepacked nvfp4 weights x nvfp4, split-K in a cluster", scaled, 2, rows=(5, 13))
    # Four k tiles are written out, as above.
    ahead = weights("f8E4M3FN", "prepacked", 1, "128ahead", 256, 1024)
    yield wgmma("prepacked mxfp4 weights x f8E4M3FN, pre-dequantized", ahead, 1, "stages = 3", 130)
    for split, what in ((1, ""), (2, ", split-K in a cluster")):
        fast = weights("f8E4M3FN", "fast", split, "8", 384, 1024)
        yield wgmma(f"prepacked mxfp4 weights x f8E4M3FN, fast accumulation{what}", fast, split, rows=(5, 13))
    # The second tile of rows is not whole, which splits the warps that store it.
    shared = weights("bf16", "prepacked", 1, "32", 384, 1024, m=37)
    shared = shared.replace("split_k = 1", "stream_k = [2, 32, 128]")
    yield wgmma("prepacked nvfp4 weights x bf16, stream-K", shared, 2)
    for element, of, packed in (("f4E2M1FN", "nvfp4", "prepacked"), ("bf16", "mxfp4", "plain"), ("f8E4M3FN", "mxfp4", "prepacked")):
        shared = sweep_weights.program(element, of, "bf16", packed, "none", 0, "32", 384, 1024, 37, "shares")
        yield wgmma(f"{packed} {of} weights x {'nvfp4' if of == 'nvfp4' else element}, stream-K", shared, 2)
    several = weights("bf16", "prepacked", 1, "chosen", 256, 1024)
    yield Kind("prepacked nvfp4 weights x bf16, several plans", several, "sm_90a", None, on(1),
               (5, 12, 40, 100, 200, 300))


def slices():
    """Each k slice has warpgroups of its own, and two k tiles."""
    for split, tile in ((2, "8slices"), (3, "8slices"), (2, "24slices")):
        text = weights("bf16", "prepacked", split, tile, 128, 512 * split)
        yield wgmma(f"prepacked nvfp4 weights x bf16, {split} slices of {tile[:-6]} rows", text, rows=(5, 29))


def experts():
    """Activations without scales, sorted by expert, one of which has one row and one none."""
    for form, what in (("groups", "groups"), ("offsets", "groups of the device"), ("ranges", "masked groups")):
        text = sweep_groups.program(form, (21, 0, 1), 128, 1024, "mxfp4", "bf16", "none", "w8", "bf16 prepacked")
        kind = wgmma(f"prepacked mxfp4 weights x bf16, {what}", text)
        kind = kind._replace(dists=POWERS)
        yield kind if form == "groups" else told(kind)
    text = sweep_groups.program("groups", (21, 0, 1), 128, 1024, "nvfp4", "bf16", "none", "chosen", "bf16 plain")
    yield wgmma("plain nvfp4 weights x bf16, groups", text, 1, f"tile = [16, 128, 128], {RING}")
    text = sweep_groups.program("groups", (21, 0, 1), 128, 1024, "mxfp4", "bf16", "none", "w8", "f8E4M3FN prepacked")
    yield wgmma("prepacked mxfp4 weights x f8E4M3FN, groups", text)
    text = sweep_groups.program("groups", (21, 0, 1), 128, 1024, "mxfp4", "bf16", "none", "w8", "bf16 prepacked")
    yield Kind("prepacked mxfp4 weights x bf16, groups", text, "sm_120a", None, on(1, RING))
    # 960 ends within a k tile, and 1024 does not.
    for form, k, what in (("groups", 1024, "plain"), ("offsets", 960, "prepacked")):
        text = sweep_groups.program(form, (21, 0, 1), 128, k, "nvfp4", "bf16", "none", "l16", f"bf16 {what}")
        kind = Kind(f"{what} nvfp4 weights x bf16, groups{' of the device' * (form == 'offsets')}", text, "sm_100a",
                    None, on(1, RING))
        yield told(kind) if form == "offsets" else kind


def gates():
    """Gated layers of experts: two grouped GEMMs. Rings of accumulators wrap around in larger
    ones."""
    def gate(form, n, k, fmt, plan, lhs="codes", rows=(21, 0, 1)):
        return sweep_groups.program(form, rows, n, k, fmt, "bf16", "none", plan, lhs, "gate")

    text, larger = (gate("groups", 64, 1312, "nvfp4", "chosen", rows=rows) for rows in ((21, 0, 1), (300, 0, 129, 1)))
    yield tcgen05("NVFP4 GEMM, gate, groups", text, 1, RING)._replace(larger=larger)
    yield wgmma("NVFP4 GEMM by wgmma, gate, groups", text)  # of more tiles, two mutants have too many orders
    yield Kind("NVFP4 GEMM by mma.sync, gate, groups", text, "sm_120a", None, on(1, f"tile = [64, 64, 128], {RING}"))
    text = gate("offsets", 128, 1024, "mxfp4", "w8", "bf16 prepacked")
    yield told(wgmma("prepacked mxfp4 weights x bf16, gate, groups of the device", text))._replace(dists=POWERS)
    text = gate("groups", 128, 1024, "mxfp4", "w8", "bf16 prepacked")
    yield Kind("prepacked mxfp4 weights x bf16, gate, groups", text, "sm_120a", None, on(1, RING))
    text, larger = (gate("groups", 128, 960, "nvfp4", "l16", "bf16 prepacked", rows)
                    for rows in ((21, 0, 1), (70, 0, 17, 1)))
    yield tcgen05("prepacked nvfp4 weights x bf16, gate, groups", text, 1, RING)._replace(larger=larger)


def codes():
    """Codes of the elements of groups, with scales in a list of tiles."""
    def gemm_text(form, rows=(21, 0, 1)):
        return sweep_groups.program(form, rows, 128, 1312, "mxfp4", "f32", "none", "chosen", "codes", "codes")

    kind = tcgen05("MXFP4 GEMM, codes, groups", gemm_text("groups"), 1, RING)
    yield kind._replace(larger=gemm_text("groups", (300, 0, 129, 1)))
    yield told(wgmma("MXFP4 GEMM by wgmma, codes, groups of the device", gemm_text("offsets")))
    yield Kind("MXFP4 GEMM by mma.sync, codes, groups", gemm_text("groups"), "sm_120a", None,
               on(1, f"tile = [128, 64, 128], {RING}"))


def other_weights():
    """Weights beside floats and e4m3 where there is no wgmma."""
    for plans, target, tiles in (("lanes", "sm_100a", {"bf16": "16", "f8E4M3FN": "128x96"}),
                                 ("warps", "sm_120a", {"bf16": "16", "f8E4M3FN": "16"})):
        for element, tile in tiles.items():
            text = weights(element, "plain", 1, tile, 384, 1024, plans)
            fmt = "mxfp4" if element == "f8E4M3FN" else "nvfp4"
            yield Kind(f"plain {fmt} weights x {element}", text, target, 21, on(1, RING))
        text = weights("bf16", "prepacked", 1, "16", 384, 1024, plans)
        yield Kind("prepacked nvfp4 weights x bf16", text, target, 21, on(1, RING))
        for packed, what in (("prepacked", ""), ("fast", ", fast accumulation")):
            text = weights("f8E4M3FN", packed, 1, "16", 384, 1024, plans)
            yield Kind(f"prepacked mxfp4 weights x f8E4M3FN{what}", text, target, 21, on(1, RING))


def registers():
    """Sums in registers: derived results of swapped operands, and groups."""
    for rows, what in (("32", "small M"), ("160", "with a pre-dequantized lhs")):
        case = ("nvfp4", "dual", "mxfp4", "both", "tiled", "amax", "kept", "bf16", rows, 128, 768, "chosen")
        tile = 64 if rows == "32" else 128
        yield wgmma(f"NVFP4 GEMM by wgmma, dual GEMM with a gate, mxfp4 codes, amax, {what}",
                    sweep_results.program(case), 1, f"route = <orientation = swapped>, tile = [128, {tile}, 128], {RING}")
    for form, what in (("groups", "groups"), ("offsets", "groups of the device")):
        text = sweep_groups.program(form, (130, 0, 1), 64, 1312, "nvfp4", "bf16", "none", "chosen")
        for kind in (wgmma(f"NVFP4 GEMM by wgmma, {what}", text, 2),
                     Kind(f"NVFP4 GEMM by mma.sync, {what}", text, "sm_120a", None,
                          on(2, f"tile = [64, 64, 128], {RING}"))):
            yield told(kind) if form == "offsets" else kind


def weight_results():
    """Codes of elements beside weights: rows of several tiles in one scale tile."""
    for target, tile in (("sm_90a", 128), ("sm_120a", 128), ("sm_100a", 64)):
        case = ("nvfp4 bf16 prepacked", "dual", "nvfp4", "rowwise", "tiled", "", "gone", "bf16", "70", 128, 768, "chosen")
        yield Kind(f"prepacked nvfp4 weights x bf16, gate, nvfp4 codes, {target}", sweep_results.program(case), target,
                   None, on(1, f"tile = [32, 128, {tile}], {RING}"))


def exchanged_maxima():
    """FP8 results: threads of two warpgroups, and of four warps, have parts of a block of 128."""
    for operands, target, tile in (("nvfp4", "sm_90a", "128, 128, 128"), ("nvfp4", "sm_120a", "128, 128, 128"),
                                   ("nvfp4 f16 plain", "sm_100a", "32, 128, 128")):
        case = (operands, "one", "fp8_block128", "rowwise", "linear", "", "gone", "bf16", "130", 256, 768, "chosen")
        yield Kind(f"{operands} GEMM, FP8 results of 1 x 128, {target}", sweep_results.program(case), target, None,
                   on(2, f"tile = [{tile}], {RING}"))


def promoted_results():
    """Sums that threads promote, of two GEMMs and of one, beside codes: two warpgroups have halves
    of blocks of 128."""
    for operands, dual, result, layout, rows, tile in (
            ("fp8_block128", "dual", "fp8_block128", "linear", "160", "128, 128, 128"),
            ("fp8_block128", "one", "nvfp4", "tiled", "160", "128, 64, 128"),
            ("mxfp4 f8E4M3FN prepacked", "dual", "mxfp4", "tiled", "70", "32, 128, 128")):
        case = (operands, dual, result, "rowwise", layout, "", "gone", "bf16", rows, 256, 768, "chosen")
        what = "gate, " * (dual == "dual") + f"{result} codes"
        yield tcgen05(f"{operands} GEMM with promotion, {what}", sweep_results.program(case), 2, f"tile = [{tile}], {RING}")


def warps():
    text = sweep_fp8.program("bf16", "fp8", "none", "chosen", "one", 130, 136, 1024)
    yield Kind("FP8 GEMM, f32 scales, by mma.sync", text, "sm_120a", None, on(2, f"tile = [64, 64, 128], {RING}"))
    text = re.sub(r" \{fp4\.plan = #fp4\.plan<.*?\]>\}", "", gemm(64))
    yield Kind("NVFP4 GEMM by mma.sync, 3 tiles of 64 x 64", text, "sm_120a", 130,
               on(1, f"tile = [64, 64, 128], {RING}"))


def quantizers():
    whole = ("one", 320, 272)
    several = ("one", 1280, 1152)  # of which several CTAs take the amax
    for name, case in {
            "quantize rows": ("rowwise", "row", "none", NEAR, "tiled", *several),
            "quantize columns": ("columnwise", "row", "none", NEAR, "linear", *whole),
            "quantize both": ("both", "row", "none", NEAR, "mixed", *whole),
            "quantize blocks of 16 x 16": ("both", "square", "none", NEAR, "mixed", *whole),
            "quantize groups of rows": ("both", "row", "none", NEAR, "mixed", "blocks", 0, 272),
            "Hadamard in registers, 16": ("both", "row", "16,16", "element", "mixed", *several),
            "Hadamard across lanes, 128 and 32": ("both", "row", "128,32", NEAR, "mixed", *several),
    }.items():
        for target in BOTH:
            yield Kind(name, quantizer("sm_100a", *case), target)
    # Two CTAs, each with two strips of 19 tiles, the last row and column of tiles not whole.
    for name, rounding, layout in (("", NEAR, "tiled"),
                                   (", stochastic", "transformer_engine", "linear")):
        case = ("columnwise", "row", "0,16 tensor_core", rounding, layout, "one", 1200, 392)
        yield tcgen05("Hadamard on the tensor core" + name, quantizer("sm_100a", *case), blocks=2)


def rows():
    """Chains along rows, in which warps have a row together."""
    for name, case in {
            "LayerNorm, quantized behind amaxes of rows": ("layer", "token", "tiled", "kept"),
            "RMSNorm, quantized behind its amax": ("rms", "amax", "linear", "gone"),
            "softmax of rows": ("softmax", "none", "tiled", "kept"),
            "rotation of halves, quantized": ("halves", "nvfp4", "tiled", "gone"),
            "RMSNorm and rotation of neighbours": ("norm_neighbours", "none", "tiled", "kept"),
    }.items():
        for target in BOTH:
            yield Kind(name, sweep_rows.program((*case, "bf16", "5", 1056)), target)
    for target in BOTH:
        text = sweep_rows.program(("softmax", "none", "tiled", "kept", "bf16", "2", 1056))
        yield Kind("softmax of rows of a cluster", text, target, None, ["--plan=reduce_rows, cluster = [1, 2], threads = 64"])


def promoted():
    """FP8 with f32 scales on tcgen05 in groups, ranges and pairs: each CTA has several tiles of 5 k
    tiles."""
    tile = "tile = [128, 64, 128], stages = 2"
    for form, rows, n, what, blocks in (("groups", 130, 64, "groups", 1), ("offsets", 130, 64, "groups of the device", 1),
                                        ("split", 300, 64, "split-K", 2)):
        text = planned(sweep_fp8.program("bf16", "fp8", "none", "chosen", form, rows, n, 640), tile)
        kind = tcgen05(f"FP8 with f32 scales in tiles, {what}", text, blocks)
        yield told(kind) if form == "offsets" else kind
    text = sweep_fp8.program("bf16", "fp8", "none", "chosen", "one", 600, 256, 640)
    yield tcgen05("FP8 with f32 scales in tiles, pair of 256 x 256",
                  planned(text, "pair, tile = [256, 256, 128], stages = 2"), 2)


def of_lanes():
    """Weights of few bits in groups and with split-K."""
    text = sweep_groups.program("groups", (130, 0, 1), 128, 1024, "mxfp4", "bf16", "none", "chosen", "f8E4M3FN plain")
    yield tcgen05("plain mxfp4 weights x f8E4M3FN, groups", text, 1, RING)
    for packed in ("plain", "prepacked"):
        text = weights("bf16", packed, 2, "16", 384, 1024, "lanes")
        yield Kind(f"{packed} nvfp4 weights x bf16, split-K", text, "sm_100a", 21, on(2, RING))


def dynamic():
    """All sizes are those of a call: K ends within a k tile."""
    text = gemm_text(f"tile = [128, 64, 256], {RING}", 300, 128, 1312)
    sizes = {"300": "M", "128": "N", "1312": "K", "82": "K/16"}
    dims = lambda kind: ", ".join(f'"{sizes[size]}"' for size in re.findall(r"(\d+)x", kind))
    head, body = text.split("\n", 1)
    head = re.sub(r"(%\w+: )(tensor<(?:\d+x)+\w+>)", lambda found: f"{found[0]} {{fp4.dims = [{dims(found[2])}]}}", head)
    text = re.sub(r"(?<=tensor<)(?:\d+x)+", lambda found: "?x" * found[0].count("x"), f"{head}\n{body}")
    for target in ("sm_100a", "sm_120a"):
        tiles = text if target == "sm_100a" else text.replace("[128, 64, 256]", "[64, 64, 128]")
        name = "NVFP4 GEMM of any size" + (" by mma.sync" if target == "sm_120a" else "")
        yield Kind(name, tiles, target, None, on(2), ("300,128,1312",))


def launches():
    """Options of a launch or its caller."""
    plan = "cluster = [2, 2], tile = [128, 64, 256], schedule = #pipe.cluster_launch<along_m depth 2>"
    kind = tcgen05("NVFP4 GEMM, work of clusters of 2 x 2 taken over", gemm_text(f"{plan}, {RING}", 768, 128, 768), 4)
    yield kind._replace(text=kind.text.replace("tensor<768x", "tensor<?x"), rows=(512, 1536), explored=1)
    text = gemm_text(f"tile = [128, 64, 256], {RING}", 300, 64, 768)
    strided = text.replace(" -> tensor<300x64xbf16> {", " -> (tensor<300x64xbf16> {fp4.strided}) {")
    yield tcgen05("NVFP4 GEMM, strided rows of the result", strided, 1)
    yield Kind("NVFP4 GEMM, PDL", text, "sm_100a", None, [*on(1), "--pdl"])


def warp_ranges():
    """Two CTAs share a tile of mma.sync, and each has a range of it; or tiles with a range of
    each."""
    text = shared_out("split", (64,))
    yield Kind("NVFP4 GEMM by mma.sync, split-K", text, "sm_120a", None, on(2, f"tile = [64, 64, 128], {RING}"))
    text = weights("bf16", "prepacked", 1, "32", 384, 1024, "warps", m=37)
    text = text.replace("split_k = 1", "stream_k = [2, 32, 128]")
    yield Kind("prepacked nvfp4 weights x bf16, stream-K", text, "sm_120a", None, on(2, RING))


def long_clusters():
    text = sweep.program("nvfp4", "bf16", "fp4", "k96_64", 1100, 128, 2400)
    text = text.replace("tile = [256, 64, 768]", "cluster = [2, 2], tile = [256, 64, 768]")
    yield Kind("NVFP4 GEMM, K = 96, pairs in a cluster of 2 x 2", text, "sm_103a", None, on(4))


def attention():
    """Two tiles of queries of one CTA, each with six blocks of keys, some of them with masks."""
    for mask in ("full", "causal"):
        text = sweep_attention.program((1, 200, 96, (1, 1), (64, 64), "bf16", mask, "0.125"))
        plan = "--plan=tile_attention, tile = [128, 16, 1], stages = 2"
        yield Kind(f"attention, {mask}", text, "sm_90a", None, ["--sms=1", plan])
    roles = ("roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 8 drives [tensor, "
             "threads] registers 240 in_turn products, clear warps 9 to 12 drives [threads] registers 24 auxiliary>, ")
    text = sweep_attention.program((1, 200, 96, (1, 1), (64, 64), "bf16", "full", "0.125"))
    yield Kind("attention, in turn", text, "sm_90a", None, ["--sms=1", plan.replace("stages", roles + "stages")])
    text = sweep_attention.program((1, 200, 96, (1, 1), (64, 64), "bf16", "causal", "0.125"), softcap="2.0", window=40,
                                   rows="sinks lse")
    yield Kind("attention, window", text, "sm_90a", None, ["--sms=1", plan])
    # Tiles of a sequence with six blocks of keys, of one without keys, and of no sequence.
    text = sweep_attention.program((2, 100, 48, (2, 1), (64, 64), "bf16", "causal", "0.125"), cache="packed",
                                   rows="slopes")
    text = text.replace("?x2x", "200x2x").replace("?x1x", "96x1x")
    yield Kind("attention, packed", text, "sm_90a", None, ["--sms=1", plan])


def attention_of_lanes():
    """Two tiles of one CTA with products in tensor memory, of one part or of two, each with three
    blocks of keys."""
    for name, queries, mask in (("one part", 128, "full"), ("two parts", 200, "full"), ("masks", 200, "causal")):
        text = sweep_attention.program((1, queries, 192, (2, 1), (64, 64), "bf16", mask, "0.125"))
        plan = f"--plan=tile_attention, tile = [{128 * -(-queries // 128)}, 64, 1], stages = 2"
        yield Kind(f"attention by tcgen05, {name}", text, "sm_100a", None, ["--sms=1", plan])


def cached_attention():
    """Clusters whose CTAs share three blocks of keys of each of four sequences, in pages."""
    text = sweep_attention.program((4, 3, 96, (8, 2), (64, 64), "bf16", "causal", "0.125"), cache=16)
    plan = "--plan=tile_attention, tile = [64, 32, 4], cluster = [2, 1], stages = 2"
    yield Kind("attention over a cache", text, "sm_90a", None, ["--sms=2", plan])
    text = sweep_attention.program((4, 3, 96, (8, 2), (64, 64), "bf16", "causal", "0.125"), cache="heads 16")
    yield Kind("attention over pages of heads", text, "sm_90a", None, ["--sms=2", plan])
    text = sweep_attention.program((2, 1, 192, (16, 1), (192, 128), "bf16", "causal", "0.125"), cache=16, latent=True)
    plan = "--plan=tile_attention, k_slices = 2"
    yield Kind("attention over a latent cache", text, "sm_90a", None, ["--sms=2", plan])
    text = sweep_attention.program((2, 1, 96, (4, 2), (64, 64), "bf16", "causal", "0.125"), cache=16, form="nvfp4")
    plan = "--plan=warp_attention, threads = 64, k_slices = 2"
    yield Kind("attention over codes", text, "sm_90a", None, [plan])


def kinds():
    for some in (of_one_block, pairs, clusters, schedules, joins, epilogues, hopper, hopper_weights, slices,
                 experts, gates, codes, other_weights, registers, weight_results, exchanged_maxima, promoted_results, warps,
                 quantizers, rows, promoted, of_lanes, dynamic, launches, warp_ranges, long_clusters, attention,
                 attention_of_lanes, cached_attention):
        yield from some()
