# shellcheck shell=bash
# Is every part up and does it answer?

check() { # WHAT CMD…
  local what=$1
  shift
  if "$@" >/dev/null 2>&1; then
    printf '  %-44s ok\n' "$what"
  else
    printf '  %-44s DOWN\n' "$what"
    return 1
  fi
}

status() {
  local bad=0 name
  for name in "${SERVICES[@]}"; do check "$name" alive "$name" || bad=1; done
  check "munge answers" asked munged munge --socket="$MUNGE_SOCKET" -n || bad=1
  check "slurmctld answers" asked slurmctld timeout 5 scontrol ping || bad=1
  check "slurmdbd answers" asked slurmdbd timeout 5 sacctmgr -n show cluster || bad=1
  check "nodes take jobs" asked slurmctld nodes_take_jobs || bad=1
  check "ssh, key (port $PORT_KEY)" banner "$PORT_KEY" || bad=1
  check "ssh, key and code (port $PORT_MFA)" banner "$PORT_MFA" || bad=1
  check "ssh, key and Duo (port $PORT_DUO)" banner "$PORT_DUO" || bad=1
  check "ssh, code and password (port $PORT_PASSWORD)" banner "$PORT_PASSWORD" || bad=1
  check "ssh, robot (port $PORT_ROBOT)" banner "$PORT_ROBOT" || bad=1
  check "key page (port $PORT_KEYPAGE)" port_answers "$PORT_KEYPAGE" || bad=1
  check "cluster.json" test -s "$H/cluster.json" || bad=1
  return $bad
}

# asked DAEMON CMD…: Slurm's commands are slow to give up on a daemon that is not there, so do not ask then.
asked() { alive "$1" && "${@:2}"; }

healthy() { status >/dev/null; }

nodes_take_jobs() {
  [ "$(sinfo -h -N -o '%N %t' | awk '$2 ~ /^(idle|mix|alloc|comp)$/' | sort -u | wc -l)" -ge ${#NODES[@]} ]
}

banner() { # PORT; in a subshell, because a failed exec ends a shell
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    read -r -t 3 line <&3
    [[ $line == SSH-2.0-* ]]
  )
}
