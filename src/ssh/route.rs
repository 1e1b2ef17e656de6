//! The route to a cluster: host, user name, jump host, and the trusted host keys.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::host_keys::HostKey;
use crate::domain::{HostName, RemoteUser, Slug};

/// Seconds that a host may take to answer.
const CONNECT_TIMEOUT: u32 = 15;
/// A silent network is noticed after this many seconds times [`ALIVE_COUNT`].
const ALIVE_INTERVAL: u32 = 15;
const ALIVE_COUNT: u32 = 3;
/// How often a server may ask again after a wrong code.
const PASSWORD_PROMPTS: u32 = 3;
/// AES-GCM before OpenSSH's own first choice (ChaCha20-Poly1305): processors have instructions for it, so large files move
/// with half the work on either side, and it isn't open to the Terrapin attack.
const CIPHERS: &str = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com";

/// One host of a route.
#[derive(Debug, Clone)]
pub struct SshRouteHost {
    pub host: HostName,
    pub port: u16,
    /// The host keys it may show.
    pub host_keys: Vec<HostKey>,
}

#[derive(Debug, Clone)]
pub struct SshRoute {
    /// The cluster's short name. Host keys are filed under it, because a login host name can stand for several
    /// machines.
    pub name: Slug,
    /// The user name on all hosts of the route.
    pub user: RemoteUser,
    /// The host where commands run.
    pub target: SshRouteHost,
    /// The jump host, if there is one.
    pub jump: Option<SshRouteHost>,
    /// Whether ssh may ask for a password itself. On other sites it would do so when a server has no questions left.
    pub takes_password: bool,
}

impl SshRoute {
    /// ssh's name for the target: host keys are filed under it, and prompts contain it.
    pub fn alias(&self) -> &str {
        self.name.as_str()
    }

    /// ssh's name for the jump host.
    pub fn jump_alias(&self) -> String {
        format!("{}-jump", self.name.as_str())
    }

    fn known_hosts(&self) -> String {
        let mut text = String::new();
        let jump = self.jump.iter().map(|hop| (self.jump_alias(), hop));
        for (alias, hop) in jump.chain([(self.alias().to_owned(), &self.target)]) {
            for key in &hop.host_keys {
                let _ = writeln!(text, "{alias} {}", key.to_line());
            }
        }
        text
    }

    /// Every value in here was parsed into a type that cannot smuggle in a second option.
    fn config(&self, folder: &ConnectionFolder) -> String {
        let mut text = format!(
            "Host *\n\
             BatchMode no\n\
             StrictHostKeyChecking yes\n\
             UserKnownHostsFile {known}\n\
             GlobalKnownHostsFile /dev/null\n\
             UpdateHostKeys no\n\
             CheckHostIP no\n\
             IdentityAgent {agent}\n\
             IdentityFile none\n\
             PreferredAuthentications publickey,keyboard-interactive{password}\n\
             NumberOfPasswordPrompts {PASSWORD_PROMPTS}\n\
             ConnectTimeout {CONNECT_TIMEOUT}\n\
             ServerAliveInterval {ALIVE_INTERVAL}\n\
             ServerAliveCountMax {ALIVE_COUNT}\n\
             StreamLocalBindUnlink yes\n\
             ForwardAgent no\n\
             ForwardX11 no\n\
             PermitLocalCommand no\n\
             LogLevel INFO\n\
             Ciphers {CIPHERS}\n\
             User {user}\n",
            known = folder.file("known_hosts").display(),
            agent = folder.agent_socket().display(),
            user = self.user.as_str(),
            password = if self.takes_password { ",password" } else { "" },
        );
        let mut add_host = |alias: &str, hop: &SshRouteHost| {
            let _ =
                writeln!(text, "Host {alias}\nHostName {}\nPort {}\nHostKeyAlias {alias}", hop.host.as_str(), hop.port);
        };
        if let Some(jump) = &self.jump {
            add_host(&self.jump_alias(), jump);
        }
        add_host(self.alias(), &self.target);
        if self.jump.is_some() {
            let _ = writeln!(
                text,
                "ProxyCommand ssh -F {} -E {} -W [%h]:%p {}",
                folder.config_file().display(),
                folder.jump_log_file().display(),
                self.jump_alias()
            );
        }
        text
    }
}

