"""Numbers that no weight has: NaN, infinities, and block scales that decode nothing.

A kernel takes them without a word. A NaN becomes some finite code, an infinite amax makes all other
elements zero, and hardware reads a negative E4M3 scale without its sign. So they are looked for
once, where a weight is read or quantized.
"""

from __future__ import annotations

import torch

from ..errors import UsageError

_KINDS = {"nvfp4": "E4M3", "mxfp4": "E8M0"}


def check_weight(weight: torch.Tensor, what: str = "the weight") -> None:
    """A UsageError that begins with `what` and names the first element of a weight that is NaN or
    infinite. The host waits for the device."""
    values = weight.detach()
    if values.is_meta or not values.numel():
        return
    least, most = values.aminmax()  # NaN is both
    if not bool(least.isfinite() & most.isfinite()):
        _refuse(~values.isfinite(), values, f"{what} must be finite",
                "a quantizer gives a NaN a finite code, and beside an infinity others are zero; "
                "check=False takes it")


def check_scales(scales: torch.Tensor, format: str, what: str, note: str) -> None:
    """A UsageError that begins with `what` and names the first block scale that is NaN or negative.

    Args:
        scales: linear, of their own dtype or uint8.
        format: "nvfp4" (E4M3) or "mxfp4" (E8M0).
    """
    data = scales.view(torch.uint8)
    if data.is_meta or not data.numel():
        return
    # -0 is no damage: every product of it is zero.
    is_bad = data == 0xFF if format == "mxfp4" else (data == 0x7F) | (data > 0x80)
    if not bool(is_bad.any()):
        return
    _refuse(is_bad, data, f"{what} must have {_KINDS[format]} scales that are numbers and not "
            "negative", note)


def _refuse(is_bad: torch.Tensor, tensor: torch.Tensor, message: str, note: str) -> None:
    count = int(is_bad.sum())
    index = [int(place[0]) for place in is_bad.nonzero(as_tuple=True)]
    value = tensor[tuple(index)].item()
    found = f"the byte {value:#04x}" if tensor.dtype == torch.uint8 else f"{value:g}"
    more = f", and {count - 1} more are wrong" if count > 1 else ""
    raise UsageError(f"{message}, but {index} is {found}{more}", note)
