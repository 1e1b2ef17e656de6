#!/usr/bin/env python3
"""The figures of `script/bench queue`. Usage: bench_queue.py FOLDER-OF-RELEASE-PROGRAMS CLUSTER-FOLDER

Against the real cluster in CLUSTER-FOLDER, on loopback, for a bounded time; the portal runs on a throw-away data folder.
"""
import json
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from bench_portal import Figures, Portal
from bench_ssh import add_cluster, prepare, wait_until_connected
from bench_web import wrk

JOBS, ROUNDS = 10_000, 5
IDLE_SECONDS = 125
# The shortest interval at which a queue is looked at by itself.
INTERVAL = 15


def parse(figure, programs):
    """Reading rows against finding their fields; measured by a program of the same build."""
    program = [f"{programs}/examples/bench_queue", "parse"]
    for line in subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        name, value, limit, _ = line.split()
        figure(f"{name}", float(value), float(limit.lstrip(">=")), at_most=False)


def fill(portal, folder, cluster):
    """Ten thousand jobs of one person: half of them run or wait, a few arrays among them."""
    portal.stop()
    now = int(time.time())
    database = sqlite3.connect(f"{folder}/data/portolan.db")
    person = database.execute("SELECT id FROM people WHERE name = 'ada'").fetchone()[0]
    where = database.execute("SELECT id FROM clusters").fetchone()[0]
    states = [("RUNNING", "", 0), ("PENDING", "Priority", 0), ("COMPLETED", "", 1), ("FAILED", "NonZeroExitCode", 1)]
    rows = []
    for number in range(JOBS):
        state, reason, over = states[number % 4]
        started = None if state == "PENDING" else now - 4000
        rows.append((person, where, 100_000 + number // 10 if number < 2000 else 200_000 + number,
                     number % 10 if number < 2000 else -1, 300_000 + number, "ada", f"train-model-{number % 97}", state,
                     reason, "def-smith", "cpu", "normal", now - 5000, now - 5000, started, now - 100 if over else now + 4000,
                     180, 4, 1, 16_000, "v100:1" if number % 5 == 0 else "", "c1", 1000 + number, over, over, now, now,
                     "/home/ada/experiments"))
    database.executemany(
        "INSERT INTO jobs (person_id, cluster_id, number, task, raw, user, name, state, reason, account, partition, qos,"
        " submitted_at, eligible_at, start_at, end_at, limit_minutes, cpus, nodes, memory_mb, gpus, node_list, priority,"
        " is_over, is_settled, first_seen_at, seen_at, work_dir) VALUES (" + ", ".join("?" * 28) + ")", rows)
    database.commit()
    database.close()
    portal.start()


def page(figure, portal, cookie):
    rates = []
    for _ in range(ROUNDS):
        home, _ = wrk(portal.ports[0], portal.host, cookie)
        jobs, _ = wrk(portal.ports[0], portal.host, cookie, "/jobs")
        rates.append(jobs / home)
    figure("jobs_page_of_10000_to_home", statistics.median(rates), 0.2, at_most=False)
    status, body, head = portal.get("/jobs", {"Cookie": cookie, "Accept-Encoding": "gzip"})
    assert status == 200, status
    figure("jobs_page_kB", (len(body) + head) / 1000, 60)


def commands(portal):
    text = subprocess.run(["curl", "-s", "--noproxy", "*", f"http://127.0.0.1:{portal.ports[2]}/metrics"],
                          capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^portolan_cluster_commands_total (\d+)", text, re.M)[1])


def idle(figure, portal):
    """Commands for one connected person while nobody looks."""
    time.sleep(3)
    before = commands(portal)
    time.sleep(IDLE_SECONDS)
    figure("idle_commands_per_minute", (commands(portal) - before) * 60 / IDLE_SECONDS, 1)


def freshness(figure, portal, cookie, cluster_dir, person):
    """How much longer than one interval a change takes to be on the screen, in seconds; the worse of two."""
    def slurm(*words):
        command = ["script/cluster", "--dir", cluster_dir, "exec", "--as", person["name"], *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def shown(job, word):
        body = portal.get("/jobs/rows", cookie)[1].decode()
        row = re.search(rf'id="job-bench-{job}".*?</tr>', body, re.S)
        return bool(row) and word in row[0]

    def wait_for(job, word):
        while not shown(job, word):
            time.sleep(0.1)
        return time.monotonic()

    script = "printf '#!/bin/bash\\nsleep 600\\n' | sbatch --parsable --hold -o /dev/null -t 20"
    job = slurm("sh", "-c", f"cd && {script}")
    wait_for(job, "Held")
    beyond = []
    for change, word in ((["scontrol", "release", job], "Running"), (["scancel", job], "Cancelled")):
        slurm(*change)
        changed = time.monotonic()
        beyond.append(wait_for(job, word) - changed - INTERVAL)
    figure("seconds_beyond_one_interval_until_a_change_is_shown", max(beyond), 1)


def main():
    programs, cluster_dir = sys.argv[1:]
    with open(f"{cluster_dir}/cluster.json") as file:
        cluster = json.load(file)
    person = next(one for one in cluster["users"] if one["name"] == "alice")
    figure = Figures()
    parse(figure, programs)
    with tempfile.TemporaryDirectory() as folder:
        portal = Portal(programs, folder)
        portal.start()
        try:
            add_cluster(portal, cluster, queue_every_s=INTERVAL)
            member = prepare(portal, person, 1)
            assert portal.post("/clusters/bench/connect", {}, member).status == 303
            wait_until_connected(portal, 1, 30)
            idle(figure, portal)
            freshness(figure, portal, member, cluster_dir, person)
            assert portal.post("/clusters/bench/user", {"user": "alice"}, {"Cookie": portal.sign_in()}).status == 303
            fill(portal, folder, cluster)
            page(figure, portal, portal.sign_in())
        finally:
            portal.stop()
            portal.command("disconnect-all")
    figure.leave()


if __name__ == "__main__":
    main()
