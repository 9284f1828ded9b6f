"""vLLM with layers of fp4: checkpoints in NVFP4 and MXFP4 by one flag.

    vllm serve MODEL --quantization fp4

The plugin is an entry point of vllm.general_plugins, and needs no import. Checkpoints are those of
compressed-tensors and ModelOpt in NVFP4, of compressed-tensors in MXFP4, and gpt-oss. Activations
stay 16 bits. Scales of keys and values go to vLLM's cache in FP8.
"""

from __future__ import annotations


def register() -> None:
    """Makes the quantization method "fp4" known to vLLM, which calls this function once or more in
    each of its processes."""
    from . import _config  # noqa: F401 (the import registers)
