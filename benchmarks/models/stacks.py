"""Kernels of other stacks in the layers of a model of transformers: Humming's linears in NVFP4, and
the experts of triton_kernels in MXFP4, as vLLM calls them.

Both are imported from the folder `stacks` of a benchmark, where the person who runs it puts the
unpacked wheel of humming-kernels, and `triton_kernels` from vllm/third_party of vLLM's wheel.
Without a package there is no such model.
"""
import concurrent.futures
import copy
import importlib.util
import sys

import torch

#: Error of a layer beside the product with the same numbers in bf16, of its largest result.
MOST_ERROR = 0.02
ALPHA, LIMIT = 1.702, 7.0  # of the clamped gate of gpt-oss


def models(folder, plain, ours, rows):
    """Models with kernels of other stacks, by the name of their column; for batches of `rows`."""
    sys.path.append(str(folder / "stacks"))
    if hasattr(plain.config, "num_local_experts"):
        return {"triton": with_experts(plain)} if importlib.util.find_spec("triton_kernels") else {}
    return {"humming": with_linears(plain, ours, rows)} if importlib.util.find_spec("humming") else {}


def sharing(model):
    """A copy of `model` that has its parameters."""
    return copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})


def check(name, result, expected):
    error = ((result.float() - expected.float()).abs().max() / expected.float().abs().max()).item()
    if not error <= MOST_ERROR:
        raise RuntimeError(f"{name}: the error must be at most {MOST_ERROR} of the largest result, but got {error}")


# ===--- Linears of Humming -------------------------------------------------=== #


class HummingLinear(torch.nn.Module):
    """x W^T for x [..., K] in bf16, where W has the codes and scales of `weight` in NVFP4."""

    def __init__(self, weight):
        super().__init__()
        from humming.layer import HummingLayer
        scaled = quantized(weight)
        schema = {"dtype": "float4e2m1", "scale_dtype": "float8e4m3", "group_size": 16, "scale_2_type": "tensor"}
        self.inner = HummingLayer(*weight.shape, schema, torch_dtype=torch.bfloat16).to(weight.device)
        self.inner.load_from_tensors({"weight": scaled.data.view(torch.uint8).view(torch.int32),
                                      "weight_scale": scaled.scales.view(torch.float8_e4m3fn),
                                      "weight_scale_2": (scaled.amax / 2688).view(1)})
        self.inner.transform()
        self.rows = weight.shape[0]

    def forward(self, x):
        return self.inner(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.rows)


def quantized(weight):
    import fp4.torch
    return fp4.torch.quantize(weight, layout="linear")


def linears_of(model):
    """Names of the linears of all layers."""
    return [name for name, module in model.named_modules()
            if name.startswith("model.layers.") and isinstance(module, torch.nn.Linear)]


def with_linears(plain, ours, rows):
    """`plain` with HummingLinear in the place of each linear of the layers; its kernels for batches
    of `rows` are compiled."""
    model = sharing(plain)
    for name in linears_of(plain):
        model.set_submodule(name, HummingLinear(plain.get_submodule(name).weight))
    compile_all([model.get_submodule(name) for name in linears_of(plain)], rows)
    for name in linears_of(plain):
        x = torch.randn(8, plain.get_submodule(name).in_features, device="cuda").bfloat16()
        check(name, model.get_submodule(name)(x), x @ (ours.get_submodule(name).weight + 0).to(x.dtype).T)
    return model


def merged_linears(model):
    """HummingLinear layers of the matmuls of all layers by name, merged as vLLM merges them."""
    def made(*layers):
        return HummingLinear(torch.cat([layer.weight for layer in layers]))
    parts = {}
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for name, one in {"qkv": made(attention.q_proj, attention.k_proj, attention.v_proj), "out": made(attention.o_proj),
                          "gate and up, merged": made(mlp.gate_proj, mlp.up_proj), "down": made(mlp.down_proj)}.items():
            parts.setdefault(name, []).append(one)
    return parts


def compile_all(layers, rows):
    """Calls a layer of each shape with each number of rows, on several threads of the host."""
    shapes = {(layer.rows, layer.inner.shape_k): layer for layer in layers}

    def call(layer, count):
        layer(torch.zeros(count, layer.inner.shape_k, dtype=torch.bfloat16, device="cuda"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda work: call(*work), [(layer, count) for layer in shapes.values() for count in rows]))


# ===--- Experts of triton_kernels -------------------------------------------=== #


