# shellcheck shell=bash
# Small helpers shared by the scripts in script/: source this file, it does nothing by itself.
#
#   step "words" CMD…        print the words, run CMD quietly, print how long it took;
#                            on failure show the end of the log and return CMD's exit code
#   need_packages PKG…       install the Debian packages that are missing (asks sudo if not root)
#   need_root CMD…           go on as root: if we are not, run CMD (this same script) through sudo instead
#   die "sentence"           print it and exit 1
#
# STEP_LOG names the file that collects the output of steps (default: a fresh one in $TMPDIR).

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Seconds with one decimal since a value of EPOCHREALTIME.
seconds_since() {
  local us=$((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}))
  printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}

# CMD runs in a subshell with errexit on, so do not call step as part of `if` or `||`: bash would switch it off.
step() {
  local words=$1 began=$EPOCHREALTIME status=0 errexit=
  shift
  STEP_LOG=${STEP_LOG:-$(mktemp --suffix=.log)}
  printf '\n== %s\n' "$words" >>"$STEP_LOG"
  printf '  %-44s ' "$words"
  case $- in *e*) errexit=1 ;; esac
  set +e
  (
    set -euo pipefail
    "$@"
  ) >>"$STEP_LOG" 2>&1 </dev/null
  status=$?
  [ -z "$errexit" ] || set -e
  if [ "$status" = 0 ]; then
    printf '%5s s\n' "$(seconds_since "$began")"
    return 0
  fi
  printf 'failed after %s s\n' "$(seconds_since "$began")"
  tail -n 20 "$STEP_LOG" | sed 's/^/    | /' >&2
  printf 'The whole log: %s\n' "$STEP_LOG" >&2
  return "$status"
}

package_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

need_packages() {
  local pkg missing=()
  command -v apt-get >/dev/null || die "This needs apt (Debian or Ubuntu); install yourself: $*"
  for pkg in "$@"; do
    package_installed "$pkg" || missing+=("$pkg")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  step "installing ${#missing[@]} packages and what they need" \
    "${sudo[@]}" bash -c "$(declare -f install_packages); install_packages \"\$@\"" install "${missing[@]}"
}

# policy-rc.d keeps the packages' own scripts from starting daemons; the mark lets a later run take away
# what a killed one left behind.
install_packages() {
  set -eu
  local policy=/usr/sbin/policy-rc.d mark='# temporary: packages must not start their daemons'
  if [ ! -e "$policy" ] || grep -qxF "$mark" "$policy"; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  local apt=(apt-get -q -y -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
  "${apt[@]}" install --no-install-recommends "$@" || {
    "${apt[@]}" update # the lists may be missing or old
    "${apt[@]}" install --no-install-recommends "$@"
  }
}

need_root() {
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null || die "This needs root and there is no sudo here. Become root (su -) and run it again."
  exec sudo env PORTOLAN_CLUSTER_CHANGE_HOST="${PORTOLAN_CLUSTER_CHANGE_HOST:-}" SEED_DAYS="${SEED_DAYS:-100}" "$@"
}
