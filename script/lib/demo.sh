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
    know_clusters
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
      die "Port $port is used by another program. Choose others, for example: script/demo --port $((($1 + 1000) % 60000))"
    fi
  done
}

program_changed() {
  local pid
  pid=$(portal_pid) || return 1
  [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$PROGRAM")" ]
}

write_settings() {
  cat >"$DEMO/portolan.toml" <<TOML
# port $1
data_dir = "$DEMO/portal"
[portal]
listen = "127.0.0.1:$1"
[boards]
listen = "127.0.0.1:$(($1 + 1))"
[metrics]
listen = "127.0.0.1:$(($1 + 2))"
TOML
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

# portal_address portal|boards|metrics. The boards go by another name because browsers share cookies between ports.
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
    step "making the account of $shown" add_person "$name" "$shown" "$group" "$role" "$admin" "$password"
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

# The portal pins the host keys it finds in the cluster's own description.
know_clusters() {
  local name title kind
  while IFS='|' read -r name title kind; do
    know_cluster "$name" "$title" "$kind"
  done <<'TABLE'
harbour|Harbour (demo cluster)|key
harbour-mfa|Harbour with one-time codes|mfa
TABLE
}

know_cluster() {
  local port prints=() print
  port=$(cluster_fact "['ports']['$3']")
  while read -r print; do prints+=(--host-key "$print"); done < <(cluster_fact_prints)
  if demo_portolan cluster list | grep -qE "^$1 .*:$port\$"; then return 0; fi
  step "telling the portal about $2" add_cluster "$1" --host 127.0.0.1 --port "$port" --title "$2" "${prints[@]}"
}

# The cluster may have moved to another port: what was known of it goes first.
add_cluster() {
  demo_portolan cluster remove "$1" || true
  demo_portolan cluster add "$@"
}

cluster_fact() {
  python3 -c "import json, sys; print(json.load(open(sys.argv[1]))$1)" "$DEMO/cluster/cluster.json"
}

cluster_fact_prints() {
  python3 -c 'import json, sys
for key in json.load(open(sys.argv[1]))["host_keys"]: print(key["fingerprint"])' "$DEMO/cluster/cluster.json"
}

write_facts() {
  PORTAL=$(portal_address portal) BOARDS=$(portal_address boards) METRICS=$(portal_address metrics) \
    python3 - "$DEMO" <<'PY'
import json, os, sys
demo = sys.argv[1]
people = []
for line in open(f"{demo}/people.tsv", encoding="utf-8"):
    name, shown, group, role, admin, password = line.rstrip("\n").split("\t")
    people.append({"name": name, "display_name": shown, "password": password, "group": group, "role": role,
                   "admin": bool(admin)})
cluster = json.load(open(f"{demo}/cluster/cluster.json"))
facts = {
    "portal_url": os.environ["PORTAL"], "boards_url": os.environ["BOARDS"],
    "metrics_url": os.environ["METRICS"] + "/metrics", "people": people,
    "settings": f"{demo}/portolan.toml", "log": f"{demo}/portal.log",
    "cluster": {"dir": f"{demo}/cluster", "name": cluster["name"], "slurm_version": cluster["slurm_version"],
                "hosts": [{"name": "harbour", "host": cluster["host"], "port": cluster["ports"]["key"]},
                          {"name": "harbour-mfa", "host": cluster["host"], "port": cluster["ports"]["mfa"]}]},
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
print(f"  {'Sign in as':<12} {'Password':<32} Who it is")
for person in facts["people"]:
    role = ("PI" if person["role"] == "pi" else "member") + " of " + person["group"]
    role += ", administrator of the portal" if person["admin"] else ""
    print(f"  {person['name']:<12} {person['password']:<32} {person['display_name']}, {role}")
cluster = facts["cluster"]
ports = " and ".join(f"{host['port']} ({'with one-time code' if 'mfa' in host['name'] else 'key only'})" for host in cluster["hosts"])
print(f"\nBehind it: Slurm {cluster['slurm_version']}, reached over ssh on the ports {ports}.")
print("To look around there yourself: script/cluster --dir var/demo/cluster ssh alice")
PY
}
