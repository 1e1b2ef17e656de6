#!/usr/bin/env bash
# Init of the cluster's namespaces (guest mode): builds a private root, moves into it, then only reaps.
# The root is the machine's own, bound folder by folder, except for those the cluster must have to itself.
# /etc is a copy rather than an overlay: an overlay cannot lie on another one, as it would in a container.
set -euo pipefail
DIR=$1

# /proc is still the machine's, so this is our pid as seen from outside. We write it ourselves, at once: were the
# caller to do it and be killed, nobody would know about us.
read -r stat </proc/self/stat
# shellcheck disable=SC2086 # splitting into fields is the point
set -- "${stat%% *}" ${stat##*) }
echo "$1 ${21}" >"$DIR/run/holder"

root=$DIR/root
mkdir -p "$root" "$DIR"/fs/{home,scratch,project,localscratch}
mount -t tmpfs -o mode=755,size=16m root "$root"
for path in /*; do
  name=${path#/}
  if [ -L "$path" ]; then
    cp -P "$path" "$root/"
  elif [ -d "$path" ]; then
    mkdir "$root/$name"
    case $name in
      etc | home | root | run | tmp | proc | scratch | project | localscratch | harbour | lost+found) ;;
      *) mount --rbind "$path" "$root/$name" ;;
    esac
  fi
done
umount -l "$root$root" 2>/dev/null || true # DIR came along with the rest, and with it a view of the new root

private() { # PATH MODE: an empty folder of its own, gone with the cluster
  mkdir -p "$root$1"
  mount -t tmpfs -o "mode=$2" private "$root$1"
}
private /root 700
private /run 755
private /tmp 1777
for dir in log mail spool tmp; do
  [ ! -d "/var/$dir" ] || private "/var/$dir" 1777
done
mount -t proc proc "$root/proc"
for dir in home scratch project localscratch etc; do
  mkdir -p "$root/$dir"
  mount --bind "$DIR/fs/$dir" "$root/$dir"
done
mkdir -p "$root/harbour"
mount --bind "$DIR" "$root/harbour"

mkdir "$root/old"
cd "$root"
pivot_root . old
umount -l /old
rmdir /old
cd /
hostname ctl1.harbour.local
touch /harbour/run/ready

# Bash reaps every child that is handed to init, as long as it is waiting for one of its own.
while :; do
  sleep 86400 &
  wait "$!" || true
done
