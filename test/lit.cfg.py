# Configuration of the lit suite: what counts as a test, the tools that RUN lines may name, and the
# features that tests may require. Run with `ninja check-fp4`, or lit-22 on build/test/<directory>.
import os
import shutil

import lit.formats

config.name = "fp4"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test", ".ptx"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fp4_build_dir, "test")
config.environment["PATH"] = os.pathsep.join(
    [config.fp4_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)

config.substitutions.append(("%fp4_src", config.fp4_source_dir))
config.substitutions.append(("%fp4_build", config.fp4_build_dir))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%plugin", os.path.join(config.fp4_build_dir, "lib", "FP4Plugin.so")))


def add_tool(name, command, options=""):
    """Replaces `name` as a whole word of a RUN line by an absolute command."""
    if command:
        config.substitutions.append((r"(?<![\w./%-])" + name + r"(?![\w./-])", command + options))


# Every fp4-opt run also prints, reparses (text and bytecode) and compares what it parsed. Tests of
# input that does not survive this on purpose say %fp4-opt-once.
own_opt = os.path.join(config.fp4_tools_dir, "fp4-opt")
config.substitutions.append(("%fp4-opt-once", own_opt))
add_tool("fp4-opt", own_opt, " --verify-roundtrip")
for tool in ["fp4-lsp-server", "fp4-reduce", "fp4-runner", "fp4-run", "fp4-sim"]:
    add_tool(tool, os.path.join(config.fp4_tools_dir, tool))
# mlir-opt-22 is not instrumented; a plugin that is needs its runtime.
preload = "env LD_PRELOAD=" + config.fp4_sanitizer_runtime + " "
if config.fp4_sanitizer_runtime:
    config.available_features.add("sanitizer")
for tool in ["FileCheck", "not", "count", "mlir-opt", "mlir-translate", "split-file", "llvm-readelf"]:
    suffixed = shutil.which(tool + "-22") or os.path.join(config.llvm_tools_dir, tool)
    if not os.path.exists(suffixed):
        continue
    sanitized = config.fp4_sanitizer_runtime and tool == "mlir-opt"
    for name in [tool, tool + "-22"]:
        add_tool(name, preload + suffixed if sanitized else suffixed)

if shutil.which("ptxas"):
    config.available_features.add("ptxas")
# The assembler of PTX 9.5 and sm_107a; utils/check.sh fetches it.
if os.path.exists(os.path.join(config.fp4_build_dir, "toolchain", "ptxas-later")):
    config.available_features.add("ptxas-later")
# Counts of machine instructions (validation/sass_count.py); utils/setup.sh fetches it.
if shutil.which("nvdisasm") or os.path.exists(os.path.join(config.fp4_build_dir, "toolchain", "nvdisasm")):
    config.available_features.add("nvdisasm")
# The page of fp4-runner --explore is clicked where there is a browser.
if any(map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))):
    config.available_features.add("chromium")
if os.path.exists("/dev/nvidiactl"):
    config.available_features.add("cuda")
