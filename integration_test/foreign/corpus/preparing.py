"""Fetches sources and builds programs into the folder that the person names."""
import pathlib
import shutil
import subprocess
import sys

from sources import SOURCES, Checkout

HERE = pathlib.Path(__file__).resolve().parent


def python_of(folder):
    return folder / "python/bin/python"


def install(folder):
    """Makes the environment of all sets in Python, from a list that is complete: pip adds none."""
    if not python_of(folder).exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "python"], check=True)
    subprocess.run([python_of(folder), "-m", "pip", "install", "-q", "--no-deps", "-r",
                    HERE / "requirements.txt"], check=True)


def checkout(name, options):
    """The folder of a source: that of --sources, which is taken as it is, or a clone."""
    source = SOURCES[name]
    if options.sources and (options.sources / name).is_dir():
        return options.sources / name
    place = options.folder / "sources" / name
    if (place / ".fetched").exists() and (place / ".fetched").read_text() == source.version:
        return place
    place.mkdir(parents=True, exist_ok=True)
    for words in (["init", "-q"], ["fetch", "-q", "--depth=1", source.url, source.version],
                  ["checkout", "-q", "-f", "--detach", "FETCH_HEAD"]):
        subprocess.run(["git", "-C", place, *words], check=True)
    (place / ".fetched").write_text(source.version)
    return place


def _filled(text, options):
    """A path or flag with the folders of its sources."""
    for name, source in SOURCES.items():
        if isinstance(source, Checkout) and "{" + name + "}" in text:
            text = text.replace("{" + name + "}", str(checkout(name, options)))
    return text.replace("{programs}", str(HERE / "programs"))


def binary_of(record, options):
    return options.folder / "programs" / record.group / record.name


def build(record, options):
    """Compiles a program for one architecture, as PTX alone; returns true when it is there."""
    binary = binary_of(record, options)
    if binary.exists():
        return True
    binary.parent.mkdir(parents=True, exist_ok=True)
    program, log = record.program, binary.with_suffix(".nvcc")
    standard = [] if any(flag.startswith("-std=") for flag in program.flags) else ["-std=c++20"]
    command = ["nvcc", *standard, "-O2", "-cudart=shared", "--expt-relaxed-constexpr",
               f"-gencode=arch=compute_{program.architecture},code=compute_{program.architecture}",
               *(_filled(flag, options) for flag in program.flags),
               *(f"-I{path}" for path in options.folder.glob("python/lib/*/site-packages/nvidia/cu13/include")),
               "-Xlinker", options.build / "lib/fp4-cuda/libcuda.so.1", "-o", binary,
               _filled(program.file, options)]
    with log.open("w") as file:
        done = subprocess.run(list(map(str, command)), stdout=file, stderr=file)
    if done.returncode:
        print(f"error: {record.title} does not compile: see {log}", file=sys.stderr)
    return not done.returncode


def prepare(records, options):
    """Returns the number of records that cannot run."""
    if any(record.program for record in records) and not shutil.which("nvcc"):
        sys.exit("error: the programs of these records need nvcc 13, and there is none in PATH")
    if any(record.program is None for record in records):
        install(options.folder)
    missing = 0
    for record in records:
        if record.program:
            missing += not build(record, options)
    return missing
