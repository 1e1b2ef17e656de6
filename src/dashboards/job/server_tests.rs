//! Tests of `server.py` itself, run by this machine's Python around a small application: handshake, HTTP, and the
//! table of routes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::dashboards::handshake::{DashboardSecret, authenticate};

const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Answers by path: `/echo` what was sent, `/pieces` without a length, `/short` less than it promises, `/large` 20
/// MB.
const APP: &str = r#"
import sys, types
server = types.ModuleType("server")
exec(compile(open(sys.argv[1]).read(), "server.py", "exec"), server.__dict__)
def app(environ, start):
    path = environ["PATH_INFO"]
    if path == "/fail":
        raise RuntimeError("on purpose")
    if path == "/pieces":
        start("200 OK", [("Content-Type", "text/plain"), ("Connection", "close")])
        return [b"one ", b"", b"two"]
    if path == "/short":
        start("200 OK", [("Content-Length", "10")])
        return [b"four"]
    if path == "/large":
        start("200 OK", [])
        return (bytes(1 << 16) for _ in range(320))
    body = environ["wsgi.input"].read() if path == "/echo" else path.encode("latin-1")
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
made = server.Server(server.socket.AF_INET, ("127.0.0.1", 0), bytes.fromhex(sys.argv[2]))
made.app = app
print(made.server_address[1], flush=True)
made.serve_forever()
"#;

struct DashboardServer {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl DashboardServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.py");
        std::fs::write(&file, SERVER_PY).unwrap();
        let mut process = Command::new("python3")
            .args(["-I", "-c", APP])
            .arg(&file)
            .arg(SECRET)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap(), _folder: folder }
    }

    async fn stranger(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    async fn friend(&self) -> TcpStream {
        let mut stream = self.stranger().await;
        authenticate(&mut stream, &DashboardSecret::from_hex(SECRET).unwrap(), [9; 32]).await.unwrap();
        stream
    }

    /// Everything that the server answers to these bytes until it closes.
    async fn said(mut stream: TcpStream, words: &[u8]) -> String {
        // The server may close before everything was sent.
        let _ = stream.write_all(words).await;
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all).await;
        String::from_utf8_lossy(&all).into_owned()
    }
}

