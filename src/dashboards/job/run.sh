# From here on the script is the same everywhere; what differs is set above.
umask 077
# What lies in a folder of someone else's would run as you.
for mine in "$base" "$base/boards" "$folder"; do
  if [ -L "$mine" ] || [ ! -O "$mine" ]; then
    echo "The folder $mine belongs to someone else or is a link. Remove it and start the dashboard again."
    exit 1
  fi
done
chmod 700 "$base" "$base/boards" 2>/dev/null
# Whoever can read this folder can use the dashboard.
if ! { chmod 700 "$folder" && cd "$folder"; }; then
  echo "The dashboard's folder $folder doesn't exist."
  exit 1
fi

# Where the dashboard is, for the portal. The sentences are ours, without double quotes or backslashes.
tell() {
  printf '{"stage":"%s","at":%s,"message":"%s"}\n' "$1" "$(date +%s)" "$2" > state.json.sh &&
    mv -f state.json.sh state.json
}

child='' heart='' locked='' new=''

# Gives the lock back.
release() {
  if [ -n "$locked" ]; then
    kill "$heart" 2>/dev/null
    rm -rf "$env.lock"
    locked=
  fi
}

fail() {
  echo "$1"
  tell failed "$1"
  rm -rf "$new"
  release
  exit 1
}

# Slurm says that the time is up, or that the dashboard is no longer wanted.
stopped() {
  trap '' TERM INT
  # At once, since Slurm does not wait for long; and again below, in case the dashboard has said something since.
  tell ended "The dashboard was stopped or reached its time limit."
  if [ -n "$child" ]; then
    kill -TERM "$child" 2>/dev/null
    wait "$child"
  fi
  release
  rm -rf "$new"
  tell ended "The dashboard was stopped or reached its time limit."
  exit 0
}
trap stopped TERM INT
trap release EXIT

# Runs a program so that a signal is noticed at once.
run() {
  "$@" &
  child=$!
  wait "$child"
  local code=$?
  child=
  return "$code"
}

tell preparing "Checking the software that the dashboard needs."
write_files

if [ "${#modules[@]}" -gt 0 ]; then
  for file in "$module_source" /etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do
    if ! type module >/dev/null 2>&1 && [ -r "$file" ]; then
      source "$file"
    fi
  done
  module load "${modules[@]}" || echo "Couldn't load these modules: ${modules[*]}"
fi
# What the owner has set for programs of their own must not get in between.
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV VIRTUAL_ENV
export PIP_USER=0 PYTHONNOUSERSITE=1

mkdir -p "$base/env" || fail "The folder for the environment couldn't be created. Your disk quota may be used up."
env=$base/env/$name-$(uname -m)
new=$env.new-${SLURM_JOB_ID:-$$}

# Two dashboards that start together make the environment once. A lock whose owner has died beats no more.
acquire() {
  local seen='' now='' still=0 tries=0
  until mkdir "$env.lock" 2>/dev/null; do
    now=$(cat "$env.lock/beat" 2>/dev/null)
    if [ ! -d "$env.lock" ]; then
      tries=$((tries + 1))
      [ "$tries" -lt 5 ] || fail "The folder for the environment can't be written to. Your disk quota may be used up."
    elif [ "$now" != "$seen" ]; then
      seen=$now still=0
    elif [ "$still" -ge "$stale_after" ]; then
      echo "Another dashboard started to build the environment and didn't finish."
      mv -T "$env.lock" "$env.stale-${SLURM_JOB_ID:-$$}" && rm -rf "$env.stale-${SLURM_JOB_ID:-$$}"
      continue
    fi
    tell preparing "Waiting for another dashboard that is installing the same software."
    run sleep 2
    still=$((still + 2))
  done
  locked=yes
  (
    trap - TERM INT EXIT
    beats=0
    while [ -d "$env.lock" ]; do
      beats=$((beats + 1))
      echo "${SLURM_JOB_ID:-$$} $beats" > "$env.lock/beat.new" && mv -f "$env.lock/beat.new" "$env.lock/beat"
      sleep 5
    done
  ) 2>/dev/null &
  heart=$!
}

# A Python that is new enough, here or under another name.
find_python() {
  local one
  for one in python3 python python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do
    if "$one" -c "import sys; sys.exit(sys.version_info[:2] < ($least_python))" 2>/dev/null; then
      command -v "$one"
      return
    fi
  done
  return 1
}

# An empty environment, in whichever way this machine has.
make_empty() {
  if command -v virtualenv >/dev/null && virtualenv --quiet --no-download --python "$python" "$new"; then
    return
  fi
  rm -rf "$new"
  "$python" -m venv "$new" && return
  # Debian without python3-venv: pip from outside does as well.
  rm -rf "$new"
  "$python" -m pip --version && "$python" -m venv --without-pip "$new" && outside=yes
}

pip_install() {
  local pip=("$new/bin/python" -m pip)
  if [ -n "$outside" ]; then
    pip=("$python" -m pip --python "$new/bin/python")
  fi
  (
    if [ -n "$proxy" ]; then
      export http_proxy="$proxy" https_proxy="$proxy"
    fi
    exec "${pip[@]}" install --disable-pip-version-check --no-input --no-cache-dir --no-compile --progress-bar off \
      --timeout 30 --retries 3 "$@"
  ) > pip.log 2>&1
  local code=$?
  cat pip.log
  return "$code"
}

# The site's own collection has what it has; elsewhere exactly what was tested, or what fits this Python.
install_packages() {
  if [ "$wheelhouse" = yes ]; then
    pip_install --no-index --no-deps "$program" &&
      { pip_install --no-index -r fitting.txt || pip_install --no-index "$program"; }
    return
  fi
  pip_install --no-deps --only-binary :all: -r exact.txt && return
  grep -qE 'No matching distribution|not a supported wheel|requires a different Python' pip.log || return
  echo "The tested versions don't support this Python. Installing versions that do."
  pip_install --no-deps --only-binary :all: "$pinned" && pip_install --only-binary :all: -r fitting.txt
}

