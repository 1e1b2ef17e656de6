#!/usr/bin/env python3
"""The figures of `script/bench web`. Usage: bench_web.py FOLDER-OF-RELEASE-PROGRAMS

Everything listens on loopback, for a bounded time; the portal runs on a throw-away data folder.
"""
import concurrent.futures
import gzip
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from bench_portal import Figures, Portal, free_port

CONNECTIONS, THREADS, SECONDS, ROUNDS = 50, 2, 5, 5


def wrk(port, host, cookie, path="/"):
    """Requests per second and the 99th percentile in milliseconds."""
    command = ["wrk", "-t", str(THREADS), "-c", str(CONNECTIONS), "-d", f"{SECONDS}s", "--latency",
               "-H", f"Host: {host}", "-H", f"Cookie: {cookie}", f"http://127.0.0.1:{port}{path}"]
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
    later = max(transferred(path, True)[0] for path in ("/", "/groups", "/groups/1/members", "/people", "/account", "/account/second-factor"))
    return first / 1000, later / 1000


def main():
    programs = sys.argv[1]
    figure = Figures()
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
            # The allocator gives memory back some time after it was freed, while other work goes on.
            for _ in range(3):
                time.sleep(2)
                portal.get("/sign-in")
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
    figure.leave()


def restart(portal):
    ready = portal.start()
    portal.stop()
    return ready


if __name__ == "__main__":
    main()
