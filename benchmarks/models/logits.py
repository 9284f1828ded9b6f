"""Logits of a decoder beside those of transformers in bf16 and in float32, with the numbers of the
quantized weights: an error that is too large is a RuntimeError."""
import sys

LONG = 8192  # tokens of a prompt that no step follows
MOST_ERROR = 1.5  # of that of transformers in bf16


def has_experts(model):
    return hasattr(model.config, "num_local_experts")


def equalize(exact, ours):
    """Gives the layers of `exact` the numbers that those of `ours` have in 4 bits."""
    import fp4.torch
    for name, layer in ours.named_modules():
        if isinstance(layer, fp4.torch.WeightOnlyLinear):
            exact.get_submodule(name).weight.copy_(layer.weight + 0)
        elif isinstance(layer, fp4.torch.RoutedExperts):
            in_4_bits(exact.get_submodule(name))


def in_4_bits(experts):
    """Gives gates, ups and downs of every expert of gpt-oss the numbers that they have in NVFP4."""
    import fp4.torch
    for stack, parts in ((experts.gate_up_proj, 2), (experts.down_proj, 1)):
        for matrix in stack:
            for part in range(parts):  # matrices are transposed, and gates and ups are in turns
                rows = matrix.t()[part::parts]
                rows.copy_(fp4.torch.dequantize(fp4.torch.quantize(rows.contiguous())))


def prompt_of(batch, length, number=0):
    import torch
    torch.manual_seed(batch + 1000 * number)
    return torch.randint(1, 128256, (batch, length), device="cuda")


def verify(decoder, batch, length, exact, wide):
    """Compares the logits of a prompt and of two steps, and returns the largest ratio of errors; of
    a mixture, that of the means over prompts of 8 rows at least."""
    import torch
    steps = 0 if length == LONG else 2
    prompts = max(1, 8 // batch) if has_experts(exact) and length != LONG else 1
    squares = torch.zeros(steps + 1, 2, dtype=torch.float64)
    for number in range(prompts):
        decoder.truncate()
        ids = prompt_of(batch, length, number)
        found = [decoder.prefill(ids).clone()]
        for _ in range(steps):
            ids = torch.cat([ids, decoder.token[:, None]], 1)
            found.append(decoder.step().clone())
        for place, logits in enumerate(found):
            part = ids[:, :length + place]
            true = last_logits(wide, part)
            for which, one in enumerate((logits, last_logits(exact, part))):
                squares[place, which] += ((one.float() - true).norm() / true.norm()).item() ** 2
    errors = (squares / prompts).sqrt()
    print(f"batch {batch}, {length} tokens: errors {errors[:, 0].tolist()}, of transformers in bf16 "
          f"{errors[:, 1].tolist()}", file=sys.stderr, flush=True)
    if has_experts(exact):
        errors = errors.square().mean(0, keepdim=True).sqrt()
    ratio = (errors[:, 0] / errors[:, 1]).max().item()
    if not ratio <= MOST_ERROR:
        raise RuntimeError(f"the logits have {ratio} times the error of transformers")
    return ratio


class Wide:
    """A model of transformers in bf16 that computes in float32: each layer is in float32 while it
    runs, so that the whole needs no second copy."""

    def __init__(self, model):
        self.model = model
        body = model.model
        self.others = [body.embed_tokens, body.norm, model.lm_head]
        self.layers = list(body.layers)

    def __call__(self, **arguments):
        hooks = [layer.register_forward_pre_hook(lambda layer, _: layer.float() and None) for layer in self.layers]
        hooks += [layer.register_forward_hook(lambda layer, _, __: layer.bfloat16() and None) for layer in self.layers]
        for module in self.others:
            module.float()
        try:
            return self.model(**arguments)
        finally:
            for hook in hooks:
                hook.remove()
            for module in self.others:
                module.bfloat16()


def last_logits(model, ids):
    """The logits behind the last of each row of `ids`; rows go through the model one by one."""
    import torch
    return torch.cat([model(input_ids=row[None], use_cache=False, logits_to_keep=1).logits[:, -1].float() for row in ids])
