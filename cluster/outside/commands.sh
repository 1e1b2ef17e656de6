# shellcheck shell=bash
# exec, ssh, user, state, selftest.

cluster_exec() {
  find_mode
  if [ "${1:-}" = --as ]; then
    local user=${2:?--as needs a user}
    shift 2
    [ $# -gt 0 ] || set -- bash -l
    inside as_user "$user" "$@"
  else
    [ $# -gt 0 ] || set -- bash -l
    enter "$@"
  fi
}

# The machine's own ssh client, the person's own key, no agent, no configuration files.
cluster_ssh() {
  local user=${1:-} port=PORT_KEY
  [ -n "$user" ] || die "Say who: script/cluster ssh USER [--mfa] [CMD…]"
  [ -r "$DIR/keys/$user" ] || die "There is no $user on a cluster in $DIR. Start it with: script/cluster --dir $DIR up"
  shift
  local -a how=(-o BatchMode=yes)
  if [ "${1:-}" = --mfa ]; then
    shift
    port=PORT_MFA
    how=(-o KbdInteractiveAuthentication=yes)
    # ssh asks this program for the code; it finds the person through the environment
    export SSH_ASKPASS=$CODE/tools/askpass SSH_ASKPASS_REQUIRE=force ASKPASS_SECRET=$DIR/keys/$user.totp
  fi
  ssh -F none -o IdentitiesOnly=yes -o IdentityAgent=none -i "$DIR/keys/$user" -o "UserKnownHostsFile=\"$DIR/keys/known_hosts\"" \
    -o StrictHostKeyChecking=yes -o ConnectTimeout=10 "${how[@]}" \
    -p "$(sed -n "s/^$port=//p" "$DIR/conf/settings")" "$user@127.0.0.1" "$@"
}

cluster_user() {
  local verb=${1:-}
  find_mode
  [ $# -lt 2 ] || shift
  case $verb in
    add) inside add_person "${1:?user add NAME ACCOUNT [--coordinator]}" "${2:?user add NAME ACCOUNT}" "${3:-}" ;;
    key) inside set_key "$@" ;;
    totp)
      [ -r "$DIR/keys/${1:-}.totp" ] || die "There is nobody called '${1:-}' on this cluster."
      oathtool --totp --base32 "$(cat "$DIR/keys/$1.totp")"
      ;;
    *) die "user add NAME ACCOUNT [--coordinator] | user key NAME [--set] 'ssh-ed25519 …' | user totp NAME" ;;
  esac
}

cluster_state() {
  local name=${1:-list} user=
  find_mode
  if [ "$name" = list ]; then
    inside list_states
    return
  fi
  [ "${2:-}" = --as ] && user=${3:-}
  [ -n "$user" ] || die "state NAME --as USER"
  inside make_state "$name" "$user"
}

cluster_selftest() {
  find_mode
  # shellcheck source=/dev/null
  . "$CODE/selftest/run.sh"
  # shellcheck source=/dev/null
  . "$CODE/selftest/checks.sh"
  run_selftest "$@"
}
