"""Requests to the debugger that a client should not send, and what it says. usage: dap_requests.py SCENARIO ADAPTER..."""
import json
import subprocess
import sys
import threading
import time


class Adapter:
    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        watch = threading.Timer(60, self.child.kill)  # a hang is a failure, not a wait
        watch.daemon = True
        watch.start()
        self.seq, self.events = 0, []

    def read(self):
        length = 0
        while (line := self.child.stdout.readline().strip()):
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        return json.loads(self.child.stdout.read(length)) if length else sys.exit("the adapter is gone")

    def send(self, message):
        body = json.dumps(message).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.child.stdin.flush()

    def answer(self, message):
        """Sends a request and returns its response."""
        self.send(message)
        while (found := self.read())["type"] != "response":
            self.events.append(found)
        return found

    def request(self, command, **arguments):
        self.seq += 1
        found = self.answer({"seq": self.seq, "type": "request", "command": command, "arguments": arguments})
        print(command, "ok" if found["success"] else f"failed: {found['message']}")
        return found.get("body") or {}

    def wait(self, name):
        while True:
            event = self.events.pop(0) if self.events else self.read()
            if event["event"] == name:
                return event["body"]

    def begin(self, **launch):
        self.request("initialize", adapterID="fp4")
        self.request("launch", **launch)

    def end(self):
        self.request("disconnect")
        print("code", self.child.wait(30))


def malformed(adapter):
    """Fields that are missing or of another type."""
    adapter.send({"type": 1})
    for message in ({"type": "request"}, {"type": "request", "seq": "x", "command": "threads"},
                    {"type": "request", "seq": 1, "command": 5},
                    {"type": "request", "seq": 1, "command": "evaluate", "arguments": [1]}):
        print("response", adapter.answer(message)["message"])
    print("no arguments", adapter.answer({"type": "request", "seq": 1, "command": "launch", "arguments": None})["success"])
    adapter.begin(stopOnEntry=True)
    adapter.request("configurationDone")
    print("stopped", adapter.wait("stopped")["reason"])
    for command in ("stackTrace", "scopes", "variables", "evaluate", "setFunctionBreakpoints"):
        adapter.request(command)
    adapter.request("setBreakpoints", source={}, breakpoints=[{}])
    adapter.request("setFunctionBreakpoints", breakpoints=[{}])
    for command in ("continue", "next", "stepIn"):
        adapter.request(command, threadId="x")
    adapter.request("stackTrace", threadId=1)  # nothing of the above has moved the program


def early(adapter):
    """A program goes on when the client has told its breakpoints, and not before."""
    adapter.begin()
    for command in ("continue", "next", "stepIn"):
        adapter.request(command, threadId=1)
    adapter.request("setFunctionBreakpoints", breakpoints=[{"name": "mbarrier.try_wait"}])
    adapter.request("configurationDone")
    print("stopped", adapter.wait("stopped")["reason"])
    for line in adapter.request("evaluate", expression="list")["result"].splitlines():
        print("listed", line)


def spinning(adapter):
    """The adapter hears a client while a kernel runs that never stops."""
    adapter.begin(stopOnEntry=True)
    adapter.request("configurationDone")
    adapter.wait("stopped")
    adapter.request("continue", threadId=1)
    adapter.request("setFunctionBreakpoints", breakpoints=[{"name": "barriers"}])
    adapter.request("threads")
    adapter.request("pause", threadId=1)
    print("stopped", adapter.wait("stopped")["reason"])
    adapter.request("continue", threadId=1)
    adapter.request("setFunctionBreakpoints", breakpoints=[])
    time.sleep(1)  # the program has answered, and no stop follows
    adapter.request("threads")


def main():
    adapter = Adapter(sys.argv[2:])
    {"malformed": malformed, "early": early, "spinning": spinning}[sys.argv[1]](adapter)
    adapter.end()


main()