/// The private folder of one connection. Anyone who reaches its socket acts as the user, so nobody else may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionFolder(PathBuf);

impl ConnectionFolder {
    /// The folder with this name in the run folder.
    pub fn new(run: &Path, name: &str) -> Self {
        Self(run.join(name))
    }

    /// Creates it and writes ssh's configuration. Removes anything left from before.
    pub fn prepare(&self, route: &SshRoute) -> io::Result<()> {
        self.remove();
        fs::DirBuilder::new().mode(0o700).create(&self.0)?;
        self.write("known_hosts", &route.known_hosts())?;
        self.write("config", &route.config(self))
    }

    /// Removes it with all its contents.
    pub fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.0.display(), %error, "Could not remove the folder of a connection");
        }
    }

    /// Writes a small file atomically.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let draft = self.file(&format!("{name}.new"));
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        fs::rename(draft, self.file(name))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn control_socket(&self) -> PathBuf {
        self.file("m")
    }

    /// The agent's socket, which exists only during login.
    pub fn agent_socket(&self) -> PathBuf {
        self.file("a")
    }

    /// The socket for questions, which exists only during login.
    pub fn askpass_socket(&self) -> PathBuf {
        self.file("p")
    }

    pub fn config_file(&self) -> PathBuf {
        self.file("config")
    }

    /// ssh's own log; servers cannot write to it.
    pub fn log_file(&self) -> PathBuf {
        self.file("log")
    }

    /// The same for the jump host.
    pub fn jump_log_file(&self) -> PathBuf {
        self.file("jump-log")
    }
}

/// The beginning and the end of a log: the middle adds nothing.
pub(super) fn read_head_and_tail(path: &Path) -> String {
    use std::io::{Read as _, Seek as _};
    const PIECE: u64 = 32 * 1024;
    let mut bytes = Vec::new();
    let read = |bytes: &mut Vec<u8>| -> io::Result<()> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        (&mut file).take(PIECE).read_to_end(bytes)?;
        if length > PIECE {
            file.seek(io::SeekFrom::Start(PIECE.max(length.saturating_sub(PIECE))))?;
            bytes.push(b'\n');
            file.take(PIECE).read_to_end(bytes)?;
        }
        Ok(())
    };
    let _ = read(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> HostKey {
        HostKey::parse("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl").unwrap()
    }

    fn route(jump: bool) -> SshRoute {
        let hop = |host: &str, port| SshRouteHost { host: host.parse().unwrap(), port, host_keys: vec![key()] };
        SshRoute {
            name: "fir".parse().unwrap(),
            user: "alice".parse().unwrap(),
            target: hop("fir.example.org", 22),
            jump: jump.then(|| hop("gate.example.org", 2222)),
            takes_password: false,
        }
    }

    #[test]
    fn ssh_accepts_the_configuration_and_reads_it_as_meant() {
        let run = tempfile::tempdir().unwrap();
        let folder = ConnectionFolder::new(run.path(), "1-1");
        for jump in [false, true] {
            folder.prepare(&route(jump)).unwrap();
            let output = std::process::Command::new("ssh")
                .arg("-G")
                .arg("-F")
                .arg(folder.config_file())
                .arg("fir")
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            for line in [
                "user alice",
                "hostname fir.example.org",
                "port 22",
                "hostkeyalias fir",
                "stricthostkeychecking true",
                "batchmode no",
                "forwardagent no",
            ] {
                assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
            }
            assert!(
                text.contains("\nciphers aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,")
            );
            assert_eq!(text.contains("proxycommand ssh -F"), jump);
            assert!(text.contains(&format!("identityagent {}", folder.agent_socket().display())));
        }
        let known = fs::read_to_string(folder.file("known_hosts")).unwrap();
        assert!(known.contains("fir-jump ssh-ed25519") && known.contains("fir ssh-ed25519"));
        folder.remove();
        assert!(!folder.path().exists());
    }
}
