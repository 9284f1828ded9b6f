"""full_disk.py BYTES COMMAND...: COMMAND, which writes into the folder 'full' of the working directory, meets a disk of
BYTES: a file system of its own where we may mount one, else a limit on the size of files. COMMAND must end with code 2,
say what the system says, and leave nothing there but the file 'old', which has three characters."""
import os
import resource
import subprocess
import sys

size, *command = sys.argv[1:]
os.makedirs("full", exist_ok=True)
script = f'mount -t tmpfs -o size={size} none full && printf old > full/old && "$@" ; code=$? ; ls -A full >&2 ; ' \
         'cat full/old >&2 ; exit $code'
mounts = os.geteuid() == 0 and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "full"],
                                              stderr=subprocess.DEVNULL).returncode == 0
if mounts:
    run = subprocess.run(["unshare", "-m", "sh", "-c", script, "_", *command], stderr=subprocess.PIPE, text=True,
                         stdout=subprocess.DEVNULL)
else:
    print("no file system of our own: RLIMIT_FSIZE stands for it")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
    run = subprocess.run(["sh", "-c", script[script.index("printf"):], "_", *command], stderr=subprocess.PIPE, text=True,
                         stdout=subprocess.DEVNULL, preexec_fn=limit)
reason = "No space left on device" if mounts else "File too large"
if run.returncode != 2 or reason not in run.stderr or not run.stderr.endswith("\nold\nold"):
    sys.exit(f"{command}: exit code {run.returncode}\n{run.stderr}")
