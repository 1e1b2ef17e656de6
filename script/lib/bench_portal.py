"""What the benchmarks share: the portal as it is shipped, and how figures are said."""
import http.client
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse

PASSWORD = "quiet harbour at dawn"


class Figures:
    """Says each figure with its limit, and remembers whether all were good."""

    def __init__(self):
        self.good = True

    def __call__(self, name, value, limit, at_most=True):
        good = value <= limit if at_most else value >= limit
        self.good = self.good and good
        print(f"{name} {value:.2f} {'<=' if at_most else '>='}{limit} {'ok' if good else 'short'}", flush=True)

    def leave(self):
        sys.exit(0 if self.good else 1)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Portal:
    """The portal as it is shipped, with one account, signed in."""

    def __init__(self, programs, folder):
        self.program = f"{programs}/portolan"
        self.ports = [free_port() for _ in range(3)]
        self.host = f"localhost:{self.ports[0]}"
        names = ("PORTAL", "BOARDS", "METRICS")
        self.env = {"PATH": os.environ["PATH"], "PORTOLAN_DATA_DIR": f"{folder}/data",
                    # Lets the flood of wrong sign-ins below come from many addresses.
                    "PORTOLAN_PROXY_TRUSTED": "127.0.0.1/32",
                    **{f"PORTOLAN_{n}_LISTEN": f"127.0.0.1:{p}" for n, p in zip(names, self.ports)}}
        self.log = open(f"{folder}/log", "wb")
        self.command("user", "add", "ada", "--admin", "--group", "Smith Lab", "--role", "pi", "--password-stdin", text=PASSWORD)

    def command(self, *words, text=""):
        """Runs the program on the portal's machine, as an administrator does."""
        subprocess.run([self.program, *words], input=text.encode(), env=self.env, check=True, stdout=subprocess.DEVNULL)

    def start(self):
        """Starts it and returns the milliseconds until it answers."""
        began = time.monotonic()
        self.process = subprocess.Popen([self.program, "serve"], env=self.env, stderr=self.log)
        while True:
            try:
                if self.get("/healthz")[0] == 200:
                    return (time.monotonic() - began) * 1000
            except OSError:
                pass
            time.sleep(0.001)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def get(self, path, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=10)
        connection.request("GET", path, headers={"Host": self.host, **dict(headers)})
        answer = connection.getresponse()
        body = answer.read()
        head = sum(len(k) + len(v) + 4 for k, v in answer.getheaders()) + 19
        return answer.status, body, head

    def post(self, path, fields, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=60)
        form = urllib.parse.urlencode(fields)
        connection.request("POST", path, form, {
            "Host": self.host, "Origin": f"http://{self.host}",
            "Content-Type": "application/x-www-form-urlencoded", **dict(headers)})
        answer = connection.getresponse()
        answer.read()
        return answer

    def sign_in(self, name="ada"):
        answer = self.post("/sign-in", {"name": name, "password": PASSWORD})
        assert answer.status == 303, answer.status
        cookies = [value.split(";")[0] for name, value in answer.getheaders() if name == "set-cookie"]
        return "; ".join(c for c in cookies if c.startswith("portolan_session"))

    def wrong_sign_in(self, number):
        """A wrong sign-in from an address of its own; each costs a password check."""
        wrong = {"name": f"nobody{number}", "password": "wrong wrong wrong"}
        self.post("/sign-in", wrong, {"X-Forwarded-For": f"10.1.{number // 250}.{number % 250 + 1}"})

    def resident_mb(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024
