# shellcheck shell=bash
# People: Linux users with a home, scratch, project folders, an ssh key and further secrets; and the list of them.
# DIR/people.tsv has the form of conf/people.tsv and is the list that cluster.json is made from.

PEOPLE="$H/people.tsv"
UID_RANGE=(-K UID_MIN=31000 -K UID_MAX=39999 -K GID_MIN=31000 -K GID_MAX=39999)

# with_lock NAME CMD…: one at a time. "people" guards /etc/passwd and people.tsv, "accounting" what sacctmgr changes:
# its transactions can deadlock, and then slurmctld believes in a user whom the database has forgotten.
with_lock() {
  (
    exec 7>"$H/run/lock-$1"
    flock 7
    "${@:2}"
  )
}

rows() { # FILE: without comments
  grep -v '^#' "$1" || true
}

add_founders() {
  local name accounts full shell
  while IFS=$'\t' read -r name accounts full shell; do
    with_lock people add_linux_user "$name" "$accounts" "$full" "$shell"
  done < <(rows "$CODE/conf/people.tsv")
  # people added later: their rows in /etc/passwd survive, but not a kill between two writes; and an older version
  # gave them fewer secrets
  if [ -e "$PEOPLE" ]; then
    while IFS=$'\t' read -r name accounts full shell; do
      if id "$name" >/dev/null 2>&1 && [ -s "$H/keys/$name.duo" ]; then continue; fi
      with_lock people add_linux_user "$name" "$accounts" "$full" "$shell"
    done < <(rows "$PEOPLE")
  fi
}

ensure_group() {
  getent group "$1" >/dev/null || groupadd "${UID_RANGE[@]}" "$1"
}

