"""Serves one dashboard (TensorBoard or MLflow) to the portal, and to nobody else.

Runs inside the dashboard's job, as its owner. The dashboard itself runs in this very process. Every connection has to
begin with a handshake that proves to both ends that the other one knows this run's secret; whoever cannot do that gets
not a single byte. Where the dashboard is, its port and the secret are told in state.json, which only the owner can
read.

Needs Python 3.8 and, besides the dashboard, nothing that does not come with Python.
"""
import hashlib
import hmac
import http.server
import io
import json
import os
import re
import resource
import secrets
import signal
import socket
import socketserver
import sqlite3
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse

# The environment does not work: the job's script makes it anew.
EXIT_BROKEN = 86

HANDSHAKE_S = 10
MOST_STRANGERS = 64
MOST_FRIENDS = 160
KEEP_ALIVE_S = 75
STALLED_S = 300
MOST_DRAINED = 1 << 20
PIECE = 1 << 18


# --- what the job tells of itself ---


class State:
    """state.json: replaced as a whole, readable by its owner only."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "state.json")

    def tell(self, stage, message="", **more):
        draft = "%s.%d" % (self.path, os.getpid())
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(json.dumps(dict(stage=stage, at=int(time.time()), message=message, **more)) + "\n")
        os.replace(draft, self.path)


class Problem(Exception):
    """Something that its owner can do something about, as a sentence."""


# --- the handshake ---


def proof(secret, who, nonces):
    return hmac.new(secret, who + nonces, hashlib.sha256).hexdigest().encode()


def read_exactly(connection, wanted, until, begins=b""):
    """So many bytes, or none; gives up as soon as they cannot become what they must begin with."""
    got = b""
    while len(got) < wanted:
        left = until - time.monotonic()
        if left <= 0:
            return None
        connection.settimeout(left)
        piece = connection.recv(wanted - len(got))
        got += piece
        if not piece or not (got.startswith(begins) or begins.startswith(got)):
            return None
    return got


def is_friend(connection, secret):
    """Whether the other end is the portal. Says nothing before it has shown how it begins, and nothing to others."""
    until = time.monotonic() + HANDSHAKE_S
    try:
        hello = read_exactly(connection, 75, until, b"PORTOLAN1 ")
        if hello is None or not re.fullmatch(rb"PORTOLAN1 [0-9a-f]{64}\n", hello):
            return False
        mine = secrets.token_hex(32).encode()
        nonces = hello[10:74] + mine
        connection.sendall(mine + b" " + proof(secret, b"board", nonces) + b"\n")
        answer = read_exactly(connection, 65, until)
        return answer is not None and hmac.compare_digest(answer, proof(secret, b"portal", nonces) + b"\n")
    except OSError:
        return False


# --- HTTP/1.1 for WSGI applications, with connections that stay open ---


class Body(io.RawIOBase):
    """A request's body: so many bytes, or chunks until the last one."""

    def __init__(self, file, length, chunked):
        super().__init__()
        self.file, self.left, self.chunked, self.done = file, length, chunked, not chunked and length == 0

    def readable(self):
        return True

    def readinto(self, buffer):
        if self.chunked and self.left == 0 and not self.done:
            size = self.file.readline(64).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,12}", size):
                raise OSError("a chunk without its size")
            self.left = int(size, 16)
            if self.left == 0:
                while self.file.readline(8192).strip():
                    pass
                self.done = True
        if self.done:
            return 0
        data = self.file.read(min(len(buffer), self.left))
        if not data:
            raise OSError("the body ended too soon")
        buffer[: len(data)] = data
        self.left -= len(data)
        if self.left == 0:
            if self.chunked:
                self.file.readline(8)
            else:
                self.done = True
        return len(data)


