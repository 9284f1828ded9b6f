"""Checks the data of a page that --explore wrote, and prints what a test looks at: explore.py PAGE"""
import json
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
assert "FP4_DATA" not in page and "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "src=" not in page

phases = {phase["name"]: phase for phase in data["phases"]}
lines = {name: phase["text"].rstrip("\n").split("\n") for name, phase in phases.items()}
print("phases:", *phases)


def origins(name, word):
    """The texts that the lines of a phase with this word come from."""
    phase = phases[name]
    base = lines[phase["base"]]
    found = {base[at - 1].strip() for line, places in zip(phase["text"].split("\n"), phase["origins"])
             if word in line for at in places if at}
    return sorted(found)


def show(name, word):
    for text in origins(name, word):
        print(f"{name} {word} <- {phases[name]['base']}: {text}")


show("pipelined", "pipe.mma ")
for name in phases:
    if name.startswith("ptx "):
        show(name, "tcgen05.mma")
        show(name, "cp.async.bulk.tensor")
    if name.startswith("sass "):
        linked = sum(1 for places in phases[name]["origins"] if places)
        print(name, "is linked" if linked > len(lines[name]) // 2 else "has no lines")
for kernel in data["memory"]:
    for role in kernel["roles"]:
        print("role", kernel["module"], role["name"], role["first"], role["end"], *role["drives"])
    for extent in kernel["extents"]:
        limit = kernel["shared_bytes"] if extent["space"] == "shared" else kernel["tensor_columns"]
        end = extent["first"] + (extent["stages"] - 1) * extent["stride"] + extent["size"]
        assert end <= limit, (extent, limit)
        print("extent", extent["space"], extent["what"], "x", extent["stages"])
print("events of", *sorted({event["args"]["name"] for event in data["events"] if event.get("name") == "process_name"}))
scales = data["layout"]["scales"][0]
print("scale of (37, 5):", *scales["places"][37 * scales["blocks"] + scales["block_of"][5]])
print("hazards:", len(data["hazards"]), *(f"{each['rule']} at {each['first']['line']}" for each in data["hazards"]))
print("passed:", data["passed"])
