"""The models of examples/python on a Hopper GPU.

    models.py record FOLDER         on a machine with the compiler and the weights
    models.py run FOLDER STEPS      on a machine with a GPU
"""

import json
import pathlib
import shutil
import sys
from typing import Any

import packed

SENTENCES, BATCH, LENGTH = 2048, 256, 64


def record(folder: pathlib.Path) -> None:
    packed.record(folder / "programs")
    import embeddings
    import layers
    import minilm
    import torch
    import train
    from safetensors.torch import load_file, save_file

    source = minilm.installed()
    for name in ("config.json", "vocab.txt"):
        shutil.copy(source / name, folder)
    tensors = load_file(source / "model.safetensors")
    save_file({name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()
               if tensor.is_floating_point()}, folder / "model.safetensors")
    model, tokens = minilm.load(source)
    rows = [tokens(text, LENGTH) for text in embeddings.docstrings(SENTENCES)]
    torch.save({"rows": rows, "original": embeddings.embed(model, rows, 64, "cpu")},
               folder / "sentences.pt")
    layers.record(folder)
    packed.without_running()
    for make in embeddings.variants(model).values():
        made = make()
        embeddings.embed(made, rows[:2], 2, "cpu")
        record_plans(made, rows)
    layers.record_sizes()
    options = train.parse(["--steps", "1"])
    models, batches = train.build(options)
    train.train(models["NVFP4"], batches, 1, 1)


def record_plans(model: Any, rows: "list[list[int]]") -> None:
    """Weights in 4 bits have programs for some numbers of rows: those of every batch."""
    import fp4.torch
    import torch

    counts = {size * length for length in range(1, LENGTH + 1)
              for size in (BATCH, len(rows) % BATCH)}
    for layer in model.modules():
        if isinstance(layer, fp4.torch.WeightOnlyLinear):
            for count in counts:
                layer(torch.empty(count, layer.in_features, dtype=torch.bfloat16))


def sentences(folder: pathlib.Path) -> None:
    import embeddings
    import minilm
    import torch

    found = torch.load(folder / "sentences.pt")
    rows, original = found["rows"], found["original"]
    model, _ = minilm.load(folder)
    print(f"{len(rows)} sentences, {sum(map(len, rows))} tokens; times of {BATCH} x {LENGTH}")
    print(f"{'':22}{'cosine':>8} {'least':>7} {'ranks':>7} {'nearest':>8} {'eager us':>9} "
          f"{'graph us':>9}")
    for name, make in embeddings.variants(model.cuda()).items():
        made = make()
        values = embeddings.compare(embeddings.embed(made, rows, BATCH, "cuda"), original)
        eager, graph = times(made, rows)
        print(f"{name:22}{values[0]:8.4f} {values[1]:7.4f} {values[2]:7.4f} {values[3]:8.1%} "
              f"{eager:9.0f} {graph:9.0f}")


def times(model: Any, rows: "list[list[int]]") -> "tuple[float, float]":
    """Median microseconds of a batch: launched by Python, and as a CUDA graph."""
    import minilm
    import torch

    ids, is_token = (tensor.cuda() for tensor in minilm.batch(rows[:BATCH], LENGTH))
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            model(ids, is_token)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        captured = model(ids, is_token)
    with torch.no_grad():
        expected = model(ids, is_token)
    graph.replay()
    torch.testing.assert_close(captured, expected, rtol=0, atol=0)
    with torch.no_grad():
        return median(lambda: model(ids, is_token)), median(graph.replay)


def median(work: Any) -> float:
    import torch

    found = []
    for index in range(40):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        if index >= 10:
            found.append(begin.elapsed_time(end) * 1000)
    return sorted(found)[len(found) // 2]


def run(folder: pathlib.Path, steps: int) -> None:
    import torch

    packed.replay(folder / "programs")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    import layers

    layers.run(folder)
    sentences(folder)
    import train

    curves = train.main(["--device", "cuda", "--steps", str(steps)])
    (folder / "curves.json").write_text(json.dumps(curves))
    for step in (0, -1):  # the curve is one of training, and the two stay together
        assert abs(curves["bf16"][step][2] - curves["NVFP4"][step][2]) < 0.2
    assert curves["NVFP4"][-1][2] < curves["NVFP4"][0][2] - 0.1 or steps < 200
    print("models: passed")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("record", "run"):
        sys.exit(__doc__)
    if sys.argv[1] == "record":
        record(pathlib.Path(sys.argv[2]).resolve())
    else:
        run(pathlib.Path(sys.argv[2]).resolve(), int(sys.argv[3]))
