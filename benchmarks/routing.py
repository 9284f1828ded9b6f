#!/usr/bin/env python3
"""Routers, orders of tokens, and cross entropies, beside a copy, torch and torch.compile.

  benchmarks/routing.py pack BUILD FOLDER     compiles the programs for sm_90a into FOLDER
  benchmarks/routing.py run FOLDER [--json=FILE]

`pack` needs PyTorch, and `run` also a Hopper GPU. `run` verifies each program, times it with a cold
L2 beside a copy of as many bytes, and times plain torch and the code that torch.compile makes of
it. A line of JSON for each program and number of tokens has microseconds.
"""
import os

import kit
import norms

TOKENS = (1, 64, 512, 4096, 16384)
VOCABULARY = 151936
#: Routers with experts, experts of a token, and options of fp4.torch.route.
ROUTERS = {
    "gpt_oss": (128, 4, {"scores": "logits", "renormalize": "softmax"}),
    "qwen3": (128, 8, {"scores": "softmax", "renormalize": "sum"}),
    "deepseek_v3": (256, 8, {"scores": "sigmoid", "renormalize": "sum", "bias": "f32", "num_groups": 8,
                             "top_groups": 4, "factor": 2.5, "eps": 1e-20}),
}
KINDS = (*ROUTERS, "order", "loss", "gradient")
#: Most tokens of the logits of a vocabulary.
MOST = 4096


def program(kind):
    from fp4.torch import cross_entropies, routing_programs
    if kind in ROUTERS:
        experts, k, options = ROUTERS[kind]
        return routing_programs.route_text(routing_programs.Route(experts, "f32", k, **options))
    if kind == "order":
        types = "tensor<65xi64>, tensor<?x8xi64>, tensor<?xi64>"
        return (f"func.func @order(%ids: tensor<?x8xi32>) -> ({types}) {{\n  %o, %r, %t = fp4.expert_order %ids "
                f"{{experts = 64 : i64, multiple = 128 : i64}} : tensor<?x8xi32> -> {types}\n"
                f"  return %o, %r, %t : {types}\n}}\n")
    what = cross_entropies.Loss(VOCABULARY, "bf16")
    return cross_entropies.losses_text(what) if kind == "loss" else cross_entropies.gradients_text(what)


def pack(build, folder):
    kit.begin(folder, os.path.join(build, "bin", "fp4-run"), __file__, *norms.FILES)
    kit.compile_programs(build, folder, [(f"{kind}_0", program(kind))
                                         for kind in KINDS])


def in_torch(kind, tokens, torch):
    """The function in plain torch, and its arguments."""
    if kind in ROUTERS:
        experts, k, options = ROUTERS[kind]
        return router(k, options, torch), [torch.randn(tokens, experts, device="cuda")]
    if kind == "order":
        return ordered, [torch.randint(64, (tokens, 8), device="cuda", dtype=torch.int32)]
    logits = torch.randn(tokens, VOCABULARY, device="cuda").bfloat16()
    labels = torch.randint(VOCABULARY, (tokens,), device="cuda")

    def loss(logits, labels):
        return torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")

    def gradient(logits, labels):
        p = logits.float().softmax(-1)
        columns = torch.arange(VOCABULARY, device="cuda")
        return (p - (columns == labels[:, None]).float()).bfloat16()

    return loss if kind == "loss" else gradient, [logits, labels]


def router(k, options, torch):
    bias = torch.rand(256, device="cuda")

    def deepseek(x):
        s = x.sigmoid()
        groups = (s + bias).view(x.shape[0], 8, -1)
        best = groups.topk(2, -1).values.sum(-1).topk(4, -1).indices
        mask = torch.zeros(x.shape[0], 8, dtype=torch.bool, device="cuda").scatter_(1, best, True)
        ids = groups.masked_fill(~mask[..., None], float("-inf")).view(s.shape).topk(k, -1).indices
        w = s.gather(1, ids)
        return w * 2.5 / (w.sum(-1, keepdim=True) + 1e-20), ids.int()

    def plain(x):
        s = x.softmax(-1) if options["scores"] == "softmax" else x
        w, ids = s.topk(k, -1)
        return (w.softmax(-1) if options["renormalize"] == "softmax" else w / w.sum(-1, keepdim=True)), ids.int()

    return deepseek if "bias" in options else plain


def ordered(ids):
    flat = ids.flatten()
    order = flat.argsort(stable=True)
    return order, flat.bincount(minlength=64).cumsum(0), order.argsort(), order // ids.shape[1]


def measure(folder, tokens_of):
    import torch
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for kind in KINDS:
        for tokens in tokens_of:
            if kind in ("loss", "gradient") and tokens > MOST:
                continue
            row = {"kind": kind, "tokens": tokens, **norms.time_kernels(folder, kind, tokens, 0)}
            function, arguments = in_torch(kind, tokens, torch)
            row["torch"] = norms.time_torch(function, [arguments], flush, torch)
            if kind != "order":
                torch._dynamo.reset()
                row["compiled"] = norms.time_torch(torch.compile(function, dynamic=False), [arguments], flush, torch)
            yield row


if __name__ == "__main__":
    norms.run_by_tokens(__doc__, pack, measure, TOKENS)
