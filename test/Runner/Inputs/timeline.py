"""Checks a trace of fp4-runner --timeline: every span ends after it begins. Prints what there is."""
import collections
import json
import sys

events = json.load(open(sys.argv[1]))
spans, open_spans, backwards = collections.Counter(), {}, 0
for event in events:
    key = event.get("pid"), event.get("cat"), event.get("id"), event.get("name")
    if event["ph"] == "b":
        open_spans[key] = event["ts"]
        spans[event["cat"]] += 1
    elif event["ph"] == "e":
        backwards += open_spans.pop(key, float("inf")) > event["ts"]
phases = collections.Counter(event["ph"] for event in events)
tracks = sum(event["name"] == "thread_name" for event in events if event["ph"] == "M")
ends = "as many ends of warps" if phases["B"] == phases["E"] == tracks else "but other ends"
# The last phase of a barrier stays open: nothing completes it.
print("spans that do not end:", sum(key[1] != "mbarrier" for key in open_spans))
print("spans that end before they begin:", backwards)
print("launches:", sum(event["name"] == "process_name" for event in events if event["ph"] == "M"))
for category in sorted(spans):
    print(f"{category} spans: {spans[category]}")
print(f"tracks: {tracks}, {ends}")
