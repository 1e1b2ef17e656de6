#!/usr/bin/env bash
# Runs one function of the pieces beside it, inside the cluster: run.sh FUNCTION ARG…
set -euo pipefail
umask 022
H=/harbour
CODE="$H/code"
DIR="$H"
# shellcheck source=/dev/null
. "$H/conf/settings"
# shellcheck source-path=SCRIPTDIR/..
. "$CODE/outside/paths.sh"
# shellcheck source=/dev/null
. "$CODE/outside/processes.sh"
for piece in daemons sshd services examples people factors accounting states status; do
  # shellcheck source=/dev/null
  . "$CODE/inside/$piece.sh"
done
die() {
  printf '%s\n' "$*" >&2
  exit 1
}
"$@"
