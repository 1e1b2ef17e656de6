# shellcheck shell=bash
# The checks of the ways to sign in, of the login shells, the key page, and of ssh servers that fail. Helpers are in
# run.sh. Who is asked what is compared with what the centres really ask, word by word.
# shellcheck disable=SC2016 # commands in single quotes are expanded on the cluster

# login USER PORT [ssh option…] CMD: the machine's ssh with USER's key; told nothing, it cannot answer questions.
login() {
  local user=$1 port
  port=$(port_of "$2")
  shift 2
  timeout 60 ssh -F none -o IdentitiesOnly=yes -o IdentityAgent=none -o StrictHostKeyChecking=yes -o "ConnectTimeout=${PATIENCE:-10}" \
    -o "UserKnownHostsFile=\"${KNOWN:-$DIR/keys/known_hosts}\"" -i "${KEY:-$DIR/keys/$user}" -p "$port" -l "$user" 127.0.0.1 "$@"
}

port_of() { # KIND
  sed -n "s/^PORT_${1^^}=//p" "$DIR/conf/settings"
}

secret() { cat "$DIR/keys/$1.$2"; } # USER KIND

# answering ANSWER… -- CMD…: CMD's ssh gets one answer for each question; the questions are written down for asked.
answering() {
  local answers=$SCRATCH_DIR/answers asked=$SCRATCH_DIR/asked
  : >"$answers"
  : >"$asked"
  while [ "$1" != -- ]; do
    printf '%s\n' "$1" >>"$answers"
    shift
  done
  shift
  SSH_ASKPASS="$CODE/selftest/askpass" SSH_ASKPASS_REQUIRE=force ASKPASS_ANSWERS=$answers ASKPASS_ASKED=$asked "$@"
}

asked() { # TEXT [USER]: as ssh shows it, with the person and host in front
  contains "$(cat "$SCRATCH_DIR/asked")" "(${2:-bob}@127.0.0.1) $1"
}

DUO_QUESTION='Duo two-factor login for bob

Enter a passcode or select one of the following options:

 1. Duo Push to My phone (iOS)
 2. Phone call to XXX-XXX-0142

Passcode or option (1-2): '

check_duo() {
  local out
  [ "$(c ssh bob --duo id -un)" = bob ]
  out=$(answering 123 2 "$(secret bob duo)" -- login bob duo -o NumberOfPasswordPrompts=1 echo inside 2>&1)
  asked "$DUO_QUESTION"
  asked "Incorrect passcode. Please try again.

$DUO_QUESTION"
  asked "Dialing XXX-XXX-0142...
The call was not answered.

$DUO_QUESTION"
  contains "$out" inside
  if answering 3 4 5 -- login bob duo -o NumberOfPasswordPrompts=1 true; then fail "let in by wrong answers"; fi
}
check_push() {
  local name=$TAG-a out="$SCRATCH_DIR/push"
  answering 1 1 -- login "$name" duo echo inside >"$out" 2>&1 &
  c push deny "$name"
  wait_for 10 "the second question" asked 'Pushed a login request to your device...
Login request denied.' "$name"
  wait_for 10 "the second push" is_asked "$name"
  c push approve "$name"
  wait $!
  contains "$(cat "$out")" 'Success. Logging you in...'
  contains "$(cat "$out")" inside
  not is_asked "$name"
}
is_asked() { c push list | grep -x "$1"; }

check_password() {
  local password
  password=$(secret bob password)
  [ "$(answering "$(c user totp bob)" "$password" -- login bob password id -un)" = bob ]
  asked "One-time password (OATH) for \`bob': "
  asked "Password: "
  if answering "$(c user totp bob)" wrong -- login bob password -o NumberOfPasswordPrompts=1 true; then fail "a wrong password"; fi
  if answering 000000 "$password" -- login bob password -o NumberOfPasswordPrompts=1 true; then fail "a wrong code"; fi
  contains "$(login bob password -o BatchMode=yes true 2>&1 || true)" 'Permission denied (keyboard-interactive).'
}
check_expired() {
  local old new=quite-another-Word-7
  old=$(secret "$TAG-c" password)
  c user expire "$TAG-c"
  [ "$(answering "$(c user totp "$TAG-c")" "$old" "$old" "$new" "$new" -- login "$TAG-c" password id -un)" = "$TAG-c" ]
  asked "You are required to change your password immediately" "$TAG-c"
  asked "Retype new password: " "$TAG-c"
  [ "$(answering "$(c user totp "$TAG-c")" "$new" -- login "$TAG-c" password id -un)" = "$TAG-c" ]
  c user unexpire "$TAG-c"
  [ "$(c ssh "$TAG-c" --password id -un)" = "$TAG-c" ]
}

