#!/usr/bin/env bash
# Entry point of script/cluster: reads the command line, then hands over to the pieces in outside/.
# "Outside" is the machine as it is; "inside" is the cluster's own little world (see outside/guest.sh).
set -euo pipefail
umask 022 # daemons and users inside must be able to read what we write

# Plain su keeps a user's PATH, in which what daemons need is missing.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
CODE=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
REPO=$(dirname "$CODE")
# shellcheck source-path=SCRIPTDIR
. "$REPO/script/lib/steps.sh"
for piece in paths processes ports guest host lifecycle commands; do
  # shellcheck source=/dev/null
  . "$CODE/outside/$piece.sh"
done

usage() {
  cat <<'TEXT'
script/cluster [--dir DIR] COMMAND      (DIR: var/cluster, or $PORTOLAN_CLUSTER_DIR)

  up                       start the cluster; installs missing packages; does nothing if it is up
  down                     end everything it started, keep its state
  reset                    down, forget all state, up
  status                   what is up; exit 0 only if all is
  purge                    down, and remove every trace but the packages

  exec [--as USER] CMD…    run CMD as root on the controller, or as USER on the login host
  ssh USER [--mfa|--duo|--password] [CMD…]   sign in through a real ssh port, answering what it asks
  user add NAME ACCOUNT [--coordinator]   add a person (and the account, if it is new)
  user key NAME [--set] 'ssh-ed25519 …'   add a public key, or make it the only one
  user totp NAME                          print the current one-time code
  user expire|unexpire NAME               make the password one that must be changed, or give the known one back
  push approve|deny NAME                  answer Duo's push to NAME's phone, waiting up to 10 seconds for it
  push list                               whose phone is being asked
  robot enrol|unenrol NAME                let NAME through on the robot port, or not
  robot key NAME 'restrict,from="…",command="…" ssh-ed25519 …'   the one key of NAME there
  hostkey change|restore                  other host keys on all ssh ports; open connections go on
  sshd stop|cont|kill|restart PORT        make an ssh server hang, go on, end with its connections, start again
  sshd drop PORT NAME                     end NAME's connections there (PORT: key, mfa, duo, password, robot)
  state NAME --as USER     bring a job of USER into a named state, print its id
  state list               the names
  selftest                 check all of the above on the running cluster

SEED_DAYS=0 up             no made-up history (100 days of it otherwise)
DIR/cluster.json           says how to reach it: ports, host keys, people, their keys, codes and passwords
TEXT
}

DIR=${PORTOLAN_CLUSTER_DIR:-$REPO/var/cluster}
if [ "${1:-}" = --dir ]; then
  DIR=${2:?--dir needs a directory}
  shift 2
fi
DIR=$(realpath -ms "$DIR")

command=${1:-help}
[ $# = 0 ] || shift
case $command in
  up | down | reset | status | purge | exec | ssh | user | state | selftest | push | robot | hostkey | sshd)
    check_machine
    mkdir -p "$(dirname "$DIR")" # before we are root, so that it belongs to the caller
    case "$command ${1:-}" in
      ssh\ * | "user totp") ;; # all they need is the caller's
      *) need_root "$REPO/script/cluster" --dir "$DIR" "$command" "$@" ;;
    esac
    "cluster_$command" "$@"
    ;;
  help | -h | --help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
