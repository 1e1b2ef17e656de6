"""Uploads a file with tuspy, stops half-way, and goes on with a new client. Each part carries a checksum.

Arguments: address of the portal, cookies, cluster, folder, file.
"""

import os
import sys

from tusclient import client

portal, cookie, cluster, folder, path = sys.argv[1:]
tus = client.TusClient(portal + "/uploads", headers={"Cookie": cookie, "Origin": portal})
metadata = {"cluster": cluster, "folder": folder, "filename": "by tuspy"}
size = os.path.getsize(path)
first = tus.uploader(path, chunk_size=1024 * 1024, metadata=metadata, upload_checksum=True)
first.upload(stop_at=size // 2)
second = tus.uploader(path, chunk_size=1024 * 1024, url=first.url, upload_checksum=True)
assert 0 < second.offset < size, second.offset
second.upload()
