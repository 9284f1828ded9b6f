"""Runs a Python script for CUDA, such as one of Triton, without a GPU.

    python -m fp4.sim [options] script.py [arguments]

The script is not changed. The script's "cuda" tensors are tensors of the CPU whose memory is that
of the device while kernels run, and its launches run in the simulator of `fp4-sim run`, with the
hazard checker. docs/reference/simulator.md says what such a script can rely on.
"""
