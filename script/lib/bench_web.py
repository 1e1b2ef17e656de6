#!/usr/bin/env python3
"""The figures of `script/bench web`. Usage: bench_web.py FOLDER-OF-RELEASE-PROGRAMS

Everything listens on loopback, for a bounded time; the portal runs on a throw-away data folder.
"""
import concurrent.futures
import gzip
import http.client
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

CONNECTIONS, THREADS, SECONDS, ROUNDS = 50, 2, 5, 5
PASSWORD = "quiet harbour at dawn"


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
        add = [self.program, "user", "add", "ada", "--admin", "--group", "Smith Lab", "--role", "pi", "--password-stdin"]
        subprocess.run(add, input=PASSWORD.encode(), env=self.env, check=True, stdout=subprocess.DEVNULL)

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

    def sign_in(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=10)
        form = urllib.parse.urlencode({"name": "ada", "password": PASSWORD})
        headers = {"Host": self.host, "Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/sign-in", form, headers)
        answer = connection.getresponse()
        assert answer.status == 303, answer.status
        cookies = [value.split(";")[0] for name, value in answer.getheaders() if name == "set-cookie"]
        return "; ".join(c for c in cookies if c.startswith("portolan_session"))

    def wrong_sign_in(self, number):
        """A wrong sign-in from an address of its own; each costs a password check."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=30)
        form = urllib.parse.urlencode({"name": f"nobody{number}", "password": "wrong wrong wrong"})
        connection.request("POST", "/sign-in", form, {
            "Host": self.host, "Origin": f"http://{self.host}", "X-Forwarded-For": f"10.1.{number // 250}.{number % 250 + 1}",
            "Content-Type": "application/x-www-form-urlencoded"})
        connection.getresponse().read()

    def resident_mb(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def wrk(port, host, cookie):
    """Requests per second and the 99th percentile in milliseconds."""
    command = ["wrk", "-t", str(THREADS), "-c", str(CONNECTIONS), "-d", f"{SECONDS}s", "--latency",
               "-H", f"Host: {host}", "-H", f"Cookie: {cookie}", f"http://127.0.0.1:{port}/"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in text and "Socket errors" not in text, text
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)\b", text).groups()
    return rate, float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def compare(portal, programs, folder, cookie):
    """Medians over rounds in which both take turns, so that a busy neighbour hits both."""
    page = portal.get("/", {"Cookie": cookie})[1]
    with open(f"{folder}/page.html", "wb") as file:
        file.write(page)
    port = free_port()
    bare = subprocess.Popen([f"{programs}/examples/bare_axum", f"{folder}/page.html", str(port)])
    try:
        time.sleep(0.5)
        rates, tails = [], []
        for _ in range(ROUNDS):
            bare_rate, bare_tail = wrk(port, "x", cookie)
            rate, tail = wrk(portal.ports[0], portal.host, cookie)
            rates.append(rate / bare_rate)
            tails.append(tail / bare_tail)
        return statistics.median(rates), statistics.median(tails)
    finally:
        bare.terminate()
        bare.wait()


def weight(portal, cookie):
    """Kilobytes over the wire: a first visit with everything its pages need, and a later page."""
    def transferred(path, with_cookie):
        headers = {"Accept-Encoding": "gzip", **({"Cookie": cookie} if with_cookie else {})}
        status, body, head = portal.get(path, headers)
        assert status == 200, (path, status)
        return len(body) + head, body

    size, body = transferred("/sign-in", False)
    home, home_body = transferred("/", True)
    pages = gzip.decompress(body) + gzip.decompress(home_body)
    assets = {path.decode() for path in re.findall(rb'(?:src|href)="(/assets/[^"]+)"', pages)}
    first = size + home + sum(transferred(path, False)[0] for path in assets)
    later = max(transferred(path, True)[0] for path in ("/", "/groups", "/groups/1", "/people", "/account", "/account/second-factor"))
    return first / 1000, later / 1000


def main():
    programs = sys.argv[1]
    figures = []

    def figure(name, value, limit, at_most=True):
        good = value <= limit if at_most else value >= limit
        figures.append(good)
        print(f"{name} {value:.2f} {'<=' if at_most else '>='}{limit} {'ok' if good else 'short'}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        portal = Portal(programs, folder)
        portal.start()  # makes the database
        portal.stop()
        ready = statistics.median(restart(portal) for _ in range(5))
        portal.start()
        try:
            time.sleep(1)
            memory = portal.resident_mb()
            cookie = portal.sign_in()
            rate, tail = compare(portal, programs, folder, cookie)
            first, later = weight(portal, cookie)
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                list(pool.map(portal.wrong_sign_in, range(200)))
            time.sleep(2)
            memory_after = portal.resident_mb()
        finally:
            portal.stop()
    figure("home_requests_per_second_to_bare_axum", rate, 0.3, at_most=False)
    figure("home_p99_to_bare_axum_at_50_connections", tail, 5)
    figure("first_visit_kB", first, 150)
    figure("later_page_kB", later, 20)
    figure("release_binary_MB", os.path.getsize(f"{programs}/portolan") / 1e6, 30)
    figure("idle_resident_MB", memory, 40)
    figure("resident_after_load_and_200_wrong_sign_ins_MB", memory_after, 80)
    figure("ready_after_start_ms", ready, 500)
    sys.exit(0 if all(figures) else 1)


def restart(portal):
    ready = portal.start()
    portal.stop()
    return ready


main()
