"""The cases of test_dist.py, which both ranks run: `python dist_cases.py RANK STORE REPORT`.

A case raises if something is wrong. The report has a line for each, "name", or "name: what failed".
integration_test/python-cuda/two_gpus.py runs the same cases with NCCL on two GPUs.
"""

import copy
import pathlib
import sys
import traceback
from collections.abc import Callable
from typing import Any
from unittest import mock

import fp4
import fp4.dist as fd
import fp4.torch as ft
import torch
import torch.distributed as dist
from fp4.dist import experts, groups
from fp4.torch import layers, shards
from fp4.torch.router import Rule
from torch.distributed.tensor import Replicate, Shard

K = 256
DEVICE = "cpu"
CASES: "dict[str, Callable[[int], None]]" = {}


def case(function: "Callable[[int], None]") -> "Callable[[int], None]":
    CASES[function.__name__] = function
    return function


def matrix(rows: int, columns: int = K, seed: int = 1) -> Any:
    """Makes the same matrix on every rank and device; the largest element is in the last row."""
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    x[-1, -1] = 9
    return x.to(torch.bfloat16).to(DEVICE)


def expect(condition: Any, what: str) -> None:
    if not condition:
        raise AssertionError(what)


def same(one: Any, other: Any, what: str) -> None:
    if isinstance(one, ft.Scaled):
        expect(one.same(other), f"{what}: {one!r} and {other!r} have other bytes")
    else:
        expect(one.dtype == other.dtype and torch.equal(one, other), f"{what}: other numbers")


def refused(words: str, function: "Callable[..., Any]", *arguments: Any, **options: Any) -> None:
    try:
        function(*arguments, **options)
    except fp4.UsageError as error:
        expect(words in str(error), f"expected {words!r}, but got: {error}")
    else:
        raise AssertionError(f"expected an error with {words!r}")


def mine(whole: Any, sizes: "tuple[int, int]", rank: int) -> Any:
    """Returns this rank's rows."""
    return whole[sum(sizes[:rank]):][:sizes[rank]].contiguous()


SIZES = ((64, 64), (100, 100), (128, 128), (64, 100), (128, 0))


@case
def rows_equal_the_quantized_whole(rank: int) -> None:
    for sizes in SIZES:
        x = matrix(sum(sizes))
        for options in ({}, {"format": "mxfp4"}, {"recipe": "torchao"}):
            q = fd.quantize(mine(x, sizes, rank), **options)
            same(fd.all_gather(q), ft.quantize(x, **options), f"{sizes} {options}")
            same(fd.all_gather(q, sizes=sizes), ft.quantize(x, **options), f"{sizes}, no exchange")
    x = matrix(200)
    q = fd.quantize(mine(x, (100, 100), rank), layout="linear")
    same(fd.all_gather(q), ft.quantize(x, layout="linear"), "linear")
    same(fd.all_gather(q, layout="tiled_128x4"), ft.quantize(x), "linear to tiled")


@case
def an_amax_for_each_row_is_gathered(rank: int) -> None:
    for sizes in ((64, 64), (64, 100)):
        x = matrix(sum(sizes))
        q = ft.quantize(mine(x, sizes, rank), per_row=True)
        same(fd.all_gather(q), ft.quantize(x, per_row=True), f"{sizes}")


@case
def columnwise_shards_lie_side_by_side(rank: int) -> None:
    for sizes in ((64, 64), (128, 128), (64, 128)):
        x = matrix(sum(sizes), 80)
        for format in ("nvfp4", "mxfp4"):
            q = fd.quantize(mine(x, sizes, rank), transpose=True, format=format)
            whole = ft.quantize(x, transpose=True, format=format)
            same(fd.all_gather(q, dim=1), whole, f"{sizes} {format}")
    same(fd.all_gather(q, dim=1, sizes=sizes, layout="linear"), ft.swizzle(whole, "linear"),
         "linear, no exchange")


