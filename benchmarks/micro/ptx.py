"""PTX around a timed loop."""
from __future__ import annotations

HEADER = ".version @VERSION@\n.target @TARGET@\n.address_size 64\n"


def kernel(parameters: list[str], registers: str, body: str, shared: int = 0, block: int = 1024,
           cluster: int = 1) -> str:
    """A kernel `k` of 64-bit parameters, each loaded into a register %NAME."""
    listed = ", ".join(f".param .u64 p_{name}" for name in parameters)
    loads = "\n".join(f"  .reg .b64 %{name};\n  ld.param.u64 %{name}, [p_{name}];" for name in parameters)
    window = "  .extern .shared .align 1024 .b8 window[];\n" if not shared else ""
    size = f" .reqnctapercluster {cluster}, 1, 1" if cluster > 1 else ""
    return (f"{HEADER}{window.strip()}\n.visible .entry k({listed}) .maxntid {block}, 1, 1{size} {{\n{registers}\n"
            f"{loads}\n{body}\n  ret;\n}}\n")


CLOCK = """  .reg .b64 %begin, %end, %where;
  .reg .b32 %thread, %lane, %warp, %count;
  .reg .pred %more, %first;
  mov.u32 %thread, %tid.x;
  and.b32 %lane, %thread, 31;
  shr.u32 %warp, %thread, 5;
"""


def timed(setup: str, body: str, results: list[str], parameters: list[str] | None = None, registers: str = "",
          shared: int = 0, block: int = 1024, cluster: int = 1, teardown: str = "") -> str:
    """A kernel that runs `body` %rounds times between two readings of the clock and stores, for
    each warp, both at out + 16 * warp. `results` are registers of 32 bits that it pretends to
    need."""
    keep = "\n".join(f"  xor.b32 %sink, %sink, {name};" for name in results)
    return kernel(["out", "rounds", "magic"] + (parameters or []), registers, f"""{CLOCK}
  .reg .b32 %sink, %magic32;
{setup}
  cvt.u32.u64 %count, %rounds;
  cvt.u32.u64 %magic32, %magic;
  mov.b32 %sink, 0;
  bar.sync 0;
  mov.u64 %begin, %clock64;
LOOP:
{body}
  sub.u32 %count, %count, 1;
  setp.ne.u32 %more, %count, 0;
  @%more bra LOOP;
{keep}
  mov.u64 %end, %clock64;
  setp.eq.u32 %first, %lane, 0;
  mul.wide.u32 %where, %warp, 16;
  add.u64 %where, %where, %out;
  @%first st.global.v2.u64 [%where], {{%begin, %end}};
  setp.eq.u32 %first, %sink, %magic32;
  @%first st.global.u32 [%out], %sink;
{teardown}""", shared, block, cluster)
