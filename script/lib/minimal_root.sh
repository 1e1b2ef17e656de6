# shellcheck shell=bash
# A Debian with nothing in it, in a folder: source this file after steps.sh.
#
#   make_minimal_root ROOT SUITE    makes it anew, with this machine's name servers and the certificates that an
#                                   administrator added here; the packages come from DEBIAN_MIRROR

bootstrap() { # ROOT SUITE MIRROR
  # Whoever used it before may have been killed while something was mounted there.
  rm -rf --one-file-system "$1"
  mkdir -p "$1"
  debootstrap --variant=minbase --include=ca-certificates "$2" "$1" "$3/debian"
}

make_minimal_root() {
  local root=$1 suite=$2 mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
  # Twice, because a mirror sometimes drops a connection.
  bootstrap "$root" "$suite" "$mirror" || bootstrap "$root" "$suite" "$mirror"
  rm -f "$root"/etc/apt/sources.list.d/*
  {
    echo "deb $mirror/debian $suite main"
    echo "deb $mirror/debian $suite-updates main"
    echo "deb $mirror/debian-security $suite-security main"
  } >"$root/etc/apt/sources.list"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  echo "127.0.0.1 $(hostname)" >>"$root/etc/hosts"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$root/usr/local/share/ca-certificates" {} +
  chroot "$root" update-ca-certificates
}
