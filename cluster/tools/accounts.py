#!/usr/bin/python3
"""accounts.py ACCOUNTS.tsv PEOPLE.tsv: the two lists as one file for `sacctmgr load`."""
import sys


def rows(path):
    with open(path) as lines:
        return [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]


accounts, people = rows(sys.argv[1]), rows(sys.argv[2])
print("Cluster - 'harbour':Fairshare=1")
print("Parent - 'root'")
print("User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1")
for name, share, organisation, *more in accounts:
    settings = "".join(":" + setting for setting in more if setting)
    print(f"Account - '{name}':Description='{name}':Organization='{organisation}':Fairshare={share}{settings}")
for account, *_ in accounts:
    print(f"Parent - '{account}'")
    for user, memberships, *_ in people:
        names = [name.rstrip("*") for name in memberships.split(",")]
        led = [name.rstrip("*") for name in memberships.split(",") if name.endswith("*")]
        coordinator = f":Coordinator='{','.join(led)}'" if led else ""
        if account in names:
            print(f"User - '{user}':DefaultAccount='{names[0]}'{coordinator}:Fairshare=1")
