"""Reads and writes NVFP4 and MXFP4 weights of models: safetensors files as compressed-tensors,
ModelOpt, gpt-oss and DeepSeek-V4 lay them out (docs/guides/python.md).

    with fp4.checkpoints.open("model/") as checkpoint:
        weight = checkpoint.read("model.layers.0.mlp.down_proj")    # an fp4.torch.Scaled
    fp4.checkpoints.write("model.safetensors", {"model.layers.0.mlp.down_proj": weight}, "modelopt")

    fp4.checkpoints.load_into(model, "model/")            # layers in 4 bits, and all other tensors
    fp4.checkpoints.save(model, "saved/", "compressed-tensors")

The bytes of data and block scales are never changed. A weight that goes from one layout to another
decodes to the same numbers to the last bit, or is refused. A file whose layout its tensors and its
config.json leave open, or about which they disagree, is an fp4.UsageError that names the tensor.

The module needs torch and safetensors, and `import fp4` does not import it.
"""

from ._detect import Entry
from ._global_scales import GlobalScale, restated
from ._layouts import LAYOUTS, Kind, Layout
from ._loading import MERGED
from ._merge import merge
from ._model import load_into, save
from ._read import Checkpoint, open
from ._write import quantization_config, write

__all__ = ["LAYOUTS", "MERGED", "Checkpoint", "Entry", "GlobalScale", "Kind", "Layout", "load_into",
           "merge", "open", "quantization_config", "restated", "save", "write"]
