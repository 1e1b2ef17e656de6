# shellcheck shell=bash
# Host mode, for machines that allow no namespaces (a plain container): the cluster is laid onto the machine itself.
# It asks first, notes what was there before, and takes back what it did. One cluster per machine in this mode.
#
# Slurm's and sshd's users must reach their files whatever the folders above DIR allow, so /harbour is a real folder
# here and DIR a link to it.

NOTES=$HOME_INSIDE/host # what release_host needs to know
CHANGES="  users $(grep -v '^#' "$CODE/conf/people.tsv" | cut -f1 | paste -sd' ') and their groups, homes in /home
  folders /harbour, /scratch, /project, /localscratch, /run/sshd
  a marked block at the top of /etc/hosts (it makes this machine's name resolve to 127.0.0.1)
  files in /etc/slurm, /etc/pam.d (harbour-sshd*), /etc/profile.d (zz-harbour.sh)"
# Only ours if they were not there before.
MAYBE_OURS=(/scratch /project /localscratch /run/sshd /etc/slurm /etc/subuid- /etc/subgid- /etc/passwd- /etc/shadow-
  /etc/group- /etc/gshadow-)

claim_host() {
  local owner user path
  owner=$(cat "$NOTES/claimed-by" 2>/dev/null || true)
  [ -z "$owner" ] || [ "$owner" = "$DIR" ] || die "The cluster in $owner has this machine; without namespaces there can be only one."
  [ -z "$owner" ] || return 0
  if [ -e /etc/slurm/slurm.conf ]; then die "There is a Slurm on this machine (/etc/slurm/slurm.conf); it stays untouched."; fi
  if [ -e "$HOME_INSIDE" ]; then die "$HOME_INSIDE exists and is not ours."; fi
  while IFS=$'\t' read -r user _; do
    if [[ $user != \#* ]] && id "$user" >/dev/null 2>&1; then die "There is a user $user on this machine already."; fi
  done <"$CODE/conf/people.tsv"
  ask_to_change_host
  rm -f "$DIR/mode" "$DIR/number"
  [ ! -d "$DIR" ] || rmdir "$DIR" || die "$DIR holds something else; move it away."
  mkdir -p "$NOTES"
  chmod 755 "$HOME_INSIDE"
  for path in "${MAYBE_OURS[@]}"; do [ -e "$path" ] || echo "$path"; done >"$NOTES/absent"
  echo "$DIR" >"$NOTES/claimed-by"
  ln -sfn "$HOME_INSIDE" "$DIR"
}

ask_to_change_host() {
  printf 'Namespaces are not allowed here, so the cluster has to change this machine:\n%s\n' "$CHANGES" >&2
  echo "script/cluster purge takes all of it back." >&2
  [ "${PORTOLAN_CLUSTER_CHANGE_HOST:-}" != yes ] || return 0
  [ -t 0 ] || die "Set PORTOLAN_CLUSTER_CHANGE_HOST=yes to agree."
  local answer
  read -r -p 'Go on? [y/N] ' answer
  [[ $answer == [yY]* ]] || die "Nothing was changed."
}

# Our people and groups are those with ids 31000-39999; nobody else is looked at.
our_names() { # FILE
  awk -F: '$3 >= 31000 && $3 < 40000 { print $1 }' "$1"
}

release_host() {
  local name path rest
  [ "$(cat "$NOTES/claimed-by" 2>/dev/null)" = "$DIR" ] || return 0
  while read -r name; do
    userdel -f "$name" 2>/dev/null || true
    rm -rf --one-file-system "/home/${name:?}" "/scratch/${name:?}"
  done < <(our_names /etc/passwd)
  while read -r name; do
    groupdel "$name" 2>/dev/null || true
    rm -rf --one-file-system "/project/${name:?}"
  done < <(our_names /etc/group)
  if [ -e /project/examples/moons.tar.gz ]; then rm -rf --one-file-system /project/examples; fi
  rest=$(sed '/^# harbour begin$/,/^# harbour end$/d' /etc/hosts)
  printf '%s\n' "$rest" >/etc/hosts # in place: in a container it is a mount
  for path in /etc/slurm/*; do
    if [[ $(readlink "$path") == "$HOME_INSIDE"/* ]]; then rm -f "$path"; fi
  done
  rm -f /etc/pam.d/harbour-sshd /etc/pam.d/harbour-sshd-* /etc/profile.d/zz-harbour.sh
  while read -r path; do
    rm -rf --one-file-system "$path"
  done <"$NOTES/absent"
}
