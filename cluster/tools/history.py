#!/usr/bin/python3
"""history.py DAYS: SQL that gives a fresh slurmdbd a past: finished jobs of the last DAYS days.

Reads "id_assoc user account" lines, tab separated, on stdin. The same people do the same things every time: the
random numbers have a fixed seed and only the date moves. Everybody has habits, so that reports have something to
tell: alice trains on GPUs and uses what she asks for, bob asks for eight cores and uses one, carol runs arrays,
dave runs out of memory, erik has left. Some jobs run over midnight, one over each end of a month; some lose their
node and run again under the same number. No node ever holds more than it has. Job ids start at 1001; real ones at
20001.
"""
import pwd
import random
import sys
import time

DAYS = int(sys.argv[1])
NOW = int(time.time())
RANDOM = random.Random(1848)
NO_VALUE = 4294967294
NODES = ["c1", "c2", "c3", "g1", "g2"]
GPUS = {"g1": ("t4", 2), "g2": ("v100", 1)}
TRES_OF_GPU = {"t4": 1002, "v100": 1003}
# state number in Slurm's tables, and the same for the batch step
STATES = {"completed": (3, 3), "failed": (5, 5), "cancelled": (4, 4), "timeout": (6, 4), "node_fail": (7, 4),
          "deadline": (10, None), "out_of_memory": (11, 11)}
# user: (jobs a day, share on GPUs, cores, how much of the cores is used, gigabytes a core, how jobs end, names)
USUAL = {"completed": 80, "failed": 9, "cancelled": 6, "timeout": 4, "node_fail": 1}
HABITS = {
    "alice": (4, 0.8, [2, 4], (0.80, 0.98), 2, USUAL, ["train-resnet", "finetune", "evaluate"]),
    "bob": (4, 0.1, [8], (0.08, 0.14), 1, USUAL, ["fit-model", "preprocess", "notebook"]),
    "carol": (1, 0.0, [1], (0.85, 0.99), 1, USUAL, ["sweep", "bootstrap"]),
    "dave": (3, 0.2, [2, 4], (0.40, 0.70), 1, {**USUAL, "out_of_memory": 30}, ["assemble", "align", "blast"]),
    "asmith": (0.5, 0.3, [1, 2], (0.50, 0.90), 2, {**USUAL, "deadline": 25}, ["figures", "review"]),
    "erik": (2, 0.4, [1, 4], (0.55, 0.85), 2, USUAL, ["segment", "denoise"]),
    "mjones": (1, 0.3, [2], (0.60, 0.95), 2, {**USUAL, "timeout": 25}, ["simulate", "render"]),
}
LIMITS = [30, 60, 120, 180, 360, 720]  # minutes
# Who is no longer there: accounting.sh gives them an association that is deleted. The last day they ran, before today.
GONE = {"erik": 20}
UIDS = {"erik": 30999}
OFTEN = 400  # rows in one statement

taken = {node: [] for node in NODES}  # (start, end, cores, gpus) of the jobs on a node
ends_of = {}  # when each job ended
next_id = 1001
row = 0


def start_on(node, begin, seconds, cores, gpus):
    """The first moment at which the node has room for the whole of the job."""
    gpu_count = GPUS.get(node, (None, 0))[1]
    for moment in sorted([begin] + [end + 1 for _, end, *_ in taken[node] if end >= begin]):
        over = [job for job in taken[node] if job[0] < moment + seconds and job[1] > moment]
        if sum(job[2] for job in over) + cores <= 8 and sum(job[3] for job in over) + gpus <= gpu_count:
            return moment
    raise AssertionError("a node is free once all its jobs have ended")


rows = {}  # by table and columns: written many at a time, which takes a tenth of the time


def insert(table, values):
    shown = ", ".join("NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"
                      for value in values.values())
    waiting = rows.setdefault((table, tuple(values)), [])
    waiting.append(f"({shown})")
    if len(waiting) >= OFTEN:
        flush(table, tuple(values))


def flush(table, columns):
    waiting = rows.pop((table, columns))
    names = ", ".join(f"`{name}`" for name in columns)
    print(f"insert into harbour_{table}_table ({names}) values", ",\n".join(waiting), ";")


def plan(user, tasks):
    """What one sbatch asks for; the tasks of an array share it."""
    _, gpu_share, cores, _, _, _, names = HABITS[user]
    return (RANDOM.choice(names), RANDOM.random() < gpu_share, RANDOM.choice(cores),
            RANDOM.choice(LIMITS[:3] if tasks > 1 else LIMITS))


