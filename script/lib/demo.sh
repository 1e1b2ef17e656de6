# shellcheck shell=bash
# The pieces of script/demo: its people, its portal, what it says. Source after steps.sh and build.sh.

DEMO=$REPO/var/demo

# name, name to show, group, role, administrator of the portal
DEMO_PEOPLE='asmith|Ada Smith|Smith Lab|pi|admin
alice|Alice Martin|Smith Lab|member|
bob|Bob Nilsen|Smith Lab|member|
carol|Carol Wu|Smith Lab|member|
mjones|Mary Jones|Jones Lab|pi|
dave|Dave Okafor|Jones Lab|member|'

demo_cluster() {
  "$REPO/script/cluster" --dir "$DEMO/cluster" "$@"
}

# The program with the demo's settings.
demo_portolan() {
  env PORTOLAN_CONFIG="$DEMO/portolan.toml" "$PROGRAM" "$@"
}

portal_pid() {
  recorded_pid "$DEMO/portal.pid"
}

stop_portal() {
  local pid
  pid=$(portal_pid) || return 0
  kill "$pid"
  while portal_pid >/dev/null; do sleep 0.1; done
  rm -f "$DEMO/portal.pid"
}

# A stopped portal leaves its connections to its next start. Whoever ends the demo does not want that.
disconnect_all() {
  [ -x "$PROGRAM" ] && [ -e "$DEMO/portal/portolan.db" ] || return 0
  demo_portolan disconnect-all >>"$STEP_LOG" 2>&1 || echo "Some connections may still be open. See $STEP_LOG" >&2
}

# start_demo PORT: PORT may be empty, which means: as before, or 8080.
start_demo() {
  local wanted=$1 before
  before=$(sed -n 's/^# port //p' "$DEMO/portolan.toml" 2>/dev/null || true)
  wanted=${wanted:-${before:-8080}}
  need_toolchain
  refuse_taken_ports "$wanted"
  # shellcheck disable=SC2034 # from here on there is something to undo: see script/demo
  begun=1
  demo_cluster up
  build_program
  if [ "$wanted" != "$before" ] || program_changed; then stop_portal; fi
  if ! portal_pid >/dev/null; then
    write_settings "$wanted"
    make_people
    step "adding the clusters to the portal" know_clusters
    step "starting the portal" start_portal
  fi
  write_facts
}

# Better known at once than after minutes of building.
refuse_taken_ports() {
  local port mine=
  if portal_pid >/dev/null; then mine=$(sed -n 's/^listen = .*:\([0-9]*\)"/\1/p' "$DEMO/portolan.toml"); fi
  for port in "$1" $(($1 + 1)) $(($1 + 2)); do
    if ! grep -qx "$port" <<<"$mine" && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      die "Port $port is already in use. Choose other ports, for example: script/demo --port $((($1 + 1000) % 60000))"
    fi
  done
}

program_changed() {
  local pid
  pid=$(portal_pid) || return 1
  [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$PROGRAM")" ]
}

write_settings() {
  local run_dir
  run_dir=$(short_run_dir)
  [ -z "$run_dir" ] || run_dir="run_dir = \"$run_dir\""
  cat >"$DEMO/portolan.toml" <<TOML
# port $1
data_dir = "$DEMO/portal"
$run_dir
[portal]
listen = "127.0.0.1:$1"
[dashboards]
listen = "127.0.0.1:$(($1 + 1))"
[metrics]
listen = "127.0.0.1:$(($1 + 2))"
TOML
}

