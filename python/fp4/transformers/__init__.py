"""Models of transformers with layers of fp4: from_pretrained makes them, and save_pretrained keeps
them.

    import fp4.transformers                          # before from_pretrained: it registers fp4

    model = transformers.AutoModelForCausalLM.from_pretrained(
        "model-bf16", quantization_config=fp4.transformers.FP4Config(format="nvfp4"))
    model.save_pretrained("model-fp4")
    model = transformers.AutoModelForCausalLM.from_pretrained("model-fp4")

    fp4.transformers.register("modelopt", "compressed-tensors")
    model = transformers.AutoModelForCausalLM.from_pretrained("model-NVFP4")

The quant_method of a saved model is "fp4". The file has one byte under the name of each linear
weight, whose shape transformers refuses: without the import the weights would be random.
"""

from ._config import FP4Config
from ._quantizer import FP4HfQuantizer as FP4HfQuantizer  # which the import registers
from ._stored import register

__all__ = ["FP4Config", "register"]
