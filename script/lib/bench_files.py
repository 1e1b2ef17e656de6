#!/usr/bin/env python3
"""The figures of `script/bench files`. Usage: bench_files.py FOLDER-OF-RELEASE-PROGRAMS CLUSTER-FOLDER

Files to and from the real cluster in CLUSTER-FOLDER, through the portal and by OpenSSH's sftp over a connection that is
open already, as the portal's is; on loopback, and over a proxy that adds 40 ms of round-trip time.
"""
import base64
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from bench_portal import Figures, Portal
from bench_ssh import description, prepare, wait_until_connected

GB = 1_000_000_000
ROUND_TRIP_MS = 40
ROUNDS = 3
SMALL_FILES = 10_000
BATCH_FILES = 500


def timed(action, *arguments):
    began = time.monotonic()
    action(*arguments)
    return time.monotonic() - began


class Sftp:
    """OpenSSH's sftp over an open connection to a port."""

    def __init__(self, cluster, person, port, folder):
        keys = f"{folder}/known_hosts-{port}"
        with open(keys, "w") as file:
            file.writelines(f"[127.0.0.1]:{port} {' '.join(key['line'].split()[-2:])}\n" for key in cluster["host_keys"])
        self.folder, self.socket = folder, f"{folder}/ctl-{port}"
        self.options = ["-F", "none", "-o", f"ControlPath={self.socket}", "-o", f"UserKnownHostsFile={keys}", "-o", "BatchMode=yes"]
        self.to = f"{person['name']}@127.0.0.1"
        self.master = subprocess.Popen(["ssh", *self.options, "-M", "-N", "-i", person["private_key"], "-p", str(port), self.to])
        while not os.path.exists(self.socket):
            assert self.master.poll() is None, "ssh could not connect"
            time.sleep(0.02)

    def run(self, commands):
        subprocess.run(["sftp", "-q", *self.options, "-b", "-", self.to], input=commands.encode(), check=True,
                       stdout=subprocess.DEVNULL, cwd=self.folder)

    def close(self):
        self.master.terminate()
        self.master.wait()


class Files:
    """Files through a portal, as one signed-in person."""

    def __init__(self, portal, cookie, slug, folder):
        self.portal, self.cookie, self.slug, self.folder = portal, cookie, slug, folder
        self.url = f"http://127.0.0.1:{portal.ports[0]}"

    def curl(self, *words, check=True):
        command = ["curl", "-sS", "--noproxy", "*", "-H", f"Host: {self.portal.host}", "-H", f"Cookie: {self.cookie}",
                   "-H", f"Origin: http://{self.portal.host}", *words]
        done = subprocess.run(command, capture_output=True)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def upload(self, local, folder, name):
        """Over tus; the file has its name when this returns."""
        metadata = {"cluster": self.slug, "folder": folder, "filename": name, "replace": "yes"}
        encoded = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in metadata.items())
        head = self.curl("-i", "-X", "POST", "-H", "Tus-Resumable: 1.0.0", "-H", f"Upload-Length: {os.path.getsize(local)}",
                         "-H", f"Upload-Metadata: {encoded}", f"{self.url}/uploads").decode()
        place = re.search(r"^location: (\S+)", head, re.M | re.I)
        assert place, head
        where = urllib.parse.urlsplit(place[1]).path
        answer = self.curl("-i", "-X", "PATCH", "-H", "Tus-Resumable: 1.0.0", "-H", "Upload-Offset: 0", "-H", "Expect:",
                           "-H", "Content-Type: application/offset+octet-stream", "-T", local, f"{self.url}{where}").decode()
        assert " 204" in answer.splitlines()[0], answer

    def download(self, path, local):
        query = urllib.parse.urlencode({"path": path})
        self.curl("-f", "-o", local, f"{self.url}/files/{self.slug}/download?{query}")

    def upload_folder(self, local, folder, name):
        """Small files, as the browser sends them."""
        def batch(names):
            body = b"".join(struct.pack(">I", len(path)) + path + struct.pack(">Q", len(data)) + data
                            for path, data in ((f"{name}/{one}".encode(), open(f"{local}/{one}", "rb").read()) for one in names))
            query = urllib.parse.urlencode({"path": folder})
            with tempfile.NamedTemporaryFile(dir=self.folder) as file:
                file.write(body)
                file.flush()
                answer = self.curl("-f", "-X", "POST", "-H", "Content-Type: application/octet-stream", "--data-binary",
                                   f"@{file.name}", f"{self.url}/files/{self.slug}/upload-batch?{query}")
            assert answer, "no answer"
        names = sorted(os.listdir(local))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(batch, [names[at:at + BATCH_FILES] for at in range(0, len(names), BATCH_FILES)]))

    def download_folder(self, folder, name, local):
        query = urllib.parse.urlencode({"path": folder, "name": name, "format": "tar"})
        os.makedirs(local)
        self.curl("-f", "-o", f"{local}.tar", f"{self.url}/files/{self.slug}/archive?{query}")
        subprocess.run(["tar", "-xf", f"{local}.tar", "-C", local], check=True)

    def rows(self, folder):
        query = urllib.parse.urlencode({"path": folder, "refresh": "true"})
        answer = self.portal.get(f"/files/{self.slug}/rows?{query}", {"Cookie": self.cookie, "HX-Request": "true"})
        assert answer[0] == 200, answer[0]
        return answer

    def page(self, folder):
        query = urllib.parse.urlencode({"path": folder})
        return self.portal.get(f"/files/{self.slug}?{query}", {"Cookie": self.cookie})


