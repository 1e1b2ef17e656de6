# shellcheck shell=bash
# script/cluster selftest: does the cluster do what tests and the demo rely on? Every answer comes from the real
# Slurm and the real sshd. Checks wait on conditions; what does not disturb each other runs at the same time.

# state: what squeue and, after the bar, sacct must say
declare -A EXPECTED=(
  [completed]='COMPLETED|COMPLETED' [failed]='FAILED NonZeroExitCode|FAILED 3:0' [timeout]='TIMEOUT TimeLimit|TIMEOUT'
  [oom]='OUT_OF_MEMORY|OUT_OF_MEMORY 0:125' [cancelled]='CANCELLED|CANCELLED' [node_fail]='NODE_FAIL|NODE_FAIL'
  [requeued]='PENDING BeginTime|' [suspended]='SUSPENDED|' [deadline]='DEADLINE|DEADLINE'
  [array]='COMPLETED None COMPLETED None COMPLETED None FAILED|COMPLETED 0:0 COMPLETED 0:0 COMPLETED 0:0 FAILED 1:0'
  [dependency]='PENDING Dependency|' [dependency_never]='PENDING DependencyNeverSatisfied|' [held]='PENDING JobHeldUser|'
  [begin]='PENDING BeginTime|' [resources]='PENDING Resources|' [priority]='PENDING Priority|'
  [qos_wall]='PENDING QOSMaxWallDurationPerJobLimit|' [assoc_limit]='PENDING AssocGrpCpuLimit|'
  [qos_jobs]='PENDING QOSMaxJobsPerUserLimit|' [running]='RUNNING|'
)

c() { timeout 120 "$REPO/script/cluster" --dir "$DIR" "$@"; }
second() { timeout 120 "$REPO/script/cluster" --dir "$DIR-second" "$@"; }
fail() {
  echo "$*" >&2
  return 1
}
contains() { # TEXT PART: bash's own, so that no grep closes a pipe early
  [[ $1 == *"$2"* ]] || fail "expected '$2' in: $1"
}

# expect NAME CMD…: one check, counted in $RESULTS; CMD runs with errexit on.
expect() {
  local name=$1 began=$EPOCHREALTIME log
  shift
  log=$(mktemp -p "$SCRATCH_DIR")
  set +e
  (
    set -euo pipefail
    "$@"
  ) >"$log" 2>&1 </dev/null
  local status=$?
  set -e
  if [ "$status" = 0 ]; then
    printf 'ok      %5s s  %s\n' "$(seconds_since "$began")" "$name" | tee -a "$RESULTS"
  else
    printf 'FAILED  %5s s  %s: %s\n' "$(seconds_since "$began")" "$name" "$(tail -n 3 "$log" | paste -sd' ')" | tee -a "$RESULTS"
  fi
}

check_state() { # NAME USER
  local job queue accounting
  job=$(c state "$1" --as "$2")
  queue=$(c exec squeue -h -t all -j "$job" -o '%T %r' | sort | paste -sd' ')
  accounting=$(c exec sacct -nPX --delimiter=' ' -j "$job" -o state,exitcode | sort | paste -sd' ')
  c exec scancel "$job" 2>/dev/null || true # the finished ones are gone already
  [[ $queue == "${EXPECTED[$1]%|*}"* ]] || fail "squeue: $queue"
  [[ $accounting == "${EXPECTED[$1]#*|}"* ]] || fail "sacct: $accounting"
}

check_states_known() {
  local name
  for name in $(c state list | cut -d' ' -f1); do
    [ -n "${EXPECTED[$name]:-}" ] || fail "no check for state $name"
  done
  [ "$(c state list | wc -l)" = ${#EXPECTED[@]} ]
}

run_selftest() {
  local began=$EPOCHREALTIME was_up='' name names n=0 members=(b c d)
  SCRATCH_DIR=$(mktemp -d)
  RESULTS=$SCRATCH_DIR/results
  TAG=t$(date +%d%H%M%S)
  if is_running; then was_up=1; fi
  host_looks >"$SCRATCH_DIR/before"
  c up
  # Four people at once, one of whom leads the group: adding must be safe to do in parallel.
  expect "user add $TAG-a --coordinator" c user add "$TAG-a" "def-$TAG" --coordinator &
  for name in b c d; do expect "user add $TAG-$name" c user add "$TAG-$name" "def-$TAG" & done
  wait
  expect "every state has a check" check_states_known
  [ "$MODE" = host ] || expect "a second cluster, killed twice" check_second &
  names=(deadline oom timeout priority resources node_fail) # the slow ones first
  for name in "${!EXPECTED[@]}"; do [[ " ${names[*]} " == *" $name "* ]] || names+=("$name"); done
  for name in "${names[@]}"; do
    n=$(((n + 1) % 3))
    expect "state $name" check_state "$name" "$TAG-${members[n]}" &
    while [ "$(jobs -rp | wc -l)" -ge 8 ]; do wait -n || true; done
  done
  expect "state assoc_limit of an account" check_state assoc_limit dave
  wait
  expect "Slurm's commands over ssh" check_slurm
  [ "$(cat "$DIR/var/seeded-days")" -lt 30 ] || expect "history in sacct and sreport" check_history
  expect "a job's environment, nodes, GPU" check_job
  expect "addresses of nodes" check_addresses
  expect "listens on loopback only" check_loopback
  expect "sftp, key" check_sftp PORT_KEY never
  expect "sftp, key and code" check_sftp PORT_MFA force
  expect "training learns and writes events" check_training
  expect "public keys" check_keys
  expect "one-time codes" check_codes
  expect "coordinator ends a member's job" check_coordinator
  expect "Duo, by passcode and phone call" check_duo
  expect "Duo, by push" check_push
  expect "one-time code and password" check_password
  expect "a password that must be changed" check_expired
  expect "robot" check_robot
  expect "jump through one port to another" check_jump
  expect "tcsh, fish and a talkative bash" check_shells
  expect "key page" check_keypage
  expect "ssh servers that hang, drop, die" check_faults
  expect "host keys that change" check_host_keys
  expect "cluster.json" check_json
  expect "status" c status
  if [ -z "$was_up" ]; then c down; fi
  host_looks >"$SCRATCH_DIR/after"
  [ "$MODE" = host ] || expect "the machine is untouched" diff "$SCRATCH_DIR/before" "$SCRATCH_DIR/after"
  local passed failed
  passed=$(grep -c ^ok "$RESULTS" || true)
  failed=$(grep -c ^FAILED "$RESULTS" || true)
  rm -rf "$SCRATCH_DIR"
  echo "$passed passed, $failed failed (in $(seconds_since "$began") s)"
  [ "$failed" = 0 ]
}