# Sockets need a short path of plain characters. Where the data folder has none, they live in a private folder in /tmp,
# the same one each time, so that connections are found again.
short_run_dir() {
  local own=$DEMO/portal/run kept
  if [ ${#own} -le 64 ] && [[ $own =~ ^[A-Za-z0-9/._-]+$ ]]; then return 0; fi
  kept=$(cat "$DEMO/run_dir" 2>/dev/null || true)
  if [ -z "$kept" ] || [ ! -O "$kept" ]; then
    kept=$(mktemp -d /tmp/portolan-demo-XXXXXX)
    echo "$kept" >"$DEMO/run_dir"
  fi
  echo "$kept"
}

start_portal() {
  [ ! -e "$DEMO/portal.log" ] || mv "$DEMO/portal.log" "$DEMO/portal.log.before"
  setsid env PORTOLAN_CONFIG="$DEMO/portolan.toml" "$PROGRAM" serve >"$DEMO/portal.log" 2>&1 </dev/null &
  process_identity $! >"$DEMO/portal.pid"
  local health
  health=$(portal_address metrics)/healthz
  for _ in $(seq 100); do
    if answers "$health"; then return 0; fi
    portal_pid >/dev/null || break
    sleep 0.1
  done
  tail -n 5 "$DEMO/portal.log"
  return 1
}

answers() {
  python3 -c 'import sys, urllib.request as u
u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=2)' "$1" 2>/dev/null
}

# portal_address portal|dashboards|metrics. The dashboards go by another name because browsers share cookies between ports.
portal_address() {
  local port host=127.0.0.1
  port=$(sed -n "/^\[$1\]/,/^listen/s/^listen = .*:\([0-9]*\)\"/\1/p" "$DEMO/portolan.toml")
  [ "$1" != portal ] || host=localhost
  echo "http://$host:$port"
}

# Made once, kept in a file that only its owner can read.
make_people() {
  [ ! -e "$DEMO/people.tsv" ] || return 0
  local name shown group role admin password
  rm -rf "$DEMO/portal" "$DEMO/people.new"
  install -m 600 /dev/null "$DEMO/people.new"
  while IFS='|' read -r name shown group role admin; do
    password=$(new_password)
    step "creating the account of $shown" add_person "$name" "$shown" "$group" "$role" "$admin" "$password"
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$shown" "$group" "$role" "$admin" "$password" >>"$DEMO/people.new"
  done <<<"$DEMO_PEOPLE"
  mv "$DEMO/people.new" "$DEMO/people.tsv"
}

add_person() {
  local arguments=(user add "$1" --display-name "$2" --group "$3" --role "$4" --password-stdin)
  [ -z "$5" ] || arguments+=(--admin)
  demo_portolan "${arguments[@]}" < <(printf '%s\n' "$6")
}

# Easy to type, drawn at random: other users of this machine can reach loopback too.
new_password() {
  python3 - <<'PY'
import secrets
words = ("amber anchor atlas beacon breeze canvas cedar chart cliff cobalt compass copper coral delta drift "
         "ember falcon fjord garnet harbour heron indigo island ivory jetty juniper lagoon lantern linen "
         "maple marble meadow mirror nectar north oak opal orchid otter pebble pine pollen quartz quill raven "
         "reef river saffron sail sextant silver slate spruce storm summit tidal timber velvet violet walnut "
         "willow winter").split()
print("-".join(secrets.choice(words) for _ in range(3)) + "-" + str(secrets.randbelow(9000) + 1000))
PY
}

# One cluster of the portal for each way to sign in, described as a centre would be. Whatever an earlier demo knew of
# them is brought up to date: ports and host keys may have changed since, but people's user names stay.
know_clusters() {
  local name file print verb keys=()
  while read -r print; do keys+=(--host-key "$print"); done < <(cluster_prints)
  python3 "$REPO/script/lib/demo_sites.py" "$REPO/sites/demo.toml" "$DEMO/cluster/cluster.json" "$DEMO/sites" |
    while read -r name file; do
      verb=add
      if demo_portolan cluster export "$name" >/dev/null 2>&1; then verb=change; fi
      demo_portolan cluster "$verb" "$name" --file "$file" "${keys[@]}"
    done
}

cluster_prints() {
  python3 -c 'import json, sys
for key in json.load(open(sys.argv[1]))["host_keys"]: print(key["fingerprint"])' "$DEMO/cluster/cluster.json"
}

write_facts() {
  PORTAL=$(portal_address portal) DASHBOARDS=$(portal_address dashboards) METRICS=$(portal_address metrics) \
    python3 - "$DEMO" <<'PY'
import json, os, sys, tomllib
from pathlib import Path
demo = sys.argv[1]
people = []
for line in open(f"{demo}/people.tsv", encoding="utf-8"):
    name, shown, group, role, admin, password = line.rstrip("\n").split("\t")
    people.append({"name": name, "display_name": shown, "password": password, "group": group, "role": role,
                   "admin": bool(admin)})
cluster = json.load(open(f"{demo}/cluster/cluster.json"))
sites = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(demo, "sites").glob("*.toml"))]
hosts = [{"name": site["name"], "title": site["title"], "host": site["login"]["host"], "port": site["login"]["port"],
          "asks": site["login"]["accepts"][0]} for site in sites]
facts = {
    "portal_url": os.environ["PORTAL"], "dashboards_url": os.environ["DASHBOARDS"],
    "metrics_url": os.environ["METRICS"] + "/metrics", "people": people,
    "settings": f"{demo}/portolan.toml", "log": f"{demo}/portal.log",
    "cluster": {"dir": f"{demo}/cluster", "name": cluster["name"], "slurm_version": cluster["slurm_version"],
                "key_page": f"http://{cluster['host']}:{cluster['ports']['keypage']}/",
                "robot_port": cluster["ports"]["robot"], "hosts": hosts,
                "people": [{key: user[key] for key in ("name", "password", "duo_passcode", "totp_secret")}
                           for user in cluster["users"]]},
}
draft = f"{demo}/demo.json.new"
with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
    json.dump(facts, file, indent=2, ensure_ascii=False)
os.replace(draft, f"{demo}/demo.json")
PY
}

say_how_to_sign_in() {
  python3 - "$DEMO/demo.json" <<'PY'
import json, sys
facts = json.load(open(sys.argv[1]))
print(f"\nThe portal is at  {facts['portal_url']}\n")
print(f"  {'Sign in as':<12} {'Password':<32} Person")
for person in facts["people"]:
    role = ("PI" if person["role"] == "pi" else "member") + " of " + person["group"]
    role += ", portal administrator" if person["admin"] else ""
    print(f"  {person['name']:<12} {person['password']:<32} {person['display_name']}, {role}")
cluster = facts["cluster"]
alice = next(person for person in cluster["people"] if person["name"] == "alice")
staff = "script/cluster --dir var/demo/cluster"
how = {
    ("key",): "nothing else needed",
    ("key", "code"): f"a code: {staff} user totp alice",
    ("key", "duo"): f"passcode {alice['duo_passcode']}, or a push, approved with: {staff} push approve alice",
    ("code", "password"): f"no key; a code as above, then password {alice['password']}",
}
print(f"""
To try a connection, sign in as alice, open Clusters and choose one. Her user name there is also alice. Create a key,
paste the public key into the demo's key page, {cluster['key_page']} , then select Connect.
""")
for host in cluster["hosts"]:
    print(f"  {host['title']:<30} {how[tuple(host['asks'])]}")
print(f"""
The other people have cluster accounts under their own names; their codes and passwords are in var/demo/demo.json.
The cluster runs Slurm {cluster['slurm_version']}. To log in to it yourself: {staff} ssh alice""")
PY
}
