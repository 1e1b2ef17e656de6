#!/usr/bin/env python3
"""The figures of `script/bench compose`. Usage: bench_compose.py FOLDER-OF-RELEASE-PROGRAMS CLUSTER-FOLDER

Against the real cluster in CLUSTER-FOLDER, on loopback, for a bounded time; the portal runs on a throw-away data folder.
"""
import html
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

from bench_portal import Figures, Portal
from bench_queue import commands
from bench_ssh import add_cluster, prepare, wait_until_connected

ROUNDS, SECONDS = 5, 2
RECIPE = "python-script"
FORM = f"/compose/bench/{RECIPE}"
SCRIPT = "#!/bin/bash\n#SBATCH --account=def-smith --time=5 --output=/dev/null\ntrue\n"
# A little more than the pause between submissions that the cluster of these benchmarks asks for.
SPACING = 2.2


def fields(page, changes):
    """The form of a page as a browser would send it, with some answers changed."""
    found = {}
    for tag in re.findall(r"<(?:input|select|textarea)[^>]*>", page):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        is_off = re.search(r'type="(?:checkbox|radio)"', tag) and " checked" not in tag
        if name and not is_off:
            found[html.unescape(name[1])] = html.unescape(value[1]) if value else ""
    for select in re.findall(r"<select.*?</select>", page, re.S):
        chosen = re.search(r'<option value="([^"]*)" selected', select)
        found[re.search(r'name="([^"]*)"', select)[1]] = html.unescape(chosen[1]) if chosen else ""
    found.pop("theme", None)
    return urllib.parse.urlencode({**found, **changes})


def latency(portal, cookie, path, form, folder):
    """Microseconds of a POST on a connection that stands, one at a time."""
    script = f"{folder}/post.lua"
    with open(script, "w") as file:
        file.write(f'wrk.method = "POST"\nwrk.body = [==[{form}]==]\n'
                   'wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"\n')
    command = ["wrk", "-t", "1", "-c", "1", "-d", f"{SECONDS}s", "-s", script, "-H", f"Host: {portal.host}",
               "-H", f"Origin: http://{portal.host}", "-H", f"Cookie: {cookie['Cookie']}",
               f"http://127.0.0.1:{portal.ports[0]}{path}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in text and "Socket errors" not in text, text
    return 1e6 / float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])


def alone(programs, form):
    """Microseconds of making the same script, without a page; measured by a program of the same build."""
    program = [f"{programs}/examples/bench_compose", RECIPE]
    return float(subprocess.run(program, input=form, stdout=subprocess.PIPE, text=True, check=True).stdout)


def previews(figure, portal, cookie, programs, folder):
    page = portal.get(FORM, cookie)[1].decode()
    plain = fields(page, {"a.script": "train.py", "a.arguments": "--epochs 3"})
    ten = fields(page, {"s.script": "1..10"})
    thousand = fields(page, {"s.script": "1..1000"})
    to_script, to_ten = [], []
    asked = commands(portal)
    for _ in range(ROUNDS):
        to_script.append(latency(portal, cookie, f"{FORM}/preview", plain, folder) / alone(programs, plain))
        small = latency(portal, cookie, f"{FORM}/preview", ten, folder)
        to_ten.append(latency(portal, cookie, f"{FORM}/preview", thousand, folder) / small)
    figure("preview_to_script_alone", statistics.median(to_script), 3)
    figure("preview_of_1000_points_to_10", statistics.median(to_ten), 2)
    # The queue is looked at on its own account, every 30 s at most.
    figure("cluster_commands_during_previews", commands(portal) - asked, ROUNDS * SECONDS * 3 / 30 + 2)


def submission(figure, portal, cookie):
    page = portal.get(FORM, cookie)[1].decode()
    form = dict(urllib.parse.parse_qsl(fields(page, {"a.script": "/bin/true", "a.time": "5m"}), keep_blank_values=True))
    before = commands(portal)
    answer = portal.post(FORM, form, cookie)
    assert answer.status == 303 and answer.getheader("location").startswith("/submissions/"), answer.getheaders()
    figure("ssh_commands_for_a_submission", commands(portal) - before, 2)


def press_submit(portal, cookie, form):
    """Seconds from pressing the button to the job's page, as a browser follows the redirects."""
    began = time.monotonic()
    answer = portal.post(FORM, form, cookie)
    while answer.status == 303:
        path = answer.getheader("location")
        connection = http.client.HTTPConnection("127.0.0.1", portal.ports[0], timeout=10)
        connection.request("GET", path, headers={"Host": portal.host, **cookie})
        answer = connection.getresponse()
        answer.read()
    took = time.monotonic() - began
    assert answer.status == 200 and path.startswith("/jobs/bench/"), (path, answer.status)
    return took


def plain_sbatch(folder, person, script):
    """Seconds of `sbatch` with the same script over the portal's own connection."""
    run = f"{folder}/data/run"
    socket = f"{run}/{os.listdir(run)[0]}/m"
    command = ["ssh", "-F", "none", "-o", "ControlMaster=no", "-S", socket, f"{person['name']}@bench", "sbatch --parsable"]
    began = time.monotonic()
    subprocess.run(command, input=script, capture_output=True, text=True, check=True)
    return time.monotonic() - began


def job_page(figure, portal, cookie, person, folder):
    """From the button to the job's page, against `sbatch` alone; they take turns."""
    ratios = []
    for round in range(ROUNDS):
        page = portal.get(FORM, cookie)[1].decode()
        changes = {"a.script": "/bin/true", "a.time": "5m", "a.job_name": f"bench{round}"}
        form = dict(urllib.parse.parse_qsl(fields(page, changes), keep_blank_values=True))
        # The cluster asks for a second between submissions; nobody presses that fast.
        time.sleep(SPACING)
        took = press_submit(portal, cookie, form)
        ratios.append(took / plain_sbatch(folder, person, SCRIPT))
    figure("submit_to_job_page_to_sbatch", statistics.median(ratios), 2)


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
            add_cluster(portal, cluster)
            member = prepare(portal, person, 1)
            assert portal.post("/clusters/bench/connect", {}, member).status == 303
            wait_until_connected(portal, 1, 30)
            previews(figure, portal, member, programs, folder)
            submission(figure, portal, member)
            job_page(figure, portal, member, person, folder)
        finally:
            portal.stop()
            portal.command("disconnect-all")
    figure.leave()


if __name__ == "__main__":
    main()
