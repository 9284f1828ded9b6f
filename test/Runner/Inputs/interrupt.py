"""interrupt.py FILE COMMAND...: starts COMMAND, interrupts it when it has begun to write FILE beside its name, and
expects that it dies of that and leaves FILE as it was, alone."""
import glob
import os
import signal
import subprocess
import sys
import time

path, *command = sys.argv[1:]
with open(path, "w") as file:
    file.write("old")
# A test that runs in the background has this signal ignored.
run = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while not glob.glob(path + ".tmp.*") and run.poll() is None:
    time.sleep(0.005)
run.send_signal(signal.SIGINT)
code = run.wait()
left = glob.glob(path + "*")
with open(path) as file:
    kept = file.read()
if code not in (-signal.SIGINT, 128 + signal.SIGINT) or left != [path] or kept != "old":
    sys.exit(f"exit code {code}, left are {left}, {os.path.basename(path)} has {len(kept)} characters")