class Pieces:
    """A file in pieces that are large enough to be quick. WSGI's file wrapper."""

    def __init__(self, file, size=PIECE):
        self.file, self.size = file, max(size, PIECE)

    def __iter__(self):
        return self

    def __next__(self):
        data = self.file.read(self.size)
        if not data:
            raise StopIteration
        return data

    def __getattr__(self, name):
        # Parts of files are found by seeking; closing and the like are the file's own, too.
        return getattr(self.file, name)


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    hop_by_hop = frozenset(("connection", "keep-alive", "transfer-encoding", "upgrade", "trailer", "te"))

    def handle(self):
        friend = is_friend(self.connection, self.server.secret)
        if not self.server.met(self.connection, friend):
            return
        try:
            self.close_connection = False
            while not self.close_connection:
                self.handle_one_request()
        except OSError:
            pass
        finally:
            self.server.left(self.connection)

    def handle_one_request(self):
        self.close_connection = True
        self.connection.settimeout(KEEP_ALIVE_S)
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or len(self.raw_requestline) > 65536 or not self.parse_request():
            self.close_connection = True
            return
        if self.request_version not in ("HTTP/1.1", "HTTP/1.0"):
            self.refuse(505, "This request isn't HTTP/1.1.")
            return
        # A reader far away may take its time; one that is gone may not keep its place for ever.
        self.connection.settimeout(STALLED_S)
        body = self.body()
        if body is None:
            self.refuse(400, "This request has no clear length.")
            return
        self.answer(body)
        if not self.close_connection and not self.drained(body):
            self.close_connection = True

    def body(self):
        lengths = self.headers.get_all("Content-Length", [])
        codings = self.headers.get_all("Transfer-Encoding", [])
        if codings:
            fine = not lengths and [one.strip().lower() for one in codings] == ["chunked"]
            return Body(self.rfile, 0, True) if fine else None
        if len(set(lengths)) > 1 or not all(re.fullmatch("[0-9]{1,15}", one.strip()) for one in lengths):
            return None
        return Body(self.rfile, int(lengths[0]) if lengths else 0, False)

    def drained(self, body):
        """What the application did not read would be taken for the next request."""
        left = MOST_DRAINED
        while not body.done and left > 0:
            left -= body.readinto(bytearray(65536))
        return body.done

    def environ(self, body):
        path, _, query = self.path.partition("?")
        environ = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "REQUEST_URI": self.path,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BufferedReader(body, 65536),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "wsgi.file_wrapper": Pieces,
        }
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            if "_" in name or key == "TRANSFER_ENCODING":
                continue
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = "HTTP_" + key
            environ[key] = environ[key] + "," + value if key.startswith("HTTP_") and key in environ else value
        return environ

    def answer(self, body):
        sent = Answer(self)
        result = None
        try:
            result = self.server.app(self.environ(body), sent.start)
            for piece in result:
                sent.write(piece)
            sent.end()
        except OSError:
            # The other end is gone, or stalled.
            self.close_connection = True
        except Exception:
            traceback.print_exc()
            if sent.begun:
                self.close_connection = True
            else:
                self.refuse(500, "The dashboard couldn't handle this request.")
        finally:
            if hasattr(result, "close"):
                result.close()

    def refuse(self, code, sentence):
        self.close_connection = True
        text = (sentence + "\n").encode()
        head = "HTTP/1.1 %d -\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        self.connection.sendall((head % (code, len(text))).encode() + text)

    def send_error(self, code, message=None, explain=None):
        self.refuse(code, "This request couldn't be read.")

    def log_message(self, *_):
        """Addresses are nobody's business."""


