#!/usr/bin/python3
"""association_usage.py FILE: gives slurmctld's own record of past usage (assoc_usage in its StateSaveLocation) the
usage of the made-up history, so that sshare agrees with sacct and sreport.

slurmctld counts usage while jobs run, and the history never ran. Reads "id_assoc tres_alloc start end" lines, tab
separated, on stdin: one for each finished job. Usage is halved for each half-life (slurm.conf) since it was used.
slurmctld must be down: it writes the file when it ends, and reads it when it starts.

The file: version (16 bits) and time (64), then for each association its id (32), its usage, its usage by TRES, and
its wall time in seconds (32). The two usages are text with its length (32) before and a zero byte behind it.
"""
import os
import struct
import sys
import time

HALF_LIFE = 7 * 86400
BILLING = "5"
HEADER = struct.Struct(">HQ")
NUMBER = struct.Struct(">I")


def read_text(data, at):
    (size,) = NUMBER.unpack_from(data, at)
    at += NUMBER.size
    return data[at:at + size].rstrip(b"\0").decode("ascii"), at + size


def pack_text(text):
    data = text.encode("ascii") + b"\0" if text else b""
    return NUMBER.pack(len(data)) + data


def parse_tres(text):
    return {key: float(value) for key, value in (part.split("=") for part in text.split(",") if part)}


def read_state(data):
    """Each association's usage, by TRES, and wall time. Anything unexpected raises."""
    HEADER.unpack_from(data)
    at, state = HEADER.size, {}
    while at < len(data):
        (association,) = NUMBER.unpack_from(data, at)
        usage, at = read_text(data, at + NUMBER.size)
        by_tres, at = read_text(data, at)
        (wall,) = NUMBER.unpack_from(data, at)
        at += NUMBER.size
        state[association] = (float(usage), parse_tres(by_tres), wall)
    return state


def write_state(header, state):
    pieces = [header]
    for association, (usage, by_tres, wall) in state.items():
        tres = ",".join(f"{key}={value:.6f}" for key, value in sorted(by_tres.items(), key=lambda one: int(one[0])))
        pieces += [NUMBER.pack(association), pack_text(f"{usage:.6f}"), pack_text(tres), NUMBER.pack(int(wall))]
    return b"".join(pieces)


def faded_seconds(start, end, now):
    """The seconds between start and end, each halved for every half-life since."""
    def since(moment):
        return 2.0 ** (-max(now - moment, 0) / HALF_LIFE)
    # the integral of 2^(-age / half-life)
    return (since(end) - since(start)) * HALF_LIFE / 0.6931471805599453


def add_jobs(state, lines, now):
    for line in lines:
        association, tres, start, end = line.rstrip("\n").split("\t")
        seconds = faded_seconds(int(start), int(end), now)
        usage, by_tres, wall = state.get(int(association), (0.0, {}, 0.0))
        held = parse_tres(tres)
        by_tres = {key: by_tres.get(key, 0.0) + held.get(key, 0.0) * seconds for key in by_tres | held}
        state[int(association)] = (usage + held.get(BILLING, 0.0) * seconds, by_tres, wall + seconds)
    return state


def main():
    path = sys.argv[1]
    with open(path, "rb") as file:
        data = file.read()
    state = read_state(data)
    header = data[:HEADER.size]
    if write_state(header, state) != data:
        sys.exit(f"{path} is written in a way that this program does not know.")
    data = write_state(header, add_jobs(state, sys.stdin, time.time()))
    owner = os.stat(path)
    with open(path + ".fed", "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.write(data)
    os.replace(path + ".fed", path)


if __name__ == "__main__":
    main()
