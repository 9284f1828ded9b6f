"""DeepGEMM's FP8 and FP4 GEMMs for sm_100a with a host program of ours, whose sums are exact."""

SOURCE = "deepgemm"
UNUSED = "scale factors behind the tile are read that nobody wrote; the GEMM does not use them"


def _gemm(cluster, columns, *flags):
    return {"devices": ("b200",), "against": "exact sums", "limit": 600,
            "verdict": "pass" if columns == 128 else "unwritten", "reason": "" if columns == 128 else UNUSED,
            "program": {"file": "{programs}/deepgemm.cu", "architecture": "100a",
                        "flags": ("-I{deepgemm}/deep_gemm/include", "-I{cutlass}/include",
                                  f"-DCLUSTER_SIZE={cluster}", f"-DTILE_N={columns}", *flags)}}


PROGRAMS = {"fp8": _gemm(1, 128), "fp8_192_columns": _gemm(1, 192), "fp8_pair": _gemm(2, 128),
            "fp8_fp4": _gemm(1, 128, "-DFP4_B"), "fp8_fp4_pair": _gemm(2, 128, "-DFP4_B")}