class Answer:
    """What an application answers, on its way."""

    def __init__(self, handler):
        self.handler, self.head, self.begun, self.chunked, self.left = handler, None, False, False, None

    def start(self, status, headers, exc_info=None):
        if exc_info and self.begun:
            raise exc_info[1]
        self.head = (status, headers)
        return self.write

    def first(self):
        handler, (status, headers) = self.handler, self.head
        self.begun = True
        code = int(status[:3])
        lines = ["HTTP/1.1 " + status]
        for name, value in headers:
            if "\n" in name + value or "\r" in name + value:
                raise ValueError("a header of two lines")
            if name.lower() == "content-length":
                self.left = int(value)
            if name.lower() not in handler.hop_by_hop:
                lines.append(name + ": " + value)
        self.bare = handler.command == "HEAD" or code in (204, 304) or code < 200
        if self.left is None and not self.bare:
            if handler.request_version >= "HTTP/1.1":
                self.chunked = True
                lines.append("Transfer-Encoding: chunked")
            else:
                handler.close_connection = True
        if handler.close_connection:
            lines.append("Connection: close")
        return "\r\n".join(lines + ["", ""]).encode("latin-1")

    def write(self, data):
        if self.begun and not data:
            return
        out = b"" if self.begun else self.first()
        if self.bare or not data:
            data = b""
        elif self.left is not None:
            data = data[: self.left]
            self.left -= len(data)
        elif self.chunked:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        if out or data:
            self.handler.connection.sendall(out + data if out else data)

    def end(self):
        if not self.begun:
            self.write(b"")
        if self.chunked:
            self.handler.connection.sendall(b"0\r\n\r\n")
        if self.left and not self.bare:
            # Less than was promised: the other end must see that.
            self.handler.close_connection = True


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A thread for each connection, and not too many of them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, family, address, secret):
        self.address_family, self.secret, self.app = family, secret, None
        self.guard = threading.Lock()
        self.strangers, self.friends = {}, set()
        super().__init__(address, Handler)

    def process_request(self, request, client_address):
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.guard:
            self.strangers[request] = None
            # A portal proves itself at once; whoever has been at it for longest is none.
            oldest = next(iter(self.strangers)) if len(self.strangers) > MOST_STRANGERS else None
        if oldest is not None:
            self.cut(oldest)
        super().process_request(request, client_address)

    def met(self, request, friend):
        with self.guard:
            known = request in self.strangers
            self.strangers.pop(request, None)
            if not friend or not known or len(self.friends) >= MOST_FRIENDS:
                return False
            self.friends.add(request)
            return True

    def left(self, request):
        with self.guard:
            self.friends.discard(request)

    def cut(self, request):
        with self.guard:
            self.strangers.pop(request, None)
        try:
            request.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def handle_error(self, request, client_address):
        self.met(request, False)
        self.left(request)


def listen(secret):
    """On the address by which the cluster knows this node, on any free port."""
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    try:
        found = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    for family, _, _, _, address in found:
        # Some machines know themselves by an address that nobody else can reach.
        if address[0].startswith("127.0.") or address[0] in ("::1", "0.0.0.0", "::"):
            continue
        try:
            return Server(family, (address[0], 0), secret)
        except OSError:
            continue
    return Server(socket.AF_INET, ("0.0.0.0", 0), secret)


# --- what may be asked of a dashboard that is shown read-only ---


def is_allowed(rules, method, path):
    """The same table and the same reading as the portal's own, for those who are not the owner."""
    if method == "HEAD":
        method = "GET"
    steps = path.split("/")[1:]
    if "." in steps or ".." in steps:
        return False
    for known, pattern in rules:
        wanted = pattern.split("/")[1:]
        rest = wanted[-1] == "**"
        if rest:
            wanted = wanted[:-1]
        fits = len(steps) > len(wanted) if rest else len(steps) == len(wanted)
        if fits and known == method and all(w == s or (w == "*" and s) for w, s in zip(wanted, steps)):
            return True
    return False


