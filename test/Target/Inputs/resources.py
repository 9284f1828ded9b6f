"""Prints what ptxas reported of each kernel of the gpu.binary ops on standard input."""
import re
import sys

for binary in re.finditer(r"gpu\.binary @(\w+) (.*)", sys.stdin.read()):
    table = binary.group(2).split("assembly = ")[0]
    for name, metadata in re.findall(r'kernel_metadata<"(\w+)".*?metadata = \{(.*?)\}', table):
        value = dict(re.findall(r"(\w+) = (-?\d+) : i64", metadata))
        print(
            f"{binary.group(1)} {name}: registers {value['registers']}, "
            f"spill {value['spill_bytes']}, stack {value['stack_bytes']}, "
            f"static shared {value['shared_bytes']}, dynamic {value['dynamic_shared_bytes']}"
        )
