"""Runs a Python script for CUDA, such as one of Triton, without a GPU.

    python -m fp4.sim [options] script.py [arguments]

The script is not changed: "cuda" tensors are tensors of the CPU, and launches run in the simulator.
docs/reference/simulator.md says what such a script can rely on.
"""
