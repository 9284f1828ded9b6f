"""The GEMMs of gau-nernst's tutorial for tcgen05, in the order in which it improves them."""

SOURCE = "learn-cuda"
HAZARDS = {"eager": "deadlock", "lazy": "lapped-wait"}  # by the order of warps
LAPPED = "three warps wait for a barrier whose next phase does not wait for them: they are lapped, or wait forever"


def _version(name):
    hazard = name[0] in "123"
    return {"devices": ("b200",), "against": "exact sums", "verdict": HAZARDS if hazard else "pass",
            "reason": LAPPED if hazard else "",
            "program": {"file": "{programs}/tcgen05.cu", "architecture": "100a",
                        "flags": ("-I{programs}/include", "-I{learn-cuda}/02e_matmul_sm100",
                                  f"-DFUNCTION=matmul_v{name}",
                                  "{learn-cuda}/02e_matmul_sm100/matmul_v" + name.rstrip("abc") + ".cu")}}


PROGRAMS = {f"v{name}": _version(name) for name in ("0", "1a", "1b", "2a", "2b", "3", "4", "5", "6",
                                                    "7a", "7b", "7c")}
