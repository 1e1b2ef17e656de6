#!/usr/bin/python3
"""Writes cluster.json, which tells programs outside how to reach the cluster, and keys/known_hosts."""
import json
import os
import subprocess

HOME = "/harbour"
SSH_PORTS = ["key", "mfa", "duo", "password", "robot"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def read(path):
    with open(path) as file:
        return file.read().strip()


def write(path, text, owner):
    """In one stroke, so that a reader never sees half a file."""
    descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchown(descriptor, *owner)
        file.write(text)
    os.rename(path + ".new", path)


def host_key(kind):
    line = " ".join(read(f"{HOME}/conf/host_{kind}.pub").split()[:2])
    fingerprint = run("ssh-keygen", "-lf", f"{HOME}/conf/host_{kind}.pub").split()[1]
    return {"type": line.split()[0], "fingerprint": fingerprint, "line": line}


def person(row, outside):
    name, accounts, full_name, *shell = row.split("\t")
    return {
        "name": name,
        "full_name": full_name,
        "account": accounts.split(",")[0].rstrip("*"),
        "accounts": [account.rstrip("*") for account in accounts.split(",")],
        "pi": "*" in accounts,
        "private_key": f"{outside}/keys/{name}",
        "public_key": read(f"{HOME}/keys/{name}.pub"),
        "totp_secret": read(f"{HOME}/keys/{name}.totp"),
        "password": read(f"{HOME}/keys/{name}.password"),
        "duo_passcode": read(f"{HOME}/keys/{name}.duo"),
        "shell": shell[0] if shell else "/bin/bash",
    }


def main():
    settings = dict(line.split("=", 1) for line in read(f"{HOME}/conf/settings").splitlines())
    outside = settings["OUTSIDE_DIR"][1:-1].replace("'\\''", "'")
    owner = tuple(int(part) for part in settings["CALLER"].split(":"))
    ports = {kind: int(settings[f"PORT_{kind.upper()}"]) for kind in SSH_PORTS}
    users = [person(row, outside) for row in read(f"{HOME}/people.tsv").splitlines()]
    partitions = [line.split()[0].split("=")[1] for line in read(f"{HOME}/conf/slurm.conf").splitlines()
                  if line.startswith("PartitionName=")]
    keys = [host_key("ed25519"), host_key("ecdsa")]
    write(f"{HOME}/cluster.json", json.dumps({
        "name": "harbour",
        "slurm_version": run("slurmctld", "-V").split()[1],
        "mode": settings["MODE"],
        "host": "127.0.0.1",
        "ports": {**ports, "keypage": int(settings["PORT_KEYPAGE"])},
        "host_keys": keys,
        "users": users,
        "partitions": partitions,
        "accounts": sorted({account for user in users for account in user["accounts"]}),
        "robot": {"wrappers": f"{HOME}/code/allowed_commands", "keys": f"{HOME}/robot/keys"},
        "dir": outside,
    }, indent=2) + "\n", owner)
    write(f"{HOME}/keys/known_hosts",
          "".join(f"[127.0.0.1]:{port} {key['line']}\n" for port in ports.values() for key in keys), owner)


main()
