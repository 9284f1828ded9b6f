"""Slots of paged caches, of fp4.torch and of fp4.compat: a cache has what plain torch writes, and
other slots stay. Numbers of rows are checked on demand."""

import unittest
from typing import Any

import fp4
import norm_formulas as formulas
from graph_recorder import GraphRecorder
from programs import torch

if torch is not None:
    import fp4.torch as ft
    from fp4.compat import vllm
    from fp4.torch import slots

HEADS, COLUMNS, PAGES, TOKENS = 2, 64, 3, 16
FORMATS = ("", "fp8", "nvfp4", "mxfp4", "mxfp8_e4m3")


def tokens(rows: int, seed: int = 0, columns: int = COLUMNS) -> Any:
    return formulas.data(rows, HEADS * columns, seed).view(rows, HEADS, columns)


class Cache:
    """Caches of keys and values whose bytes are 7 before anything is written."""

    def __init__(self, format: str = "", columns: int = COLUMNS) -> None:
        dtype, scales, packed, block, _ = slots._FORMATS.get(
            format, (torch.bfloat16, None, 1, 0, ""))
        size = torch.empty(0, dtype=dtype).itemsize * columns // packed
        shape = (PAGES, TOKENS, HEADS)
        new = torch.full
        self.codes = [new((*shape, size), 7, dtype=torch.uint8).view(dtype) for _ in "kv"]
        self.scales = [None if scales is None else new(
            (*shape, columns // block), 7, dtype=torch.uint8).view(scales) for _ in "kv"]
        self.factors = [torch.tensor([0.25]), torch.tensor([0.5])
                        ] if format in slots._HAVE_FACTOR else [None, None]
        self.format = format

    def write(self, key: Any, value: Any, numbers: Any, kv_layout: str = "NHD") -> None:
        ft.reshape_and_cache(key, value, numbers, *self.codes, format=self.format,
                             key_scales=self.scales[0], value_scales=self.scales[1],
                             key_factor=self.factors[0], value_factor=self.factors[1],
                             kv_layout=kv_layout)

    def bytes(self) -> "list[Any]":
        """Rows of slots."""
        found = [value for pair in zip(self.codes, self.scales) for value in pair]
        return [value.view(PAGES * TOKENS, -1).view(torch.uint8)
                for value in found if value is not None]

    def expected(self, key: Any, value: Any, numbers: Any) -> "list[Any]":
        """Bytes of a new cache, in plain torch and by the quantizers of fp4.torch."""
        found = []
        for x, factor, rows in zip((key, value), self.factors, self.pairs()):
            for place, values in zip(rows, self.encoded(x.reshape(-1, x.shape[2]), factor)):
                place = place.clone()
                values = values.contiguous().view(torch.uint8)
                values = values.view(len(x), values.numel() // max(1, len(x)))
                for number, row in zip(numbers.tolist(), values):
                    if number >= 0:
                        place[number] = row
                found.append(place)
        return found

    def pairs(self) -> "list[list[Any]]":
        new = Cache(self.format, self.codes[0].shape[-1] * (2 if self.codes[0].dtype == torch.uint8
                                                           else 1)).bytes()
        return [new[:len(new) // 2], new[len(new) // 2:]]

    def encoded(self, x: Any, factor: Any) -> "tuple[Any, ...]":
        if not self.format:
            return (x,)
        if self.format == "fp8":
            return ((x.float() / factor).clamp(-448, 448).to(torch.float8_e4m3fn),)
        if self.format == "mxfp8_e4m3":
            return formulas.mxfp8(x)
        q = ft.quantize(x, format=self.format, recipe=slots._FORMATS[self.format][4],
                        layout="linear", amax=None if factor is None else factor.reshape(()))
        return q.data, q.scales


@unittest.skipIf(torch is None, "torch is not installed")
class Slots(unittest.TestCase):
    def check(self, cache: Cache, key: Any, value: Any, numbers: Any) -> None:
        cache.write(key, value, numbers)
        for found, expected in zip(cache.bytes(), cache.expected(key, value, numbers), strict=True):
            self.assertTrue(torch.equal(found, expected))

    def test_every_format(self) -> None:
        numbers = torch.tensor([47, 3, -1, 16, 0, 15, -7, 31, 32])
        for format in FORMATS:
            for strided in (False, True):
                with self.subTest(format, strided=strided):
                    key, value = tokens(9, 1), tokens(9, 2)
                    if format in ("", "fp8"):  # whose NaN is of no one bit pattern
                        key, value = key.nan_to_num(), value.nan_to_num()
                    if strided:  # as a projection has them
                        key, value = torch.cat((key, key, value), 1)[:, HEADS:].chunk(2, 1)
                    self.check(Cache(format), key, value, numbers)

    def test_heads_in_front_of_tokens(self) -> None:
        """A cache of the layout HND has the bytes of one of NHD, at other places."""
        def turned(x: Any) -> Any:
            return None if x is None else x.view(torch.uint8).view(
                *x.shape[:3], -1).transpose(1, 2).contiguous().view(x.dtype)

        numbers = torch.tensor([47, 3, -1, 16, 0, 15, -7, 31, 32])
        key, value = tokens(9, 1).nan_to_num(), tokens(9, 2).nan_to_num()
        for format in FORMATS:
            with self.subTest(format):
                cache, other = Cache(format), Cache(format)
                other.codes, other.scales = ([turned(x) for x in pair]
                                             for pair in (cache.codes, cache.scales))
                cache.write(key, value, numbers)
                other.write(key, value, numbers, kv_layout="HND")
                for one, found in zip((*cache.codes, *cache.scales),
                                      (*other.codes, *other.scales)):
                    self.assertTrue(one is None or torch.equal(
                        turned(one).view(torch.uint8), found.view(torch.uint8)))
        with ft.checked(), self.assertRaisesRegex(fp4.UsageError, "number 0 is 48"):
            other.write(key, value, numbers + 1, kv_layout="HND")
        with self.assertRaisesRegex(fp4.UsageError, "'kv_layout' must be 'NHD' or 'HND'"):
            other.write(key, value, numbers, kv_layout="HDN")

    def test_rows_and_repeated_calls(self) -> None:
        for rows in (1, 0, 5, 5, 5):
            numbers = torch.arange(rows) * 7
            self.check(Cache("mxfp4"), tokens(rows, 3), tokens(rows, 4), numbers)
        cache = Cache()
        for step in range(4):
            cache.write(tokens(1, step), tokens(1, step + 9), torch.tensor([step]))
            self.assertTrue(torch.equal(cache.codes[0].view(-1, HEADS, COLUMNS)[step],
                                        tokens(1, step)[0]))

    def test_values_of_other_columns(self) -> None:
        key, value, cache = tokens(3, 1), tokens(3, 2, 32), Cache("nvfp4")
        small = Cache("nvfp4", 32)
        cache.codes[1], cache.scales[1] = small.codes[1], small.scales[1]
        cache.write(key, value, torch.tensor([2, 1, 40]))
        other = Cache("nvfp4", 32)
        other.factors = [cache.factors[1]] * 2
        other.write(value, value, torch.tensor([2, 1, 40]))
        self.assertTrue(torch.equal(cache.codes[1], other.codes[1]))

    def test_against_the_reference_model(self) -> None:
        with fp4.Device("sim", check="strict", policy="random", seed=3) as device, \
                ft.simulator(device, verify=True):
            for format in FORMATS:
                Cache(format).write(tokens(9, 1), tokens(9, 2), 5 * torch.arange(9))

    def test_opcheck(self) -> None:
        key, value, numbers = tokens(4).nan_to_num(), tokens(4, 2), torch.tensor([9, -1, 3, 0])
        for format in ("", "fp8"):
            cache = Cache(format)
            found = torch.library.opcheck(torch.ops.fp4.reshape_and_cache.default, (
                key, value, numbers, *cache.codes, *cache.scales, *cache.factors, format),
                test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
                if not format else ("test_faketensor",))  # torch compares no float8
            self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_one_graph(self) -> None:
        graphs = GraphRecorder()

        def function(key: Any, value: Any, numbers: Any, *cache: Any) -> Any:
            ft.reshape_and_cache(key, value, numbers, *cache)
            return cache[0].sum() * 0

        fast = torch.compile(function, backend=graphs, fullgraph=True, dynamic=True)
        for rows in (5, 12):
            cache, numbers = Cache(), torch.arange(rows) * 3
            fast(tokens(rows, 1), tokens(rows, 2), numbers, *cache.codes)
            expected = Cache()
            expected.write(tokens(rows, 1), tokens(rows, 2), numbers)
            for found, other in zip(cache.bytes(), expected.bytes(), strict=True):
                self.assertTrue(torch.equal(found, other))
        self.assertEqual(len(graphs), 1)

    def test_vllm(self) -> None:
        key, value = tokens(6, 1).nan_to_num(), tokens(6, 2).nan_to_num()
        numbers, one = torch.tensor([40, -1, 3, 0]), torch.ones(1)
        for dtype, format in (("auto", ""), ("fp8", "fp8"), ("fp8_e4m3", "fp8")):
            cache, other = Cache(format), Cache(format)
            given = [codes if dtype != "fp8" else codes.view(torch.uint8) for codes in cache.codes]
            scales = cache.factors if format else [one, one]
            self.assertIsNone(vllm.reshape_and_cache_flash(key, value, *given, numbers, dtype,
                                                           *scales))
            other.write(key[:4], value[:4], numbers)
            for found, expected in zip(cache.bytes(), other.bytes(), strict=True):
                self.assertTrue(torch.equal(found, expected))
        for call, message in (
                (lambda: vllm.reshape_and_cache_flash(key, value, *given, numbers, "nvfp4", one,
                                                      one), "kv_cache_dtype = 'nvfp4' has no"),
                (lambda: vllm.reshape_and_cache_flash(
                    key, value, *given, numbers, "fp8", torch.ones(2), one), "'k_scale' must be ")):
            with self.assertRaisesRegex(fp4.UsageError, message):
                call()

    def test_what_is_refused(self) -> None:
        """Nothing is written, and the remedy is said."""
        key, value, numbers, cache = tokens(3, 1), tokens(3, 2), torch.arange(3), Cache()
        k, v = cache.codes
        one = torch.ones(1)
        stacked = torch.zeros(PAGES, 2, TOKENS, HEADS, COLUMNS, dtype=torch.bfloat16)
        call = ft.reshape_and_cache
        for function, message in (
                (lambda: call(key[:, 0], value, numbers, k, v), "'key' must be tokens x heads x"),
                (lambda: call(key, value[:2], numbers, k, v), "'value' must be tokens x heads x"),
                (lambda: call(key, value.half(), numbers, k, v), "'value' must be tokens x heads"),
                (lambda: call(key, value, numbers.int(), k, v), "'slots' must be int64 with a slo"),
                (lambda: call(key, value, numbers[:2], k, v), "'slots' must be int64 with a slot"),
                (lambda: call(key, value, numbers, k.half(), v), "'key_cache' must be bfloat16 of"),
                (lambda: call(key, value, numbers, k.transpose(1, 2), v), "'key_cache' must be bf"),
                (lambda: call(key, value, numbers, k, v[:, :8]), "'value_cache' must be contiguou"),
                (lambda: call(key, value, numbers, k, v[:, :8].contiguous()),
                 "'value_cache' must have the pages of 'key_cache', but got"),
                (lambda: call(key, value, numbers, stacked[:, 0], v), "'key_cache' must be contig"),
                (lambda: call(key, value, numbers, k[0], v), r"'key_cache' must be .* of shape \["),
                (lambda: call(key, value, numbers, k, v, format="int8"), "'format' must be fp8, n"),
                (lambda: call(key, value, numbers, k, v, key_factor=one), "'key_factor' must be N"),
                (lambda: call(key, value, numbers, k, v, key_scales=one), "'key_scales' must be N"),
                (lambda: call(key[..., :40], value, numbers, k, v, format="mxfp4"),
                 "'key' must have a multiple of 32 columns for mxfp4, but got 40"),
                (lambda: call(key, value, numbers, *Cache("fp8").codes, format="fp8"),
                 "'key_factor' must be given for format 'fp8'"),
                (lambda: call(key, value, numbers, *Cache("mxfp4").codes, format="mxfp4"),
                 r"'key_scales' must be float8_e8m0fnu of shape \[3, 16, 2, 2\], but got none")):
            with self.subTest(message), self.assertRaisesRegex(fp4.UsageError, message):
                function()
        for found in cache.bytes():
            self.assertTrue((found == 7).all())


@unittest.skipIf(torch is None, "torch is not installed")
class Checked(unittest.TestCase):
    """In checked(), a number that is no row is an error before anything is written."""

    def refused(self, message: str, call: Any) -> None:
        with ft.checked(), self.assertRaisesRegex(fp4.UsageError, message):
            call()

    def test_slots(self) -> None:
        key, value, cache = tokens(3, 1), tokens(3, 2), Cache("mxfp4")
        for numbers, message in (([0, 48, 1], "'slots' must be below 48, but number 1 is 48"),
                                 ([5, 2, 5], "'slots' must differ, but numbers 0 and 2 are 5")):
            self.refused(message, lambda n=numbers: cache.write(key, value, torch.tensor(n)))
            for found in cache.bytes():
                self.assertTrue((found == 7).all())
        with ft.checked():
            cache.write(key, value, torch.tensor([-1, 47, -1]))
        self.assertFalse((cache.bytes()[0][47] == 7).all())

    def test_rows_positions_and_ids(self) -> None:
        x, table = formulas.data(4, 64), torch.randn(8, 64)
        heads, weights = x.view(2, 2, 64), torch.ones(2, 2)
        rows = torch.tensor([0, 4])
        self.refused("'rows' must be below 4, but number 1 is 4",
                     lambda: ft.gather_quantize(x, rows, format="mxfp4"))
        self.refused("'rows' must be below 4, but number 3 is 4",
                     lambda: ft.combine(x, torch.tensor([[0, 1], [-1, 4]]), weights))
        for number in (8, -1):
            at = torch.tensor([0, number])
            self.refused(f"'positions' must be below 8 and not negative, but number 1 is {number}",
                         lambda at=at: ft.rotate(heads, table, at))
            self.refused("'positions' must be below 8", lambda at=at: ft.rotate_quantize(
                heads, table, at, format="mxfp4"))
        ids = torch.tensor([[0, 4]], dtype=torch.int32)
        routed = torch.ops.fp4.routed_experts
        self.refused("'ids' must be below 4, but number 1 is 4", lambda: routed(
            x[:1], ids, torch.ones(1, 2), None, 4, *self.experts()))

    def test_ids_of_experts(self) -> None:
        """Negative ids and those of other ranks have no row, and ids of no expert are refused."""
        ids = torch.tensor([[0, 3], [7, -1]], dtype=torch.int32)
        wrong = "'ids' must be below {}, but number 2 is 7"
        self.refused(wrong.format(4), lambda: ft.permute_tokens(ids, 4))
        self.refused(wrong.format(6), lambda: ft.permute_tokens(ids, 2, first=4))
        self.refused(wrong.format(7), lambda: ft.permute_tokens(ids, 4, total=7))
        with ft.checked():
            found = ft.permute_tokens(ids, 4, total=8)
        self.assertEqual(found.rows.tolist(), [[0, 1], [-1, -1]])
        self.assertEqual(ft.permute_tokens(ids, 4).rows.tolist(), [[0, 1], [-1, -1]])

    def test_ids_of_blocks(self) -> None:
        """vLLM's order of blocks: nothing is written where an id or a number of a map is none."""
        def align(ids: "list[list[int]]", mapped: "list[int]") -> Any:
            results = [torch.full((count,), 7, dtype=torch.int32) for count in (16, 4, 1)]
            vllm.moe_align_block_size(torch.tensor(ids, dtype=torch.int32), 4, 4, *results,
                                      expert_map=torch.tensor(mapped, dtype=torch.int32))
            return results
        self.refused("'topk_ids' must be below 4, but number 1 is 4",
                     lambda: align([[0, 4]], [0, 1, 2, 3]))
        self.refused("'expert_map' must be below 4, but number 3 is 5",
                     lambda: align([[0, 3]], [0, 1, 2, 5]))
        with ft.checked():
            found = align([[0, 3]], [0, -1, -1, 1])
        self.assertEqual(found[2].tolist(), [8])

    def test_labels(self) -> None:
        x, labels = formulas.data(3, 64), torch.tensor([5, -100, 64])
        self.refused("'labels' must be below 64, but number 2 is 64",
                     lambda: ft.cross_entropy(x, labels))
        with ft.checked():
            loss = ft.cross_entropy(x, labels.clamp(max=63), reduction="none")
        self.assertEqual([bool(value) for value in loss], [True, False, True])

    @staticmethod
    def experts() -> "tuple[Any, ...]":
        """Arguments of experts that are not reached."""
        schema = torch.ops.fp4.routed_experts.default._schema.arguments[5:]
        empty = {"Tensor": torch.zeros(0, dtype=torch.uint8), "str": "", "int": 0, "bool": False}
        return tuple(empty.get(str(argument.type)) for argument in schema)

    def test_outside_nothing_is_looked_at(self) -> None:
        with ft.checked():
            pass
        y = ft.gather_quantize(formulas.data(4, 64), torch.tensor([3, -1]), format="mxfp4")
        self.assertEqual(y.data.shape, (2, 32))
