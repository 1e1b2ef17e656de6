# shellcheck shell=bash
# Ready-made job states: state_NAME brings a job of $USER_NAME into the state it is named after, as fast as it can be
# done, and sets $JOB. The comment beside each name is what `state list` shows.
# Whatever fails or fills nodes happens on x1 and x2, which nobody else uses, one caller at a time.
# shellcheck disable=SC2016 # job scripts are expanded on the node

list_states() {
  sed -nE 's/^state_([a-z_]+)\(\) \{ # (.*)/\1\t\2/p' "$CODE/inside/states.sh" | expand -t 20
}

make_state() { # NAME USER
  declare -F "state_$1" >/dev/null || die "No such state: $1 (script/cluster state list)"
  STATE=$1 USER_NAME=$2 JOB=
  id "$2" >/dev/null 2>&1 || die "No such user: $2"
  "state_$1" >&2
  echo "$JOB"
}

# submit SCRIPT OPTION…: sbatch as the user; sets JOB. Output goes to ~/states, as people keep it in a folder.
submit() {
  local script=$1
  shift
  JOB=$(printf '#!/bin/bash\n%s\n' "$script" | as_user "$USER_NAME" bash -c \
    'mkdir -p states && cd states && sbatch --parsable -J "$@"' bash "$STATE" -o %x-%j.out -t 10 "$@")
}

in_queue() { # STATE [REASON]
  local want="$1${2:+ $2}" format='%T'
  [ -z "${2:-}" ] || format='%T %r'
  [ "$(squeue -h -t all -j "$JOB" -o "$format")" = "$want" ]
}
in_accounting() { # STATE
  local state
  state=$(sacct -nPX -j "$JOB" -o state)
  [ "${state%% by *}" = "$1" ]
}
# Both: a job may still be COMPLETING in the queue when accounting knows its end.
has_ended() { in_queue "$1" && in_accounting "$1"; }
# The nodes may be busy with the jobs of others: that can take minutes.
until_queue() { wait_for 240 "job $JOB to be $*" in_queue "$@"; }
until_ended() { wait_for 240 "job $JOB to be $1" has_ended "$1"; }
submit_running() { # OPTION…
  submit 'exec sleep 600' "$@"
  until_queue RUNNING
}

# keep OTHER…: cancel helper jobs once JOB has left the queue, at the latest after two minutes. A process of its own,
# so that it holds nothing of ours open but the lock on a node (fd 6), if there is one.
keep() {
  setsid bash "$CODE/inside/run.sh" cancel_after "$JOB" "$@" </dev/null >/dev/null 2>&1 &
}
cancel_after() { # JOB OTHER…
  local try
  for ((try = 0; try < 240; try++)); do
    [ -n "$(squeue -h -t pending -j "$1")" ] || break
    sleep 0.5
  done
  scancel "${@:2}"
}
lock_node() { # NODE
  exec 6>"$H/run/lock-$1"
  flock -w 180 6 || die "Somebody else has kept $1 for three minutes"
}

