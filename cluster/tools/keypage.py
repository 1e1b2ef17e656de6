#!/usr/bin/python3
"""keypage.py PORT: a page like the ones on which people give a centre their public keys.

GET /?user=NAME shows whose keys are installed. POST / with `user` and `key` adds one, with `user` and `remove` (a
fingerprint) takes one away; both answer with the page, 200 or 400. A real centre asks who you are first. This one
does not: it listens on loopback only, and stands for somebody who has signed in.
"""
import base64
import hashlib
import html
import http.server
import re
import subprocess
import sys
import urllib.parse

HOME = "/harbour"
STYLE = """
body { margin: 0; background: #eef2f5; color: #1b2733; font: 1rem/1.5 system-ui, sans-serif }
header { background: #17405e; color: #fff; padding: .8rem 1rem }
main { max-width: 40rem; margin: 0 auto; padding: 1rem }
section { background: #fff; border: 1px solid #d3dce3; border-radius: .4rem; padding: 1rem; margin-bottom: 1rem }
h1 { font-size: 1.2rem; margin: 0 } h2 { font-size: 1.05rem; margin-top: 0 }
label { display: block; font-weight: 600; margin-bottom: .6rem }
input, textarea { display: block; box-sizing: border-box; width: 100%; font: inherit; padding: .5rem; margin-top: .2rem;
  border: 1px solid #7d8e9b; border-radius: .3rem }
input { font-weight: normal } textarea { font: .85rem/1.4 monospace; height: 7rem }
button { font: inherit; padding: .5rem 1rem; border: 1px solid #17405e; border-radius: .3rem; background: #17405e; color: #fff }
li button { background: #fff; color: #17405e; margin-top: .4rem }
ul { list-style: none; padding: 0; margin: 0 } li { border-top: 1px solid #d3dce3; padding: .6rem 0 }
code { overflow-wrap: anywhere } p.note { border-left: .3rem solid #2b7a3d; padding-left: .6rem }
p.refused { border-left: .3rem solid #b3261e; padding-left: .6rem }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


class Refused(Exception):
    """What was asked for cannot be done; its text is for the person."""


def people():
    with open(f"{HOME}/people.tsv") as rows:
        return {row.split("\t")[0]: row.split("\t")[2].strip() for row in rows}


def described(text):
    """(bits, fingerprint, comment, type) of a public key, or None."""
    done = subprocess.run(["ssh-keygen", "-l", "-f", "-"], input=text + "\n", capture_output=True, text=True)
    found = re.fullmatch(r"(\d+) (\S+) (.*) \((\S+)\)\n", done.stdout)
    return found.groups() if done.returncode == 0 and found else None


def installed(user):
    try:
        with open(f"/home/{user}/.ssh/authorized_keys", errors="replace") as lines:
            return [key for key in (described(line.strip()) for line in lines if line.strip()) if key]
    except FileNotFoundError:
        return []


def cluster(*command):
    """A function of the pieces in inside/; they know how to change such a file."""
    done = subprocess.run(["bash", f"{HOME}/code/inside/run.sh", *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(done.stderr.strip() or "That did not work.")


def change(fields):
    """Does what a form asks for, and says so."""
    user = fields.get("user", "").strip()
    if user not in people():
        raise Refused("There is no such user here.")
    if "remove" in fields:
        cluster("remove_key", user, fields["remove"])
        return "The key was removed."
    key = fields.get("key", "").strip()
    if "PRIVATE KEY" in key.upper():
        raise Refused("This is a private key. It was not kept. Never give it to anybody: paste the file whose name ends in .pub.")
    if not key or "\n" in key or not key.isprintable() or not described(key):
        raise Refused("This is not a public key. It is one line which begins with a word like ssh-ed25519.")
    cluster("set_key", user, key)
    return "The key was saved. It works at once."


def page(user, note, refused):
    """Nothing that was pasted is shown again, only what ssh-keygen says about it."""
    shown, names = html.escape(user), people()
    parts = [f'<p class="{"refused" if refused else "note"}" role="status">{html.escape(note)}</p>' if note else ""]
    if user in names:
        rows = "".join(
            f'<li><code>{html.escape(fingerprint)}</code><br>{html.escape(kind)}, {html.escape(comment)}'
            f'<form method="post" action="/"><input type="hidden" name="user" value="{shown}">'
            f'<button name="remove" value="{html.escape(fingerprint)}">Remove</button></form></li>'
            for _, fingerprint, comment, kind in installed(user))
        parts.append(f"<section><h2>Keys of {html.escape(names[user])} ({shown})</h2><ul>{rows or '<li>None yet.</li>'}</ul></section>")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>SSH keys - Harbour</title><style>{STYLE}</style></head>
<body><header><h1>Harbour: SSH keys</h1></header><main>{"".join(parts)}
<section><h2>Add a public key</h2><form method="post" action="/">
<label>User name<input name="user" value="{shown}" required autocapitalize="none" autocomplete="username"></label>
<label>Public key<textarea name="key" required spellcheck="false" placeholder="ssh-ed25519 AAAA… you@laptop"></textarea></label>
<button>Save</button></form></section></main></body></html>
"""


class Handler(http.server.BaseHTTPRequestHandler):
    """Other web sites in the same browser must not get to press Save, whatever name they give this address."""
    timeout = 10

    def is_own(self):
        port = self.server.server_address[1]
        own = {f"127.0.0.1:{port}", f"localhost:{port}"}
        return self.headers.get("Host") in own and self.headers.get("Origin") in {None} | {f"http://{name}" for name in own}

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy",
                         f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path != "/" or not self.is_own():
            return self.answer(404, "<!doctype html><title>Not found</title><p>There is nothing here.</p>")
        user = urllib.parse.parse_qs(query).get("user", [""])[0]
        self.answer(200, page(user, "" if not user or user in people() else "There is no such user here.", True))

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > 20000 or not self.is_own():
            self.close_connection = True
            return self.answer(400, "<!doctype html><title>Refused</title><p>This was not sent by the form.</p>")
        sent = urllib.parse.parse_qs(self.rfile.read(int(length)).decode(errors="replace"))
        fields = {name: values[0] for name, values in sent.items()}
        user = fields.get("user", "").strip()
        try:
            self.answer(200, page(user, change(fields), False))
        except Refused as refusal:
            self.answer(400, page(user, str(refusal), True))


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
