#!/usr/bin/env python3
"""The figures of `script/bench usage`. Usage: bench_usage.py FOLDER-OF-RELEASE-PROGRAMS CLUSTER-FOLDER

A year of a million jobs is written into the portal's own database, by the portal's own code (examples/bench_usage.rs);
the group's page is then measured against the home page. What reading costs a cluster is counted on the real cluster in
CLUSTER-FOLDER, on loopback, for a bounded time.
"""
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from bench_portal import Figures, Portal
from bench_queue import commands
from bench_ssh import add_cluster, prepare, wait_until_connected
from bench_web import wrk

ROUNDS = 5
READING_SECONDS = 60
YEAR = 366
GROUP = "/groups/1/usage?period=year&by=week"


def read_on(figure, portal, folder, cookie):
    """Commands for each day that is read, and so for a year; nobody else asks for anything meanwhile."""
    database = sqlite3.connect(f"{folder}/data/portolan.db")
    cluster = database.execute("SELECT id FROM clusters").fetchone()[0]
    database.execute("INSERT INTO group_accounts (group_id, cluster_id, account) VALUES (1, ?, 'def-smith')", (cluster,))
    database.execute("INSERT INTO memberships (group_id, person_id, role, since)"
                     " SELECT 1, id, 'member', 0 FROM people WHERE name = 'member1'")
    database.commit()
    days = lambda: database.execute("SELECT count(*) FROM usage_days").fetchone()[0]
    assert portal.get(GROUP, cookie)[0] == 200
    # The first look at the queue is over by then.
    while days() < 3:
        time.sleep(0.1)
    before, asked = days(), commands(portal)
    time.sleep(READING_SECONDS)
    read, spent = days() - before, commands(portal) - asked
    database.close()
    assert read > 0, "nothing was read"
    # Should the queue be looked at meanwhile, that counts against this figure.
    figure("commands_for_a_year", YEAR * spent / read, 400)


def page(figure, portal, cookie):
    rates = []
    for _ in range(ROUNDS):
        home, _ = wrk(portal.ports[0], portal.host, cookie)
        group, _ = wrk(portal.ports[0], portal.host, cookie, GROUP)
        rates.append(group / home)
    figure("group_page_of_a_million_jobs_to_home", statistics.median(rates), 0.1, at_most=False)
    status, body, head = portal.get(GROUP, {"Cookie": cookie, "Accept-Encoding": "gzip"})
    assert status == 200, status
    figure("group_page_kB", (len(body) + head) / 1000, 80)


def main():
    programs, cluster_dir = sys.argv[1:]
    with open(f"{cluster_dir}/cluster.json") as file:
        cluster = json.load(file)
    person = next(one for one in cluster["users"] if one["name"] == "alice")
    figure = Figures()
    with tempfile.TemporaryDirectory() as folder:
        portal = Portal(programs, folder)
        portal.start()
        try:
            add_cluster(portal, cluster, queue_every_s=3600)
            member = prepare(portal, person, 1)
            assert portal.post("/clusters/bench/connect", {}, member).status == 303
            wait_until_connected(portal, 1, 30)
            read_on(figure, portal, folder, member)
            assert portal.post("/clusters/bench/user", {"user": "user0"}, {"Cookie": portal.sign_in()}).status == 303
            portal.stop()
            done = subprocess.run([f"{programs}/examples/bench_usage", f"{folder}/data/portolan.db"],
                                  stdout=subprocess.PIPE, text=True, check=True)
            figure("bytes_of_a_job", float(done.stdout), 120)
            portal.start()
            page(figure, portal, portal.sign_in())
        finally:
            portal.stop()
            portal.command("disconnect-all")
    figure.leave()


if __name__ == "__main__":
    main()