# add_linux_user NAME ACCOUNTS FULL [SHELL]: may be repeated; finishes what an interrupted call began.
add_linux_user() {
  local name=$1 accounts=$2 full=$3 shell=${4:-/bin/bash} home=/home/$1 account
  ensure_group harbour-people
  for account in ${accounts//[*,]/ }; do
    ensure_group "$account"
    [ -d "/project/$account" ] || install -d -m 2770 -g "$account" "/project/$account"
  done
  local groups=${accounts//\*/},harbour-people
  if id "$name" >/dev/null 2>&1; then
    [ "$(id -u "$name")" -ge 31000 ] || die "There is a user $name on this machine who is not ours"
    # a useradd that was killed has written some of its files, and not the others
    getent shadow "$name" >/dev/null || pwconv
    getent group "$name" >/dev/null || groupadd -g "$(id -g "$name")" "$name"
    usermod -aG "$groups" "$name"
  else
    # password '*', not '!': sshd turns locked accounts away. A real one follows in make_secrets
    useradd "${UID_RANGE[@]}" -m -d "$home" -s "$shell" -c "$full" -p '*' -G "$groups" "$name"
  fi
  [ -d "$home" ] || cp -a /etc/skel "$home"
  # once only, as what people change in their homes stays
  if [ ! -d "$home/.ssh" ] && [ -d "$CODE/conf/homes/$name" ]; then cp -r "$CODE/conf/homes/$name/." "$home/"; fi
  install -d -m 700 -o "$name" -g "$name" "$home" "$home/.ssh" "/scratch/$name"
  install -d -o "$name" -g "$name" "$home/projects"
  [ -e "$home/scratch" ] || ln -s "/scratch/$name" "$home/scratch"
  for account in ${accounts//[*,]/ }; do
    install -d -m 2770 -o "$name" -g "$account" "/project/$account/$name"
    [ -e "$home/projects/$account" ] || ln -s "/project/$account" "$home/projects/$account"
  done
  if ! grep -qs harbour "$home/.bashrc"; then
    local rest
    rest=$(cat "$home/.bashrc" 2>/dev/null || true)
    # first, because Debian's .bashrc ends early for commands over ssh
    printf '. /harbour/code/conf/profile.sh\n%s\n' "$rest" >"$home/.bashrc"
  fi
  give_examples "$name" "$home"
  chown -R "$name:$name" "$home"
  make_secrets "$name" "$home"
  if ! grep -qs "^$name	" "$PEOPLE"; then printf '%s\t%s\t%s\t%s\n' "$name" "$accounts" "$full" "$shell" >>"$PEOPLE"; fi
}

make_secrets() { # NAME HOME
  local keys="$H/keys" digits
  install -d -m 700 -o "${CALLER%:*}" -g "${CALLER#*:}" "$keys"
  if [ ! -s "$keys/$1.totp" ]; then
    rm -f "$keys/$1" "$keys/$1.pub"
    ssh-keygen -q -t ed25519 -N '' -C "$1@harbour" -f "$keys/$1"
    (umask 077 && head -c 20 /dev/urandom | base32 >"$keys/$1.totp")
    chown "$CALLER" "$keys/$1" "$keys/$1.pub" "$keys/$1.totp"
  fi
  if [ ! -s "$keys/$1.duo" ]; then
    digits=$(od -An -N4 -tu4 /dev/urandom)
    (umask 077 && head -c 8 /dev/urandom | base32 | tr "[:upper:]" "[:lower:]" | tr -d = >"$keys/$1.password" &&
      echo $((digits % 900000 + 100000)) >"$keys/$1.duo")
    chown "$CALLER" "$keys/$1.password" "$keys/$1.duo"
  fi
  if [ "$(getent shadow "$1" | cut -d: -f2)" = '*' ]; then set_password "$1"; fi
  [ -s "$2/.ssh/authorized_keys" ] || install -m 600 -o "$1" -g "$1" "$keys/$1.pub" "$2/.ssh/authorized_keys"
  # neither DISALLOW_REUSE nor RATE_LIMIT: tests sign in more than once in 30 seconds
  install -m 400 -o "$1" -g "$1" /dev/null "$2/.google_authenticator"
  printf '%s\n" WINDOW_SIZE 3\n" TOTP_AUTH\n' "$(cat "$keys/$1.totp")" >"$2/.google_authenticator"
}

# user add: everything a new member of a group gets at a centre.
add_person() {
  local name=$1 account=$2 star=
  [[ $name =~ ^[a-z][a-z0-9-]{0,30}$ && $account =~ ^[a-z][a-z0-9-]{0,30}$ ]] || die "Names: lower-case letters, digits and hyphens"
  [ "$3" != --coordinator ] || star='*'
  [ -z "$3$star" ] || [ -n "$star" ] || die "Unknown option $3"
  if grep -qs "^$name	" "$PEOPLE"; then die "There is a user $name already"; fi
  # the Linux user first: slurmctld looks the uid up when it hears of the association
  with_lock people add_linux_user "$name" "$account$star" "${name^}"
  with_lock accounting add_associations "$name" "$account" "$star"
  describe
}

# user key, and the key page: where people of a centre upload their public keys.
set_key() {
  local name=${1:?user key NAME [--set] KEY} file=/home/$1/.ssh/authorized_keys mode="add"
  shift
  if [ "${1:-}" = --set ]; then mode="set" && shift; fi
  local key=${1:?user key NAME [--set] KEY}
  [ -d "/home/$name/.ssh" ] || die "No such user: $name"
  one_public_key "$key"
  with_lock people write_key
}

one_public_key() { # TEXT
  if [[ $1 == *$'\n'* ]] || ! ssh-keygen -l -f - <<<"$1" >/dev/null 2>&1; then die "That is not a public key"; fi
}

write_key() { # with the variables of set_key
  if [ "$mode" = add ] && grep -qsxF "$key" "$file"; then return; fi
  { [ "$mode" = set ] || awk 1 "$file"; printf '%s\n' "$key"; } >"$file.new"
  replace_keys
}

# The key page's Remove button.
remove_key() { # NAME FINGERPRINT
  local name=$1 file=/home/$1/.ssh/authorized_keys
  known "$name"
  with_lock people write_other_keys "$2"
}

write_other_keys() { # FINGERPRINT; with the variables of remove_key
  local line
  while IFS= read -r line; do
    if [[ $(ssh-keygen -l -f - <<<"$line" 2>/dev/null) != *" $1 "* ]]; then printf '%s\n' "$line"; fi
  done < <(awk 1 "$file") >"$file.new"
  replace_keys
}

replace_keys() {
  chown "$name:$name" "$file.new"
  chmod 600 "$file.new"
  mv "$file.new" "$file"
}

# Writes DIR/cluster.json and the known_hosts of `script/cluster ssh`.
describe() {
  with_lock people /usr/bin/python3 "$CODE/tools/describe.py"
}
