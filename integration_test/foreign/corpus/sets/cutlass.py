"""Examples and CuTe tutorials of CUTLASS, which verify themselves; cutlass.txt has one a line."""
import pathlib

SOURCE = "cutlass"
PASSES = r"(?i)passed|test pass|success|\[OK\]|vector relative error: *[0-9.]+e-0[4-9]"
FLAGS = ("-std=c++17", "-DCUTLASS_ENABLE_TENSOR_CORE_MMA=1", "-DCUTE_USE_PACKED_TUPLE=1",
         "-I{cutlass}/include", "-I{cutlass}/tools/util/include", "-I{cutlass}/examples/common")


def _examples():
    for line in pathlib.Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, device, architecture, source, verdict, arguments = (word.strip() for word in line.split("|"))
            yield name, {
                "devices": (device,), "policies": ("eager",), "against": "itself", "limit": 900,
                "verdict": verdict, "reason": "" if verdict == "pass" else "docs/reference/found-bugs.md",
                "program": {"file": "{cutlass}/examples/" + source, "architecture": architecture,
                            "flags": (*FLAGS, "-I{cutlass}/examples/" + source.rpartition("/")[0]),
                            "arguments": arguments, "passes": PASSES, "fails": r"(?i)failed|\[FAIL\]"}}


PROGRAMS = dict(_examples())