INTERLEAVE = """
func.func @f(%q: tensor<160x64xf4E2M1FN>, %s: tensor<160x4xf8E4M3FN>)
    -> (tensor<80x128xf4E2M1FN>, tensor<80x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %qt = fp4.interleave_shards %q {shards = 2 : i64}
      : tensor<160x64xf4E2M1FN> -> tensor<80x128xf4E2M1FN>
  %st = fp4.interleave_shards %s {shards = 2 : i64}
      : tensor<160x4xf8E4M3FN> -> tensor<80x8xf8E4M3FN>
  %t = fp4.swizzle_scales %st
      : tensor<80x8xf8E4M3FN> -> tensor<80x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %qt, %t : tensor<80x128xf4E2M1FN>, tensor<80x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
"""
_TILED = "f8E4M3FN, #fp4.scale_layout<tiled_128x4>>"
STACK = f"""
func.func @f(%a: tensor<100x16x{_TILED}, %b: tensor<100x16x{_TILED}) -> tensor<200x16x{_TILED} {{
  %s = fp4.stack_scales %a, %b
      : (tensor<100x16x{_TILED}, tensor<100x16x{_TILED}) -> tensor<200x16x{_TILED}
  return %s : tensor<200x16x{_TILED}
}}
"""


@case
def gathers_are_the_operations_of_the_compiler(rank: int) -> None:
    """fp4.interleave_shards and fp4.stack_scales, on what every rank can compute by itself."""
    x, target = matrix(128, 80), "sm_100a" if DEVICE == "cpu" else "sm_90a"
    shards = [ft.quantize(mine(x, (64, 64), each), transpose=True, layout="linear",
                          amax=ft.amax(x)) for each in (0, 1)]
    data, scales = (torch.cat([getattr(each, name).view(torch.uint8) for each in shards])
                    for name in ("data", "scales"))
    wanted = fp4.compile(INTERLEAVE, target=target)(data, scales)
    found = fd.all_gather(shards[rank], dim=1, layout="tiled_128x4")
    for one, other in zip((found.data, found.scales), wanted):
        same(one.view(torch.uint8), other.view(torch.uint8), "interleave_shards")
    x = matrix(200)
    tiles = [ft.quantize(mine(x, (100, 100), each), amax=ft.amax(x)) for each in (0, 1)]
    wanted = fp4.compile(STACK, target=target)(*(each.scales for each in tiles))
    same(fd.all_gather(tiles[rank]).scales.view(torch.uint8), wanted.view(torch.uint8),
         "stack_scales")


@case
def column_parallel(rank: int) -> None:
    source = torch.nn.Linear(K, 64, dtype=torch.bfloat16)
    with torch.no_grad():
        source.weight.copy_(matrix(64, seed=2))
        source.bias.copy_(matrix(1, 64, seed=3)[0])
    source.to(DEVICE)
    for format in ("nvfp4", "mxfp4"):
        whole = ft.QuantizedLinear.from_linear(source, format=format, activations="tensor")
        for sizes in SIZES[:4]:
            x = matrix(sum(sizes))
            layer = fd.ColumnParallelLinear.from_linear(source, format=format,
                                                        sequence_parallel=True)
            with torch.no_grad():
                expected = whole(x)[:, 32 * rank:][:, :32]
                same(layer(mine(x, sizes, rank)), expected, f"{format} {sizes}")
                same(layer(mine(x, sizes, rank), sizes), expected, "without an exchange")
                layer = fd.ColumnParallelLinear.from_linear(source, format=format)
                same(layer(x.view(2, -1, K)).view(-1, 32), expected, f"{format}, whole rows")


