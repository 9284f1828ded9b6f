"""Where the kernels come from. Nothing of them is stored here: `corpus.py prepare` fetches them."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Packages:
    """Pinned packages of PyPI in the environment that all sets in Python share."""

    version: str


@dataclasses.dataclass(frozen=True)
class Checkout:
    """A commit of a git repository, as a folder of its own."""

    url: str
    version: str  # the commit


SOURCES = {
    "cutlass": Checkout("https://github.com/NVIDIA/cutlass",
                        "7107b05535f8977f5ecb9d01ee203205b1fd9bc4"),
    "liger": Packages("liger-kernel 0.8.5"),
}
