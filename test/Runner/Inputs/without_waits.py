"""without_waits.py UTILS LIBRARY EDITS: for fp4-run --edits, the GEMM of a library as it is, and without each of its waits
for an mbarrier."""
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import mutate

product = next(text for text in mutate.kernels(pathlib.Path(sys.argv[2])) if "wgmma" in text)
waits = [mutant.edit for mutant in mutate.mutants([product]) if mutant.what == "mbarrier wait deleted"]
mutate.write_edits([mutate.Edit(product, 0, 0, ""), *waits], pathlib.Path(sys.argv[3]))
