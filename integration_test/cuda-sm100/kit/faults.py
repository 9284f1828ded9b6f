"""Kernels that are wrong, to test that the kit survives them (FP4_KIT_FAULTS=1)."""
from __future__ import annotations

import os
from collections.abc import Iterator

from case import EVERY, HEADER, Case

OUTSIDE = f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out) {{
  .reg .b64 %at; mov.b64 %at, 16; st.global.b32 [%at], 1; ret;
}}
"""
ENDLESS = f"""{HEADER}.visible .entry k(.param .u64 p_in, .param .u64 p_out) {{
  .reg .b64 %out; .reg .b32 %v; .reg .pred %p; ld.param.u64 %out, [p_out]; mov.b32 %v, 0;
AGAIN:
  add.u32 %v, %v, 1; st.volatile.global.b32 [%out], %v; setp.ne.u32 %p, %v, 0; @%p bra AGAIN; bra AGAIN;
}}
"""


def cases() -> Iterator[Case]:
    if os.environ.get("FP4_KIT_FAULTS"):
        yield Case("fault_outside", OUTSIDE, b"", 16, targets=EVERY, block=32)
        yield Case("fault_endless", ENDLESS, b"", 16, targets=EVERY, block=32)
