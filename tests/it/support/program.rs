//! The program itself, as an administrator runs it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::wait::wait_for;

/// The built program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_portolan");

/// A data folder and ports for the program.
pub struct Installation {
    pub dir: tempfile::TempDir,
    pub ports: [u16; 3],
}

impl Installation {
    /// A new, empty one.
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), ports: [0; 3].map(|_| free_port()) }
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The address of the portal.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.ports[0])
    }

    /// The program with this installation's settings.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args);
        self.configure(&mut command);
        command
    }

    /// Gives a command this installation's settings and nothing else.
    pub fn configure(&self, command: &mut Command) {
        let [portal, boards, metrics] = self.ports;
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("PORTOLAN_DATA_DIR", self.data())
            .env("PORTOLAN_PORTAL_LISTEN", format!("127.0.0.1:{portal}"))
            .env("PORTOLAN_DASHBOARDS_LISTEN", format!("127.0.0.1:{boards}"))
            .env("PORTOLAN_METRICS_LISTEN", format!("127.0.0.1:{metrics}"))
            .stdin(Stdio::null());
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command with text on its standard input.
    pub fn run_with_input(&self, args: &[&str], input: &str) -> Output {
        use std::io::Write as _;
        let mut child =
            self.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Starts the portal and waits until it answers.
    pub async fn serve(&self) -> Server {
        let log = self.dir.path().join("log");
        let file = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let child = self.command(&["serve"]).stderr(file).stdout(Stdio::null()).spawn().unwrap();
        let server = Server::new(child, log);
        server.wait_until_ready(&self.url()).await;
        server
    }
}

/// A running portal; killed when dropped.
pub struct Server {
    pub child: Child,
    log: PathBuf,
}

impl Server {
    /// A portal that was started in some other way.
    pub fn new(child: Child, log: PathBuf) -> Self {
        Self { child, log }
    }

    pub async fn wait_until_ready(&self, url: &str) {
        let http = portolan::http_client::client_builder(Duration::from_secs(5)).build().unwrap();
        wait_for("the portal starts", async || {
            let health = http.get(format!("{url}/healthz")).send().await;
            health.map_err(|_| self.log())
        })
        .await;
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The path of the newest set-up link in the log.
    pub fn setup_path(&self) -> String {
        let log = self.log();
        let start = log.rfind("/setup/").expect("a set-up link in the log");
        log[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || "/-_".contains(*c)).collect()
    }

    /// Sends a signal and waits for the end.
    pub fn stop(mut self, signal: &str) -> std::process::ExitStatus {
        signal_pid(self.child.id(), signal);
        self.child.wait().unwrap()
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        end_masters(&self.data().join("run"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free and stays so until somebody binds it: below those that the system gives to connections.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Other test runs begin elsewhere.
        let step = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id() * 97);
        let port = u16::try_from(10_000 + step % 10_000).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Ends the connections that a portal has left for its next start.
pub fn end_masters(run_dir: &Path) {
    for entry in std::fs::read_dir(run_dir).into_iter().flatten().flatten() {
        let pid = std::fs::read_to_string(entry.path().join("pid")).unwrap_or_default();
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let ours = entry.path().join("m");
        if command.split(|byte| *byte == 0).any(|word| word == ours.as_os_str().as_encoded_bytes()) {
            let _ = Command::new("kill").arg(pid).status();
        }
    }
}

/// Sends a signal to a process that this test started.
pub fn signal_pid(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The rights of a file, as in `chmod`.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