def large_file(figure, files, sftp, remove, scratch, name, limit, rounds):
    """1 GB each way, taking turns so that a busy neighbour hits both. Both write new files: what a file had before is in
    memory already, and the portal never writes over it."""
    local, back = f"{files.folder}/gigabyte", f"{files.folder}/back"
    up, down = [], []
    for _ in range(rounds):
        remove(f"rm -f {scratch}/theirs {scratch}/ours")
        theirs = timed(sftp.run, f"put {local} {scratch}/theirs\n")
        up.append(theirs / timed(files.upload, local, scratch, "ours"))
        theirs = timed(sftp.run, f"get {scratch}/theirs {back}\n")
        os.remove(back)
        down.append(theirs / timed(files.download, f"{scratch}/ours", back))
        subprocess.run(["cmp", local, back], check=True)
        os.remove(back)
    figure(f"upload_speed_to_sftp{name}", statistics.median(up), limit, at_most=False)
    figure(f"download_speed_to_sftp{name}", statistics.median(down), limit, at_most=False)


def small_files(figure, files, sftp, scratch):
    source = f"{files.folder}/small"
    os.makedirs(source)
    for number in range(SMALL_FILES):
        with open(f"{source}/{number}.txt", "wb") as file:
            file.write(os.urandom(200 + number % 1800))
    up = []
    for number in range(ROUNDS):
        theirs = timed(sftp.run, f"mkdir {scratch}/small-theirs-{number}\nput -r {source}/. {scratch}/small-theirs-{number}\n")
        up.append(theirs / timed(files.upload_folder, source, scratch, "small" if number == 0 else f"small-{number}"))
    figure("folder_upload_speed_to_sftp_r", statistics.median(up), 3, at_most=False)
    os.makedirs(f"{files.folder}/small-theirs")
    theirs = timed(sftp.run, f"get -r {scratch}/small {files.folder}/small-theirs\n")
    ours = timed(files.download_folder, scratch, "small", f"{files.folder}/small-ours")
    figure("folder_download_speed_to_sftp_r", theirs / ours, 3, at_most=False)
    subprocess.run(["diff", "-r", source, f"{files.folder}/small-ours/small"], check=True)


def listing(figure, files, sftp, cluster_folder, person, scratch):
    theirs = statistics.median(timed(sftp.run, f"ls -l {scratch}/small\n") for _ in range(5))
    ours = statistics.median(timed(files.rows, f"{scratch}/small") for _ in range(5))
    figure("listing_10000_time_to_sftp_ls", ours / theirs, 1.5)
    on_cluster(cluster_folder, person, f"mkdir {scratch}/many && cd {scratch}/many && seq 100000 | xargs touch")
    status, page, _ = files.page(f"{scratch}/many")
    _, rows, _ = files.rows(f"{scratch}/many")
    assert status == 200, status
    figure("folder_page_of_100000_kB", (len(page) + len(rows)) / 1000, 120)


