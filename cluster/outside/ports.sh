# shellcheck shell=bash
# A cluster's number K gives it a block of 16 ports and the addresses 127.77.K.x, so that several clusters can
# run on one machine. K is remembered in DIR, so host:port stays the same from one `up` to the next.

ports_of() { # K -> "first last"; all below the range from which the kernel hands out ports by itself
  echo $((22000 + 16 * $1)) $((22000 + 16 * $1 + 15))
}

block_is_free() { # K
  local first last
  read -r first last < <(ports_of "$1")
  [ -z "$(ss -Hltn "sport >= :$first and sport <= :$last")" ]
}

# The first guess comes from DIR's name, so that clusters which are not up at the same time rarely want the same.
choose_number() {
  local k try guess
  if k=$(cat "$DIR/number" 2>/dev/null) && block_is_free "$k"; then
    echo "$k"
    return
  fi
  guess=$(printf '%s' "$DIR" | cksum | cut -d' ' -f1)
  for ((try = 0; try < 250; try++)); do
    k=$(((guess + try) % 250))
    if block_is_free "$k"; then
      echo "$k" | tee "$DIR/number"
      return
    fi
  done
  die "No block of 16 free ports between 22000 and 26000"
}

# What the pieces inside need to know; they source it.
write_settings() { # K
  local first
  read -r first _ < <(ports_of "$1")
  mkdir -p "$DIR/conf"
  cat >"$DIR/conf/settings.new" <<X
MODE=$MODE
NUMBER=$1
PORT_KEY=$first
PORT_MFA=$((first + 1))
PORT_CTLD=$((first + 2))
PORT_DBD=$((first + 3))
PORT_NODES=$((first + 4))
PORT_DUO=$((first + 11))
PORT_PASSWORD=$((first + 12))
PORT_ROBOT=$((first + 13))
PORT_KEYPAGE=$((first + 14))
OUTSIDE_DIR='${DIR//\'/\'\\\'\'}'
CALLER=${SUDO_UID:-0}:${SUDO_GID:-0}
X
  mv "$DIR/conf/settings.new" "$DIR/conf/settings"
}
