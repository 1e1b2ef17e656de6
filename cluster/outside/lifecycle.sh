# shellcheck shell=bash
# up, down, reset, status, purge.
# shellcheck disable=SC2034,SC2153 # STEP_LOG is for step, CODE comes from main.sh

# Which way this cluster runs: remembered, so that `down` and `purge` undo what `up` did.
# The probe can be overruled for tests of the other mode.
find_mode() {
  MODE=$(cat "$DIR/mode" 2>/dev/null) || MODE=
  [ -z "$MODE" ] || return 0
  if [ "${PORTOLAN_CLUSTER_MODE:-}" != host ] && guest_possible; then MODE=guest; else MODE=host; fi
}

is_running() {
  find_mode
  if [ "$MODE" = guest ]; then
    holder_pid >/dev/null
  else
    local file
    for file in "$DIR"/run/*; do
      if [ -f "$file" ] && recorded_pid "$file" >/dev/null; then return 0; fi
    done
    return 1
  fi
}

cluster_up() {
  local began=$EPOCHREALTIME
  STEP_LOG= # step makes one if it needs it
  need_packages "${PACKAGES[@]}"
  [ -z "$STEP_LOG" ] || rm -f "$STEP_LOG"
  lock_cluster
  find_mode
  if is_running && copy_code && inside healthy 2>/dev/null; then
    echo "The cluster is up already ($(seconds_since "$began") s)."
    return
  fi
  claim_dir
  STEP_LOG=$DIR/log/up
  # Clusters start one after the other: a block of ports is only visibly taken once daemons listen on it.
  exec 8</
  flock 8
  # one that runs keeps its ports, but may have been started when there were fewer kinds of them
  if is_running; then write_settings "$(cat "$DIR/number")"; else write_settings "$(choose_number)"; fi
  echo "Starting cluster harbour in $DIR"
  step "copying the code and making a private root" make_world
  step "configuration and munge" inside start_munge
  step "database, people and their keys" inside start_database_and_people
  step "slurmdbd" inside start_slurmdbd
  step "slurmctld and the nodes" inside start_slurm
  step "accounts and limits" inside load_accounts
  step "ssh servers and the key page" inside start_sshd
  step "history (SEED_DAYS=${SEED_DAYS:-100})" inside seed_history
  step "waiting for all nodes" inside nodes_ready
  inside describe
  printf 'Ready after %s s. ssh: 127.0.0.1 port %s\n' "$(seconds_since "$began")" \
    "$(sed -n 's/^PORT_KEY=//p' "$DIR/conf/settings") (key), $(sed -n 's/^PORT_MFA=//p' "$DIR/conf/settings") (key and code)"
}

# DIR is ours if it says how it runs; purge and reset remove all that is in it, so no other folder will do.
claim_dir() {
  if [ "$MODE" = host ]; then claim_host; fi
  if [ ! -e "$DIR/mode" ] && [ "$MODE" = guest ]; then
    [ ! -e "$DIR" ] || rmdir "$DIR" || die "$DIR is not empty and not a cluster's folder."
  fi
  mkdir -p "$DIR"
  echo "$MODE" >"$DIR/mode"
  mkdir -p "$DIR/log"
}

is_ours() { [ -e "$DIR/mode" ] || [ ! -e "$DIR" ]; }

# A copy, because users inside must be able to read it; in place, because running daemons call into it.
copy_code() {
  mkdir -p "$DIR/code"
  cp -r --remove-destination "$CODE/." "$DIR/code/"
  chmod -R u=rwX,go=rX "$DIR/code"
  compile_pam
}

compile_pam() {
  local source=$CODE/pam/pam_harbour.c module=$DIR/lib/pam_harbour.so
  [ ! "$module" -nt "$source" ] || return 0
  mkdir -p "$DIR/lib"
  cc -shared -fPIC -O1 -Wall -Wextra -o "$module.new" "$source" -lpam -loath
  mv "$module.new" "$module" # an sshd may be using the old one
}

make_world() {
  copy_code
  chmod 755 "$DIR"
  [ "$MODE" = guest ] || return 0
  holder_pid >/dev/null || fresh_etc
  start_holder
}

# The guest's /etc: the machine's as it is now, without its people, with ours (uid and gid 31000-39999) of last time.
fresh_etc() {
  local fs=$DIR/fs file
  mkdir -p "$fs"
  if [ ! -d "$fs/etc" ] && [ -d "$fs/etc.old" ]; then mv "$fs/etc.old" "$fs/etc"; fi
  rm -rf "$fs/etc.new" "$fs/etc.old"
  cp -a /etc "$fs/etc.new"
  # often a link into /run, which is private; and a Slurm of the machine's own is none of our business
  cp -L --remove-destination /etc/resolv.conf "$fs/etc.new/resolv.conf" || true
  rm -rf "$fs/etc.new/slurm"
  for file in passwd shadow group gshadow; do
    {
      keep_rows "$file" "$fs/etc.new" '!(id >= 1000 && id < 60000)'
      [ ! -d "$fs/etc" ] || keep_rows "$file" "$fs/etc" 'id >= 31000 && id < 40000'
    } | (umask 077; cat >"$fs/etc.new/$file.kept")
  done
  for file in passwd shadow group gshadow; do
    cat "$fs/etc.new/$file.kept" >"$fs/etc.new/$file" # in place: keeps owner and mode
    rm "$fs/etc.new/$file.kept"
  done
  rm -f "$fs"/etc.new/{passwd,shadow,group,gshadow}.lock "$fs/etc.new/.pwd.lock"
  if [ -d "$fs/etc" ]; then mv "$fs/etc" "$fs/etc.old"; fi
  mv "$fs/etc.new" "$fs/etc"
  rm -rf "$fs/etc.old"
}

# keep_rows FILE ETC TEST: rows of ETC/FILE whose name has an id (from passwd or group) that passes TEST.
keep_rows() {
  local ids=$2/passwd
  case $1 in group | gshadow) ids=$2/group ;; esac
  awk -F: "NR == FNR { of[\$1] = \$3; next } { id = of[\$1] } $3" "$ids" "$2/$1"
}

cluster_down() {
  lock_cluster
  end_all
  echo "The cluster is down."
}

end_all() {
  find_mode
  if is_running; then
    inside stop_all 2>>"$DIR/log/down" || true # a half-started cluster may not answer; what follows ends it anyway
    if [ "$MODE" = guest ]; then end_holder; fi
  fi
}

cluster_reset() {
  lock_cluster
  end_all
  forget
  cluster_up
}

# All state but the port block, the way it runs, and the consent to that.
forget() {
  local path
  is_ours || die "$DIR is not a cluster's folder."
  if [ "$MODE" = host ]; then release_host; fi
  for path in "$DIR"/*; do
    case ${path##*/} in
      number | mode | host) ;;
      *) rm -rf --one-file-system "$path" ;;
    esac
  done
}

cluster_status() {
  find_mode
  if ! is_running; then
    echo "The cluster in $DIR is down."
    return 1
  fi
  echo "Cluster harbour in $DIR ($MODE mode)"
  inside status
}

cluster_purge() {
  is_ours || die "$DIR is not a cluster's folder."
  lock_cluster
  end_all
  if [ "$MODE" = host ]; then release_host; fi
  if [ -L "$DIR" ]; then rm -rf --one-file-system "$HOME_INSIDE" && rm -f "$DIR"; fi
  rm -rf --one-file-system "$DIR" "$DIR.lock"
  echo "Nothing of the cluster is left but the packages."
}