@case
def row_parallel(rank: int) -> None:
    x, w, bias = matrix(96), matrix(48, seed=2), matrix(1, 48, seed=3)[0]
    half = slice(K // 2 * rank, K // 2 * (rank + 1))
    source = torch.nn.Linear(K, 48, dtype=torch.bfloat16).to(DEVICE)
    with torch.no_grad():
        source.weight.copy_(w)
        source.bias.copy_(bias)
    parts = [ft.linear(*(ft.quantize(each[:, begin:begin + K // 2].contiguous(),
                                     amax=ft.amax(each)) for each in (x, w)),
                       dtype=torch.float32) for begin in (0, K // 2)]
    expected = ((parts[0] + parts[1]) + bias).to(torch.bfloat16)
    for sequence_parallel in (False, True):
        layer = fd.RowParallelLinear.from_linear(source, sequence_parallel=sequence_parallel)
        with torch.no_grad():
            y = layer(x[:, half].contiguous())
        rows = slice(48 * rank, 48 * (rank + 1)) if sequence_parallel else slice(None)
        same(y, expected[rows], f"sequence_parallel={sequence_parallel}")
    whole = ft.linear(ft.quantize(x), ft.quantize(w), bias, torch.float32)
    error = (expected.float() - whole).norm() / whole.norm()
    expect(error < 3e-3, f"{error} from the product that is not sharded")


@case
def row_parallel_sums_that_are_exact(rank: int) -> None:
    """Small whole numbers in MXFP4: no order of additions rounds, so all bits must agree."""
    generator = torch.Generator().manual_seed(4)
    x, w = (torch.randint(-3, 4, (rows, K), generator=generator).to(torch.bfloat16).to(DEVICE)
            for rows in (64, 32))
    half = slice(K // 2 * rank, K // 2 * (rank + 1))
    weight = fd.quantize(w[:, half].contiguous(), format="mxfp4")
    y = fd.row_parallel_linear(x[:, half].contiguous(), weight, dtype=torch.float32)
    same(y, x.float() @ w.float().T, "whole numbers")
    same(y, ft.linear(*(ft.quantize(each, format="mxfp4") for each in (x, w)),
                      dtype=torch.float32), "the product that is not sharded")


def mixture(rule: "dict[str, Any]", *, experts: int = 8, corrects: bool = False, size: int = 96,
            format: str = "nvfp4", activation: str = "silu", shares: bool = False) -> Any:
    """A layer of experts, the same on all ranks: as gpt-oss or, with a correction and shared
    experts, as DeepSeek-V3."""
    hidden = 64
    stacks = [torch.stack([matrix(*shape, seed=10 * seed + number) for number in range(experts)])
              for seed, shape in enumerate(((size, hidden), (size, hidden), (hidden, size)), 1)]

    def bias(columns: int, seed: int) -> Any:
        return None if shares else torch.nn.Parameter(matrix(experts, columns, seed), False)
    up = ft.WeightOnlyExperts.from_stack(
        stacks[0], bias(size, 4), gate=stacks[1], gate_bias=bias(size, 5), activation=activation,
        format=format)
    down = ft.WeightOnlyExperts.from_stack(stacks[2], bias(hidden, 6), format=format)
    router = ft.Router(torch.nn.Parameter(matrix(experts, hidden, 7), False), Rule(**rule),
                       correction=matrix(1, experts, 8)[0].float() / 9 if corrects else None,
                       in_float32=corrects)
    shared = torch.nn.Linear(hidden, hidden, dtype=torch.bfloat16).to(DEVICE) if shares else None
    if shared is not None:
        with torch.no_grad():
            shared.weight.copy_(matrix(hidden, hidden, 9))
            shared.bias.fill_(0.25)
    return ft.MoE(router, ft.RoutedExperts(up, down), shared)


#: Two experts of a token: a sum of two numbers has the same bits in any order.
PAIRS: "dict[str, dict[str, Any]]" = {
    "gpt-oss": {"rule": {"k": 2, "scores": "logits", "renormalize": "softmax"},
                "format": "mxfp4", "activation": "gpt_oss"},
    "DeepSeek-V3": {"rule": {"k": 2, "scores": "sigmoid", "renormalize": "sum", "num_groups": 2,
                             "top_groups": 1, "factor": 2.5, "eps": 1e-20},
                    "corrects": True, "shares": True},
    "Mixtral": {"rule": {"k": 2, "renormalize": "sum"}, "shares": True}}


@case
def experts_of_all_ranks(rank: int) -> None:
    """The bits of the mixture that is not shared, whichever ranks have the rows."""
    for name, options in PAIRS.items():
        whole = mixture(**options)
        layer, each = (fd.ExpertParallelMoE(whole, sequence_parallel=own) for own in (False, True))
        expect(layer.moe.experts.first == 4 * rank and layer.moe.experts.num_experts == 4, name)
        for sizes in ((5, 5), (2, 7), (6, 0), (0, 1)):
            x = matrix(sum(sizes), 64)
            with torch.no_grad():
                y, own = whole(x), mine(x, sizes, rank)
                same(layer(x), y, f"{name} {sizes}")
                same(each(own), mine(y, sizes, rank), f"{name} {sizes}, dispatched")
                same(each(own, sizes), mine(y, sizes, rank), f"{name} {sizes}, fixed")
        same(layer(x.view(1, -1, 64)), y.view(1, -1, 64), f"{name}, a batch")


@case
def rows_travel_to_ranks_of_their_experts(rank: int) -> None:
    """A row travels once to each rank that has experts of it, and to no other one."""
    whole = mixture(**PAIRS["gpt-oss"])
    layer = fd.ExpertParallelMoE(whole, sequence_parallel=True)
    x = mine(matrix(40, 64), (20, 20), rank)
    owners = [set((ids // 4).tolist()) for ids in whole._choose(x)[1]]
    wanted = [sum(each in owner for owner in owners) for each in (0, 1)]
    expect(min(wanted) > 0 and sum(wanted) < 40, f"some rows stay: {wanted}")
    moves: list[list[int]] = []
    moved = experts._moved

    def counting(rows: Any, out: Any, back: Any, group: Any) -> Any:
        moves.append(list(out))
        return moved(rows, out, back, group)

    with mock.patch.object(experts, "_moved", counting):
        layer(x)
    expect(moves[0] == wanted, f"sent {moves[0]}, but {wanted} have experts there")


@case
def mixtures_that_do_not_fit(rank: int) -> None:
    rule, x = {"k": 2}, matrix(4, 64)
    refused("the experts must be a multiple of the 2 ranks, but there are 5",
            fd.ExpertParallelMoE, mixture(rule, experts=5, shares=True))
    whole = mixture(rule, shares=True)
    layer, each = (fd.ExpertParallelMoE(whole, sequence_parallel=own) for own in (False, True))
    refused("'x' must be [..., 64], but got [4, 96]", layer, matrix(4, 96))
    refused("'sizes' must come with 'sequence_parallel'", layer, x, [4, 4])
    refused(f"'sizes' must be the rows of 2 ranks, of which rank {rank} has 4", each, x, [3, 3])
    refused("has no gradient", layer, x.clone().requires_grad_())
    other = shards.experts_of_rank(whole.experts, shards.Part(0, 1 - rank, 2))
    refused("the experts must be all 8, but are 4", fd.ExpertParallelMoE,
            ft.MoE(whole.router, other, whole.shared))
    own = shards.experts_of_rank(whole.experts, shards.Part(0, rank, 2))
    made = fd.ExpertParallelMoE(ft.MoE(whole.router, own, whole.shared))
    same(made(x), layer(x), "experts that are this rank's already")


@case
def traffic(rank: int) -> None:
    for sizes, format in (((64, 64), "nvfp4"), ((100, 100), "nvfp4"), ((128, 128), "mxfp4")):
        received = []
        gather = groups._gather

        def counting(out: Any, piece: Any, received: Any = received, gather: Any = gather,
                     **options: Any) -> Any:
            received.append(out.nbytes - piece.nbytes)
            return gather(out, piece, **options)

        q = fd.quantize(mine(matrix(sum(sizes)), sizes, rank), format=format)
        with mock.patch.object(groups, "_gather", counting):
            fd.all_gather(q, sizes=sizes)
        found = fd.gather_traffic((sizes[0], K), 2, format)
        expect(sum(received) == found.bytes, f"{received} bytes, but {found}")
        expect(found.ratio == (32 / 9 if format == "nvfp4" else 64 / 17), f"{found.ratio}")


@case
def shards_that_do_not_fit(rank: int) -> None:
    x = matrix(64)
    q = fd.quantize(x)
    refused("all shards must have the amax", fd.all_gather, ft.quantize(x * (rank + 1)))
    refused("all shards must have the format nvfp4, as rank 0 has, but rank 1 has mxfp4",
            fd.all_gather, ft.quantize(x, format=("nvfp4", "mxfp4")[rank]))
    refused("columns of", fd.all_gather, ft.quantize(matrix(64, (256, 128)[rank]),
                                                     amax=torch.tensor(9.0, device=DEVICE)))
    refused("a 'dim' of", fd.all_gather, q, rank)
    refused("must be a multiple of 16 for dim=1, but rank 0 has 24", fd.all_gather,
            ft.quantize(matrix(64, 24)), 1)
    refused("one for each row", fd.all_gather, ft.quantize(x, per_row=True), 1)
    same(fd.all_gather(q), ft.quantize(torch.cat([x, x])), "a gather behind these errors")


@case
def wrong_arguments(rank: int) -> None:
    x = matrix(64)
    q = fd.quantize(x)
    refused("'sizes' must be 2 sizes", fd.all_gather, q, sizes=[64])
    refused(f"'sizes[{rank}]' must be the size 64", fd.all_gather, q, sizes=[63, 63])
    refused("'dim' must be 0 or 1", fd.all_gather, q, 2)
    refused("'layout' must be linear or", fd.all_gather, q, layout="swizzled")
    refused("'amax' must not be given", fd.quantize, x, amax=ft.amax(x))
    refused("must be bfloat16, float16 or float32", fd.quantize, x.to(torch.float64))
    refused("rows must be a multiple of 16", fd.quantize, matrix(100), transpose=True)
    refused("takes the scale of the tensor", fd.quantize, x,
            recipe="vllm, tensor_scale = supplied")
    refused("multiple of 2, the number of ranks", fd.row_parallel_linear, matrix(63), q,
            sequence_parallel=True)
    refused("has no gradient", fd.column_parallel_linear, matrix(64).requires_grad_(), q)
    refused("out_features must be a multiple of 32", fd.ColumnParallelLinear.from_linear,
            torch.nn.Linear(K, 48, device=DEVICE))
    for function, argument in ((fd.all_gather, x), (fd.quantize, [1.0]), (fd.amax, None)):
        try:
            function(argument)
        except TypeError as error:
            expect("must be" in str(error), str(error))
        else:
            raise AssertionError("expected a TypeError")


@case
def groups_that_do_not_fit(rank: int) -> None:
    x = matrix(64)
    first = dist.new_group([0])
    if rank == 0:
        same(fd.all_gather(fd.quantize(x, first), group=first), ft.quantize(x), "a group of one")
    else:
        refused("must be a member of 'group'", fd.quantize, x, first)
    if DEVICE == "cpu":
        with mock.patch.object(dist, "get_backend", return_value="nccl"):
            refused("must be on a CUDA device", fd.quantize, x)


@case
def layers_split_by_styles_of_torch(rank: int) -> None:
    """torch's parallelize_module with fp4's styles: DTensor knows how operations act on shards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    mesh = init_device_mesh(DEVICE, (2,))
    torch.manual_seed(3)
    up, down = (torch.nn.Linear(*sizes, dtype=torch.bfloat16).to(DEVICE)
                for sizes in ((128, 256), (256, 128)))
    x = matrix(5, 128)
    for weight_only in (True, False):
        plain = torch.nn.Sequential(copy.deepcopy(up), torch.nn.ReLU(), copy.deepcopy(down))
        ft.quantize_(plain, weight_only=weight_only)
        split = copy.deepcopy(plain)
        parallelize_module(split, mesh, {"0": fd.ColwiseParallel(), "2": fd.RowwiseParallel()})
        held, whole = (sum(value.nbytes for value in layer.buffers() if value.dim() > 1)
                       for layer in (split[0], plain[0]))
        expect(held * 2 == whole, f"each rank has half of the weight, not {held} of {whole}")
        with torch.no_grad():
            same(split[0](x), plain[0](x).chunk(2, 1)[rank].contiguous(), "columns")
            y, expected = split(x), plain(x)
        error = (y - expected).norm() / expected.norm()
        expect(y.shape == (5, 128) and error < (0.01 if weight_only else 0.1),
               f"weight_only={weight_only}: {error}")
        refused("out_features must be a multiple of 2", parallelize_module,
                ft.QuantizedLinear(ft.quantize(matrix(65))), mesh, fd.ColwiseParallel())


@case
def operations_on_shards(rank: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor

    fd.register_sharding()
    mesh = init_device_mesh(DEVICE, (2,))
    x = matrix(32, 128)

    def on(value: Any, place: Any) -> Any:
        return distribute_tensor(value, mesh, [place])

    for place in (Shard(0), Shard(1), Replicate()):
        same(torch.ops.fp4.amax(on(x, place), False).full_tensor(), ft.amax(x), f"amax {place}")
        same(torch.ops.fp4.amax(on(x, place), True).full_tensor(), ft.amax(x, per_row=True),
             f"amax of rows, {place}")
        same(torch.ops.fp4.hadamard(on(x, place), 1, 16, 0).full_tensor(),
             ft.hadamard(x, sign_mask=0), f"hadamard {place}")
    whole = ft.quantize(x, layout="linear")
    data, scales = torch.ops.fp4.quantize(
        on(x, Shard(0)), on(whole.amax, Replicate()), None, "nvfp4", whole.recipe, "linear", False,
        False, None)
    expect(data.placements == (Shard(0),) and scales.placements == (Shard(0),), "by rows")
    bytes_of = [value.to_local().view(torch.uint8) for value in (data, scales)]
    for found, expected in zip(bytes_of, (whole.data, whole.scales)):
        same(found, expected.view(torch.uint8).chunk(2)[rank].contiguous(), "shards of codes")
    back = torch.ops.fp4.dequantize(data, scales, on(whole.amax, Replicate()), "nvfp4",
                                    whole.recipe, torch.bfloat16)
    same(back.full_tensor(), ft.dequantize(whole), "and back")


@case
def training_with_fully_shard(rank: int) -> None:
    """FSDP2: gradients of both ranks' rows are averaged, also where activations are checkpointed,
    and weights that are gathered are quantized once for all micro-batches."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(3)
    whole = torch.nn.Sequential(ft.Linear(64, 64), torch.nn.ReLU(), ft.Linear(64, 32, bias=False))
    whole = whole.to(DEVICE, torch.bfloat16)
    sharded = copy.deepcopy(whole)
    for layer in (sharded[0], sharded[2], sharded):
        fully_shard(layer, mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.float32))

    def step(model: Any, number: int) -> "list[Any]":
        torch.manual_seed(number)
        x = matrix(32, 64, number).requires_grad_()
        checkpoint(model, x, use_reentrant=False).square().sum().backward()
        grads = [parameter.grad for parameter in model.parameters()]
        model.zero_grad()
        return grads

    pairs = zip(step(whole, 0), step(whole, 1))
    expected = [((one.float() + other.float()) / 2).bfloat16() for one, other in pairs]
    for _ in range(2):
        with ft.keep_weights(sharded), mock.patch.object(
                layers, "_quantize", side_effect=layers._quantize) as quantize:
            for _ in range(2):
                for found, wanted in zip(step(sharded, rank), expected):
                    same(found.full_tensor(), wanted, "averaged gradients")
        expect(quantize.call_count == 2 * 2 * 3 + 2, f"{quantize.call_count} quantizers")
        with torch.no_grad():  # the next step has other weights, which must be quantized again
            for parameter, mine in zip(whole.parameters(), sharded.parameters()):
                parameter.mul_(1.5)
                mine.mul_(1.5)
        pairs = zip(step(whole, 0), step(whole, 1))
        expected = [((one.float() + other.float()) / 2).bfloat16() for one, other in pairs]


def run(rank: int) -> "list[str]":
    """Every case; a line for each."""
    lines = []
    for name, function in CASES.items():
        try:
            function(rank)
            lines.append(name)
        except Exception:
            lines.append(f"{name}: {traceback.format_exc()}".replace("\n", "\\n"))
    return lines


def main() -> None:
    rank, store, report = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    report.write_text("\n".join(run(rank)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
