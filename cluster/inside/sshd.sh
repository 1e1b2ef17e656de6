# shellcheck shell=bash
# The ssh servers of the login host, one for each way of signing in; their host keys; and how they can fail.

SSH_KINDS=(key mfa duo password robot)

sshd_of() { # KIND: what its daemon, its configuration and its PAM service are called
  case " ${SSH_KINDS[*]} " in
    *" ${1:-none} "*) ;;
    *) die "No such port: '${1:-}'. There are: ${SSH_KINDS[*]}" ;;
  esac
  if [ "$1" = key ]; then echo sshd; else echo "sshd-$1"; fi
}

port_of() { # KIND
  local name=PORT_${1^^}
  echo "${!name}"
}

start_sshd() {
  local kind
  mkdir -p /run/sshd "$H/run/push" "$H/robot/keys"
  touch "$H/robot/enrolled"
  [ -s "$H/conf/host_ecdsa.pub" ] || make_host_keys
  for kind in "${SSH_KINDS[@]}"; do start_sshd_of "$kind"; done
  start keypage /usr/bin/python3 "$CODE/tools/keypage.py" "$PORT_KEYPAGE"
  for kind in "${SSH_KINDS[@]}" keypage; do wait_for 10 "the port $kind" port_answers "$(port_of "$kind")"; done
}

# sshd takes the name of its PAM service from the name it is called by, or from its configuration since 9.8.
start_sshd_of() { # KIND
  local name pid
  name=$(sshd_of "$1")
  if pid=$(recorded_pid "$H/run/$name"); then
    kill -CONT "$pid" # in case it was made to hang
    return
  fi
  cp "$CODE/conf/pam-$1" "/etc/pam.d/harbour-$name"
  fill_in "$CODE/conf/$name.conf" "$H/conf/$name"
  cat "$CODE/conf/sshd-common.conf" >>"$H/conf/$name"
  if /usr/sbin/sshd -T -f "$H/conf/$name" -o PAMServiceName=x >/dev/null 2>&1; then
    printf '%s\n' "PAMServiceName harbour-$name" "PerSourcePenalties no" >>"$H/conf/$name"
  fi
  ln -sfn /usr/sbin/sshd "$H/run/harbour-$name"
  start "$name" "$CODE/inside/on-host" login1 "$H/run/harbour-$name" -D -e -f "$H/conf/$name"
}

make_host_keys() {
  local type
  for type in ed25519 ecdsa; do
    rm -f "$H/conf/host_$type" "$H/conf/host_$type.pub"
    ssh-keygen -q -t $type -N '' -C login1 -f "$H/conf/host_$type"
  done
}

# hostkey change|restore: a centre that was installed anew, or somebody in between. Open connections go on.
hostkey() {
  with_lock hostkeys change_host_keys "$@"
  describe
}

change_host_keys() {
  local first="$H/conf/host-first" kind names=()
  case ${1:-} in
    change)
      [ -d "$first" ] || { mkdir -p "$first.new" && cp -p "$H"/conf/host_* "$first.new/" && mv "$first.new" "$first"; }
      make_host_keys
      ;;
    restore)
      [ -d "$first" ] || return 0
      cp -p "$first"/host_* "$H/conf/"
      rm -rf "$first"
      ;;
    *) die "hostkey change | hostkey restore" ;;
  esac
  for kind in "${SSH_KINDS[@]}"; do names+=("$(sshd_of "$kind")"); done
  stop "${names[@]}"
  start_sshd
}

# sshd stop|cont|kill|restart|drop KIND [USER]
sshd_fault() {
  local kind=${2:-} name port pid
  name=$(sshd_of "$kind")
  port=$(port_of "$kind")
  case $1 in
    stop | cont)
      pid=$(recorded_pid "$H/run/$name") || die "The ssh server of port $kind is not up."
      kill "-${1^^}" "$pid"
      ;;
    kill)
      stop "$name"
      end_connections "$(connections "$port")"
      ;;
    restart)
      stop "$name"
      start_sshd_of "$kind"
      wait_for 10 "the port $kind" port_answers "$port"
      ;;
    drop)
      id "${3:?sshd drop PORT USER}" >/dev/null 2>&1 || die "No such user: $3"
      end_connections "$(connections_of "$port" "$(id -u "$3")")"
      ;;
    *) die "sshd stop|cont|kill|restart PORT | sshd drop PORT USER" ;;
  esac
}

# The processes that hold a connection to a port. Not by their parent: that one may have been restarted since.
connections() { # PORT
  ss -Htnp "sport = :$1" | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u || true
}

# Each connection has a process of the user and, above it, one of root's.
connections_of() { # PORT UID
  local pid parent all
  all=$(connections "$1")
  for pid in $all; do
    if [ "$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status" 2>/dev/null)" = "$2" ]; then
      parent=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || continue
      echo "$pid"
      grep -x "$parent" <<<"$all" || true
    fi
  done
}

end_connections() { # PIDS
  # shellcheck disable=SC2086 # a list of pids
  [ -z "$1" ] || kill -9 $1 2>/dev/null || true
}