def ten_at_once(figure, files, folder, scratch):
    """Five up and five down: memory, and what stays on the portal's disk."""
    part = f"{files.folder}/part"
    with open(part, "wb") as file:
        for _ in range(200):
            file.write(os.urandom(1_000_000))
    idle, disk = files.portal.resident_mb(), used_mb(f"{folder}/data")
    most, is_over = [idle], threading.Event()

    def watch():
        while not is_over.wait(0.02):
            most.append(files.portal.resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        jobs = [pool.submit(files.upload, part, scratch, f"part{number}") for number in range(5)]
        jobs += [pool.submit(files.download, f"{scratch}/ours", "/dev/null") for _ in range(5)]
        for job in jobs:
            job.result()
    is_over.set()
    watcher.join()
    figure("resident_MB_above_idle_with_ten_transfers", max(most) - idle, 64)
    figure("portal_disk_MB_after_6_GB", used_mb(f"{folder}/data") - disk, 10)


def used_mb(folder):
    return sum(os.path.getsize(f"{where}/{name}") for where, _, names in os.walk(folder) for name in names
               if os.path.isfile(f"{where}/{name}")) / 1e6


def on_cluster(cluster_folder, person, script):
    repo = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    command = [f"{repo}/script/cluster", "--dir", cluster_folder, "exec", "--as", person["name"], "bash", "-c", script]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def add_cluster(portal, cluster, slug, port):
    admin = {"Cookie": portal.sign_in()}
    keys = "\n".join(f"login {key['line']}" for key in cluster["host_keys"])
    site = description(cluster, 30).replace('"bench"', f'"{slug}"').replace(f"port = {cluster['ports']['key']}", f"port = {port}")
    answer = portal.post("/clusters", {"site": site, "keys": keys, "compared": "true"}, admin)
    assert answer.status == 303, answer.status


def main():
    programs, cluster_folder = sys.argv[1:]
    cluster = json.load(open(f"{cluster_folder}/cluster.json"))
    person = next(one for one in cluster["users"] if one["name"] == "alice")
    figure = Figures()
    port = cluster["ports"]["key"]
    proxy = subprocess.Popen([f"{programs}/examples/delay_proxy", str(port), str(ROUND_TRIP_MS)], stdout=subprocess.PIPE, text=True)
    far = int(proxy.stdout.readline())
    scratch = f"/scratch/{person['name']}/bench-files-{os.getpid()}"
    on_cluster(cluster_folder, person, f"mkdir {scratch}")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(cluster_folder)) as folder:
        portal = Portal(programs, folder)
        portal.start()
        near_sftp, far_sftp = Sftp(cluster, person, port, folder), Sftp(cluster, person, far, folder)
        try:
            add_cluster(portal, cluster, "bench", port)
            add_cluster(portal, cluster, "far", far)
            cookie = prepare(portal, person, 0)
            assert portal.post("/clusters/far/user", {"user": person["name"]}, cookie).status == 303
            for slug in ("bench", "far"):
                assert portal.post(f"/clusters/{slug}/connect", {}, cookie).status == 303
            wait_until_connected(portal, 2, 60)
            with open(f"{folder}/gigabyte", "wb") as file:
                for _ in range(1000):
                    file.write(os.urandom(GB // 1000))
            near, distant = (Files(portal, cookie["Cookie"], slug, folder) for slug in ("bench", "far"))
            def remove(script):
                on_cluster(cluster_folder, person, script)

            large_file(figure, near, near_sftp, remove, scratch, "", 1.0, ROUNDS)
            large_file(figure, distant, far_sftp, remove, scratch, "_at_40_ms", 1.5, 1)
            small_files(figure, near, near_sftp, scratch)
            listing(figure, near, near_sftp, cluster_folder, person, scratch)
            ten_at_once(figure, near, folder, scratch)
        finally:
            near_sftp.close()
            far_sftp.close()
            portal.stop()
            portal.command("disconnect-all")
            proxy.terminate()
            proxy.wait()
            on_cluster(cluster_folder, person, f"rm -rf {scratch}")
            shutil.rmtree(f"{folder}/small", ignore_errors=True)
    figure.leave()


if __name__ == "__main__":
    main()
