# shellcheck shell=bash
# The daemons, in the order in which they need each other.
# shellcheck disable=SC2034 # many variables are for the templates (fill_in) or for other pieces

MUNGE_SOCKET="$H/run/munge.d/socket"
DB_SOCKET="$H/run/mysqld/socket"
SERVICES=(munged mariadbd slurmdbd slurmctld "${NODES[@]/#/slurmd-}" memory-watch keypage
  sshd sshd-mfa sshd-duo sshd-password sshd-robot)

start_munge() {
  configure
  local dir="$H/var/munge"
  install -d -m 700 -o munge -g munge "$dir" "$H/log/munge.d"
  install -d -m 755 -o munge -g munge "${MUNGE_SOCKET%/*}"
  if [ ! -s "$dir/key" ]; then
    install -m 600 -o munge -g munge /dev/null "$dir/key.new"
    head -c 128 /dev/urandom >"$dir/key.new"
    mv "$dir/key.new" "$dir/key"
  fi
  alive munged || rm -f "$MUNGE_SOCKET"*
  start munged setpriv --reuid munge --regid munge --clear-groups munged --foreground --num-threads=4 \
    --socket="$MUNGE_SOCKET" --key-file="$dir/key" --seed-file="$dir/seed" \
    --pid-file="${MUNGE_SOCKET%/*}/pid" --log-file="$H/log/munge.d/log"
  wait_for 10 munge munge --socket="$MUNGE_SOCKET" -n
}

# Everything under /etc that the cluster needs, and the configuration of the daemons.
configure() {
  local version i
  mkdir -p "$H"/{conf,run,log,var,gpu}
  [ -s "$H/conf/db-password" ] || (umask 077 && head -c 24 /dev/urandom | base64 | tr -d '/+=' >"$H/conf/db-password")
  DB_PASSWORD=$(cat "$H/conf/db-password")
  # Without cgroups the cluster runs anywhere. Older slurmd loads a cgroup plugin all the same, and the v1 one is idle.
  version=$(slurmctld -V | cut -d' ' -f2)
  CGROUP_PLUGIN=cgroup/v1
  if dpkg --compare-versions "$version" ge 23.11; then CGROUP_PLUGIN=disabled; fi
  CONTROLLER=ctl1
  if [ "$MODE" = host ]; then CONTROLLER=$(hostname -s); fi
  for i in 0 1 2 3 4 5 6; do printf -v "NODE_PORT_$i" %d $((PORT_NODES + i)); done
  fill_in "$CODE/conf/slurm.conf" "$H/conf/slurm.conf"
  fill_in "$CODE/conf/gres.conf" "$H/conf/gres.conf"
  fill_in "$CODE/conf/cgroup.conf" "$H/conf/cgroup.conf"
  fill_in "$CODE/conf/slurmdbd.conf" "$H/conf/slurmdbd.conf" slurm 600
  # slurmd only looks whether the device files of GPUs are there
  ln -sfn /dev/null "$H/gpu/0"
  ln -sfn /dev/zero "$H/gpu/1"
  install -d -m 755 /etc/slurm /scratch /project /localscratch
  for i in slurm gres cgroup slurmdbd; do ln -sfn "$H/conf/$i.conf" /etc/slurm/$i.conf; done
  ln -sfn "$CODE/conf/profile.sh" /etc/profile.d/zz-harbour.sh
  write_hosts
  install_modules
  install_examples
}

# At the top, where the first match wins; in place, because in a container /etc/hosts is a mount.
write_hosts() {
  local hosts
  hosts=$(hosts_block && sed '/^# harbour begin$/,/^# harbour end$/d' /etc/hosts)
  printf '%s\n' "$hosts" >/etc/hosts
}

hosts_block() {
  local i=0 name
  echo "# harbour begin"
  echo "127.0.0.1 ctl1.harbour.local ctl1"
  # Slurm binds to what the host name resolves to, and must not be reachable from outside
  [ "$MODE" = guest ] || echo "127.0.0.1 $(hostname) $(hostname -s)"
  for name in login1 "${NODES[@]}"; do
    i=$((i + 1))
    echo "127.0.0.1 $name.harbour.local"
    echo "127.77.$NUMBER.$((10 + i)) $name"
  done
  echo "# harbour end"
}

