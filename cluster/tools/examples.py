"""Makes what the examples need, without the internet: examples.py SOURCE TARGET

TARGET/wheels/halfmoons-….whl   the package in SOURCE/halfmoons as a wheel, which is a zip file with a few lines more
TARGET/moons.tar.gz             a data set of many small files in one archive
"""
import base64
import gzip
import hashlib
import io
import os
import sys
import tarfile
import zipfile

source, target = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, source)
import halfmoons  # noqa: E402

WHEN = (2026, 1, 1, 0, 0, 0)  # the same files are the same bytes, whenever they are made


def make_wheel(folder):
    name, version = "halfmoons", halfmoons.__version__
    info = f"{name}-{version}.dist-info"
    files = {f"{name}/{file}": open(os.path.join(source, name, file), "rb").read()
             for file in sorted(os.listdir(os.path.join(source, name))) if file.endswith(".py")}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: examples\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(os.path.join(folder, f"{name}-{version}-py3-none-any.whl"), "w") as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, WHEN)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def make_data(path):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        with tarfile.open(mode="w", fileobj=packed) as archive:
            for part, seed, count in (("train", 1, 40), ("test", 1000, 20)):
                for number in range(count):
                    lines = "".join(f"{x:.4f},{y:.4f},{which}\n" for x, y, which in halfmoons.points(seed + number, 20))
                    entry = tarfile.TarInfo(f"{part}/{number:03d}.csv")
                    entry.size = len(lines)
                    archive.addfile(entry, io.BytesIO(lines.encode()))


os.makedirs(os.path.join(target, "wheels"), exist_ok=True)
make_wheel(os.path.join(target, "wheels"))
make_data(os.path.join(target, "moons.tar.gz"))
