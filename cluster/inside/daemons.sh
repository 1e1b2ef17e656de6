# shellcheck shell=bash
# Starting and ending daemons by recorded pid, and running things on a virtual host.

NODES=(c1 c2 c3 g1 g2 x1 x2)
export HARBOUR_PROCESS=1 # marks everything started from here; see stop_strays

alive() { # NAME
  recorded_pid "$H/run/$1" >/dev/null
}

# start NAME CMD…: a daemon in its foreground mode, its output in log/NAME. Does nothing if it lives.
start() {
  local name=$1
  shift
  ! alive "$name" || return 0
  mkdir -p "$H/run" "$H/log"
  setsid "$@" </dev/null >>"$H/log/$name" 2>&1 7>&- 8>&- 9>&- &
  process_identity "$!" >"$H/run/$name"
}

# stop NAME…: ask all, wait, insist.
stop() {
  local name pid try
  for name in "$@"; do
    # CONT for one that was made to hang (inside/sshd.sh): it has to wake up to hear the first
    if pid=$(recorded_pid "$H/run/$name"); then (kill "$pid" && kill -CONT "$pid") 2>/dev/null || true; fi
  done
  for name in "$@"; do
    for ((try = 0; try < 100; try++)); do
      alive "$name" || break
      sleep 0.05
    done
    if pid=$(recorded_pid "$H/run/$name"); then kill -9 "$pid" 2>/dev/null || true; fi
    rm -f "$H/run/$name"
  done
}

# as_user USER CMD…: on the login host, in a login shell like ssh would give.
as_user() {
  local user=$1 home
  shift
  home=$(getent passwd "$user" | cut -d: -f6)
  [ -n "$home" ] || die "No such user: $user"
  # shellcheck disable=SC2016 # expanded by the inner shell
  "$CODE/inside/on-host" login1 setpriv --reuid "$user" --regid "$user" --init-groups \
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash LANG=C.UTF-8 TERM="$TERM" \
    bash -lc 'cd; "$@"' bash "$@"
}

# fill_in TEMPLATE TARGET [OWNER MODE]: replace @NAME@ by the variable NAME.
fill_in() {
  local text name
  text=$(cat "$1")
  while [[ $text =~ @([A-Z0-9_]+)@ ]]; do
    name=${BASH_REMATCH[1]}
    text=${text//@$name@/${!name}}
  done
  install -m "${4:-644}" -o "${3:-root}" /dev/null "$2.new"
  printf '%s\n' "$text" >"$2.new"
  mv "$2.new" "$2"
}

stop_all() {
  local ids
  if alive slurmctld && ids=$(timeout 5 squeue -h -a -o %A | sort -u) && [ -n "$ids" ]; then
    # shellcheck disable=SC2086 # a list of ids
    timeout 10 scancel $ids || true
    (wait_for 10 "jobs to end" no_jobs) || true
  fi
  local sessions kind listeners=()
  sessions=$(for kind in "${SSH_KINDS[@]}"; do connections "$(port_of "$kind")"; done)
  for kind in "${SSH_KINDS[@]}"; do listeners+=("$(sshd_of "$kind")"); done
  stop "${listeners[@]}" keypage memory-watch "${NODES[@]/#/slurmd-}"
  stop slurmctld
  stop slurmdbd
  stop mariadbd munged
  end_connections "$sessions"
  if [ "$MODE" = host ]; then stop_strays; fi
}

# Host mode has no init that takes everything with it: end what our people run, and what carries our mark.
stop_strays() {
  local pids pid
  pids=$(pgrep -U "$(getent passwd | awk -F: '$3 >= 31000 && $3 < 40000 { print $3 }' | paste -sd, -)" || true)
  pids+=" $(grep -lszx 'HARBOUR_PROCESS=1' /proc/[0-9]*/environ | cut -d/ -f3)"
  for pid in $pids; do kill -9 "$pid" 2>/dev/null || true; done
}

no_jobs() { [ -z "$(timeout 5 squeue -h -a -t R,CG,S)" ]; }
