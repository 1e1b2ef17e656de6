# shellcheck shell=bash
# Guest mode: the cluster lives in its own mount, host name, IPC and process namespaces. One holder process is
# init there; when it ends, the kernel ends all of the cluster. The machine's /etc, /home and users stay as they are.

HOLDER=run/holder # under DIR: "pid starttime" of the holder, written by itself

guest_possible() {
  unshare --mount --uts --ipc --pid --fork sh -c 'mount -t tmpfs none /mnt && mount -t proc proc /mnt' 2>/dev/null
}

holder_pid() {
  recorded_pid "$DIR/$HOLDER"
}

start_holder() {
  ! holder_pid >/dev/null || return 0
  mkdir -p "$DIR/run" "$DIR/log"
  rm -f "$DIR/run/ready"
  setsid unshare --mount --uts --ipc --pid --fork --kill-child \
    bash "$CODE/outside/holder.sh" "$DIR" </dev/null >"$DIR/log/holder" 2>&1 9>&- 8>&- &
  wait_for 10 "the holder process" test -e "$DIR/run/ready"
}

end_holder() {
  local pid
  pid=$(holder_pid) || return 0
  kill -9 "$pid"
  wait_for 10 "the holder process to end" not holder_pid
}

not() { ! "$@"; }

# enter CMD…: run CMD inside, with a clean environment.
enter() {
  local clean=(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    HOME=/root USER=root LOGNAME=root SHELL=/bin/bash LANG=C.UTF-8 "TERM=${TERM:-dumb}" "SEED_DAYS=${SEED_DAYS:-100}")
  if [ "$MODE" = host ]; then
    "${clean[@]}" "$@"
    return
  fi
  local pid
  pid=$(holder_pid) || die "The cluster in $DIR is not up: script/cluster up"
  # --root, because in a chroot the namespace's own root is not the holder's
  nsenter --target "$pid" --mount --uts --ipc --pid --root --wd -- "${clean[@]}" "$@"
}

# inside FUNCTION ARG…: run a function of the pieces in inside/.
inside() {
  enter bash "$HOME_INSIDE/code/inside/run.sh" "$@"
}
