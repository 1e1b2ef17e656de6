#!/usr/bin/python3
"""keypage.py PORT USER KEYFILE save|remove: drives the key page as a browser would, and tries what it must refuse."""
import html
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

PORT, USER, KEY, WHAT = sys.argv[1:]
BROWSER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(fields=None, **headers):
    """(status, page)"""
    data = urllib.parse.urlencode(fields).encode() if fields else None
    try:
        answer = BROWSER.open(urllib.request.Request(f"http://127.0.0.1:{PORT}/", data, headers), timeout=10)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, answer.read().decode()


def main():
    fingerprint = subprocess.run(["ssh-keygen", "-lf", KEY + ".pub"], capture_output=True, text=True).stdout.split()[1]
    if WHAT == "remove":
        status, page = ask({"user": USER, "remove": fingerprint})
        assert status == 200 and html.escape(fingerprint) not in page and "Remove" in page, page
        return
    public, private = open(KEY + ".pub").read(), open(KEY).read()
    status, page = ask()
    assert status == 200 and 'name="user"' in page and 'name="key"' in page and "width=device-width" in page
    for fields in ({"user": USER, "key": private}, {"user": USER, "key": "ssh-ed25519 AAAA"},
                   {"user": USER, "key": public + public}, {"user": "<i>nobody", "key": public}, {"user": USER}):
        status, page = ask(fields)
        assert status == 400 and private.split()[5] not in page and "<i>" not in page, page
    assert ask({"user": USER, "key": public}, Origin="http://elsewhere.example")[0] == 400
    assert ask(None, Host="elsewhere.example")[0] == 404
    status, page = ask({"user": USER, "key": public})
    assert status == 200 and html.escape(fingerprint) in page and "me &lt;b&gt;&amp;" in page, page
    assert len(re.findall("Remove</button>", page)) == 2, page


main()
