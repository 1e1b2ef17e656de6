# shellcheck shell=bash
# Installs the Debian package and the container image in clean roots and starts the portal as each would. Source this
# file after steps.sh and minimal_root.sh; OUT, PROGRAM, REPO and VERSION must be set.
#
#   check_packages    fails if one of them can't be installed or the portal doesn't become healthy

check_packages() {
  local root=$OUT/root suite
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  step "making a minimal Debian" make_minimal_root "$root" "$suite"
  # First: the image starts from the root while nothing is installed in it.
  step "building the image" build_check_image "$root"
  step "starting the image" run_alone start_image
  step "installing the package" install_deb "$root"
  step "starting the package" run_alone start_deb "$root"
  step "removing the package" remove_deb "$root"
  rm -rf --one-file-system "$root" "$OUT/images" "$OUT/build"
}

# FUNCTION ARG… in its own network and process namespaces: the ports are free, and everything ends with it.
run_alone() {
  unshare --net --mount --pid --fork --kill-child --mount-proc bash -c "
    set -euo pipefail
    $(declare -p OUT)
    $(declare -f)
    ip link set lo up
    \"\$@\"" alone "$@"
}

become_healthy() {
  local tries status
  for tries in $(seq 100); do
    if exec 3<>/dev/tcp/127.0.0.1/8082; then
      printf 'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
      read -r _ status _ <&3
      echo "/healthz answered $status"
      [ "$status" = 200 ] && return 0
    fi 2>/dev/null
    sleep 0.2
  done
  echo "The portal didn't become healthy in $((tries / 5)) s."
  return 1
}

install_deb() { # ROOT
  cp "$OUT"/portolan_*.deb "$1/tmp/portolan.deb"
  chroot "$1" sh -eu -c 'export DEBIAN_FRONTEND=noninteractive
    apt-get -q update
    apt-get -q -y --no-install-recommends install /tmp/portolan.deb'
  [ "$(stat -c %a "$1/var/lib/portolan")" = 700 ]
}

# With the command, user and variables of the unit. systemd itself doesn't run in a root like this.
start_deb() { # ROOT
  local unit=$1/usr/lib/systemd/system/portolan.service command
  command=$(sed -n 's/^ExecStart=//p' "$unit")
  mapfile -t variables < <(sed -n 's/^Environment=//p' "$unit")
  chroot "$1" install -d -m 700 -o portolan -g portolan /run/portolan
  # shellcheck disable=SC2086 # a command and its arguments
  chroot "$1" runuser -u portolan -- env "${variables[@]}" $command &
  become_healthy
}

remove_deb() { # ROOT
  chroot "$1" apt-get -q -y purge portolan
  [ ! -e "$1/usr/bin/portolan" ]
  [ ! -e "$1/etc/portolan/portolan.toml" ]
  [ -e "$1/var/lib/portolan/master.key" ] # what people stored stays
}

# buildah sets limits for what it runs: those of Debian 13 raise them, those of Debian 12 lower them first and then
# can't go back up. Both work where a machine allows neither if the limits asked for are below all of these.
keep_limits_low() {
  printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n' >"$OUT/containers.conf"
}

in_check_store() {
  CONTAINERS_CONF=$OUT/containers.conf STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot buildah --root "$OUT/images" --runroot "$OUT/images/run" "$@"
}

# The Dockerfile itself, with the two things replaced that would come from elsewhere: the base image and the build.
build_check_image() { # ROOT
  local container
  rm -rf "$OUT/images" "$OUT/build"
  install -D -m 755 "$PROGRAM" "$OUT/build/build/target/dist/portolan"
  strip "$OUT/build/build/target/dist/portolan"
  tar -C "$1" --one-file-system -cf "$OUT/build/base.tar" .
  keep_limits_low
  container=$(in_check_store from scratch)
  in_check_store add "$container" "$OUT/build/base.tar" /
  in_check_store commit --quiet "$container" localhost/minimal
  in_check_store build --format docker --tag localhost/portolan \
    --build-context build="$OUT/build" --build-context debian:12-slim=container-image://localhost/minimal "$REPO"
}

start_image() {
  local container
  container=$(in_check_store from localhost/portolan)
  in_check_store run "$container" -- portolan serve &
  become_healthy
}
