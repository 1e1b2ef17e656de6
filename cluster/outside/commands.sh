# shellcheck shell=bash
# exec, ssh, user, state, selftest, and what the staff of a centre does: push, robot, hostkey, sshd.

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
  [ -n "$user" ] || die "Say who: script/cluster ssh USER [--mfa|--duo|--password] [CMD…]"
  [ -r "$DIR/keys/$user" ] || die "There is no $user on a cluster in $DIR. Start it with: script/cluster --dir $DIR up"
  shift
  local -a how=(-o BatchMode=yes)
  case ${1:-} in
    --mfa | --duo | --password)
      port=PORT_${1#--} port=${port^^}
      shift
      how=(-o KbdInteractiveAuthentication=yes)
      # ssh asks this program for codes and passwords; it finds the person through the environment
      export SSH_ASKPASS=$CODE/tools/askpass SSH_ASKPASS_REQUIRE=force ASKPASS_PERSON=$DIR/keys/$user
      ;;
  esac
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
    expire | unexpire) inside "${verb}_password" "$@" ;;
    *) die "user add NAME ACCOUNT [--coordinator] | user key NAME [--set] 'ssh-ed25519 …' | user totp|expire|unexpire NAME" ;;
  esac
}

cluster_push() {
  find_mode
  case ${1:-list} in
    approve | deny) inside answer_push "$@" ;;
    list) inside list_pushes ;;
    *) die "push approve NAME | push deny NAME | push list" ;;
  esac
}

cluster_robot() {
  find_mode
  inside robot "$@"
}

cluster_hostkey() {
  find_mode
  inside hostkey "$@"
}

cluster_sshd() {
  find_mode
  inside sshd_fault "$@"
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
  # shellcheck source=/dev/null
  . "$CODE/selftest/logins.sh"
  run_selftest "$@"
}
