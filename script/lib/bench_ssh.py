#!/usr/bin/env python3
"""The figures of `script/bench ssh`. Usage: bench_ssh.py FOLDER-OF-RELEASE-PROGRAMS CLUSTER-FOLDER

Against the real cluster in CLUSTER-FOLDER, on loopback, for a bounded time; the portal runs on a throw-away data folder.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from bench_portal import PASSWORD, Figures, Portal

USERS = 100
IDLE_SECONDS = 20
TICKS = os.sysconf("SC_CLK_TCK")


def speeds(figure, programs, cluster, person, folder):
    """The pool against the bare library and against ssh -S; measured by a program of the same build."""
    keys = f"{folder}/host_keys"
    with open(keys, "w") as file:
        file.writelines(f"{key['line']}\n" for key in cluster["host_keys"])
    program = [f"{programs}/examples/bench_ssh", "127.0.0.1", str(cluster["ports"]["key"]), person["name"],
               person["private_key"], keys, f"{programs}/portolan"]
    for line in subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        name, value, sign, limit = line.split()
        figure(name, float(value), float(limit), at_most=sign == "<=")


def description(cluster, queue_every_s):
    return f"""name = "bench"
title = "Bench"
[login]
host = "127.0.0.1"
port = {cluster["ports"]["key"]}
[limits]
calls_per_minute = 60
queue_every_s = {queue_every_s}
idle_minutes = 600
connects_per_hour = 1000
sessions = 8
submit_spacing_s = 1
"""


def add_cluster(portal, cluster, queue_every_s=30):
    """Through the pages, as an administrator does."""
    admin = {"Cookie": portal.sign_in()}
    keys = "\n".join(f"login {key['line']}" for key in cluster["host_keys"])
    answer = portal.post("/clusters", {"site": description(cluster, queue_every_s), "keys": keys, "compared": "true"}, admin)
    assert answer.status == 303, answer.status


def prepare(portal, person, number):
    """One member, signed in, with a key and a name on the cluster."""
    name = f"member{number}"
    portal.command("user", "add", name, "--password-stdin", text=PASSWORD)
    cookie = {"Cookie": portal.sign_in(name)}
    with open(person["private_key"]) as file:
        assert portal.post("/account/key/import", {"key": file.read(), "passphrase": ""}, cookie).status == 303
    assert portal.post("/clusters/bench/user", {"user": person["name"]}, cookie).status == 303
    return cookie


def connected(portal):
    """How many connections stand, as the portal's own figures say."""
    text = subprocess.run(["curl", "-s", "--noproxy", "*", f"http://127.0.0.1:{portal.ports[2]}/metrics"],
                          capture_output=True, text=True).stdout
    found = re.search(r"^portolan_cluster_connections (\d+)", text, re.M)
    return int(found[1]) if found else 0


def wait_until_connected(portal, count, seconds):
    began = time.monotonic()
    while connected(portal) < count:
        assert time.monotonic() - began < seconds, f"only {connected(portal)} of {count} connections stand"
        time.sleep(0.02)


def private_kb(pid):
    return int(re.search(r"RssAnon:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])


def after_everyone_looked(portal, cookies):
    """Memory of a portal that was started afresh and has shown each person their clusters, in kB."""
    for cookie in cookies:
        assert portal.get("/clusters/bench", cookie)[0] == 200
    time.sleep(3)
    return private_kb(portal.process.pid)


def cpu_seconds(pids):
    """Time that these processes have worked."""
    total = 0
    for pid in pids:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def masters(folder):
    run = f"{folder}/data/run"
    return [int(open(f"{run}/{name}/pid").read()) for name in os.listdir(run)]


def many(figure, programs, cluster, person, folder):
    portal = Portal(programs, folder)
    portal.start()
    try:
        add_cluster(portal, cluster)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            cookies = list(pool.map(lambda number: prepare(portal, person, number), range(USERS)))
        portal.stop()
        portal.start()
        without = after_everyone_looked(portal, cookies)
        for cookie in cookies:
            assert portal.post("/clusters/bench/connect", {}, cookie).status == 303
        wait_until_connected(portal, USERS, 180)
        pids = [portal.process.pid, *masters(folder)]
        began = cpu_seconds(pids)
        time.sleep(IDLE_SECONDS)
        figure("cores_busy_with_100_idle_connections", (cpu_seconds(pids) - began) / IDLE_SECONDS, 0.05)
        portal.process.kill()
        portal.process.wait()
        began = time.monotonic()
        portal.start()
        wait_until_connected(portal, USERS, 30)
        figure("seconds_to_adopt_100_after_kill", time.monotonic() - began, 3)
        with_them = after_everyone_looked(portal, cookies)
        figure("portal_kB_per_connected_user", (with_them - without) / USERS, 100)
    finally:
        portal.stop()
        portal.command("disconnect-all")


def main():
    programs, home = sys.argv[1:]
    with open(f"{home}/cluster.json") as file:
        cluster = json.load(file)
    person = next(user for user in cluster["users"] if user["name"] == "alice")
    figure = Figures()
    with tempfile.TemporaryDirectory() as folder:
        speeds(figure, programs, cluster, person, folder)
    with tempfile.TemporaryDirectory() as folder:
        many(figure, programs, cluster, person, folder)
    figure.leave()


if __name__ == "__main__":
    main()