def write_job(user, association, account, submitted, planned, end_state, array=None, again=None):
    """array: (job id of the first task, task number). again: the id of a job that was put back."""
    global next_id, row
    name, on_gpu, cores, minutes = planned
    used, gigabytes = HABITS[user][3:5]
    memory = cores * gigabytes * 1000
    seconds = int(minutes * 60 * RANDOM.uniform(0.1, 0.9))
    if end_state == "timeout":
        seconds = minutes * 60 + RANDOM.randrange(1, 30)
    if end_state == "deadline":
        seconds = 0
    start, node = min((start_on(node, submitted + RANDOM.randrange(2, 900), seconds, cores, int(on_gpu)), node)
                      for node in (["g1", "g2"] if on_gpu else ["c1", "c2", "c3"]))
    end = start + seconds
    if end > NOW - 60:
        return
    taken[node].append((start, end, cores, int(on_gpu)))
    ends_of[again or next_id] = end
    row += 1
    if again is None:
        job_id, next_id = next_id, next_id + 1
    else:
        job_id = again
    exit_code = {"failed": RANDOM.choice([1, 1, 2, 127]) << 8, "out_of_memory": 253, "deadline": 1 << 8}.get(end_state, 0)
    # billing as slurm.conf weighs it
    tres = f"1={cores},2={memory},4=1,5={cores + (8 + memory // 4000 if on_gpu else 0)}"
    option = ""
    if on_gpu:
        tres += f",1001=1,{TRES_OF_GPU[GPUS[node][0]]}=1"
        option = f" --gres=gpu:{GPUS[node][0]}:1"
    partition = "gpu" if on_gpu else "cpu"
    number, group = person(user)
    state, step_state = STATES[end_state]
    insert("job", {
        "job_db_inx": Row(row), "mod_time": end, "account": account, "cpus_req": cores, "derived_ec": exit_code, "exit_code": exit_code,
        "flags": 20, "job_name": name, "id_assoc": association, "id_job": job_id, "id_qos": 1, "id_resv": 0, "id_wckey": 0,
        "id_array_job": array[0] if array else 0, "id_array_task": array[1] if array else NO_VALUE,
        "id_user": number, "id_group": group, "het_job_id": 0, "het_job_offset": NO_VALUE,
        "kill_requid": number if end_state == "cancelled" else None, "state_reason_prev": 0, "mem_req": memory,
        "nodelist": node if seconds else "None assigned", "nodes_alloc": 1 if seconds else 0,
        "node_inx": str(NODES.index(node)), "partition": partition, "priority": RANDOM.randrange(20000, 50000), "state": state,
        "timelimit": minutes, "time_submit": submitted, "time_eligible": submitted, "time_start": start, "time_end": end,
        "work_dir": f"/home/{user}/{name}", "tres_alloc": tres if seconds else "", "tres_req": tres,
        "submit_line": f"sbatch -A {account} -p {partition} -t {minutes} -c {cores} --mem={memory}M{option} {name}.sh"})
    if not seconds:
        return
    cpu_seconds = int(seconds * cores * RANDOM.uniform(*used))
    resident = int(memory * 2**20 * (1.01 if end_state == "out_of_memory" else RANDOM.uniform(0.2, 0.9)))
    usage, task = f"1={cpu_seconds * 1000},2={resident},6=100000000,7={resident + 100000000},8=0", "1=0,2=0,6=0,7=0,8=0"
    insert("step", {
        "job_db_inx": Row(row), "exit_code": {4: 15}.get(step_state, exit_code), "id_step": -5, "nodelist": node, "nodes_alloc": 1,
        "node_inx": str(NODES.index(node)), "state": step_state, "step_name": "batch", "task_cnt": 1, "time_start": start,
        "time_end": end, "user_sec": int(cpu_seconds * 0.97), "sys_sec": int(cpu_seconds * 0.03), "tres_alloc": tres,
        "tres_usage_in_ave": usage, "tres_usage_in_max": usage, "tres_usage_in_max_taskid": task,
        "tres_usage_in_max_nodeid": task, "tres_usage_in_min": usage, "tres_usage_in_min_taskid": task,
        "tres_usage_in_min_nodeid": task, "tres_usage_in_tot": usage})


class Row(int):
    """The number of a row, counted from the last one that was there before."""
    def __str__(self):
        return f"@before+{int(self)}"


def person(user):
    if user in UIDS:
        return UIDS[user], UIDS[user]
    entry = pwd.getpwnam(user)
    return entry.pw_uid, entry.pw_gid


def is_last_of_month(moment):
    return time.localtime(moment).tm_mon != time.localtime(moment + 86400).tm_mon


def main():
    associations = {}
    for line in sys.stdin:
        association, user, account = line.rstrip("\n").split("\t")
        associations.setdefault(user, []).append((int(association), account))
    begin = NOW - DAYS * 86400
    print("start transaction;")
    print("set @before = (select coalesce(max(job_db_inx), 0) from harbour_job_table);")
    for day in range(DAYS):
        first_moment = begin + day * 86400
        for node in NODES:
            taken[node] = [job for job in taken[node] if job[1] >= first_moment]
        if is_last_of_month(first_moment) and first_moment < NOW - 2 * 86400:
            evening = time.localtime(first_moment)
            evening = int(time.mktime((*evening[:3], 20, 0, 0, 0, 0, -1)))
            association, account = min(associations["alice"], key=lambda row: row[1])
            write_job("alice", association, account, max(evening, first_moment), ("train-resnet", True, 4, 720), "timeout")
        for user, (a_day, *_, ends, _names) in HABITS.items():
            if user not in associations or day >= DAYS - GONE.get(user, 0):
                continue
            count = int(a_day) + (RANDOM.random() < a_day % 1)
            for submitted in sorted(begin + day * 86400 + RANDOM.randrange(86400) for _ in range(count)):
                association, account = RANDOM.choice(sorted(associations[user], key=lambda row: row[1]))
                tasks = RANDOM.choice([4, 6, 10]) if user == "carol" else 1
                first, planned = next_id, plan(user, tasks)
                for task in range(tasks):
                    end_state = RANDOM.choices(list(ends), list(ends.values()))[0]
                    write_job(user, association, account, submitted, planned, end_state,
                              (first, task) if tasks > 1 else None)
                if tasks == 1 and end_state == "node_fail" and next_id > first:
                    # put back, and run again to its end: two rows under one number
                    write_job(user, association, account, max(ends_of[first] + 2, submitted + 1), planned, "completed",
                              again=first)
    for table, columns in sorted(rows):
        flush(table, columns)
    # the cluster and the roll-up must begin before the first job, or sreport skips what came before
    print(f"update harbour_event_table set time_start = {begin - 86400} where node_name = '' and time_end = 0;")
    print(f"update harbour_last_ran_table set hourly_rollup = {begin}, daily_rollup = {begin}, monthly_rollup = {begin};")
    print("commit;")


main()