class TritonExperts(torch.nn.Module):
    """The mixture of gpt-oss, router included, of x [tokens, K] in bf16, with MXFP4 weights."""

    def __init__(self, mixture):
        super().__init__()
        self.router, self.top = mixture.router, mixture.router.top_k
        experts = mixture.experts
        self.unit, self.unit_config, self.unit_numbers = in_layout_of_hopper(experts.gate_up_proj.data)
        self.down, self.down_config, self.down_numbers = in_layout_of_hopper(experts.down_proj.data)
        self.biases = experts.gate_up_proj_bias.data.float(), experts.down_proj_bias.data.float()

    def forward(self, x):
        from triton_kernels import swiglu
        from triton_kernels.matmul_ogs import FnSpecs, FusedActivation, matmul_ogs
        tokens = x.reshape(-1, x.shape[-1])
        logits = torch.nn.functional.linear(tokens, self.router.weight, self.router.bias)
        routing, gather, scatter = routed(logits, self.top)
        gate = FusedActivation(FnSpecs("swiglu", swiglu.swiglu_fn, ("alpha", "limit"), reduction_n=2), (ALPHA, LIMIT))
        between = matmul_ogs(tokens, self.unit, self.biases[0], routing, gather_indx=gather, precision_config=self.unit_config,
                             fused_activation=gate)
        result = matmul_ogs(between.view(-1, between.shape[-1]), self.down, self.biases[1], routing, scatter_indx=scatter,
                            precision_config=self.down_config, gammas=routing.gate_scal)
        return result.view(x.shape), logits


def routed(logits, top):
    """Operands of matmul_ogs that a router gives: tokens of each expert, and both permutations."""
    from triton_kernels.matmul_ogs import GatherIndx, RoutingData, ScatterIndx
    from triton_kernels.tensor import make_ragged_tensor_metadata
    from triton_kernels.topk import topk
    sparse = topk(logits, top, apply_softmax=True)
    metadata = sparse.mask_metadata
    to_experts, from_experts = metadata.row_sorted_indx, metadata.col_sorted_indx
    ragged = make_ragged_tensor_metadata(metadata.col_sum, to_experts.shape[0])
    routing = RoutingData(sparse.vals.flatten()[from_experts], ragged.slice_sizes, logits.shape[1], top, ragged)
    return routing, GatherIndx(from_experts, to_experts), ScatterIndx(to_experts, from_experts)


def in_layout_of_hopper(weights):
    """[experts, K, N] in bf16 as an MXFP4 operand, its configuration, and the numbers of its first
    expert, in bf16."""
    from triton_kernels.matmul_ogs import FlexCtx, PrecisionConfig
    from triton_kernels.matmul_ogs_details.opt_flags import update_opt_flags_constraints
    from triton_kernels.numerics import InFlexData
    from triton_kernels.numerics_details.mxfp import downcast_to_mxfp_torch, upcast_from_mxfp_torch
    from triton_kernels.tensor import FP4, convert_layout, wrap_torch_tensor
    from triton_kernels.tensor_details import layout
    update_opt_flags_constraints({"split_k": 1})  # as vLLM does on Hopper
    codes, scales = (torch.cat(parts) for parts in zip(*(
        downcast_to_mxfp_torch(one[None], torch.uint8, axis=1) for one in weights)))
    numbers = upcast_from_mxfp_torch(codes[:1], scales[:1], torch.bfloat16, axis=1)[0]
    of_codes, code_options = layout.make_default_matmul_mxfp4_w_layout(mx_axis=1)
    of_scales, scale_options = layout.make_default_matmul_mxfp4_w_scale_layout(mx_axis=1, num_warps=8)
    # The layouts want consecutive elements of K.
    codes, scales = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (codes, scales))
    operand = convert_layout(wrap_torch_tensor(codes, dtype=FP4), of_codes, **code_options)
    scales = convert_layout(wrap_torch_tensor(scales), of_scales, **scale_options)
    return operand, PrecisionConfig(weight_scale=scales, flex_ctx=FlexCtx(rhs_data=InFlexData())), numbers


def with_experts(plain):
    """`plain` with TritonExperts in the place of each mixture; the first expert of the first one is
    compared with its matmuls in bf16."""
    model = sharing(plain)
    for number, layer in enumerate(plain.model.layers):
        made = TritonExperts(layer.mlp)
        if number == 0:
            check_expert(made)
        made.unit_numbers = made.down_numbers = None
        model.model.layers[number].mlp = made
    return model


def check_expert(mixture):
    """Compares tokens that one expert alone serves."""
    router = mixture.router
    x = torch.randn(16, router.weight.shape[1], device="cuda").bfloat16()
    bias, router.bias = router.bias, torch.nn.Parameter(torch.full_like(router.bias, -1e4), requires_grad=False)
    router.bias[0] = 1e4
    result = mixture(x)[0]
    router.bias = bias
    gate, up = (x.float() @ mixture.unit_numbers.float() + mixture.biases[0][0]).view(len(x), -1, 2).unbind(-1)
    gate, up = gate.clamp(max=LIMIT), up.clamp(-LIMIT, LIMIT)
    between = (gate * torch.sigmoid(ALPHA * gate) * (up + 1)).bfloat16()
    check("triton_kernels", result, between.float() @ mixture.down_numbers.float() + mixture.biases[1][0])