impl Drop for DashboardServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn only_who_knows_the_secret_gets_a_byte() {
    let server = DashboardServer::start();
    let nonce = "a".repeat(64);
    for words in [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "\n".to_owned(),
        format!("PORTOLAN2 {nonce}\n"),
        format!("PORTOLAN1 {}\n", "A".repeat(64)),
        format!("PORTOLAN1 {nonce} "),
        "\0".repeat(300),
    ] {
        assert_eq!(DashboardServer::said(server.stranger().await, words.as_bytes()).await, "", "{words:?}");
    }
    // A client that knows how to begin gets the server's line, and nothing after a wrong proof.
    let words = format!("PORTOLAN1 {nonce}\n{}\nGET / HTTP/1.1\r\n\r\n", "0".repeat(64));
    assert_eq!(DashboardServer::said(server.stranger().await, words.as_bytes()).await.len(), 130);
    let other = DashboardSecret::from_hex(&SECRET.replace("00", "10")).unwrap();
    let error = authenticate(&mut server.stranger().await, &other, [1; 32]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[tokio::test]
async fn strangers_who_wait_do_not_keep_the_portal_out() {
    let server = DashboardServer::start();
    let mut waiting = Vec::new();
    for _ in 0..200 {
        waiting.push(server.stranger().await);
    }
    let end = DashboardServer::said(server.friend().await, b"GET /a HTTP/1.0\r\n\r\n").await;
    assert!(end.ends_with("/a"), "{end}");
    // The first of them were turned away.
    assert_eq!(DashboardServer::said(waiting.remove(0), b"").await, "");
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server = DashboardServer::start();
    let words = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n\
        POST /unread HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\
        POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\
        POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n\
        HEAD /head HTTP/1.1\r\n\r\n\
        GET /pieces HTTP/1.1\r\n\r\n\
        GET /fail HTTP/1.1\r\n\r\n\
        GET /never HTTP/1.1\r\n\r\n";
    let said = DashboardServer::said(server.friend().await, words).await;
    let answers: Vec<&str> = said.split("HTTP/1.1 ").skip(1).collect();
    assert_eq!(answers.len(), 7, "{said}");
    assert!(answers[0].ends_with("\r\n\r\n/a") && !answers[0].contains("Connection"), "{said}");
    assert!(answers[1].ends_with("/unread"), "{said}");
    assert!(answers[2].ends_with("\r\n\r\nhello") && answers[3].ends_with("\r\n\r\nhello"), "{said}");
    assert!(answers[4].contains("Content-Length: 5") && answers[4].ends_with("\r\n\r\n"), "{said}");
    assert!(answers[5].ends_with("4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"), "{said}");
    assert!(answers[6].starts_with("500") && answers[6].contains("Connection: close"), "{said}");
}

#[tokio::test]
async fn unclear_requests_are_refused_and_end_the_connection() {
    let server = DashboardServer::start();
    for words in [
        "POST /echo HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "POST /echo HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "GET /\r\n",
        "nonsense\r\n\r\n",
        "GET / HTTP/3.0\r\n\r\n",
    ] {
        let words = format!("{words}GET /smuggled HTTP/1.1\r\n\r\n");
        let said = DashboardServer::said(server.friend().await, words.as_bytes()).await;
        assert!(!said.contains("200 OK") && !said.contains("/smuggled"), "{words}\n{said}");
    }
    let said = DashboardServer::said(server.friend().await, b"GET /short HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    assert!(said.await.ends_with("\r\n\r\nfour"), "less than was promised is seen as such");
    let said = DashboardServer::said(server.friend().await, b"GET /large HTTP/1.0\r\n\r\n").await;
    assert_eq!(said.split_once("\r\n\r\n").unwrap().1.len(), 320 << 16);
}

/// Read-only dashboards and guests follow one table, and both sides read it alike.
#[test]
fn the_table_is_read_alike_on_both_sides() {
    const ASK: &str = "
import json, sys, types
server = types.ModuleType('server')
exec(compile(open(sys.argv[1]).read(), 'server.py', 'exec'), server.__dict__)
rules, asked = json.load(sys.stdin)
print(json.dumps([server.is_allowed(rules, method, path) for method, path in asked]))
";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.py");
    std::fs::write(&file, SERVER_PY).unwrap();
    for kind in DashboardKind::ALL {
        let rules: Vec<_> = read_only::rules(kind).collect();
        let mut asked: Vec<(&str, String)> = Vec::new();
        for (_, path) in &rules {
            for method in ["GET", "HEAD", "POST", "DELETE"] {
                let full = path.replace("**", "a/b").replace('*', "a");
                let longer = format!("{}/a", full.trim_end_matches('/'));
                asked.extend([full.clone(), longer, full.replacen("/a", "/b", 1)].map(|path| (method, path)));
            }
        }
        let ours: Vec<bool> = asked.iter().map(|(method, path)| read_only::is_allowed(kind, method, path)).collect();
        let mut python = Command::new("python3")
            .args(["-I", "-c", ASK])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        serde_json::to_writer(python.stdin.take().unwrap(), &(rules, &asked)).unwrap();
        let said = python.wait_with_output().unwrap().stdout;
        let theirs: Vec<bool> = serde_json::from_slice(&said).unwrap();
        for ((asked, ours), theirs) in asked.iter().zip(ours).zip(theirs) {
            assert_eq!(ours, theirs, "{asked:?}");
        }
    }
}

/// Slurm signals every process of a job, and the script signals the server as well.
#[test]
fn however_often_it_is_told_to_stop_it_says_goodbye() {
    let folder = tempfile::tempdir().unwrap();
    let fake = folder.path().join("tensorboard");
    std::fs::create_dir(&fake).unwrap();
    std::fs::write(fake.join("__init__.py"), "").unwrap();
    std::fs::write(fake.join("version.py"), "VERSION = '1'").unwrap();
    std::fs::write(fake.join("default.py"), "def get_plugins(): return []").unwrap();
    let program = "class TensorBoard:
    def __init__(self, plugins, server_class): self.made = server_class
    def configure(self, **flags): pass
    def launch(self): self.made(None, None)
";
    std::fs::write(fake.join("program.py"), program).unwrap();
    std::fs::write(folder.path().join("server.py"), SERVER_PY).unwrap();
    let plan = serde_json::json!({
        "kind": "tensorboard", "folder": folder.path(), "places": ["/usr"], "rules": [], "whole_from": [3, 15, 0],
    });
    std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
    let state = folder.path().join("state.json");
    for _ in 0..20 {
        let _ = std::fs::remove_file(&state);
        let mut server = Command::new("python3")
            .args(["server.py", "plan.json"])
            .current_dir(folder.path())
            .env("PYTHONPATH", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !std::fs::read_to_string(&state).is_ok_and(|text| text.contains("\"ready\"")) {
            assert!(server.try_wait().unwrap().is_none(), "it did not start");
            std::thread::yield_now();
        }
        let pid = rustix::process::Pid::from_child(&server);
        for _ in 0..50 {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        assert!(server.wait().unwrap().success());
        assert!(std::fs::read_to_string(&state).unwrap().contains("\"ended\""));
    }
}
