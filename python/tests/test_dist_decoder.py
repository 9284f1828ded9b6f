"""fp4.torch.Decoder over the ranks of a group, on tiny models of random weights in the simulator.

Two processes with gloo have the bits of ranks that are threads of one process. Threads stand beside
a decoder that one process has as a whole, and beside the model in float32.
"""

import copy
import pathlib
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import fp4
from expert_files import as_gpt_oss, as_modelopt
from programs import torch
from test_torch_decoder import MOST, made
from test_transformers import error, tokens, transformers
from test_transformers import model as small

if torch is not None:
    import fp4.checkpoints as ck
    import fp4.torch as ft
    from fp4.checkpoints._files import Files
    from fp4.dist import exchange
    from fp4.torch import norm_programs, shards

RANKS, STEPS = 2, 2
#: Two heads of keys, which two ranks share.
SIZES = {"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2}
FAMILIES: "tuple[tuple[str, dict[str, Any]], ...]" = (
    ("Llama", {"num_hidden_layers": 2}), ("Mistral", {"sliding_window": 7}), ("Qwen2", {}),
    ("Qwen3", {}), ("Llama", {"format": "mxfp4", "attention_bias": True}),
    ("Gemma3", {"sliding_window": 7, "num_hidden_layers": 2,
                "layer_types": ["sliding_attention", "full_attention"]}))


def together(make: "Callable[[Any], Any]", ranks: int = RANKS) -> "list[Any]":
    """The results of a function of the exchange of each rank."""
    return exchange.Threads.run(make, ranks, 100)


def follow(decoder: Any, ids: Any) -> "list[Any]":
    """The logits of a prompt and of the steps behind it, whose tokens are given."""
    found = [decoder.prefill(ids[:, :-STEPS].contiguous())]
    return found + [decoder.step(ids[:, place].contiguous())
                    for place in range(ids.shape[1] - STEPS, ids.shape[1])]


def decoder_of(model: Any, sequences: int, group: Any = None, **options: Any) -> Any:
    return ft.Decoder(model, sequences, 24, page_tokens=8, group=group, **options)


def same(one: "list[Any]", other: "list[Any]") -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


# ===--- Two processes ----------------------------------------------------=== #


def refusals(model: Any, rank: int) -> "list[tuple[str, Any, int, dict[str, Any]]]":
    """Words of an error, and what `rank` passes to have it on all ranks: rank 1 has another
    decoder."""
    rows, scale, wide = (copy.deepcopy(model) for _ in range(3))
    if rank:
        layer = rows.model.layers[0].mlp
        layer.down_proj.packed.copy_(layer.down_proj.packed.roll(1, 0))  # a plain sum stays
        scale.model.layers[0].input_layernorm.weight.data[5] += 1
        wide.model.norm.float()
    theta = copy.deepcopy(model)
    theta.config.rms_norm_eps *= 1 + rank
    return [("all ranks must have 'sequences' 1, as rank 0 has", model, 1 + rank, {}),
            ("all ranks must have 'allow_fallback' False", model, 2, {"allow_fallback": rank == 1}),
            ("all ranks must have 'expert_parallel' True", model, 2, {"expert_parallel": not rank}),
            ("all ranks must have a checksum of 'model.layers.0.mlp.down_proj.pack", rows, 2, {}),
            ("all ranks must have a checksum of 'model.layers.0.input_layernorm", scale, 2, {}),
            ("all ranks must have the rms_norm_eps of the model", theta, 2, {}),
            ("'model' must be bfloat16, but its parameters are bfloat16, float32", wide, 2, {})]


def in_a_process(rank: int, store: str) -> None:
    """Raises where the bits are not those of threads, or where an error is missing."""
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    ours, _ = made("Llama", **SIZES)
    ids = tokens(2, 12)
    decoder = decoder_of(ours, 2, dist.group.WORLD)
    found = follow(decoder, ids)
    expected = together(lambda one: follow(decoder_of(ours, 2, one), ids))
    assert decoder.exchange.name == "gloo", decoder.exchange.name
    assert same(found, expected[rank]), "other bits than those of threads"
    assert decoder.caches[0].key.shape[2] == 1, "the cache has the heads of this rank"
    for words, model, sequences, options in refusals(ours, rank):
        try:
            decoder_of(model, sequences, dist.group.WORLD, **options)
        except fp4.UsageError as error:
            assert words in error.message, error
        else:
            raise AssertionError(f"expected an error with {words!r}")
    dist.destroy_process_group()


@unittest.skipIf(transformers is None, "torch or transformers is not installed")
class TwoProcesses(unittest.TestCase):
    def test_bits_are_those_of_threads(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([sys.executable, __file__, str(rank), f"{folder}/store"],
                                      stderr=subprocess.PIPE, text=True) for rank in range(RANKS)]
            try:
                texts = [process.communicate(timeout=300)[1] for process in ranks]
            finally:
                for process in ranks:
                    process.kill()
                    process.communicate()
        for rank, process in enumerate(ranks):
            self.assertEqual(process.returncode, 0, texts[rank])


# ===--- Threads of one process -------------------------------------------=== #


@unittest.skipIf(transformers is None, "torch or transformers is not installed")
class Ranks(unittest.TestCase):
    def check(self, ours: Any, exact: Any, **options: Any) -> "tuple[list[Any], list[Any]]":
        """Logits of one process and of two ranks, both compared with the model in float32."""
        ids = tokens(2, 12)
        whole = follow(decoder_of(ours, 2), ids)
        parts = together(lambda one: follow(decoder_of(ours, 2, one, **options), ids))
        self.assertTrue(same(parts[0], parts[1]))
        wide = copy.deepcopy(exact).float()
        with torch.no_grad():
            for place, found in enumerate(parts[0]):
                seen = ids[:, :ids.shape[1] - STEPS + place]
                true = wide(seen).logits[:, -1]
                least = error(exact(seen).logits[:, -1], true)
                self.assertLess(error(found, true), MOST * least)
        return whole, parts[0]

    def test_families(self) -> None:
        for name, options in FAMILIES:
            with self.subTest(name, **options):
                pair = made(name, **SIZES, **options)
                for model in pair:
                    for key, values in model.named_parameters():
                        if key.endswith("bias"):
                            values.data.fill_(0.25)
                whole, parts = self.check(*pair)
                for one, other in zip(whole, parts):
                    self.assertLess(error(other, one), 0.01)

    def test_mixtures_of_experts(self) -> None:
        """Each rank has half of the experts, or half of the columns of all; in gpt-oss half of the
        sinks and one bias, too."""
        for name in ("Mixtral", "Qwen3Moe", "GptOss"):
            pair = made(name, **SIZES)
            for expert_parallel in (True, False):
                with self.subTest(name, expert_parallel=expert_parallel):
                    whole, parts = self.check(*pair, expert_parallel=expert_parallel)
                    self.assertLess(error(parts[0], whole[0]), 0.01)

    def test_experts_that_ranks_read(self) -> None:
        """A rank reads its experts, or its columns of all, and has the bits of ranks that share a
        model."""
        for name, write in (("GptOss", as_gpt_oss), ("Mixtral", as_modelopt)):
            for expert_parallel in (True, False):
                with self.subTest(name, expert_parallel=expert_parallel), (
                        tempfile.TemporaryDirectory()) as folder:
                    self.check_experts_read(name, write, expert_parallel, f"{folder}/a.safetensors")

    def check_experts_read(self, name: str, write: Any, expert_parallel: bool, path: str) -> None:
        exact = small(name, **SIZES, intermediate_size=256)
        for key, values in exact.named_parameters():
            if key.endswith("bias"):
                values.data.uniform_(-0.5, 0.5)
        with torch.no_grad():
            write(ck, path, exact)
        whole = type(exact)(exact.config).bfloat16().eval()
        whole.model.rotary_emb = exact.model.rotary_emb
        ck.load_into(whole, path)
        models = together(lambda one: self.read(
            whole, pathlib.Path(path), one, expert_parallel=expert_parallel))
        held = [sum(value.nbytes for value in each.model.layers[0].mlp.experts.buffers()
                    if value.dim() > 1) for each in (*models, whole)]
        self.assertEqual(held[:2], [held[2] // 2] * 2)
        for each in (*models, whole):
            ft.quantize_(each.model.layers[0].self_attn, weight_only=True)
        ids = tokens(1, 9)

        def decoded(model: Any, one: Any) -> Any:
            return follow(decoder_of(model, 1, one, expert_parallel=expert_parallel), ids)
        found = together(lambda one: decoded(models[one.rank], one))
        expected = together(lambda one: decoded(whole, one))
        self.assertTrue(same(found[0], expected[0]))
        with self.assertRaisesRegex(fp4.UsageError, r"mlp.experts' must be part . of 2 of the "
                                    r".*, but is part . of 2 of the .*\nnote: pass load_into"):
            together(lambda one: decoder_of(models[one.rank], 1, one,
                                            expert_parallel=not expert_parallel))

    def test_four_ranks(self) -> None:
        ours, _ = made("Llama", **{**SIZES, "num_key_value_heads": 4})
        ids = tokens(1, 9)
        found = together(lambda one: follow(decoder_of(ours, 1, one), ids), 4)
        for other in found[1:]:
            self.assertTrue(same(found[0], other))
        for one, whole in zip(found[0], follow(decoder_of(ours, 1), ids)):
            self.assertLess(error(one, whole), 0.01)

    def test_heads_in_4_bits_and_heads_that_do_not_divide(self) -> None:
        ours, exact = made("Llama", **SIZES, vocab_size=200)
        ours.lm_head = ft.WeightOnlyLinear.from_linear(ours.lm_head)
        exact.lm_head.weight = torch.nn.Parameter(ours.lm_head.weight + 0)
        self.check(ours, exact)
        decoders = together(lambda one: decoder_of(ours, 2, one))
        self.assertEqual([one._head.out_features for one in decoders], [100, 100])
        ours, exact = made("Llama", **SIZES, vocab_size=201)
        self.check(ours, exact)
        self.assertIs(together(lambda one: decoder_of(ours, 2, one))[0]._head, ours.lm_head)

    def read(self, model: Any, path: pathlib.Path, one: Any, **options: Any) -> Any:
        """The decoder of a rank that reads its part of a checkpoint, into a model without data."""
        with torch.device("meta"):
            mine = type(model)(model.config).bfloat16()
        mine.model.rotary_emb = model.model.rotary_emb
        ck.load_into(mine, path, share=(one.rank, one.ranks), **{"weight_only": True, **options})
        return mine.train(model.training)

    def test_parts_that_ranks_read(self) -> None:
        """Each rank holds and reads its part alone, and has the bits of ranks that share a
        model."""
        for options in ({}, {"format": "mxfp4", "attention_bias": True}):
            with self.subTest(**options), tempfile.TemporaryDirectory() as folder:
                self.check_parts(made("Llama", **SIZES, **options)[0], pathlib.Path(folder))

    def check_parts(self, model: Any, path: pathlib.Path) -> None:
        for key, values in model.named_parameters():
            if key.endswith("bias"):
                values.data.fill_(0.25)
        ck.save(model, path, "compressed-tensors")
        taken: list[int] = []
        load = Files.load

        def counted(files: Any, name: str, index: Any = None, part: Any = None) -> Any:
            found = load(files, name, index, part)
            if name.endswith("q_proj.weight_packed"):
                taken.append(found.nbytes)
            return found

        with mock.patch.object(Files, "load", counted):
            models = together(lambda one: self.read(model, path, one))
        self.assertEqual(taken, [256 * 128 // RANKS] * (RANKS * len(model.model.layers)))
        layer = models[0].model.layers[0].self_attn
        self.assertEqual((layer.q_proj.out_features, layer.o_proj.in_features), (128, 128))
        ids = tokens(1, 9)
        found = together(lambda one: follow(decoder_of(models[one.rank], 1, one), ids))
        expected = together(lambda one: follow(decoder_of(model, 1, one), ids))
        for mine, other in zip(found, expected):
            self.assertTrue(same(mine, other))
        for words, call in (
                (r"q_proj' must be part [01] of 2 of the rows, but is part [01] of 2 of the rows",
                 lambda: together(lambda one: decoder_of(models[1 - one.rank], 1, one))),
                ("must be part 0 of 1 of the rows", lambda: decoder_of(models[0], 1)),
                (r"must have a multiple of (48|96) columns for 3 ranks", lambda: ck.load_into(
                    copy.deepcopy(model), path, weight_only=True, share=(0, 3))),
                ("'share' must be a rank below", lambda: ck.load_into(
                    copy.deepcopy(model), path, share=(2, 2)))):
            with self.assertRaisesRegex(fp4.UsageError, words):
                call()

    def test_bits_do_not_depend_on_the_batch(self) -> None:
        ours, _ = made("Llama", **SIZES)
        for layer in ours.modules():
            if isinstance(layer, ft.WeightOnlyLinear):
                layer.batch_invariant = True
        ids = tokens(3, 9)
        many = together(lambda one: follow(decoder_of(ours, 3, one), ids))[0]
        single = together(lambda one: follow(decoder_of(ours, 1, one), ids[1:2]))[0]
        self.assertTrue(same([one[1:2] for one in many], single))

    def test_refusals(self) -> None:
        llama = made("Llama", **SIZES)[0]
        cut = copy.deepcopy(llama)
        projection = cut.model.layers[0].self_attn
        projection.k_proj = shards.part_of(projection.k_proj, 0, 0, 2)
        plain = copy.deepcopy(llama)
        plain.model.layers[0].mlp.up_proj = torch.nn.Linear(256, 128, bias=False).bfloat16()
        odd = made("Llama", **SIZES, intermediate_size=112)[0]
        some = made("Mixtral", **SIZES)[0]
        block = some.model.layers[0].mlp
        block.experts = shards.experts_of_rank(block.experts, shards.Part(0, 0, 2))
        for model, words in (
                (made("Llama", **{**SIZES, "num_key_value_heads": 1})[0],
                 "the key heads must be a multiple of the 2 ranks, but there are 1"),
                (made("Mixtral", **SIZES, num_local_experts=5)[0],
                 "mlp.experts' cannot be shared: the experts must be a multiple of the 2 ranks"),
                (some, "mlp.experts' cannot be shared: the experts must be all 4, but are 2"),
                (cut, "k_proj' must have the 128 rows of all ranks, but has 64"),
                (plain, "a layer has no kernel: 'model.layers.0.mlp.up_proj' is a Linear"),
                (odd, "down_proj' cannot be shared: in_features must be a multiple of 32")):
            with self.subTest(words), self.assertRaisesRegex(fp4.UsageError, words):
                together(lambda one, model=model: decoder_of(model, 2, one))
        with self.assertRaisesRegex(fp4.UsageError, "'allow_fallback' must be off with 'group'"):
            together(lambda one: decoder_of(llama, 2, one, allow_fallback=True))
        with self.assertRaisesRegex(fp4.UsageError, "torch.distributed must be initialized"):
            exchange.Collectives(None, torch.device("cpu"))

    def test_other_decoders_than_that_of_rank_0(self) -> None:
        """The error is that of all ranks, and comes at once: also where one alone has failed."""
        model = made("Llama", **{**SIZES, "intermediate_size": 256})[0]
        cases = [refusals(model, rank) for rank in range(RANKS)]
        self.assertEqual(together(lambda one: decoder_of(model, 2, one).exchange.rank), [0, 1])

        def message(one: Any, number: int) -> str:
            _, other, sequences, options = cases[one.rank][number]
            with self.assertRaises(fp4.UsageError) as caught:
                decoder_of(other, sequences, one, **options)
            return caught.exception.message
        for number, (words, *_) in enumerate(cases[0]):
            with self.subTest(words):
                for found in together(lambda one, number=number: message(one, number)):
                    self.assertIn(words, found)

    def test_a_rank_that_fails_to_make_its_part(self) -> None:
        llama = made("Llama", **SIZES)[0]

        def message(one: Any) -> str:
            words = "none" if one.rank else "rank 1 failed: MemoryError: none"
            with self.assertRaisesRegex(Exception, words) as caught:
                decoder_of(llama, 2, one)
            return type(caught.exception).__name__

        def head(share: Any, layer: Any) -> Any:
            if share.rank:
                raise MemoryError("none")
            return layer
        with mock.patch.object(shards.Share, "head", head):
            self.assertEqual(together(message), ["UsageError", "MemoryError"])

    def test_a_step_that_no_graph_has(self) -> None:
        llama = made("Llama", **SIZES)[0]
        for decoder in together(lambda one: decoder_of(llama, 2, one)):
            with self.assertRaisesRegex(fp4.UsageError, "must be peer memory or nccl, but is thr"):
                decoder.capture()
        with self.assertRaisesRegex(fp4.UsageError, "the model must be on a GPU"):
            decoder_of(llama, 2).capture()


# ===--- Exchanges --------------------------------------------------------=== #


class Handle:
    """The memory of two peers on the CPU. `lost` writes of rank 1 are not seen."""

    def __init__(self, lost: int) -> None:
        self.lost, self.barriers = lost, 0
        self.memory = [torch.zeros(64, dtype=torch.int32) for _ in range(RANKS)]

    def get_buffer(self, rank: int, shape: "tuple[int, int]", dtype: Any, begin: int) -> Any:
        return self.memory[rank][begin:begin + shape[0] * shape[1]].view(shape)

    def barrier(self) -> None:
        self.barriers += 1
        if self.barriers % 2:  # before a read
            turn = self.barriers // 2
            self.memory[1][:4] = -1 if turn < self.lost else 1 + 100 * turn


@unittest.skipIf(torch is None, "torch is not installed")
class Exchanges(unittest.TestCase):
    def peers(self, lost: int) -> Any:
        made = object.__new__(exchange.PeerMemory)
        made.rank, made.ranks = 0, RANKS
        made._rooms, made._begins, made._views = {"out": 64, "down": 64}, {"out": 0, "down": 64}, {}
        made._memory, made._handle = torch.empty(0), Handle(lost)
        return made

    def test_a_mismatch_waits_for_the_last_barrier(self) -> None:
        good = self.peers(0)
        good.check()
        bad = self.peers(1)
        with self.assertRaisesRegex(RuntimeError, "peers wrote .* was read"):
            bad.check()
        self.assertEqual(bad._handle.barriers, good._handle.barriers)

    def test_threads_that_wait_for_one_that_stops(self) -> None:
        def meet(one: Any) -> Any:
            if one.rank == 2:
                raise KeyError("stop")
            return one.values(one.rank)
        with self.assertRaises(KeyError):
            together(meet, 3)
        one, other = exchange.Threads.of(2, 100)
        other.abort()
        words = "rank 0 must have the 'values' of all 2 ranks, but another one has stopped"
        with self.assertRaisesRegex(fp4.DeviceError, words) as caught:
            one.values(1)
        self.assertIn("the error of the other rank", caught.exception.note)
        self.assertEqual(together(lambda one: one.values(one.rank), 3), [[0, 1, 2]] * 3)

    def test_names_of_gpus(self) -> None:
        """A GPU of each process may be cuda:0, and those of two hosts cuda:0 and cuda:1."""
        for names, expected in (([("a", "x"), ("a", "y")], ""),
                                ([("a", "x"), ("a", "x")], "ranks share a GPU"),
                                ([("a", "x"), ("b", "y")], "ranks are on 2 hosts")):
            self.assertEqual(exchange._no_common_host(names), expected)


# ===--- Parts ------------------------------------------------------------=== #


@unittest.skipIf(torch is None, "torch is not installed")
class Parts(unittest.TestCase):
    def check_parts(self, rows: int, columns: int, format: str, ranks: int) -> None:
        torch.manual_seed(1)
        layer = ft.WeightOnlyLinear.from_linear(
            torch.nn.Linear(columns, rows).bfloat16(), format=format)
        weight = layer.weight + 0
        for dim in range(2):
            parts = [shards.part_of(layer, dim, rank, ranks) for rank in range(ranks)]
            self.assertTrue(torch.equal(torch.cat([one.weight + 0 for one in parts], dim), weight))
            assert layer.bias is not None
            biases = [one.bias for one in parts]
            self.assertTrue(torch.equal(torch.cat(biases) if not dim else sum(biases), layer.bias))

    def test_codes_stay(self) -> None:
        """Whole tiles, and parts of tiles."""
        for rows, columns in ((256, 128), (64, 64), (192, 128)):
            for format in ("nvfp4", "mxfp4"):
                with self.subTest(rows=rows, columns=columns, format=format):
                    self.check_parts(rows, columns, format, 2)

    def test_a_bias_that_is_infinite(self) -> None:
        plain = torch.nn.Linear(128, 128).bfloat16()
        plain.bias.data[3] = float("inf")
        layer = ft.WeightOnlyLinear.from_linear(plain)
        biases = [shards.part_of(layer, 1, rank, 2).bias for rank in range(2)]
        self.assertTrue(torch.equal(biases[0], plain.bias))
        self.assertTrue(torch.equal(biases[1], torch.zeros_like(plain.bias)))

    def test_a_scale_of_each_row(self) -> None:
        layers = [ft.WeightOnlyLinear.from_linear(torch.nn.Linear(128, 128, bias=False).bfloat16())
                  for _ in range(2)]
        layers[1].alpha = layers[1].alpha * 2
        merged = ft.merge_linears(*layers)
        for rank in range(2):
            part = shards.part_of(merged, 0, rank, 2)
            self.assertTrue(torch.equal(part.weight + 0, layers[rank].weight + 0))

    def test_a_norm_adds_its_parts(self) -> None:
        """The bits are those of the norm of a sum that was rounded before."""
        torch.manual_seed(1)
        parts = [torch.randn(3, 128) for _ in range(3)]
        residual, weight = torch.randn(3, 128).bfloat16(), torch.randn(128).bfloat16()
        device = fp4.Device("sim", target="sm_90a", check="strict")
        found = []
        for count, given in ((3, parts), (None, [(parts[0] + parts[1] + parts[2]).bfloat16()])):
            what = norm_programs.Norm(128, "bf16", "rms", 1e-6, "bf16", residual="rounded",
                                      parts=count)
            program = fp4.compile(norm_programs.norm_text(what), target="sm_90a").program(device)
            found.append(program(*given, residual, weight, verify=True))
        for one, other in zip(*found):
            self.assertTrue(torch.equal(one, other))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        in_a_process(int(sys.argv[1]), str(pathlib.Path(sys.argv[2])))
    else:
        unittest.main()
