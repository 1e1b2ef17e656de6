#!/usr/bin/python3
"""Stand-in for the kernel's out-of-memory killer, which Slurm only learns of through cgroups.

memory_watch.py watch        end jobs that use more memory than they asked for, for ever
memory_watch.py timeout JOB  report a job whose EndTime has passed as ended now (TIMEOUT)

slurm_complete_job(job, 253) is what a node reports after a real out-of-memory kill; slurmctld makes
OUT_OF_MEMORY, exit code 0:125, of it.
"""
import ctypes
import glob
import os
import re
import subprocess
import sys
import time

OUT_OF_MEMORY = 253
MEGABYTE = 2**20
UNITS = {"K": 2**10, "": MEGABYTE, "M": MEGABYTE, "G": 2**30, "T": 2**40}
# Small steps are not worth asking slurmctld about; no job here asks for less.
IGNORE_BELOW = 30 * MEGABYTE

slurm = ctypes.CDLL(glob.glob("/usr/lib/*/slurm*/libslurmfull.so")[0], mode=ctypes.RTLD_GLOBAL)
slurm.slurm_init(None)


def complete(job, code):
    return slurm.slurm_complete_job(ctypes.c_uint32(job), ctypes.c_uint32(code))


def memory_limit(job):
    """Bytes a running job may use per node, or None."""
    text = subprocess.run(["scontrol", "-o", "show", "job", str(job)], capture_output=True, text=True).stdout
    asked = re.search(r"MinMemory(Node|CPU)=([\d.]+)([KMGT]?)", text)
    if "JobState=RUNNING" not in text or not asked:
        return None
    limit = float(asked[2]) * UNITS[asked[3]]
    if asked[1] == "CPU":
        cpus, nodes = (int(re.search(rf"{name}=(\d+)", text)[1]) for name in ("NumCPUs", "NumNodes"))
        limit *= max(1, cpus // nodes)
    return limit or None


def steps():
    """(job, bytes in use) of every step on this machine: what runs below each slurmstepd."""
    children, resident, jobs = {}, {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                step = re.match(rb"slurmstepd(?:-\S+)?: \[(\d+)\.", file.read())
        except (OSError, IndexError):
            continue  # ended meanwhile
        children.setdefault(int(fields[1]), []).append(int(pid))
        resident[int(pid)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        if step:
            jobs[int(pid)] = int(step[1])

    def below(pid):
        return sum(resident[child] + below(child) for child in children.get(pid, []) if child not in jobs)

    return [(job, below(pid)) for pid, job in jobs.items()]


def watch():
    limits, seen_over = {}, set()
    while True:
        running = steps()
        limits = {job: limit for job, limit in limits.items() if any(job == other for other, _ in running)}
        for job, used in running:
            if used < IGNORE_BELOW:
                continue
            if limits.get(job) is None:
                limits[job] = memory_limit(job)
            if limits[job] is None or used <= limits[job]:
                continue
            if job not in seen_over:  # Slurm samples once a second: let it see the peak, for MaxRSS
                seen_over.add(job)
                continue
            print(f"job {job} uses {used} of {limits[job]:.0f} bytes", flush=True)
            complete(job, OUT_OF_MEMORY)
        time.sleep(1)


if __name__ == "__main__":
    if sys.argv[1:] == ["watch"]:
        watch()
    elif len(sys.argv) == 3 and sys.argv[1] == "timeout":
        sys.exit(complete(int(sys.argv[2]), 0) != 0)
    else:
        sys.exit(__doc__)
