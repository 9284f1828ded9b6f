"""Reads what judges printed, and makes a row of the table from it."""
import json
import re

COLUMNS = [("bug", "bug", None), ("program", "program", None), ("target", "target", None),
           ("sim", "fp4-sim", None), ("sim_false", "false alarm of it", None), ("sim_seconds", "fp4-sim", "s"),
           ("sanitizer", "compute-sanitizer", None), ("sanitizer_false", "false alarm of it ", None),
           ("sanitizer_seconds", "compute-sanitizer", "s"), ("alone", "GPU alone", None)]
PROGRAM = ("kernels of integration_test/sim/bugs with one planted bug, and as they are; seconds are those of the mode "
           "that decides, and the sum of four tools")
MODES = ("default", "strict")  # of fp4-sim
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
REPORT = re.compile(r"^========= (?:Error: |Warning: )?(\S.*)$", re.M)
FRAME = re.compile(r"COMPUTE-SANITIZER|(?:ERROR|RACECHECK|LEAK) SUMMARY|Target application|Program hit|This tool|"
                   r"Error: Target|No attachable|Internal Sanitizer")
CAUSES = {700: "illegal address", 715: "illegal instruction", 716: "misaligned address", 719: "launch failure"}


#===--- fp4-sim -----------------------------------------------------------===#


def expected(kind, runner, text):
    """(rules, says, strict): the names of a bug, and whether only strict mode knows it."""
    listed = next(rest for line in text.splitlines() for name, rest in runner.MARKER.findall(line) if name == kind.bug)
    rules = listed.partition("=>")[0].strip()
    strict = rules.startswith("strict ")
    names = {rule.strip() for rule in rules.removeprefix("strict ").split(",")}
    return names - {"error", "deadlock", "unwritten"}, kind.says, strict


def report_of(run):
    """The last line of the output is the report of --json."""
    try:
        return json.loads(run["out"].strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None


def names_of(run, names):
    """The names of a bug that a run reports."""
    rules, says, _ = names
    report = report_of(run)
    if report is None:
        return []
    found = [rule for rule in dict.fromkeys(hazard["rule"] for hazard in report["hazards"]) if rule in rules]
    return found or ([says] if says and report["kernel_failed"] and says in run["err"] else [])


def sim_alarm(run):
    report = report_of(run)
    if run["code"] is None:
        return "hangs"
    if report is None or run["code"]:
        rules = [hazard["rule"] for hazard in report["hazards"]] if report else []
        return rules[0] if rules else "error"
    return None


def sim_cells(names, mine, clean):
    """The cells of fp4-sim: default mode decides, and strict mode where it finds nothing."""
    cells, seconds = {}, 0.0
    modes = [mode for mode in MODES if mode in mine]
    if not modes:
        return {}
    for mode in modes:
        seconds = mine[mode]["seconds"]
        if found := names_of(mine[mode], names):
            cells["sim"] = found[0] + (" (strict)" if mode == "strict" else "")
            break
        if mine[mode]["code"] is None:
            cells["sim"] = "hangs"
            break
    cells.setdefault("sim", "missed")
    cells["sim_seconds"] = round(seconds, 2)
    alarms = [alarm for mode in modes if (alarm := sim_alarm(clean[mode]))]
    if alarms:
        cells["sim_false"] = alarms[0]
    return cells


#===--- compute-sanitizer -------------------------------------------------===#


def reports_of(run):
    """Reports of a tool, without numbers; the codes of failed calls are none."""
    if re.search(r"^========= (?:ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)", run["out"] + run["err"], re.M):
        return []
    found = [text for text in REPORT.findall(run["out"] + run["err"]) if not FRAME.match(text)]
    return list(dict.fromkeys(re.sub(r"\s*\b(?:0x[0-9a-f]+|\d+)\b", "", text).strip(" .") for text in found))


def short(text):
    for pattern, name in ((r"race|hazard", "race"), (r"Barrier error.*?detected\.?\s*(.*)", None),
                          (r"(Invalid __\w+__ \w+)", None), (r"(Uninitialized __\w+__ \w+)", None)):
        if match := re.search(pattern, text, re.I):
            return name or match[1].replace("__", "") or "barrier error"
    return text[:40]


def sanitizer_cells(mine, clean):
    tools = [tool for tool in TOOLS if tool in mine]
    if not tools:
        return {}
    caught = [f"{tool}: {short(reports_of(mine[tool])[0])}" for tool in tools if reports_of(mine[tool])]
    hangs = any(mine[tool]["code"] is None for tool in tools)
    cells = {"sanitizer": "; ".join(caught) or ("hangs" if hangs else "missed"),
             "sanitizer_seconds": round(sum(mine[tool]["seconds"] for tool in tools), 1)}
    alarms = [f"{tool}: {short(reports_of(clean[tool])[0])}" if reports_of(clean[tool]) else f"{tool}: hangs"
              for tool in tools if reports_of(clean[tool]) or clean[tool]["code"] is None]
    if alarms:
        cells["sanitizer_false"] = "; ".join(alarms)
    return cells


#===--- The GPU alone -----------------------------------------------------===#


def alone(run, clean):
    """The end of a program without a judge."""
    if run["code"] is None:
        return "hangs"
    if match := re.search(r"returns (\d+)", run["err"]):
        return CAUSES.get(int(match[1]), f"error {match[1]}")
    if run["code"]:
        return "error"
    return "passes" if run["out"] == clean["out"] else "wrong result"


#===--- Rows --------------------------------------------------------------===#


def row(kind, target, names, runs):
    mine = {run["judge"]: run for run in runs if (run["file"], run["bug"]) == (kind.file, kind.bug)}
    clean = {run["judge"]: run for run in runs if (run["file"], run["bug"]) == (kind.file, None)}
    cells = {"bug": kind.title, "program": kind.program, "target": target, **sim_cells(names, mine, clean),
             **sanitizer_cells(mine, clean)}
    if "alone" in mine:
        cells["alone"] = alone(mine["alone"], clean["alone"])
    return cells


def line(values):
    parts = [f"{values['program']:26}", f"fp4-sim: {values.get('sim', '-'):34}"]
    if "sim_false" in values:
        parts.append(f"false alarm: {values['sim_false']}")
    if "sanitizer" in values:
        parts.append(f"compute-sanitizer: {values['sanitizer']}")
    if "sanitizer_false" in values:
        parts.append(f"false alarm: {values['sanitizer_false']}")
    if "alone" in values:
        parts.append(f"GPU alone: {values['alone']}")
    return "  ".join(parts).rstrip()
