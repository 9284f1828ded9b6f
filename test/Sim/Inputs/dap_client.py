"""A client of the Debug Adapter Protocol that prints what it sees. usage: dap_client.py FILE.ptx ADAPTER...

With --port N the adapter is reached there and started by this program too."""
import json
import socket
import subprocess
import sys
import time


class Client:
    def __init__(self, reader, writer):
        self.reader, self.writer, self.seq, self.events = reader, writer, 0, []

    def read(self):
        length = 0
        while (line := self.reader.readline().strip()):
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        return json.loads(self.reader.read(length)) if length else None

    def request(self, command, **arguments):
        self.seq += 1
        body = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self.writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.writer.flush()
        while (message := self.read())["type"] != "response" or message["request_seq"] != self.seq:
            self.events.append(message)
            if message.get("event") == "stopped" and command in ("stepIn", "next", "continue", "stepOut"):
                print("stopped came before the response of", command)
        print(command, "ok" if message["success"] else f"failed: {message['message']}")
        return message.get("body") or {}

    def wait(self, *names):
        while True:
            message = self.events.pop(0) if self.events else self.read()
            if message["event"] == "output":
                print("output:", (message["body"]["output"].strip() or "-").splitlines()[0])
            if message["event"] == "exited":
                print("exited with", message["body"]["exitCode"])
            if message["event"] in names:
                return message


def connect():
    if sys.argv[2] != "--port":
        child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return Client(child.stdout, child.stdin), child
    child = subprocess.Popen(sys.argv[4:] , stderr=subprocess.PIPE)
    child.stderr.readline()  # "waits for a client"
    link = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
    file = link.makefile("rwb")
    return Client(file, file), child


def show(client):
    """Prints where the program stands, and how it got there."""
    stop = client.wait("stopped", "terminated")
    if stop["event"] == "terminated":
        print("terminated")
        return None
    thread = stop["body"]["threadId"]
    frame = client.request("stackTrace", threadId=thread)["stackFrames"][0]
    place = frame["source"].get("path", frame["source"].get("name"))
    print("stopped:", stop["body"]["reason"], "thread", thread, "at", place.rsplit("/", 1)[-1], frame["line"])
    return thread, frame


def main():
    client, child = connect()
    print("capabilities", client.request("initialize", adapterID="fp4")["supportsConfigurationDoneRequest"])
    client.wait("initialized")
    client.request("launch", noDebug=False)
    client.request("setBreakpoints", source={"path": sys.argv[1]}, breakpoints=[{"line": 70}])
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "mbarrier.expect_tx"}])
    client.request("stackTrace", threadId=1)  # nothing stands still yet
    client.request("configurationDone")
    thread, frame = show(client)
    print("threads", [(one["id"], one["name"]) for one in client.request("threads")["threads"]])
    scopes = client.request("scopes", frameId=frame["id"])["scopes"]
    for scope in scopes[:2]:
        found = client.request("variables", variablesReference=scope["variablesReference"])["variables"]
        print(scope["name"], [(one["name"], one["value"]) for one in found
                              if one["name"] in ("%r14", "%p2") or "full" in one["name"]])
    print(client.request("evaluate", expression="tile stages b32 1x4", frameId=frame["id"])["result"].strip())
    client.request("evaluate", expression="nonsense")
    client.request("stepIn", threadId=thread)
    show(client)
    client.request("next", threadId=thread)
    show(client)
    client.request("setBreakpoints", source={"path": sys.argv[1]}, breakpoints=[])
    client.request("nonsense")
    client.request("pause", threadId=thread)  # it stands: nothing to do
    client.request("stepOut", threadId=thread)  # there is no caller: to the next stop
    while show(client):  # what the checker finds, and the end
        client.request("continue", threadId=thread)
    child.stdin and child.stdin.close()
    print("code", child.wait(30))


main()