# What pip's complaint means.
why() {
  if grep -qiE 'No space left|Disk quota exceeded' pip.log; then
    echo "There is no disk space left for the environment. Delete files you no longer need in $area, then start again."
  elif [ "$wheelhouse" = yes ] && grep -q 'No matching distribution' pip.log; then
    echo "The cluster's own collection of Python packages lacks one that $title needs. See the log for its name."
  elif grep -qE 'Requires-Python|requires a different Python' pip.log; then
    echo "$title couldn't be installed with the Python version on this cluster. See the log for details."
  elif grep -qiE 'NewConnectionError|ConnectTimeout|name resolution|unreachable|Max retries|ProxyError|Could not fetch|No matching distribution' pip.log; then
    echo "The packages couldn't be downloaded, probably because the nodes of this cluster have no internet access. Ask an administrator to configure this in the settings of the cluster."
  else
    echo "$title couldn't be installed. See the log for details."
  fi
}

make_environment() {
  outside=
  tell preparing "Installing the software. This happens once and takes a minute or more."
  echo "Building the environment $env. This happens once."
  rm -rf "$env".new-* "$env".old-* "$env".stale-*
  python=$(find_python) ||
    fail "No Python ${least_python/, /.} or newer was found on this cluster. Ask an administrator to add a Python module to the settings of the cluster."
  echo "Using $python, $("$python" --version 2>&1)"
  run make_empty || [ -x "$new/bin/python" ] ||
    fail "The Python environment couldn't be created. Your disk quota may be used up. See the log for details."
  # The way pip is called was found out in another process.
  [ -x "$new/bin/pip" ] || "$new/bin/python" -m pip --version >/dev/null 2>&1 || outside=yes
  run install_packages || fail "$(why)"
  run "$new/bin/python" -I server.py --check "$kind" ||
    fail "$title was installed, but doesn't run on this cluster. See the log for details."
  put_in_place
}

# A container with all of it, where packages cannot be installed.
make_image() {
  tell preparing "Building the container for the dashboard. This happens once and takes a few minutes."
  echo "Building the container $env. This happens once."
  rm -rf "$env".new-* "$env".old-* "$env".stale-*
  mkdir -p "$new" || fail "There is no disk space for the container. Your disk quota may be used up."
  {
    printf 'Bootstrap: docker\nFrom: python:3.12-slim-bookworm\n\n%%files\n    %s/exact.txt /exact.txt\n' "$folder"
    printf '\n%%post\n    pip install --no-cache-dir --no-deps --only-binary :all: -r /exact.txt\n'
  } > image.def
  (
    if [ -n "$proxy" ]; then
      export http_proxy="$proxy" https_proxy="$proxy"
    fi
    export APPTAINER_CACHEDIR="$new/cache" APPTAINER_TMPDIR="$new" SINGULARITY_CACHEDIR="$new/cache" SINGULARITY_TMPDIR="$new"
    exec "$container" build "$new/image.sif" image.def
  ) > pip.log 2>&1 &
  child=$!
  wait "$child"
  local code=$?
  child=
  cat pip.log
  rm -rf "$new/cache"
  [ "$code" = 0 ] || fail "$(why)"
  run "$container" exec --bind "$folder" "$new/image.sif" python3 -I server.py --check "$kind" ||
    fail "The container was built, but doesn't run on this cluster. See the log for details."
  put_in_place
}

# The mark comes last; what has none is half-made.
put_in_place() {
  echo "${SLURM_JOB_ID:-$$} $RANDOM" > "$new/ok" || fail "There is no disk space left for the environment."
  if [ -e "$env" ]; then
    mv -T "$env" "$env.old-${SLURM_JOB_ID:-$$}"
  fi
  mv -T "$new" "$env" || fail "The environment couldn't be moved into place. See the log for details."
  rm -rf "$env".old-*
  echo "The environment is ready."
}

# Makes it unless someone else has; $1: the mark of one that is broken.
prepare() {
  if [ -f "$env/ok" ] && [ "$(cat "$env/ok")" != "$1" ]; then
    return
  fi
  acquire
  if [ ! -f "$env/ok" ] || [ "$(cat "$env/ok")" = "$1" ]; then
    if [ "$containers" = yes ]; then
      make_image
    else
      make_environment
    fi
  fi
  release
}

serve() {
  if [ "$containers" = yes ]; then
    run "$container" exec "${binds[@]}" "$env/image.sif" python3 -I server.py plan.json
  else
    run "$env/bin/python" -I server.py plan.json
  fi
}

container=
if [ "$containers" = yes ]; then
  container=$(command -v apptainer || command -v singularity || true)
  if [ -z "$container" ]; then
    module load apptainer && container=$(command -v apptainer)
  fi
  [ -n "$container" ] || fail "The dashboard needs Apptainer or Singularity, but neither was found on this cluster."
fi

prepare "none"
serve
code=$?
# Python itself is gone (126, 127), or something that the dashboard needs.
if [ "$code" = 86 ] || [ "$code" = 126 ] || [ "$code" = 127 ]; then
  echo "The environment is broken. Rebuilding it."
  prepare "$(cat "$env/ok" 2>/dev/null)"
  serve
  code=$?
fi
case $code in
  0 | 1) ;;
  86) fail "$title doesn't run on this cluster, even in a rebuilt environment. See the log for details." ;;
  137) fail "The dashboard was killed. It may have needed more memory than its job requested." ;;
  *) fail "The dashboard ended unexpectedly. See the log for details." ;;
esac
exit "$code"
