//! The program itself, as an administrator runs it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The built program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_portolan");

/// A data folder and ports for the program.
pub struct Installation {
    pub dir: tempfile::TempDir,
    pub ports: [u16; 3],
}

impl Installation {
    /// A new, empty one. The ports were free a moment ago.
    pub fn new() -> Self {
        let sockets = [0; 3].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = sockets.map(|socket| socket.local_addr().unwrap().port());
        Self { dir: tempfile::tempdir().unwrap(), ports }
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
            .env("PORTOLAN_BOARDS_LISTEN", format!("127.0.0.1:{boards}"))
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
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
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
        let http = portolan::outgoing::client(Duration::from_secs(5)).build().unwrap();
        for _ in 0..600 {
            if http.get(format!("{url}/healthz")).send().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the portal did not start: {}", self.log());
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The path of the newest set-up link in the log.
    pub fn setup_path(&self) -> String {
        let log = self.log();
        let start = log.rfind("/setup/").expect("a set-up link in the log");
        log[start..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "/-_".contains(*c))
            .collect()
    }

    /// Sends a signal and waits for the end.
    pub fn stop(mut self, signal: &str) -> std::process::ExitStatus {
        signal_pid(self.child.id(), signal);
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process that this test started.
pub fn signal_pid(pid: u32, signal: &str) {
    let sent =
        Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap();
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