# A module is named after the version of what is really there.
install_modules() {
  local python numpy
  python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  numpy=$(/usr/bin/python3 -c 'import numpy; print(numpy.__version__)')
  rm -rf "$H/modules"
  install -D -m 644 "$CODE/modules/StdEnv.lua" "$H/modules/StdEnv/2026.lua"
  install -D -m 644 "$CODE/modules/python.lua" "$H/modules/python/$python.lua"
  install -D -m 644 "$CODE/modules/scipy-stack.lua" "$H/modules/scipy-stack/$numpy.lua"
  install -d "$H/software/python/$python/bin"
  ln -sfn /usr/bin/python3 "$H/software/python/$python/bin/python"
  ln -sfn /usr/bin/python3 "$H/software/python/$python/bin/python3"
  # numpy alone, as Python environments must not see the rest of what the distribution has packaged
  install -d "$H/software/scipy-stack/$numpy/lib"
  ln -sfn "$(/usr/bin/python3 -c 'import numpy; print(numpy.__path__[0])')" "$H/software/scipy-stack/$numpy/lib/numpy"
}

start_database_and_people() {
  start_database &
  local database=$!
  add_founders
  wait "$database"
}

sql() { mariadb --no-defaults --socket="$DB_SOCKET" -uroot "$@"; }

# Its own data folder, no network, no care for a power cut: quick to make and quick to use.
start_database() {
  local data="$H/var/mysql"
  install -d -m 755 -o mysql -g mysql "${DB_SOCKET%/*}"
  if [ ! -d "$data" ]; then
    rm -rf "$data.new"
    install -d -m 750 -o mysql -g mysql "$data.new"
    mariadb-install-db --no-defaults --user=mysql --datadir="$data.new" --skip-test-db \
      --auth-root-authentication-method=socket --innodb-flush-method=nosync
    mv "$data.new" "$data"
  fi
  start mariadbd mariadbd --no-defaults --user=mysql --datadir="$data" --socket="$DB_SOCKET" \
    --pid-file="${DB_SOCKET%/*}/pid" --skip-networking --skip-log-bin --innodb-buffer-pool-size=64M \
    --innodb-log-file-size=64M --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=2 --innodb-flush-method=nosync
  wait_for 30 "the database" sql -e 'select 1'
  sql -e "create database if not exists slurm_acct_db;
    create or replace user slurm@localhost identified by '$(cat "$H/conf/db-password")';
    grant all on slurm_acct_db.* to slurm@localhost;"
}

start_slurmdbd() {
  install -d -m 755 -o slurm -g slurm "$H/log/slurm" "$H/run/slurm"
  start slurmdbd env MYSQL_UNIX_PORT="$DB_SOCKET" setpriv --reuid slurm --regid slurm --clear-groups slurmdbd -D
  wait_for 30 slurmdbd port_answers "$PORT_DBD"
}

port_answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start_slurm() {
  local node
  install -d -m 755 -o slurm -g slurm "$H/var/slurmctld"
  start slurmctld setpriv --reuid slurm --regid slurm --clear-groups slurmctld -D
  for node in "${NODES[@]}"; do start "slurmd-$node" "$CODE/inside/on-host" "$node" slurmd -D -N "$node"; done
  wait_for 30 slurmctld scontrol ping
  start memory-watch /usr/bin/python3 "$CODE/tools/memory_watch.py" watch
}

# A node that a killed test left down or drained comes back; the others report by themselves.
nodes_ready() {
  (wait_for 30 "all nodes" all_nodes_up)
}

all_nodes_up() {
  local bad
  bad=$(sinfo -h -N -o '%N %t' | awk '$2 !~ /^(idle|mix|alloc|comp)$/ { print $1 }' | sort -u | paste -sd, -)
  [ -n "$bad" ] || return 0
  if sinfo -h -n "$bad" -o %t | grep -qE 'down|drain'; then scontrol update nodename="$bad" state=resume; fi
  return 1
}
