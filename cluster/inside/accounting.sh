# shellcheck shell=bash
# What slurmdbd knows: accounts, people's associations, QOS, and a made-up past.

# One `sacctmgr load` does all: every command on its own costs half a second.
load_accounts() {
  local done_mark="$H/var/accounts-loaded" lists="$H/var/accounts.cfg"
  /usr/bin/python3 "$CODE/tools/accounts.py" "$CODE/conf/accounts.tsv" "$CODE/conf/people.tsv" >"$lists.new"
  # a newer version may have more people
  if [ -e "$done_mark" ] && cmp -s "$lists.new" "$lists"; then return 0; fi
  rm -f "$done_mark"
  mv "$lists.new" "$lists"
  wait_for 30 "the cluster's registration" registered
  sacctmgr -i <<X || true # says "nothing new" and fails for what a killed run has done; so count afterwards
add qos debug Priority=100 MaxWall=00:30:00 MaxJobsPU=2 MaxSubmitJobsPU=10
add qos high Priority=50 MaxWall=3-00:00:00
modify cluster harbour set QOS=normal,debug,high DefaultQOS=normal
load $lists
X
  local have want
  have=$(sacctmgr -nP show assoc cluster=harbour format=user | grep -vcE '^(root)?$' || true)
  want=$(grep -c "^User - '[^r]" "$lists")
  [ "$have" -ge "$want" ] || die "$have associations instead of $want"
  touch "$done_mark"
}

# add_associations NAME ACCOUNT STAR: also the account, if it is new. sacctmgr's exit code says little in this mode,
# so the result is checked instead.
add_associations() {
  {
    has_association '' "$2" || echo "add account $2 Description=$2 Organization=${2#*-} Fairshare=10"
    echo "add user $1 Account=$2 DefaultAccount=$2 Fairshare=1"
    [ -z "$3" ] || echo "add coordinator Account=$2 Names=$1"
  } | sacctmgr -i >/dev/null || true
  wait_for 10 "the association of $1" has_association "$1" "$2"
}

# has_association USER ACCOUNT, or '' for the account itself: as slurmctld sees it, which hears of it a moment after
# slurmdbd.
has_association() {
  scontrol -o show assoc_mgr flags=assoc accounts="$2" | grep -c " Account=$2 UserName=$1[( ]" >/dev/null
}

# Erik left the group: he has jobs, and an association that is deleted, as slurmdbd keeps it for those who had some.
# It is made of bob's. Newer versions have a path instead of places in a tree.
add_who_left() {
  local place="lft = (select a.rgt from harbour_assoc_table a where a.acct = 'def-smith' and a.user = ''), rgt = lft"
  if sql -BN slurm_acct_db -e "show columns from harbour_assoc_table like 'lineage'" | grep -q lineage; then
    place="lineage = replace(lineage, '0-bob/', '0-erik/')"
  fi
  sql slurm_acct_db <<X
create temporary table gone select * from harbour_assoc_table where user = 'bob' and acct = 'def-smith';
update gone set id_assoc = 900000, user = 'erik', deleted = 1, is_def = 0, $place;
insert into harbour_assoc_table select * from gone where not exists (select 1 from harbour_assoc_table where user = 'erik');
insert ignore into user_table (creation_time, mod_time, deleted, name, admin_level)
  values (unix_timestamp(), unix_timestamp(), 1, 'erik', 0);
X
}

# 100 days of finished jobs, written straight into slurmdbd's tables; sreport reads only what is rolled up.
seed_history() {
  local days=${SEED_DAYS:-100} have
  [ -e "$H/var/seeded-days" ] || echo "$days" >"$H/var/seeded-days"
  days=$(cat "$H/var/seeded-days")
  [ "$days" -gt 0 ] || return 0
  have=$(sql -BN slurm_acct_db -e "select count(*) from harbour_job_table where id_job < 20001")
  if [ "$have" = 0 ]; then
    wait_for 20 "the cluster's registration" registered
    add_who_left
    sql -BN slurm_acct_db -e "select id_assoc, user, acct from harbour_assoc_table
      where user = 'erik' or (deleted = 0 and user != '')" |
      /usr/bin/python3 "$CODE/tools/history.py" "$days" | sql slurm_acct_db
    rm -f "$H/var/rolled-up" "$H/var/fair-share-fed"
  fi
  feed_fair_share
  [ ! -e "$H/var/rolled-up" ] || return 0
  sacctmgr -i rollup "$(date -d "-$((days + 1)) days" +%F)" "$(date +%FT%H:00:00)" >/dev/null
  touch "$H/var/rolled-up"
}

# slurmctld counts usage for fair share while jobs run, and the history never ran. So give it what those jobs used, in
# the file that it writes when it ends and reads when it starts.
feed_fair_share() {
  local mark="$H/var/fair-share-fed"
  [ ! -e "$mark" ] || return 0
  stop slurmctld
  if sql -BN slurm_acct_db -e "select id_assoc, tres_alloc, time_start, time_end from harbour_job_table
      where id_job < 20001 and tres_alloc != '' and time_end > time_start
      and id_assoc in (select id_assoc from harbour_assoc_table where deleted = 0)" |
    /usr/bin/python3 "$CODE/tools/association_usage.py" "$H/var/slurmctld/assoc_usage"; then
    touch "$mark"
  else
    echo "Fair share does not know the history; everything else does." >&2
  fi
  start_slurm
}

registered() {
  sql -BN slurm_acct_db -e "select count(*) from harbour_event_table where node_name = '' and time_end = 0" | grep -qx 1
}