state_completed() { # ends well
  submit 'echo "Hello from $(hostname -s)"'
  until_ended COMPLETED
}
state_failed() { # ends with exit code 3 and an error message
  submit 'echo "cannot open data.csv" >&2; exit 3'
  until_ended FAILED
}
state_timeout() { # reaches its time limit
  submit_running
  # "now" is a whole second of the client's; if the controller's clock has just passed it, it is refused as past
  wait_for 10 "an end time that the controller takes" scontrol update jobid="$JOB" EndTime=now
  # slurmctld would look in up to 30 s; a report from the node makes it look now. EndTime counts whole seconds.
  sleep 1.1
  /usr/bin/python3 "$CODE/tools/memory_watch.py" timeout "$JOB"
  until_ended TIMEOUT
}
state_oom() { # uses more memory than it asked for
  submit "exec python3 $CODE/examples/oom.py" --mem=100M
  until_ended OUT_OF_MEMORY
}
state_cancelled() { # cancelled by its owner while running
  submit_running
  as_user "$USER_NAME" scancel "$JOB"
  until_ended CANCELLED
}
state_node_fail() { # its node fails
  lock_node x1
  submit 'exec sleep 600' -p trial -w x1 --no-requeue
  scontrol update jobid="$JOB" Priority=100000000 # not to wait behind a job that wants x2
  until_queue RUNNING
  scontrol update nodename=x1 state=down reason="made to fail"
  # whatever happens, the node comes back
  (until_ended NODE_FAIL) || JOB=
  wait_for 30 "x1 to come back" bring_back x1
  [ -n "$JOB" ] || die "The job did not end as NODE_FAIL"
}
bring_back() { # NODE
  scontrol update nodename="$1" state=resume || true
  sinfo -h -n "$1" -o %t | grep -qx idle
}
state_requeued() { # was running, put back into the queue by an operator
  submit_running --requeue
  scontrol requeue "$JOB"
  until_queue PENDING BeginTime
}
state_suspended() { # suspended by an operator
  submit_running
  scontrol suspend "$JOB"
  until_queue SUSPENDED
}
state_deadline() { # could not start before its deadline; the QOS keeps it waiting until then
  submit true --qos=debug -t 45 --deadline="$(date -d '+2702 seconds' +%FT%T)"
  until_ended DEADLINE
}
state_array() { # four tasks, of which number 2 fails
  submit 'echo "task $SLURM_ARRAY_TASK_ID"; [ "$SLURM_ARRAY_TASK_ID" != 2 ]' --array=0-3 -o %x-%A_%a.out
  wait_for 60 "the tasks of $JOB" array_done
}
array_done() {
  [ "$(squeue -h -t all -j "$JOB" -o %T | sort | uniq -c | xargs)" = "3 COMPLETED 1 FAILED" ] &&
    [ "$(sacct -nPX -j "$JOB" -o state | sort | uniq -c | xargs)" = "3 COMPLETED 1 FAILED" ]
}
state_dependency() { # waits for another job
  submit_running
  local other=$JOB
  submit true -d "afterok:$other"
  until_queue PENDING Dependency
  keep "$other"
}
state_dependency_never() { # waits for a job that was cancelled
  submit true --hold
  local other=$JOB
  submit true -d "afterok:$other"
  scancel "$other"
  until_queue PENDING DependencyNeverSatisfied
}
state_held() { # held by its owner
  submit true --hold
  until_queue PENDING JobHeldUser
}
state_begin() { # may start in an hour
  submit true --begin=now+1hour
  until_queue PENDING BeginTime
}
fill_node() { # x2 to this caller alone, and busy. By feature, not by name: that would change the reason
  lock_node x2
  submit_running -p trial -C crowded --exclusive
}
state_resources() { # waits for a busy node
  fill_node
  local busy=$JOB
  submit true -p trial -C crowded --exclusive
  until_queue PENDING Resources
  keep "$busy"
}
state_priority() { # waits behind a job with a higher priority
  fill_node
  local busy=$JOB
  submit true -p trial -C crowded --exclusive
  local first=$JOB
  submit true -p trial -C crowded --exclusive --nice=5000
  until_queue PENDING Priority
  keep "$busy" "$first"
}
state_qos_wall() { # asks for more time than its QOS allows
  submit true --qos=debug -t 45
  until_queue PENDING QOSMaxWallDurationPerJobLimit
}
state_assoc_limit() { # asks for more cores than its account may use
  if grep -qE "^$USER_NAME	[^	]*def-jones" "$PEOPLE"; then
    submit true -A def-jones -c 5
  else # no limit on the account: one on the user's own association, which leaves room for ordinary jobs
    with_lock accounting sacctmgr -i modify user where name="$USER_NAME" cluster=harbour set GrpTRES=cpu=20
    submit true -n 24
  fi
  until_queue PENDING AssocGrpCpuLimit
}
state_qos_jobs() { # one job more than its QOS allows to run
  local others=()
  submit 'exec sleep 600' --qos=debug && others+=("$JOB")
  submit 'exec sleep 600' --qos=debug && others+=("$JOB")
  submit true --qos=debug
  until_queue PENDING QOSMaxJobsPerUserLimit
  keep "${others[@]}"
}
state_running() { # runs for ten minutes
  submit 'echo "Started on $(hostname -s)"; exec sleep 600'
  until_queue RUNNING
}
