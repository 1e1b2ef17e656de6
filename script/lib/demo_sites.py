#!/usr/bin/python3
"""demo_sites.py PRESET CLUSTER_JSON FOLDER: writes a description of the demo cluster for each way to sign in.

Each is the preset with what is true of one port only. Prints the name and the file of each.
"""
import json
import os
import shutil
import sys
import tomllib

HOST = "127.0.0.1"


def doors(ports):
    """Name, title, port, what is asked for, and what to know."""
    return [
        ("harbour", "Harbour (key only)", ports["key"], ["key"],
         "This cluster asks only for your SSH key, so the portal reconnects automatically."),
        ("harbour-mfa", "Harbour (one-time code)", ports["mfa"], ["key", "code"],
         "You confirm each new connection with a code from your phone."),
        ("harbour-duo", "Harbour (Duo)", ports["duo"], ["key", "duo"],
         "You confirm each new connection with Duo: a request on your phone, or a passcode."),
        ("harbour-password", "Harbour (code and password)", ports["password"], ["code", "password"],
         "SSH keys don't work here: each new connection asks for a code and your cluster password."),
        ("harbour-jump", "Harbour (behind a jump host)", ports["key"], ["key"],
         "You connect through a jump host, which asks for your SSH key too."),
    ]


def automation(facts, fingerprints):
    wrappers = [
        ("slurm_commands.sh", "Jobs: squeue, sbatch, scancel and scontrol, plus ls, cat, cd, echo, uname, id and groups."),
        ("transfer_commands.sh", "Files: rsync, SFTP and scp, plus ls, cat, cd, echo, uname, id and groups."),
        ("allowed_commands.sh", "Both of the above, plus commands for files, archives, Python and Git."),
    ]
    return {
        "hosts": [HOST], "port": facts["ports"]["robot"], "fingerprints": fingerprints,
        "support": "the person who runs this demo",
        "notes": [
            "In the demo, you grant access yourself: run script/cluster --dir var/demo/cluster robot key NAME 'LINE', then "
            "script/cluster --dir var/demo/cluster robot enrol NAME. In these commands, robot means the automation host.",
            "The demo cluster sees the portal's IP address as 127.0.0.1.",
        ],
        "wrappers": [{"path": f"{facts['robot']['wrappers']}/{name}", "allows": allows} for name, allows in wrappers],
    }


def described(preset, facts, door):
    name, title, port, asked, note = door
    fingerprints = [key["fingerprint"] for key in facts["host_keys"]]
    site = {**preset, "name": name, "title": title, "notes": [note, preset["notes"][0]]}
    del site["operator"]
    site["login"] = {"host": HOST, "port": port, "accepts": [asked], "fingerprints": fingerprints}
    if name == "harbour-jump":
        site["login"]["jump"] = {"host": HOST, "port": facts["ports"]["key"]}
    keys = {"user_name": f"User name on {title}"}
    if "key" in asked:
        keys = preset["keys"] | keys | {"page": f"http://{HOST}:{facts['ports']['keypage']}/"}
        keys["steps"] = [
            "Open the demo's SSH key page. It works like a real computing centre's.",
            "On that page, enter your user name, paste your public key from this portal, and save.",
        ]
    else:
        keys |= {"opens": False, "why_not": "This cluster doesn't accept SSH keys. It asks for a code and a password each time."}
    site["keys"] = keys
    if name == "harbour":
        site["automation"] = automation(facts, fingerprints)
    return site


def toml(table, path=()):
    """The few kinds of values that a description has. Plain values come before tables, as TOML wants it."""
    is_table = lambda value: isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict))
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items() if not is_table(value)]
    for key, value in table.items():
        here = (*path, key)
        if isinstance(value, dict):
            lines += ["", f"[{'.'.join(here)}]", *toml(value, here)]
        elif is_table(value):
            for item in value:
                lines += ["", f"[[{'.'.join(here)}]]", *toml(item, here)]
    return lines


def main(preset_path, facts_path, folder):
    with open(preset_path, "rb") as file:
        preset = tomllib.load(file)
    with open(facts_path, encoding="utf-8") as file:
        facts = json.load(file)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for number, door in enumerate(doors(facts["ports"]), 1):
        with open(f"{folder}/{number}-{door[0]}.toml", "w", encoding="utf-8") as file:
            file.write("\n".join(toml(described(preset, facts, door))) + "\n")
        print(door[0], file.name)


main(*sys.argv[1:])
