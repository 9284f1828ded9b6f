"""Fetches sources and builds programs into the folder that the person names."""
import pathlib
import re
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


def place_of(name, options):
    """The folder of a source: that of --sources, which is taken as it is, or a clone."""
    named = options.sources and options.sources / name
    return named if named and named.is_dir() else options.folder / "sources" / name


def checkout(name, options):
    """The folder of a source, which is fetched if it is not there."""
    source, place = SOURCES[name], place_of(name, options)
    if options.sources and place.is_relative_to(options.sources):
        return place
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


def extension_of(group, options):
    """The shared library of the operators of a set."""
    return options.folder / "extensions" / f"{group}.so"


def _nvcc(architecture, flags, options):
    """Words of a command that compiles for one architecture, as PTX alone."""
    standard = [] if any(flag.startswith("-std=") for flag in flags) else ["-std=c++20"]
    return ["nvcc", *standard, "-O2", "-cudart=shared", "--expt-relaxed-constexpr",
            f"-gencode=arch=compute_{architecture},code=compute_{architecture}",
            *(_filled(flag, options) for flag in flags),
            *(f"-I{path}" for path in options.folder.glob("python/lib/*/site-packages/nvidia/cu13/include"))]


def _ran(command, log):
    """Runs a compiler. Says where its words are if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        done = subprocess.run(list(map(str, command)), stdout=file, stderr=file)
    if done.returncode:
        print(f"error: {log.stem} does not compile: see {log}", file=sys.stderr)
    return not done.returncode


def build(record, options):
    """Compiles a program; returns true when it is there."""
    binary, program = binary_of(record, options), record.program
    return binary.exists() or _ran(
        [*_nvcc(program.architecture, program.flags, options), "-Xlinker", options.build / "lib/fp4-cuda/libcuda.so.1",
         "-o", binary, _filled(program.file, options)], binary.with_suffix(".nvcc"))


#===--- Extensions of PyTorch ---------------------------------------------===#


def toolkit():
    """The folder of nvcc's toolkit, also where the nvcc in PATH is a script that calls another; None without one."""
    if not shutil.which("nvcc"):
        return None
    said = subprocess.run(["nvcc", "--dryrun", "-x", "cu", "/dev/null", "-c"], capture_output=True, text=True).stderr
    return pathlib.Path(re.search(r"^#\$ TOP=(.*)$", said, re.M)[1]).resolve()


def _headers():
    """Flags for the headers of PyTorch, Python and CUDA that the sources of an extension include."""
    import sysconfig
    cuda = toolkit() / "include"
    return [f"-I{HERE / 'programs/include'}", "-I{packages}/torch/include", f"-I{sysconfig.get_path('include')}", f"-I{cuda}"]


def _object(source, architecture, extension, place, options):
    """Compiles a source; returns its object, or None. A file of C++ is none of nvcc's, as in the extension itself."""
    made = place / (source.replace("/", ".") + ".o")
    packages = next(options.folder.glob("python/lib/*/site-packages"))
    flags = [flag.replace("{packages}", str(packages)) for flag in (*extension["flags"], *_headers())]
    file = _filled(source if source.startswith(("/", "{")) else extension["folder"] + "/" + source, options)
    compiler = _nvcc(architecture, ["--extended-lambda", "-Xcompiler=-fPIC", *flags], options) if source.endswith(".cu") \
        else ["g++", "-std=c++20", "-O2", "-fPIC", *(_filled(flag, options) for flag in flags if flag.startswith(("-I", "-D")))]
    there = made.exists() or _ran([*compiler, "-w", "-c", "-o", made, file], made.with_suffix(".txt"))
    return made if there else None


def build_extension(group, extension, options):
    """Builds the operators of a set, a dictionary of its sources by architecture, "folder" and "flags". Functions that
    its sources lack are resolved when they are called: a set takes of a project what it runs.
    """
    library = extension_of(group, options)
    place = library.with_suffix("")
    place.mkdir(parents=True, exist_ok=True)
    sources = [(source, architecture) for architecture, some in extension.items()
               if architecture not in ("folder", "flags") for source in some]
    objects = [_object(source, architecture, extension, place, options)
               for source, architecture in (*sources, (str(HERE / "programs/torch_cuda.cpp"), ""))]
    if None in objects:
        return False
    torch = next(options.folder.glob("python/lib/*/site-packages/torch/lib"))
    cuda = options.build / "lib/fp4-cuda"
    return library.exists() or _ran(
        ["g++", "-shared", "-o", library, *objects, "-Wl,-Bsymbolic,-z,lazy,--unresolved-symbols=ignore-all", f"-L{torch}",
         "-ltorch", "-ltorch_cpu", "-lc10", cuda / "libcudart.so.13", cuda / "libcuda.so.1"], place / "link.txt")


def prepare(records, options):
    """Returns the number of records that cannot run."""
    extensions = {record.group: record.extension for record in records if record.extension}
    programs = [record for record in records if record.program]
    if (programs or extensions) and not shutil.which("nvcc"):
        sys.exit("error: the programs of these records need nvcc 13, and there is none in PATH")
    if len(programs) < len(records):
        install(options.folder)
    for name in {record.source for record in records} & {*SOURCES}:
        if isinstance(SOURCES[name], Checkout):
            checkout(name, options)
    missing = sum(not build(record, options) for record in programs)
    for group, extension in extensions.items():
        if not build_extension(group, extension, options):
            missing += sum(record.group == group for record in records)
    return missing
