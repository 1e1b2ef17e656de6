//! Host keys: scanning a server's keys, and computing their fingerprints.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::process::Command;

use super::wire::{WireReader, fingerprint};
use crate::domain::HostName;

/// Seconds that `ssh-keyscan` waits for one reply.
const ANSWER_TIMEOUT_SECONDS: &str = "5";
/// Time limit for the whole scan.
const SCAN_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_SCAN_BYTES: usize = 64 * 1024;

/// A public host key: its type and its base64 body, as in a known-hosts file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostKey {
    kind: String,
    body: String,
}

impl HostKey {
    /// Parses `ssh-ed25519 AAAA…`; drops a comment after it.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (kind, body) = (words.next()?, words.next()?);
        let known = kind.starts_with("ssh-") || kind.starts_with("ecdsa-") || kind.starts_with("sk-");
        // The body begins with the type's name.
        let inside = STANDARD.decode(body).ok()?;
        let named = WireReader::new(&inside).text()? == kind;
        (known && named).then(|| Self { kind: kind.to_owned(), body: body.to_owned() })
    }

    /// The form that is stored and written to a known-hosts file.
    pub fn to_line(&self) -> String {
        format!("{} {}", self.kind, self.body)
    }

    /// The key type: `ssh-ed25519`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// `SHA256:…`, as centres publish it.
    pub fn fingerprint(&self) -> String {
        fingerprint(&STANDARD.decode(&self.body).unwrap_or_default())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HostKeyScanError {
    /// There is no `ssh-keyscan` on this machine.
    #[error("ssh-keyscan isn't installed; install the OpenSSH client ({0})")]
    NoProgram(std::io::Error),
    /// Nothing answered, or not as an SSH server.
    #[error("no SSH server responds at {0}")]
    NoAnswer(String),
}

/// The host keys a server shows right now. Only a comparison can tell whether they are the right ones.
pub async fn scan(host: &HostName, port: u16) -> Result<Vec<HostKey>, HostKeyScanError> {
    let child = Command::new("ssh-keyscan")
        .args(["-T", ANSWER_TIMEOUT_SECONDS, "-p", &port.to_string(), "--", host.as_str()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let silent = || HostKeyScanError::NoAnswer(format!("{} port {port}", host.as_str()));
    let output =
        tokio::time::timeout(SCAN_TIMEOUT, child).await.map_err(|_| silent())?.map_err(HostKeyScanError::NoProgram)?;
    let text = String::from_utf8_lossy(&output.stdout[..output.stdout.len().min(MAX_SCAN_BYTES)]).into_owned();
    let keys = parse_scan(&text);
    if keys.is_empty() { Err(silent()) } else { Ok(keys) }
}

/// Lines of `host type body`; comments begin with `#`.
fn parse_scan(text: &str) -> Vec<HostKey> {
    let mut keys: Vec<HostKey> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| HostKey::parse(line.split_once(char::is_whitespace)?.1))
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `ssh-keyscan` and `ssh-keygen -lf` of OpenSSH 9.2 for the same server.
    const SCAN: &str = "# 127.0.0.1:22022 SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7\n[127.0.0.1]:22022 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n";

    #[test]
    fn a_scan_is_read_and_fingerprinted() {
        let keys = parse_scan(SCAN);
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].kind(), "ssh-ed25519");
        assert_eq!(keys[0].fingerprint(), "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU");
        assert_eq!(HostKey::parse(&keys[0].to_line()).unwrap(), keys[0]);
    }

    #[test]
    fn nonsense_is_no_key() {
        for bad in ["", "ssh-ed25519", "ssh-ed25519 %%%", "x y", "\u{0}", "-oProxyCommand=x AAAA"] {
            assert_eq!(HostKey::parse(bad), None, "{bad:?}");
        }
        assert!(parse_scan("garbage\n\n# x\n").is_empty());
    }
}
