#!/usr/bin/env python3
"""The figures of `script/bench terminal`. Usage: bench_terminal.py FOLDER-OF-RELEASE-PROGRAMS CLUSTER-FOLDER

A terminal through the portal against `ssh -tt` over the same control master, in the same run.
"""
import base64
import json
import os
import pty
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty

from bench_portal import Figures, Portal
from bench_ssh import add_cluster, prepare, private_kb, wait_until_connected

KEYS = 300
MEGABYTES = 50
PEOPLE = 13
TERMINALS_EACH = 4
END = b"end-of-bench"


class Window:
    """A terminal's WebSocket, as its page uses it."""

    def __init__(self, portal, cookie, path):
        self.socket = socket.create_connection(("127.0.0.1", portal.ports[0]))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path}/socket?cols=80&rows=24 HTTP/1.1", f"Host: {portal.host}", f"Origin: http://{portal.host}",
                 "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}",
                 f"Cookie: {cookie['Cookie']}", "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        self.file = self.socket.makefile("rb")
        assert b" 101 " in self.file.readline()
        while self.file.readline().strip():
            pass
        self.shown = self.told = 0

    def frame(self, kind, data):
        mask = os.urandom(4)
        size = len(data)
        head = bytes([0x80 | kind, 0x80 | size]) if size < 126 else bytes([0x80 | kind, 0xfe]) + struct.pack(">H", size)
        body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.socket.sendall(head + mask + body)

    def write(self, data):
        self.frame(2, data)

    def read(self):
        """What the terminal prints next."""
        while True:
            head = self.file.read(2)
            size = head[1] & 127
            if size == 126:
                size, = struct.unpack(">H", self.file.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.file.read(8))
            data = self.file.read(size)
            if head[0] & 15 == 2:
                self.shown += size
                if self.shown - self.told >= 64 * 1024:
                    self.told = self.shown
                    self.frame(1, json.dumps({"shown": self.shown}).encode())
                return data

    def close(self):
        self.socket.close()


class Ssh:
    """`ssh -tt` over the same master."""

    def __init__(self, control):
        self.own, other = pty.openpty()
        # As ssh's own terminal: nothing is echoed or changed on this side.
        tty.setraw(other, termios.TCSANOW)
        command = ["ssh", "-F", "none", "-S", control, "-tt", "-o", "BatchMode=yes", "bench"]
        self.process = subprocess.Popen(command, stdin=other, stdout=other, stderr=subprocess.DEVNULL)
        os.close(other)

    def write(self, data):
        os.write(self.own, data)

    def read(self):
        return os.read(self.own, 64 * 1024)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.own)


def read_until(terminal, words):
    seen = b""
    while words not in seen:
        seen = seen[-200:] + terminal.read()


def settle(terminal):
    """Cooked and with echo on either side: what a key costs, without a shell's own work."""
    terminal.write(b"stty sane; echo rea''dy; cat\r")
    read_until(terminal, b"ready\r\n")


def echo_ms(terminal):
    times = []
    for at in range(KEYS):
        key = b"abcdefghij"[at % 10:][:1]
        began = time.perf_counter()
        terminal.write(key)
        while key not in terminal.read():
            pass
        times.append((time.perf_counter() - began) * 1000)
        if at % 50 == 49:
            terminal.write(b"\x15")
            time.sleep(0.05)
    return statistics.median(times)


def seconds_for_output(terminal):
    began = time.perf_counter()
    line = "x" * 99
    terminal.write(f"yes {line} | head -c {MEGABYTES * 1000 * 1000}; echo {END[:6].decode()}''{END[6:].decode()}\r".encode())
    read_until(terminal, END + b"\r\n")
    return time.perf_counter() - began


def open_terminal(portal, cookie):
    answer = portal.post("/clusters/bench/terminal", {}, cookie)
    path = dict(answer.getheaders())["location"]
    assert path.startswith("/terminals/"), path
    return path


def main():
    programs, folder_of_cluster = sys.argv[1:]
    cluster = json.load(open(f"{folder_of_cluster}/cluster.json"))
    person = cluster["users"][0]
    figure = Figures()
    with tempfile.TemporaryDirectory() as folder:
        portal = Portal(programs, folder)
        portal.start()
        try:
            add_cluster(portal, cluster)
            cookies = [prepare(portal, person, number) for number in range(PEOPLE)]
            for cookie in cookies:
                assert portal.post("/clusters/bench/connect", {}, cookie).status == 303
            wait_until_connected(portal, PEOPLE, 120)
            run = f"{folder}/data/run"
            cookie = cookies[0]
            # The first member's master: the one that gets a session when their terminal opens.
            window = Window(portal, cookie, open_terminal(portal, cookie))
            first = min(os.listdir(run), key=lambda name: int(re.match(r"\d+", name)[0]))
            ssh = Ssh(f"{run}/{first}/m")
            for terminal in (ssh, window):
                settle(terminal)
            figure("key_to_echo_against_ssh", statistics.median(echo_ms(window) / echo_ms(ssh) for _ in range(3)), 1.5)
            for terminal in (ssh, window):
                terminal.write(b"\x04\x04")
                terminal.write(b"\r")
                terminal.write(b"echo sh''ell\r")
                read_until(terminal, b"shell\r\n")
            for terminal in (ssh, window):
                seconds_for_output(terminal)
            before = portal.resident_mb()
            ours = seconds_for_output(window)
            grown = portal.resident_mb() - before
            figure("output_speed_against_ssh", seconds_for_output(ssh) / ours, 0.5, at_most=False)
            figure("memory_growth_MB_by_output", grown, 4)
            for terminal in (ssh, window):
                terminal.close()
            time.sleep(2)
            before = private_kb(portal.process.pid)
            opened = 0
            for cookie in cookies[1:]:
                for _ in range(TERMINALS_EACH):
                    open_terminal(portal, cookie)
                    opened += 1
            time.sleep(3)
            figure("kB_per_idle_terminal", (private_kb(portal.process.pid) - before) / opened, 100)
        finally:
            portal.stop()
            portal.command("disconnect-all")
    figure.leave()


if __name__ == "__main__":
    main()