def read_only(app, rules):
    def guarded(environ, start_response):
        if is_allowed(rules, environ["REQUEST_METHOD"], environ["PATH_INFO"]):
            return app(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [b"This dashboard is read-only.\n"]

    return guarded


# --- TensorBoard ---


def tensorboard(plan):
    from tensorboard import default, program, version

    made = []

    class Kept:
        """TensorBoard hands its application over; we serve it."""

        def __init__(self, app, flags):
            made.append(app)

        def serve_forever(self):
            pass

        def get_url(self):
            return ""

    places = plan["places"]
    if not any(os.path.isdir(place) for place in places):
        raise Problem("The folder %s doesn't exist. Choose another folder." % places[0])
    logdir = places[0] if len(places) == 1 else linked(plan)
    board = program.TensorBoard(default.get_plugins(), server_class=Kept)
    # Its fast loader would be another process with a port that is open to everyone.
    board.configure(logdir=logdir, load_fast="false", reload_interval=15, reload_multifile=True)
    board.launch()
    return made[0], {"tensorboard": version.VERSION}, ""


def linked(plan):
    """One folder with a link to each place, since TensorBoard's own list stumbles over commas and colons."""
    folder = os.path.join(plan["folder"], "logs")
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        os.unlink(os.path.join(folder, old))
    taken = set()
    for place in plan["places"]:
        name = first = readable(place)
        number = 2
        while name.lower() in taken:
            name = "%s-%d" % (first, number)
            number += 1
        taken.add(name.lower())
        os.symlink(place, os.path.join(folder, name))
    return folder


def readable(place):
    """The last parts of a path, as a name that is fine everywhere."""
    last = [part for part in place.split("/") if part][-2:]
    return re.sub(r"[^\w.+=@-]+", "_", "-".join(last)).lstrip(".-")[:60] or "logs"


# --- what may be read ---


class Fence:
    """Files are opened and folders listed below the places that the owner chose, and nowhere else of theirs.

    A dashboard is shown to others and reads as its owner. A colleague who can write into a shared folder could put a link
    there to a file that only the owner may read; where a path really leads is looked at each time.
    """

    def __init__(self, plan):
        inside = [os.path.realpath(place) for place in plan["places"]]
        # A database has its files beside it.
        inside += [os.path.dirname(place) for place in inside if os.path.isfile(place)]
        programs = [sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), *filter(None, sys.path)]
        system = ["/usr", "/lib", "/lib64", "/etc", "/opt", "/cvmfs", "/dev"]
        self.always = self.folders(inside + [plan["folder"]] + programs + system)
        # Programs look at the machine while they start, and not later.
        self.at_start = self.folders(["/proc", "/sys", "/run", "/tmp", "/var"])
        sys.addaudithook(self.look)

    @staticmethod
    def folders(paths):
        return tuple({os.path.realpath(path).rstrip("/") + "/" for path in paths} - {"/"})

    def close(self):
        self.at_start = ()

    def look(self, event, args):
        if event not in ("open", "os.listdir", "os.scandir") or not args or isinstance(args[0], (int, type(None))):
            return
        path = os.path.realpath(os.fsdecode(args[0])) + "/"
        if not path.startswith(self.always) and not path.startswith(self.at_start or "\0"):
            raise PermissionError(13, "This is outside the folders that the dashboard shows", os.fsdecode(args[0]))


# --- MLflow ---


def mlflow(plan):
    place, message = plan["places"][0], ""
    if not os.path.exists(place):
        raise Problem("There is no folder or database file at %s. Choose another one." % place)
    if os.path.isdir(place):
        root = os.path.realpath(place)
        store = file_uri(place)
    else:
        root = os.path.realpath(os.path.dirname(place))
        store, message = database(plan, place)
    os.environ.update({
        "_MLFLOW_SERVER_FILE_STORE": store,
        "_MLFLOW_SERVER_REGISTRY_STORE": store,
        "_MLFLOW_SERVER_ARTIFACT_ROOT": file_uri(root),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    })
    served = os.path.join(root, "mlartifacts")
    if os.path.isdir(served):
        # Runs that were recorded through a server of MLflow's own have their files here.
        os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] = "true"
        os.environ["_MLFLOW_SERVER_ARTIFACT_DESTINATION"] = file_uri(served)
    import mlflow.server
    from mlflow.version import VERSION

    confine(root)
    app = mlflow.server.app
    if [int(part) for part in re.findall(r"\d+", VERSION)[:3]] < plan["whole_from"]:
        print("This older MLflow has known vulnerabilities, so the dashboard is read-only.", flush=True)
        app = read_only(app, plan["rules"])
    return app, {"mlflow": VERSION}, message


def file_uri(path):
    return "file://" + urllib.parse.quote(path)


def confine(root):
    """Files of runs are read below the tracking folder only, and from nowhere else."""
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import PERMISSION_DENIED
    from mlflow.store.artifact import artifact_repository_registry as known
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

    class Confined(LocalArtifactRepository):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            folder = os.path.realpath(self.artifact_dir)
            if os.path.commonpath([folder, root]) != root:
                raise MlflowException("These files are outside the folder that this dashboard shows.", PERMISSION_DENIED)

    def elsewhere(*args, **more):
        raise MlflowException("These files are on another service, which this dashboard can't access.", PERMISSION_DENIED)

    registry = known._artifact_repository_registry
    for scheme in list(registry._registry):
        if scheme in ("", "file"):
            registry.register(scheme, Confined)
        elif scheme not in ("runs", "models"):
            registry.register(scheme, elsewhere)


