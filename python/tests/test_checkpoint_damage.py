"""Damaged checkpoints: each is read as what it says, or ends in an fp4.UsageError. Nothing crashes,
and no other exception escapes."""

import json
import pathlib
import random
import struct
import tempfile
import unittest
from typing import Any

import fp4
from programs import optional, torch

if torch is not None and optional("safetensors") is not None:
    import fp4.checkpoints as ck
    from safetensors.torch import save
    from test_checkpoints import tensors
else:
    ck = None

CASES = 300
DTYPES = ("U8", "I8", "F32", "F16", "BF16", "F8_E4M3", "F8_E8M0", "F4", "BOOL", "F64", "C64")
NAMES = ("a.weight", "a.weight_packed", "a_blocks", "x.blocks", "a.weight_scale",
         "a.weight_scale_2", "", "\u00e9")
CONFIGS = ("", "[]", "{", "null", '{"quantization_config": 3}',
           '{"quantization_config": {"quant_method": ["x"]}}',
           '{"quantization_config": {"quant_method": "modelopt", "config_groups": [1]}}',
           '{"quantization_config": {"producer": "x", "quantized_layers": {"a": 1}}}',
           '{"quantization_config": {"quant_method": "compressed-tensors", "format": ["q"]}}')


def split(raw: bytes) -> "tuple[dict[str, Any], bytes]":
    """The header of a file, and what follows."""
    size = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + size]), raw[8 + size:]


def joined(header: "dict[str, Any]", data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def with_other_bytes(raw: bytes, rng: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def with_other_header(raw: bytes, rng: random.Random) -> bytes:
    header, data = split(raw)
    name = rng.choice(list(header))
    entry = header[name]
    match rng.randrange(5):
        case 0:
            entry["dtype"] = rng.choice(DTYPES)
        case 1:
            shape = entry["shape"]
            entry["shape"] = rng.choice([[], [0], [1], shape[::-1], [*shape, 1], [1, *shape], [-1],
                                         [2**40]])
        case 2:
            entry["data_offsets"] = [rng.randrange(4000), rng.randrange(4000)]
        case 3:
            header[rng.choice(NAMES)] = header.pop(name)
        case 4:
            del header[name]
    return joined(header, data)


@unittest.skipIf(ck is None, "torch or safetensors is not installed")
class Damage(unittest.TestCase):
    def use(self, path: pathlib.Path) -> None:
        """Everything that can be read."""
        with ck.open(path) as checkpoint:
            for name, entry in checkpoint.items():
                checkpoint.read(name, expert=0 if entry.experts else None)
                checkpoint.input_scale(name)
            for name in checkpoint.others:
                checkpoint.tensor(name)

    def test_damaged_files(self) -> None:
        good = {layout: save(tensors(layout)[0]) for layout in ck.LAYOUTS}
        read = 0
        with tempfile.TemporaryDirectory() as folder:
            path, config = (pathlib.Path(folder, name) for name in ("x.safetensors", "config.json"))
            for seed in range(CASES):
                rng = random.Random(seed)
                raw = good[rng.choice(list(good))]
                what = rng.choice(["bytes", "header", "header", "length", "config"])
                if what == "bytes":
                    raw = with_other_bytes(raw, rng)
                elif what == "header":
                    raw = with_other_header(raw, rng)
                elif what == "length":
                    raw = raw[:rng.randrange(len(raw))]
                path.write_bytes(raw)
                config.write_text(rng.choice(CONFIGS) if what == "config" else "{}")
                with self.subTest(seed=seed, what=what):
                    try:
                        self.use(path)
                        read += 1
                    except fp4.UsageError as error:
                        self.assertRegex(error.message, "tensor|cannot read|must be|must hold|'a'")
        self.assertIn(read, range(CASES // 10, CASES * 2 // 3))


if __name__ == "__main__":
    unittest.main()
