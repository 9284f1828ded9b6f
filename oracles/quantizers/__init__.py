"""Bit-level numpy models of block quantizers: the oracle of lib/Numerics, a module for each family.

  formats       narrow floating-point numbers and their conversions
  mx            MXFP4
  wide          MXFP6 and MXFP8
  nvfp4         NVFP4
  ggml          the blocks of llama.cpp, in the tables of mx and nvfp4
  transforms    Hadamard transforms
  stochastic    stochastic rounding and its random numbers

Each model is one library's quantizer, written out on its own (lib/Numerics composes the same
results from named decisions, so the two share no structure). docs/reference/recipes.md has the
formulas."""
import numpy as np

np.seterr(all="ignore")
