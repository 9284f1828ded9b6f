"""A folder that is carried to a machine with a GPU: programs that are compiled here, the script
that times them there, and what it needs."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def begin(folder, *files):
    """Makes the folder, with these files and this module."""
    os.makedirs(folder, exist_ok=True)
    for file in (__file__, *files):
        shutil.copy(file, folder)


def copy_package(build, folder):
    """Copies the Python package, and the libraries that it loads."""
    for library in ("libfp4rt.so", "_native.abi3.so"):
        shutil.copy(os.path.join(build, "lib", library), folder)
    shutil.copytree(os.path.join(ROOT, "python", "fp4"), os.path.join(folder, "fp4"), dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))


def compile_programs(build, folder, programs, options=()):
    """Compiles programs, pairs of a name and a text, into NAME.so for sm_90a."""
    for name, text in programs:
        stem = os.path.join(folder, name)
        with open(stem + ".mlir", "w") as file:
            file.write(text)
        subprocess.run([os.path.join(build, "bin", "fp4-runner"), stem + ".mlir", "--target=sm_90a", "--emit=so", "-o",
                        stem + ".so", *options], check=True)


def write_revision(folder):
    """Writes the commit of this tree into the folder, where results find it."""
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    pathlib.Path(folder, "revision").write_text(found.stdout.strip())


def assemble(found, gpus):
    """Compiles what `execution.collecting` found, for pairs of a target and a product."""
    from fp4.torch import programs
    with programs.assembling():
        for make, facts, _, _ in found:
            for gpu in gpus:
                make(*facts, gpu)


def open_package(folder):
    """Makes the package of the folder importable, and returns torch."""
    os.environ["FP4_LIBRARY"] = os.path.join(folder, "libfp4rt.so")
    sys.path.insert(0, folder)
    import torch
    torch.manual_seed(1)
    return torch


def microseconds_of(call, times=1):
    """Microseconds on the GPU of what `call` launches, the mean of `times` calls."""
    import torch
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


def captured(call, warm=3, **options):
    """A graph of `call`, which has its result as `kept`; `warm` calls on another stream come
    before. Options are those of torch.cuda.graph."""
    import torch
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):
        kept = call()
    graph.kept = kept
    return graph


def driver():
    """The version of the driver, or "" where there is none. Several GPUs have the same one."""
    try:
        found = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    except OSError:
        return ""
    return (found.stdout.splitlines() or [""])[0]


def processor():
    """The name of this host's processor, and the short one of files."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    short = re.search(r"\b(EPYC|Xeon|Ryzen|Core|Grace|Neoverse)\b", name)
    return name, short[0] if short else name.split()[0]


def document(area, columns, rows, *, key, command, program, clock=None, revision=None):
    """A result as docgen/result_tables.py reads it, measured today on the GPU, or on the CPU where
    there is none. `columns` have (name, title, unit)."""
    import torch
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
        card, version = name.split()[1], driver()
    else:
        (name, card), version = processor(), None
        name = f"a host with {len(os.sched_getaffinity(0))} cores, {name}"
    return {"area": area, "card": card, "device": name, "driver": version, "date": datetime.date.today().isoformat(),
            "revision": revision or None, "clock": clock, "command": command,
            "program": f"{program}, torch {torch.__version__.split('+')[0]}", "evidence": "measured",
            "columns": [dict(zip(("name", "title", "unit"), column)) for column in columns], "key": key, "rows": rows}


def commands_of(documentation, gpus=None):
    """The parser of a benchmark of fp4.torch, its commands, and those of `pack BUILD FOLDER` and
    `run`. Programs are packed for all of `gpus`, targets and products, or those of --gpus."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("build", type=pathlib.Path)
    packing.add_argument("folder", type=pathlib.Path)
    if gpus:
        packing.add_argument("--gpus", nargs="+", default=list(gpus), help="targets and products")
    return parser, commands, packing, commands.add_parser("run")


def names(text):
    return text.split(",")


def numbers(text):
    return [int(number) for number in text.split(",") if number]


def shapes(text):
    """Pairs of numbers: ROWSxCOLUMNS,..."""
    return [tuple(numbers(cell.replace("x", ","))) for cell in text.split(",") if cell]


def options_of(documentation, **lists):
    """The options of `pack BUILD FOLDER` and `run FOLDER [--json=FILE]`, and of --NAME=... for each
    of `lists`, which are how a text is read and what is taken without it."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("pack", "run"))
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--json")
    for name, (read, default) in lists.items():
        parser.add_argument(f"--{name}", type=read, default=default)
    return parser.parse_args()


def main(documentation, pack, measure):
    """The commands `pack BUILD FOLDER` and `run FOLDER [--json=FILE]`: measure(folder) gives rows,
    which are printed as lines of JSON."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("build")
    packing.add_argument("folder")
    running = commands.add_parser("run")
    running.add_argument("folder")
    running.add_argument("--json")
    options = parser.parse_args()
    if options.command == "pack":
        return pack(options.build, options.folder)
    with open(options.json, "w") if options.json else open(os.devnull, "w") as file:
        for row in measure(os.path.abspath(options.folder)):
            print(json.dumps(row), flush=True)
            file.write(json.dumps(row) + "\n")
