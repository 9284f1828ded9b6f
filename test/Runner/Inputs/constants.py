"""A program whose weights are constants, and the same with arguments for them, with their .npy files.

Rows and blocks are no multiples of 128 and 4, so that scales have padding; rows of 160 elements are
padded in the buffers that TMA reads.
"""
import pathlib
import random
import struct
import sys

random.seed(1)
folder = pathlib.Path(sys.argv[1])
M, N, K = 5, 40, 160
codes = [random.randrange(16) for _ in range(N * K)]
packed = bytes(codes[i] | codes[i + 1] << 4 for i in range(0, N * K, 2))
scales = bytes(random.randrange(124, 131) for _ in range(N * K // 32))  # f8E8M0FNU
bf16 = b"".join(struct.pack("<f", random.gauss(0, 1))[2:] for _ in range(N * K))


def npy(name, descr, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    (folder / f"{name}.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


npy("w", "|u1", (N, K // 2), packed)
npy("s", "|u1", (N, K // 32), scales)
npy("b", "<u2", (N, K), bf16)

W, S, B = f"tensor<{N}x{K}xf4E2M1FN>", f"tensor<{N}x{K // 32}xf8E8M0FNU>", f"tensor<{N}x{K}xbf16>"
TILED = S[:-1] + ", #fp4.scale_layout<tiled_128x4>>"
X, XQ, XS = f"tensor<{M}x{K}xbf16>", f"tensor<{M}x{K}xf4E2M1FN>", f"tensor<{M}x{K // 32}xf8E8M0FNU>"
XT = XS[:-1] + ", #fp4.scale_layout<tiled_128x4>>"
LHS, RHS = f"!fp4.scaled<mxfp4, {XQ}, {XT}>", f"!fp4.scaled<mxfp4, {W}, {TILED}>"
Y = f"tensor<{M}x{N}xf32>"
BODY = f"""
  %wt = fp4.swizzle_scales %s : {S} -> {TILED}
  %q, %xs = fp4.quantize %x {{format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}} : ({X}) -> ({XQ}, {XS})
  %xt = fp4.swizzle_scales %xs : {XS} -> {XT}
  %lhs = fp4.scaled %q, %xt : {LHS}
  %rhs = fp4.scaled %w, %wt : {RHS}
  %y = fp4.matmul %lhs, %rhs alpha %alpha : ({LHS}, {RHS}, tensor<f32>) -> {Y}
  %bq, %bs = fp4.quantize %b {{format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}} : ({B}) -> ({W}, {S})
  %bt = fp4.swizzle_scales %bs : {S} -> {TILED}
  %other = fp4.scaled %bq, %bt : {RHS}
  %z = fp4.matmul %lhs, %other : ({LHS}, {RHS}) -> {Y}
  return %y, %z, %wt : {Y}, {Y}, {TILED}
}}
"""
RESULTS = f"({Y} {{fp4.name = \"y\"}}, {Y} {{fp4.name = \"z\"}}, {TILED} {{fp4.name = \"wt\"}})"
(folder / "arguments.mlir").write_text(f"""
func.func @f(%x: {X}, %w: {W} {{fp4.name = "w"}}, %s: {S} {{fp4.name = "s"}}, %b: {B} {{fp4.name = "b"}}) -> {RESULTS} {{
  %alpha = arith.constant dense<0.5> : tensor<f32>{BODY}""")


def hexed(data):
    return data.hex().upper()


for name, blob in (("packed", packed), ("unpacked", bytes(codes))):
    (folder / f"{name}.mlir").write_text(f"""
func.func @f(%x: {X}) -> {RESULTS} {{
  %w = arith.constant dense_resource<weights> : {W}
  %s = arith.constant dense<"0x{hexed(scales)}"> : {S}
  %b = arith.constant dense<"0x{hexed(bf16)}"> : {B}
  %alpha = arith.constant dense<0.5> : tensor<f32>{BODY}
{{-#
  dialect_resources: {{ builtin: {{ weights: "0x01000000{hexed(blob)}" }} }}
#-}}
""")
