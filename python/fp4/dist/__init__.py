"""fp4 on several GPUs: quantized shards, and layers that they share, on torch.distributed.

    torch.distributed.init_process_group("nccl")          # or gloo, on CPUs and the simulator
    q = fp4.dist.quantize(x)                 # the rows of this rank, with the amax of all ranks
    whole = fp4.dist.all_gather(q)           # the bytes that quantizing all rows gives
    layer = fp4.dist.ColumnParallelLinear.from_linear(linear, sequence_parallel=True)

    layer.mlp = fp4.dist.ExpertParallelMoE(moe)   # a rank has some experts of an fp4.torch.MoE

    plan = {"up": fp4.dist.ColwiseParallel(), "down": fp4.dist.RowwiseParallel()}
    torch.distributed.tensor.parallel.parallelize_module(mlp, mesh, plan)

Every function is collective: all ranks of the group must call it, in the same order. Quantized
values travel as uint8.
"""

from typing import TYPE_CHECKING, Any

from .collectives import all_gather, amax, quantize
from .experts import ExpertParallelMoE
from .linear import (
    ColumnParallelLinear,
    RowParallelLinear,
    column_parallel_linear,
    row_parallel_linear,
)
from .traffic import Traffic, gather_traffic

if TYPE_CHECKING:
    from .sharding import register as register_sharding
    from .styles import ColwiseParallel, RowwiseParallel

__all__ = ["ColumnParallelLinear", "ColwiseParallel", "ExpertParallelMoE", "RowParallelLinear",
           "RowwiseParallel", "Traffic", "all_gather", "amax", "column_parallel_linear",
           "gather_traffic", "quantize", "register_sharding", "row_parallel_linear"]


def __getattr__(name: str) -> Any:
    """DTensor takes a second to import, and only these names need it."""
    if name == "register_sharding":
        from .sharding import register
        return register
    if name in ("ColwiseParallel", "RowwiseParallel"):
        from . import styles
        return getattr(styles, name)
    raise AttributeError(f"module 'fp4.dist' has no attribute '{name}'")