check_robot() {
  local wrappers KEY=$SCRATCH_DIR/robot name="$TAG-d" out
  wrappers=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["robot"]["wrappers"])' "$DIR/cluster.json")
  ssh-keygen -q -t ed25519 -N '' -f "$KEY"
  robot_key() { c robot key "$name" "restrict,from=\"$1\",command=\"$wrappers/$2\" $(cat "$KEY.pub")"; }
  if c robot key "$name" "$(cat "$KEY.pub")"; then fail "took a key without restrictions"; fi
  robot_key 127.0.0.1 slurm_commands.sh
  contains "$(login "$name" robot squeue 2>&1 || true)" 'Permission denied (keyboard-interactive).'
  c robot enrol "$name"
  contains "$(login "$name" robot -v 'squeue --me -h -o %i|%T' 2>&1)" 'Authenticated using "publickey" with partial success'
  out=$(login "$name" robot sinfo) # a rejection exits 0
  [ "$out" = "Command rejected by slurm_commands.sh: sinfo" ] || fail "$out"
  [ "$(login "$name" robot 'echo "a  b" | cat $HOME')" = '"a b" | cat $HOME' ] # split into words, nothing else
  contains "$(printf '#!/bin/bash\ntrue\n' | login "$name" robot sbatch --parsable -t 1 -o /dev/null)" 2
  contains "$(login "$name" robot -o ExitOnForwardFailure=yes -N -R 0:127.0.0.1:1 2>&1 || true)" 'port forwarding failed'
  contains "$(KEY='' login "$TAG-b" robot id 2>&1 || true)" 'Permission denied (publickey).' # not on the centre's list
  robot_key 127.0.0.1 transfer_commands.sh
  sftp -q -F none -o IdentitiesOnly=yes -i "$KEY" -o UserKnownHostsFile="$DIR/keys/known_hosts" -P "$(port_of robot)" \
    "$name@127.0.0.1" <<<"put $CODE/examples/train.py robot.py"
  [ "$(login "$name" robot squeue)" = "Command rejected by transfer_commands.sh: squeue" ]
  robot_key '10.0.0.*' allowed_commands.sh
  contains "$(login "$name" robot id 2>&1 || true)" 'Permission denied (publickey).'
  c robot unenrol "$name"
}

check_jump() {
  printf '%s "%s"\n' IdentityFile "$DIR/keys/bob" UserKnownHostsFile "$DIR/keys/known_hosts" >"$SCRATCH_DIR/config"
  [ "$(answering "$(c user totp bob)" -- timeout 60 ssh -F "$SCRATCH_DIR/config" -o IdentityAgent=none \
    -J "bob@127.0.0.1:$(port_of key)" -p "$(port_of mfa)" bob@127.0.0.1 id -un)" = bob ]
}
check_shells() {
  local out
  [ "$(c ssh tessa 'echo $shell $SCRATCH $PROJECT')" = '/bin/tcsh /scratch/tessa /project/def-smith' ]
  [ "$(c ssh fin 'status fish-path; echo $SCRATCH $PROJECT' | paste -sd' ')" = '/usr/bin/fish /scratch/fin /project/def-smith' ]
  contains "$(c ssh tessa 'module avail' 2>&1)" scipy-stack
  contains "$(c ssh fin 'module avail' 2>&1)" scipy-stack
  out=$(c ssh bella echo heard 2>"$SCRATCH_DIR/noise")
  contains "$out" 'Welcome back'
  contains "$out" heard
  contains "$(cat "$SCRATCH_DIR/noise")" setlocale
  c ssh tessa sbatch --test-only -t 1 --wrap hostname
}

# A page of its own is easier to drive with curl; Python is what surely is here.
check_keypage() {
  local KEY=$SCRATCH_DIR/page
  ssh-keygen -q -t ed25519 -N '' -C 'me <b>&' -f "$KEY"
  python3 "$CODE/selftest/keypage.py" "$(port_of keypage)" "$TAG-b" "$KEY" save
  [ "$(login "$TAG-b" key -o BatchMode=yes id -un)" = "$TAG-b" ]
  python3 "$CODE/selftest/keypage.py" "$(port_of keypage)" "$TAG-b" "$KEY" remove
  if login "$TAG-b" key -o BatchMode=yes true; then fail "the removed key was let in"; fi
  c ssh "$TAG-b" true # the other key is still there
}

# Through one master connection, as programs have it: what happens to it while things fail.
master() { login alice "$1" -o ControlPath="$SCRATCH_DIR/cm" -o BatchMode=yes "${@:2}"; }

check_faults() {
  trap 'master key -O exit || true' EXIT
  master key -M -fN
  c sshd stop key
  if PATIENCE=1 login alice key true; then fail "it should hang"; fi
  [ "$(master key id -un)" = alice ]
  c sshd cont key
  c ssh alice true
  c sshd drop key bob
  master key true
  c sshd drop key alice
  wait_for 5 "the end of the connection" not master key -O check
  master key -M -fN
  c sshd kill key
  wait_for 5 "the end of the connection" not master key -O check
  if c ssh alice true; then fail "it should be down"; fi
  if c status; then fail "says it is up"; fi
  c sshd restart key
  c ssh alice true
}
check_host_keys() {
  local before
  trap 'master key -O exit || true' EXIT
  c hostkey restore # of a run that was killed
  before=$(cat "$DIR/keys/known_hosts")
  master key -M -fN
  c hostkey change
  [ "$(master key id -un)" = alice ]
  [ "$(cat "$DIR/keys/known_hosts")" != "$before" ]
  c ssh alice true
  c ssh alice --mfa true
  printf '%s\n' "$before" >"$SCRATCH_DIR/known"
  contains "$(KNOWN=$SCRATCH_DIR/known login alice key true 2>&1 || true)" IDENTIFICATION
  c hostkey restore
  [ "$(cat "$DIR/keys/known_hosts")" = "$before" ]
  c ssh alice true
}
