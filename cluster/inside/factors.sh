# shellcheck shell=bash
# What people have besides their key: a phone that is asked (Duo), a password, a place on the robot's list.

known() { # NAME
  grep -qs "^${1:-none}	" "$PEOPLE" || die "There is nobody called '${1:-}' on this cluster."
}

# push approve|deny NAME: answers every push that waits for that person, and waits a while for the first one.
answer_push() {
  local file
  known "${2:-}"
  wait_for 10 "a push to $2" waiting_pushes "$2"
  for file in $(waiting_pushes "$2"); do
    echo "$1" >"$file"
    # or the next answer, meant for the next push, would still go to this one; the next may have the same name
    wait_for 5 "sshd to take the answer" test ! -s "$file"
  done
}

list_pushes() {
  local file
  for file in $(waiting_pushes '*' || true); do
    file=${file##*/}
    echo "${file%%.*}"
  done | sort -u
}

# A push that nobody has locked is left over from a login that was killed.
waiting_pushes() { # NAME
  local file found=1
  # shellcheck disable=SC2231 # NAME may be a pattern
  for file in "$H"/run/push/$1.*.waiting; do
    [ -e "$file" ] || continue
    if flock -n "$file" true; then
      rm -f "$file"
    else
      found=0
      echo "$file"
    fi
  done
  return $found
}

# Fewer rounds than usual: every sign-in would pay for them, and the password is in cluster.json anyway.
set_password() { # NAME: the one in cluster.json
  printf '%s:%s\n' "$1" "$(cat "$H/keys/$1.password")" | chpasswd -c SHA512 -s 1000
}

expire_password() { # NAME
  known "${1:-}"
  with_lock people chage -d 0 "$1"
}

# Whoever was asked for a new password may have given one; the known one comes back.
unexpire_password() { # NAME
  known "${1:-}"
  with_lock people set_password "$1"
}

# robot enrol|unenrol NAME | robot key NAME LINE: what the staff of a centre does on request.
robot() {
  local name=${2:-}
  known "$name"
  case $1 in
    enrol) with_lock robot write_enrolled echo "$name" ;;
    unenrol) with_lock robot write_enrolled true ;;
    key) set_robot_key "$name" "${3:-}" ;;
    *) die "robot enrol NAME | robot unenrol NAME | robot key NAME 'restrict,from=\"…\",command=\"…\" ssh-ed25519 …'" ;;
  esac
}

write_enrolled() { # CMD…: its output becomes the last line; with the variables of robot
  local list="$H/robot/enrolled"
  { grep -vx "$name" "$list" || true; "$@"; } >"$list.new"
  mv "$list.new" "$list"
}

# The three restrictions are the centre's rule.
set_robot_key() { # NAME LINE
  local file="$H/robot/keys/$1" word
  for word in restrict 'from="' 'command="'; do
    [[ ${2%% ssh-*} == *"$word"* ]] || die "A robot's key begins with restrict,from=\"…\",command=\"…\""
  done
  one_public_key "$2"
  printf '%s\n' "$2" >"$file.new"
  mv "$file.new" "$file"
}
