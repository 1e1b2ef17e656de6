# shellcheck shell=bash
# Processes that are found again by a file: source this file, it does nothing by itself.

# The start time tells a process from a later one with the same pid; a zombie counts as gone.
process_identity() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # shellcheck disable=SC2086 # splitting into fields is the point
  set -- $1 ${stat##*) }
  [ "$2" != Z ] && echo "$1 ${21}"
}

# recorded_pid FILE: the pid in FILE ("pid starttime"), if that very process still lives.
recorded_pid() {
  local pid start
  read -r pid start 2>/dev/null <"$1" || return 1
  [ "$(process_identity "$pid")" = "$pid $start" ] && echo "$pid"
}
