"""The libraries that are compared: a file for each, which `ALL` names, fp4 first."""
from .cublas import Cublas
from .cutlass import Cutlass
from .deepgemm import DeepGemm
from .humming import Humming
from .ours import Ours

ALL = (Ours, Cublas, Humming, DeepGemm, Cutlass)
