#!/usr/bin/env python3
"""The figures of `script/bench dashboards`. Usage: bench_dashboards.py FOLDER-OF-RELEASE-PROGRAMS CLUSTER-FOLDER

A real MLflow on the real cluster in CLUSTER-FOLDER is asked the same things through the portal and through a plain
`ssh -L` tunnel, in turns, by the same client (examples/bench_dashboards.rs). Loopback only, for a bounded time.
"""
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from bench_portal import Figures, Portal, free_port
from bench_ssh import add_cluster, prepare, wait_until_connected

ROUNDS = 5
MB = 1024 * 1024
BIG, HUGE = 200 * MB, 5 * 1024 * MB
SMALL = "/version"


class Bench:
    def __init__(self, programs, cluster_dir, person, cluster):
        self.client = f"{programs}/examples/bench_dashboards"
        self.cluster_dir, self.person, self.cluster = cluster_dir, person, cluster

    def on_cluster(self, script):
        command = ["script/cluster", "--dir", self.cluster_dir, "exec", "--as", self.person["name"], "bash", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""

    def prepare_runs(self):
        """A run of the shipped training script, with a large and a very large file among its results."""
        self.on_cluster("cd; rm -rf bench; mkdir bench; python3 ~/examples/train.py --logdir bench/logs --mlruns bench/mlruns >/dev/null")
        folder = self.on_cluster("ls -d ~/bench/mlruns/*/*/artifacts | head -1")
        self.on_cluster(f"head -c {BIG} /dev/urandom > {folder}/big.bin; truncate -s {HUGE} {folder}/huge.bin")
        self.run = folder.split("/")[-2]
        self.place = self.on_cluster("echo ~/bench/mlruns")

    def artifact(self, name):
        return f"/get-artifact?path={name}&run_uuid={self.run}"

    def open_board(self, portal, cookie):
        form = {"form": os.urandom(8).hex(), "cluster": "bench", "kind": "mlflow", "place": self.place, "minutes": "60"}
        answer = portal.post("/dashboards", form, cookie)
        assert answer.status == 303, answer.status
        page = answer.getheader("location")
        for _ in range(600):
            answer = ask(portal, portal.ports[0], f"{page}/open", portal.host, cookie)
            location = answer.getheader("location") or ""
            if "/enter/" in location:
                break
            time.sleep(0.5)
        assert "/enter/" in location, "the board was never ready"
        self.dashboards_host = f"127.0.0.1:{portal.ports[1]}"
        answer = ask(portal, portal.ports[1], "/enter/" + location.rsplit("/", 1)[1], self.dashboards_host, {})
        self.cookie = answer.getheader("set-cookie").split(";")[0]
        self.prefix = answer.getheader("location") + "app"

    def open_tunnel(self, folder):
        """A plain tunnel to the very same port, opened by ssh itself."""
        state = json.loads(self.on_cluster("cat $(ls -t ~/.portolan/boards/*/state.json | head -1)"))
        node = self.on_cluster("squeue --me -h -t R -n dashboard-mlflow -o %N | tail -1")
        keys = f"{folder}/known_hosts"
        with open(keys, "w") as file:
            file.writelines(f"[127.0.0.1]:{self.cluster['ports']['key']} {key['line']}\n" for key in self.cluster["host_keys"])
        self.port, self.secret = free_port(), state["secret"]
        self.tunnel = subprocess.Popen(
            ["ssh", "-N", "-p", str(self.cluster["ports"]["key"]), "-i", self.person["private_key"], "-o", "BatchMode=yes",
             "-o", f"UserKnownHostsFile={keys}", "-o", "IdentitiesOnly=yes", "-F", "none",
             "-L", f"127.0.0.1:{self.port}:{node}:{state['port']}", f"{self.person['name']}@127.0.0.1"])
        for _ in range(100):
            if self.try_tunnel():
                return
            time.sleep(0.1)
        raise AssertionError("the tunnel does not answer")

    def try_tunnel(self):
        try:
            return bool(self.through_tunnel("latency", SMALL, "1"))
        except subprocess.CalledProcessError:
            return False

    def through_tunnel(self, *words):
        return self.measure({"BENCH_ADDRESS": f"127.0.0.1:{self.port}", "BENCH_SECRET": self.secret}, words)

    def through_portal(self, *words):
        return self.measure({"BENCH_ADDRESS": self.dashboards_host, "BENCH_HOST": self.dashboards_host,
                             "BENCH_COOKIE": self.cookie, "BENCH_PREFIX": self.prefix}, words)

    def measure(self, where, words):
        done = subprocess.run([self.client, *words], env={"PATH": os.environ["PATH"], **where}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return [float(word) for word in done.stdout.split()]

    def ratio(self, *words, last=True):
        """The median of the portal's figure over the tunnel's, taken in turns."""
        place = -1 if last else 0
        ratios = []
        for _ in range(ROUNDS):
            tunnel = self.through_tunnel(*words)[place]
            ratios.append(self.through_portal(*words)[place] / tunnel)
        return statistics.median(ratios)


def ask(portal, port, path, host, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Host": host, **dict(headers)})
    answer = connection.getresponse()
    answer.read()
    return answer


def grows(bench, portal):
    """Megabytes that the portal grows by while 5 GB go through it."""
    # Each of the program's threads has its own buffers once it has carried something.
    for _ in range(4):
        bench.through_portal("download", bench.artifact("big.bin"))
    before, most, stop = portal.resident_mb(), [0.0], threading.Event()

    def watch():
        while not stop.wait(0.1):
            most[0] = max(most[0], portal.resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    size = bench.through_portal("download", bench.artifact("huge.bin"))[0]
    stop.set()
    watcher.join()
    assert size == HUGE, size
    return most[0] - before


def main():
    programs, cluster_dir = sys.argv[1:]
    with open(f"{cluster_dir}/cluster.json") as file:
        cluster = json.load(file)
    person = next(one for one in cluster["users"] if one["name"] == "alice")
    figure = Figures()
    bench = Bench(programs, cluster_dir, person, cluster)
    bench.prepare_runs()
    with tempfile.TemporaryDirectory() as folder:
        portal = Portal(programs, folder)
        portal.start()
        try:
            add_cluster(portal, cluster)
            member = prepare(portal, person, 1)
            assert portal.post("/clusters/bench/connect", {}, member).status == 303
            wait_until_connected(portal, 1, 30)
            bench.open_board(portal, member)
            bench.open_tunnel(folder)
            figure("download_200MB_to_tunnel", bench.ratio("download", bench.artifact("big.bin")), 0.85, at_most=False)
            figure("requests_at_16_to_tunnel", bench.ratio("rate", SMALL, "16", "3"), 0.7, at_most=False)
            # What the portal adds to the way, against the whole way through the tunnel.
            figure("added_median_latency_to_tunnel", bench.ratio("latency", SMALL, "500") - 1, 1.5)
            figure("MB_grown_by_5GB_stream", grows(bench, portal), 2)
            # A guest's page asks anew every half minute; here each of them asks every two seconds.
            one = statistics.median(bench.through_portal("guests", SMALL, "1", "5", "50")[0] for _ in range(3))
            crowd = statistics.median(bench.through_portal("guests", SMALL, "100", "8", "2000")[1] for _ in range(3))
            figure("p99_of_100_guests_to_p50_of_one", crowd / one, 3)
        finally:
            bench.on_cluster("scancel --me -n dashboard-mlflow; rm -rf ~/bench")
            if hasattr(bench, "tunnel"):
                bench.tunnel.terminate()
            portal.stop()
            portal.command("disconnect-all")
    figure.leave()


if __name__ == "__main__":
    main()
