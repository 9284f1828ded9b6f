"""Interrupts the prompt of the debugger. usage: interrupt.py prompt | host DEBUGGER..."""
import signal
import subprocess
import sys
import threading
import time


def main():
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             bufsize=0)
    watch = threading.Timer(60, child.kill)  # a hang is a failure, not a wait
    watch.daemon = True
    watch.start()

    def until(text):
        seen = b""
        while not seen.endswith(text):
            if not (byte := child.stdout.read(1)):
                sys.exit(f"the debugger has ended with {child.wait()}")
            seen += byte
        return seen

    if sys.argv[1] == "prompt":
        until(b"(fp4-sim) ")
        time.sleep(1)  # the prompt waits for a line behind what it has printed
        child.send_signal(signal.SIGINT)
        until(b"(fp4-sim) ")
        print("a new prompt")
        child.stdin.write(b"step\n")
        print(until(b"\n(fp4-sim) ").decode())
    else:
        until(b"the host runs\n")
        child.send_signal(signal.SIGINT)
        print(until(b"end the program\n").decode().strip())
        child.send_signal(signal.SIGINT)
    if sys.argv[1] == "prompt":
        child.stdin.close()
    began = time.monotonic()
    print("code", child.wait(30), "at once" if time.monotonic() - began < 20 else "late")


main()
