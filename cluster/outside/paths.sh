# shellcheck shell=bash
# Where things are, and small questions about the machine and about processes.
#
# DIR is the cluster's folder. Inside the cluster it is always /harbour, so every configuration file can name
# fixed paths, whatever DIR is called and however closed the folders above it are.
# shellcheck disable=SC2034 # most of this is for the other pieces

HOME_INSIDE=/harbour
# The last line is for jobs of the recipes: real clusters have these.
PACKAGES=(slurm-wlm slurmdbd slurm-wlm-mysql-plugin munge mariadb-server openssh-server openssh-client
  libpam-google-authenticator oathtool lmod python3 python3-venv python3-numpy iproute2 procps
  gcc libc6-dev libpam0g-dev liboath-dev tcsh fish
  curl unzip zip zstd)

check_machine() {
  [ "$(uname -s)" = Linux ] ||
    die "The cluster needs Linux. On $(uname -s), run this in a Debian virtual machine or container (multipass, lima, docker run --privileged -it debian:12)."
  command -v apt-get >/dev/null ||
    die "The cluster needs Debian or Ubuntu packages and there is no apt here. Run this in a Debian container: podman run --privileged -it -v \"$REPO:$REPO\" -w \"$REPO\" debian:12"
}

# wait_for SECONDS WHAT CMD…: until CMD succeeds.
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || die "Waited in vain for $what; the logs are in $DIR/log"
    sleep 0.05
  done
}

# Only one of up, down, reset, purge at a time per cluster. Long-lived processes must close fd 9.
lock_cluster() {
  mkdir -p "$(dirname "$DIR")"
  exec 9>"$DIR.lock"
  flock 9
}
