"""Sources of the kernels, which `corpus.py prepare` fetches: nothing of them is stored here."""
import dataclasses


OWN = "triton-own"  # kernels of this project, which Triton compiles: they are not counted as foreign


@dataclasses.dataclass(frozen=True)
class Packages:
    """Pinned packages of PyPI in the environment that all sets in Python share."""

    version: str


@dataclasses.dataclass(frozen=True)
class Checkout:
    """A commit of a git repository, as a folder of its own."""

    url: str
    version: str  # the commit, or a tag


def _github(name, commit):
    return Checkout(f"https://github.com/{name}", commit)


SOURCES = {
    "cutlass": _github("NVIDIA/cutlass", "7107b05535f8977f5ecb9d01ee203205b1fd9bc4"),
    "deepgemm": _github("deepseek-ai/DeepGEMM", "54e22612409371d6364144b69086735beb54e98b"),
    "learn-cuda": _github("gau-nernst/learn-cuda", "1454f8b71499a68eacdbf44c08e36a7003d8ab99"),
    "vllm": _github("vllm-project/vllm", "v0.33.0"),
    "flashmla": _github("deepseek-ai/FlashMLA", "9241ae3ef9bac614dd25e45e507e089f888280e0"),
    "flashinfer": _github("flashinfer-ai/flashinfer", "fb28d7242b3506a2348265962041acc1fb56cca4"),
    "liger": Packages("liger-kernel 0.8.5"),
    "fla": Packages("flash-linear-attention 0.6.0"),
    "flag-gems": Packages("flag-gems 5.0.2"),
    "conch": Packages("conch-triton-kernels 1.3"),
    "quack": Packages("quack-kernels 0.6.5"),
    "flash-attn-4": Packages("flash-attn-4 4.0.0b36"),
    "tirx": Packages("tirx-kernels 0.1.2.post1"),
    OWN: Packages("triton 3.9.0"),
}
