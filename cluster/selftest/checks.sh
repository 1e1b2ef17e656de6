# shellcheck shell=bash
# The checks of the selftest other than the job states. Each fails by a non-zero exit; run.sh has the helpers.
# shellcheck disable=SC2016 # commands in single quotes are expanded on the cluster

check_slurm() {
  contains "$(c ssh alice sinfo)" 'cpu*'
  contains "$(c ssh alice sshare -a -A def-smith)" carol
  contains "$(c ssh alice sprio -w)" 'Weights'
  contains "$(c ssh alice sbatch --test-only -N2 -t 5 --wrap hostname 2>&1)" 'to start at'
  contains "$(c ssh alice sbatch --test-only -A nobody --wrap hostname 2>&1 || true)" 'Invalid account'
  contains "$(c ssh alice sbatch --test-only -p debug -t 3:00:00 --wrap hostname 2>&1 || true)" 'time limit'
  contains "$(c ssh alice sacctmgr -nP show assoc user=alice format=account)" rrg-smith
  contains "$(c exec sacctmgr -nP show account withcoord def-smith)" asmith
}
check_history() {
  local states state
  [ "$(c exec sacct -anX -S now-31days | wc -l)" -gt 400 ]
  states=$(c exec sacct -anXP -S now-31days -o state | sed 's/ by.*//' | sort -u | paste -sd' ')
  for state in CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY TIMEOUT; do contains "$states" $state; done
  contains "$(c ssh alice "sreport -nP -t hours cluster AccountUtilizationByUser Accounts=def-smith start=\$(date -d -30days +%F)")" 'bob|Bob'
  # what fair share knows of it: days of several cores, in seconds
  [ "$(c exec sshare -nP -A def-smith -o RawUsage | sed -n 1p)" -gt 100000 ]
}
check_job() {
  local out
  out=$(c ssh alice 'srun -Q -t 1 bash -c "hostname -s; echo \$SLURM_TMPDIR \$SCRATCH \$PROJECT; touch \$SLURM_TMPDIR/x \$SCRATCH/x && module load scipy-stack && python -c \"import numpy\" && echo fine"')
  contains "$out" "/scratch/alice /project/def-smith"
  contains "$out" fine
  contains "$(c ssh alice 'srun -Q -t 1 -N2 bash -c "echo \$SLURMD_NODENAME"' | sort | paste -sd' ')" 'c1 c2'
  contains "$(c ssh alice 'srun -Q -t 1 -p gpu --gres=gpu:t4:1 bash -c "echo gpu=\$CUDA_VISIBLE_DEVICES"')" gpu=0
  contains "$(c ssh alice diskusage_report)" '/project (project def-smith)'
}
# A service on a node is reachable from the login host under the node's name, and only there.
check_addresses() {
  c ssh alice 'srun -Q -t 1 -w c1 python3 -c "
import os, socket
s = socket.create_server((os.environ[\"SLURMD_NODENAME\"], 0))
open(\"port.new\", \"w\").write(str(s.getsockname()[1])); os.rename(\"port.new\", \"port\")
s.accept()" &
    until [ -s port ]; do sleep 0.1; done
    if (exec 3<>/dev/tcp/c2/$(cat port)) 2>/dev/null; then exit 1; fi
    exec 3<>/dev/tcp/c1/$(cat port); rm port; wait'
}
check_loopback() { # while an srun is listening, too
  local job open ours=users: # inside the guest every visible process is ours
  [ "$MODE" = guest ] || ours='"(slurm|srun|harbour-ssh|mariadbd|munged)'
  job=$(c ssh alice "sbatch --parsable -t 2 -o /dev/null --wrap 'srun sleep 60'")
  wait_for 20 "the step" step_runs "$job"
  open=$(enter ss -Hltnp | awk -v ours="$ours" '$0 ~ ours && $4 !~ /^127\./')
  c exec scancel "$job"
  [ -z "$open" ] || fail "listens outside loopback: $open"
}
step_runs() { contains "$(c exec squeue -h -s -j "$1" -o %i)" "$1.0"; }

sftp_to() { # PORTNAME ASKPASS COMMANDS
  local port
  port=$(sed -n "s/^$1=//p" "$DIR/conf/settings")
  SSH_ASKPASS="$CODE/tools/askpass" SSH_ASKPASS_REQUIRE=$2 ASKPASS_PERSON=$DIR/keys/alice \
    sftp -q -F none -o IdentitiesOnly=yes -i "$DIR/keys/alice" -o UserKnownHostsFile="$DIR/keys/known_hosts" \
    -P "$port" alice@127.0.0.1 <<<"$3"
}
check_sftp() { # PORTNAME ASKPASS
  local copy=$SCRATCH_DIR/$1
  sftp_to "$1" "$2" "$(printf '%s\n' "put $CODE/examples/train.py $1.py" "get $1.py $copy" "rm $1.py")"
  cmp "$CODE/examples/train.py" "$copy"
}
check_training() {
  local job out
  sftp_to PORT_KEY never "$(printf 'put %s\n' "$CODE/examples/train.py" "$CODE/examples/train.sh")"
  c ssh alice 'tar -tf /project/examples/moons.tar.gz train/000.csv && ls examples/learn.py /project/examples/wheels/halfmoons-*.whl'
  # as the portal submits: nothing of the sign-in shell is passed on, and the job finds modules and folders all the same
  job=$(c ssh alice sbatch --parsable --export=NONE train.sh)
  wait_for 60 "the training" ended "$job"
  out=$(c ssh alice "cat train-$job.out; grep -ao brain.Event:2 \$SCRATCH/runs/$job/events*")
  contains "$out" 'learned: accuracy 0.9'
  contains "$out" 'brain.Event:2'
  [ "$(c exec sacct -nPX -j "$job" -o state)" = COMPLETED ]
}
ended() { c exec sacct -nPX -j "$1" -o end | grep -q '^2'; }

check_keys() {
  local key=$SCRATCH_DIR/key port
  port=$(sed -n 's/^PORT_KEY=//p' "$DIR/conf/settings")
  ssh-keygen -q -t ed25519 -N '' -f "$key"
  local login=(ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o IdentityAgent=none -o StrictHostKeyChecking=yes
    -o UserKnownHostsFile="$DIR/keys/known_hosts" -i "$key" -p "$port" "$TAG-d@127.0.0.1" id -un)
  if "${login[@]}"; then fail "an unknown key was let in"; fi
  c user key "$TAG-d" "$(cat "$key.pub")"
  [ "$("${login[@]}")" = "$TAG-d" ]
  c ssh "$TAG-d" true # the first key still works
  c user key "$TAG-d" --set "$(cat "$key.pub")"
  if c ssh "$TAG-d" true; then fail "the old key was let in"; fi
}
check_codes() {
  [ "$(c ssh bob --mfa id -un)" = bob ]
  [[ $(c user totp bob) =~ ^[0-9]{6}$ ]]
  local port
  port=$(sed -n 's/^PORT_MFA=//p' "$DIR/conf/settings")
  if ssh -F none -o BatchMode=yes -i "$DIR/keys/bob" -o UserKnownHostsFile="$DIR/keys/known_hosts" -p "$port" bob@127.0.0.1 true; then
    fail "let in without a code"
  fi
}
check_coordinator() {
  local job
  job=$(c ssh "$TAG-b" sbatch --parsable -t 5 -o /dev/null --wrap "'sleep 300'")
  c ssh "$TAG-a" scancel "$job"
  wait_for 20 "the coordinator's scancel" ended "$job"
}
check_json() {
  python3 - "$DIR/cluster.json" "$TAG-a" <<'X'
import json, os, sys
cluster = json.load(open(sys.argv[1]))
people = {user["name"]: user for user in cluster["users"]}
assert os.stat(sys.argv[1]).st_mode & 0o777 == 0o600
assert people["asmith"]["pi"] and not people["alice"]["pi"] and people[sys.argv[2]]["pi"]
assert people["alice"]["accounts"] == ["def-smith", "rrg-smith", "def-jones"]
assert all(os.path.exists(user["private_key"]) and user["totp_secret"] for user in people.values())
assert cluster["host_keys"][0]["fingerprint"].startswith("SHA256:") and len(cluster["ports"]) == 6
assert all(user["password"] and len(user["duo_passcode"]) == 6 for user in people.values())
assert people["fin"]["shell"] == "/usr/bin/fish" and people["bob"]["shell"] == "/bin/bash"
X
}

# A second cluster beside the first: killed half-way, started again, its holder killed, started, purged.
check_second() {
  SEED_DAYS=0 setsid "$REPO/script/cluster" --dir "$DIR-second" up & # a group of its own, to be killed as a whole
  wait_for 60 "the database of the second cluster" test -s "$DIR-second/run/mariadbd"
  kill -9 -- "-$!" 2>/dev/null || fail "up was over before it could be killed"
  SEED_DAYS=0 second up
  [ "$(sed -n 's/^PORT_KEY=//p' "$DIR-second/conf/settings")" != "$(sed -n 's/^PORT_KEY=//p' "$DIR/conf/settings")" ]
  [ "$(second ssh dave hostname -s)" = login1 ]
  kill -9 "$(cut -d' ' -f1 "$DIR-second/run/holder")"
  if second status; then fail "says it is up"; fi
  SEED_DAYS=0 second up
  second status
  second purge
  [ ! -e "$DIR-second" ] && [ ! -e "$DIR-second.lock" ]
}
host_looks() {
  # some of these do not exist, and must not afterwards
  { find /etc /home /srv /opt /scratch /project /harbour -maxdepth 3 ! -path "$(dirname "$DIR")*" -printf '%p %m %U:%G %s %T@\n' 2>/dev/null || true; } | sort
  md5sum /etc/passwd /etc/shadow /etc/group /etc/hosts
  ls -A / /run
  hostname
}
