"""Checks the data of a page that --explore wrote, and prints what a test looks at: explore.py PAGE"""
import json
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
assert "FP4_DATA" not in page, "the data are in their place"
assert not re.search(r"<script[^>]*\bsrc=|<link\b|@import\s+[u\"']|url\(\s*.?http|\bfetch\(|XMLHttpRequest", page), "the page needs nothing else"
assert "MIT licence, Copyright (C) 2017 by Marijn Haverbeke" in page

ACTIVITIES = {"running", "arithmetic", "global load", "shared memory", "busy unit", "other warps", "barrier",
              "mbarrier", "async work", "fence", "branch"}
texts = data["texts"]
lines = [text["text"].rstrip("\n").split("\n") for text in texts]


def base_of(text, line):
    """The index of the text that a line came from."""
    name = text["bases"][text["base"][line] if "base" in text else 0]
    return next(i for i, other in enumerate(texts)
                if other["name"] == name and other["module"] in ("", text["module"]))


def show(text, word):
    """Prints the lines that the lines of a text with this word come from."""
    found = set()
    for i, (line, places) in enumerate(zip(text["text"].split("\n"), text["origins"])):
        if word in line:
            found |= {(texts[base_of(text, i)]["name"].split("/")[-1], lines[base_of(text, i)][at - 1].strip())
                      for at in places}
    for name, origin in sorted(found):
        print(f"{text['name']} {word} <- {name}: {origin}")


def show_texts():
    print("texts:", *(" ".join(filter(None, [text["name"].split("/")[-1], text["module"]])) for text in texts))
    for text in texts:
        assert not text["origins"] or len(text["origins"]) >= len(lines[texts.index(text)])
        if text["name"] == "pipelined":
            show(text, "pipe.mma ")
        if text["name"] == "ptx":
            for word in ("tcgen05.mma", "cp.async.bulk.tensor", "st.global"):
                show(text, word)
        if text["name"] == "sass":
            linked = sum(1 for places in text["origins"] if places)
            print(text["name"], text["module"], "is linked" if linked > len(text["origins"]) // 4 else "has no lines")


def show_memory():
    for kernel in data.get("memory", []):
        for role in kernel["roles"]:
            print("role", kernel["module"], role["name"], role["first"], role["end"], *role["drives"])
        for extent in kernel["extents"]:
            limit = kernel["shared_bytes"] if extent["space"] == "shared" else kernel["tensor_columns"]
            end = extent["first"] + (extent["stages"] - 1) * extent["stride"] + extent["size"]
            assert end <= limit, (extent, limit)
            print("extent", extent["space"], extent["what"], "x", extent["stages"])


def check_launch(launch):
    """Spans of a warp follow each other, without a gap where times are predicted; prints what there is."""
    names, spans, end = data["names"], launch["spans"], launch["end"]
    timed, last, kinds = launch["unit"] == "ns", {}, set()
    for i in sorted(range(0, len(spans), 8), key=lambda at: (spans[at], spans[at + 1])):
        warp, begin, length, name = spans[i:i + 4]
        before = last.get(warp, begin)
        assert before - 2 <= begin and begin + length <= end, (launch["kernel"], spans[i:i + 8], before)
        assert not timed or begin <= before + 2, (launch["kernel"], spans[i:i + 8], before)
        last[warp] = begin + length
        kinds.add(names[name])
    assert kinds <= (ACTIVITIES if timed else {"warp"}) | {"does not end"}, kinds
    assert not timed or all(0 <= sm < 4 for sm in launch["warps"][3::4])
    assert len(last) == len(launch["warps"]) // 4, "every warp has a span"
    print("launch", launch["program"], launch["kernel"], launch["unit"], ", ".join(sorted(kinds)))
    print("operations:", *sorted({names[each] for each in launch["async"][1::7]}), "cut:", launch["cut"])


show_texts()
show_memory()
for launch in data["launches"]:
    check_launch(launch)
for time in data["times"]:
    print("time of", time["kernel"], "predicted" if time["predicted"] else "unknown", *(role["name"] for role in time.get("roles", [])))
if "layout" in data:
    scales = data["layout"]["scales"][0]
    print("scale of (37, 5):", *scales["places"][37 * scales["blocks"] + scales["block_of"][5]])
print("hazards:", len(data["hazards"]), *(f"{each['rule']} at {each['first']['line']}" for each in data["hazards"]))
print("faults:", len(data["faults"]), *(fault.split("\n")[0] for fault in data["faults"]))
print("passed:", data["passed"])
