"""The libraries that are compared: a file for each, which `ALL` names, fp4 first."""
from .cublas import Cublas
from .cutlass import Cutlass
from .deepgemm import DeepGemm
from .humming import Humming
from .ours import Ours
from .thunderkittens import ThunderKittens
from .triton_kernels import TritonKernels

ALL = (Ours, Cublas, Humming, DeepGemm, Cutlass, ThunderKittens, TritonKernels)