def database(plan, place):
    """Where MLflow finds the database, and what to tell its owner. By a plain name: addresses stumble over odd letters.

    MLflow would change a database of an older version, and its owner's own programs could no longer use it: of such a
    one, a copy is shown.
    """
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import _get_alembic_config

    link, copy = os.path.join(plan["folder"], "database"), os.path.join(plan["folder"], "copy")
    for old in (link, copy):
        if os.path.lexists(old):
            os.unlink(old)
    os.symlink(place, link)
    try:
        with sqlite3.connect("file:%s?mode=ro" % link, uri=True, timeout=20) as opened:
            opened.execute("SELECT count(*) FROM experiments")
            (revision,) = opened.execute("SELECT version_num FROM alembic_version").fetchone()
            known = ScriptDirectory.from_config(_get_alembic_config("sqlite://"))
            if revision == known.get_current_head():
                return "sqlite:///" + link, ""
            if revision not in [one.revision for one in known.walk_revisions()]:
                raise Problem("This database was written by a newer MLflow than the dashboard's, so it can't be shown yet.")
            with sqlite3.connect(copy) as other:
                opened.backup(other)
    except (sqlite3.Error, TypeError) as error:
        print(error, flush=True)
        raise Problem("%s isn't an MLflow database. Choose an MLflow database file or folder." % place) from error
    return "sqlite:///" + copy, "This database was written by an older MLflow, so the dashboard shows a copy made just now."


# --- all of it ---


def clear_environment():
    """Nothing of what the owner has set for programs of their own changes the dashboard or makes it call out."""
    begins = ("MLFLOW_", "_MLFLOW_", "AWS_", "AZURE_", "GOOGLE_", "DATABRICKS_", "OTEL_", "TENSORBOARD_", "FLASK_")
    for name in list(os.environ):
        if name.startswith(begins) or name.lower().endswith("_proxy") or name == "prometheus_multiproc_dir":
            del os.environ[name]


def check(kind):
    """Whether the environment has what a dashboard needs; prints its version."""
    if kind == "tensorboard":
        from tensorboard import default, program, version  # noqa: F401

        default.get_plugins()
        print("TensorBoard", version.VERSION)
    else:
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        import mlflow.server.graphql.graphql_schema_extensions
        import mlflow.store.model_registry.sqlalchemy_store
        import mlflow.store.tracking.file_store
        import mlflow.store.tracking.sqlalchemy_store  # noqa: F401
        from mlflow.version import VERSION

        print("MLflow", VERSION)


def main():
    clear_environment()
    if sys.argv[1] == "--check":
        return check(sys.argv[2])
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    state = State(plan["folder"])

    def end(*_):
        # Slurm and the job's script both send a signal. Nothing here may wait for a lock that the first one holds.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        state.tell("ended", "The dashboard was stopped or reached its time limit.")
        os.write(1, b"The dashboard has ended.\n")
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    state.tell("starting", "Starting the dashboard.")
    tempfile.tempdir = plan["folder"]
    fence = Fence(plan)
    try:
        made = tensorboard(plan) if plan["kind"] == "tensorboard" else mlflow(plan)
    except Problem as problem:
        print(problem, flush=True)
        state.tell("failed", str(problem))
        return 1
    except (ImportError, AttributeError, SyntaxError):
        traceback.print_exc()
        return EXIT_BROKEN
    except OSError as error:
        traceback.print_exc()
        state.tell("failed", "The dashboard couldn't read or write a file: %s." % (error.strerror or error))
        return 1
    secret = secrets.token_bytes(32)
    server = listen(secret)
    server.app, versions, message = made
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    fence.close()
    print("The dashboard is ready.", flush=True)
    state.tell("ready", message, port=port, secret=secret.hex(), versions=versions)
    # Not for ever at a time: a signal that comes just before a wait begins would not be noticed.
    while True:
        time.sleep(0.3)


if __name__ == "__main__":
    sys.exit(main())
