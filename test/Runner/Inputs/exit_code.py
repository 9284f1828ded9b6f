"""exit_code.py CODE COMMAND...: succeeds when COMMAND exits with CODE, and shows no stack trace."""
import subprocess
import sys

run = subprocess.run(sys.argv[2:], capture_output=True, text=True)
if run.returncode != int(sys.argv[1]) or "Stack dump" in run.stderr:
    sys.exit(f"{sys.argv[2:]}: exit code {run.returncode}\n{run.stdout}{run.stderr}")
